//! What an idea goes through is one trace at a receiver of OpenTelemetry that others wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use ropewalk_runtime::Clock;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::review::{Review, ReviewKind};
use ropewalk_schemas::trace;
use ropewalk_store::{EventFilter, Location, Query, Store};
use ropewalk_tests::program::Runner;
use ropewalk_tests::servers::{NatsServer, PostgresServer, ReceivedSpan, SpanReceiver};

use crate::picture::{REHEARSAL, store};
use crate::project::{LINES, PATIENCE, Project, identity};
use crate::running::{RunningProgram, start, stop};

/// Which agents run in which process.
const CREWS: [&[&str]; 3] = [
    &["agent", "ideation", "questions", "monitor"],
    &["agent", "specification", "pm"],
    &["agent", "build", "improvement"],
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chat_specification_build_and_review_of_three_processes_are_one_trace() -> anyhow::Result<()>
{
    let (postgres, nats) = (PostgresServer::start()?, NatsServer::start()?);
    let receiver = SpanReceiver::start()?;
    let mut project = Project::new()?;
    for (name, value) in [
        ("ROPEWALK_STORE__LOCATION", postgres.url()),
        ("ROPEWALK_BUS__TRANSPORT", nats.url()),
        ("ROPEWALK_TELEMETRY__ENDPOINT", receiver.url()),
    ] {
        project.runner = project.runner.with_variable(name, &value);
    }
    let mut processes = Vec::new();
    for crew in CREWS {
        processes.push(start(&project.runner, crew)?);
    }
    let store = Store::open(
        &Location::parse(&postgres.url(), Path::new(""))?,
        Clock::system(),
    )
    .await?;
    approve(&project)?;
    until_reviewed(&store, &project).await?;
    let pids: Vec<String> = processes
        .iter()
        .map(|process: &RunningProgram| process.0.id().to_string())
        .collect();
    for process in &mut processes {
        stop(process).await?;
    }
    check(&store, &receiver.spans(), &pids).await?;
    store.close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rehearsal_sends_its_spans_where_the_configuration_says() -> anyhow::Result<()> {
    let receiver = SpanReceiver::start()?;
    let directory = tempfile::tempdir()?;
    let folder = directory.path().join("rehearsal");
    let runner = Runner::new(directory.path())
        .with_variable("ROPEWALK_TELEMETRY__ENDPOINT", &receiver.url());
    let folder_name = folder.display().to_string();
    let rehearse = ["rehearse", "--json", "--dir", &folder_name];
    let output = runner.run(&rehearse, REHEARSAL)?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{complaint}");
    let store = store(&folder).await?;
    let idea = store.get::<Idea>("habit-streaks").await?;
    let chain = idea.context("the idea")?.correlation_id;
    let sent: BTreeSet<String> = receiver
        .spans()
        .iter()
        .filter(|span| span.trace() == trace::trace_id(chain))
        .map(|span| span.id().to_owned())
        .collect();
    let of_idea = EventFilter {
        correlation: Some(chain),
        limit: Some(10_000),
        ..EventFilter::default()
    };
    let events = store.events(&of_idea).await?;
    ensure!(events.len() > 50, "{} events", events.len());
    for stored in events {
        let span = trace::event_span(stored.event.id);
        ensure!(sent.contains(&span), "no span of {:?}", stored.event);
    }
    store.close().await?;
    Ok(())
}

/// Says what a person says up to the approval.
fn approve(project: &Project) -> anyhow::Result<()> {
    let opening = "I want to build a habit tracking app";
    project.verb(&["idea", "new", opening, "--slug", "habits"], "")?;
    let chat = ["idea", "chat", "habits"];
    project.runner.run_with_input(&chat, LINES, PATIENCE)?;
    let made = project.verb(&["spec", "generate", "habits"], "")?;
    let (id, hash) = identity(&made)?;
    project
        .verb(&["spec", "approve", &id, "--hash", &hash], "")
        .map(drop)
}

async fn until_reviewed(store: &Store, project: &Project) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let reviews = store.list::<Review>(Query::new()).await?;
        let open = store.open_deliveries(None, 0, 1).await?;
        let reviewed = reviews.iter().any(|row| row.kind == ReviewKind::Build);
        if reviewed && open.is_empty() {
            return Ok(());
        }
        let said = || std::fs::read_to_string(project.runner.log()).unwrap_or_default();
        ensure!(began.elapsed() < PATIENCE, "no review in time: {}", said());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Checks that the spans are those of what is stored, each once, under parents that are known, from every process.
async fn check(store: &Store, spans: &[ReceivedSpan], pids: &[String]) -> anyhow::Result<()> {
    let idea = store.get::<Idea>("habits").await?.context("the idea")?;
    let chain = trace::trace_id(idea.correlation_id);
    let of_idea: Vec<_> = spans.iter().filter(|span| span.trace() == chain).collect();
    let ids: BTreeSet<&str> = of_idea.iter().map(|span| span.id()).collect();
    assert_eq!(ids.len(), of_idea.len(), "each span comes once");
    for span in &of_idea {
        let is_known = span.parent().is_none_or(|parent| ids.contains(parent));
        ensure!(is_known, "nobody knows the parent of {span:?}");
    }
    let filter = EventFilter {
        correlation: Some(idea.correlation_id),
        limit: Some(10_000),
        ..EventFilter::default()
    };
    for stored in store.events(&filter).await? {
        let event = &stored.event;
        let span = trace::event_span(event.id);
        ensure!(ids.contains(span.as_str()), "no span of {event:?}");
        let traceparent = event.traceparent.as_deref();
        let says_so = traceparent.is_some_and(|text| text.ends_with("-01"));
        ensure!(says_so, "its span is sent: {event:?}");
    }
    let calls = store.list::<ModelCall>(Query::new()).await?;
    for call in &calls {
        let span = trace::call_span(&call.key);
        let span = of_idea.iter().find(|found| found.id() == span);
        let span = span.with_context(|| format!("no span of `{}`", call.key))?;
        let said = |key| span.attribute(key).map(str::to_owned);
        assert_eq!(said("gen_ai.operation.name").as_deref(), Some("chat"));
        assert_eq!(said("gen_ai.request.model").as_deref(), Some("any"));
        let tokens = [
            ("gen_ai.usage.input_tokens", call.input_tokens),
            ("gen_ai.usage.output_tokens", call.output_tokens),
        ];
        for (key, count) in tokens {
            assert_eq!(said(key), Some(count.to_string()), "{key}");
        }
    }
    // Which process asked a model for which agent.
    let mut asked: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for span in of_idea
        .iter()
        .filter(|span| span.name().starts_with("chat "))
    {
        let agent = span.attribute("gen_ai.agent.name").context("an agent")?;
        let process = span.attribute("process.pid").context("a process")?;
        asked.entry(agent).or_default().insert(process);
    }
    let expected = [
        ("build", &pids[2]),
        ("ideation", &pids[0]),
        ("improvement", &pids[2]),
        ("specification", &pids[1]),
    ];
    let expected = expected.map(|(agent, pid)| (agent, BTreeSet::from([pid.as_str()])));
    assert_eq!(asked, BTreeMap::from(expected));
    for kind in ["send ", "process ", "invoke_agent "] {
        let any = of_idea.iter().any(|span| span.name().starts_with(kind));
        ensure!(any, "no span `{kind}…`");
    }
    check_work(&of_idea)
}

/// Checks that the build is one span, the jobs of its model are parts of it, and the calls of tools parts of jobs; and that
/// nothing is said of what went into a call or came of it.
fn check_work(spans: &[&ReceivedSpan]) -> anyhow::Result<()> {
    let workflows = of_kind(spans, "invoke_workflow");
    let [whole] = workflows.as_slice() else {
        bail!("one build is no more and no less than one span: {workflows:?}");
    };
    assert_eq!(whole.name(), "invoke_workflow build");
    assert_eq!(whole.attribute("gen_ai.workflow.name"), Some("build"));
    let jobs = of_kind(spans, "invoke_agent");
    let of_build: BTreeSet<Option<&str>> = jobs
        .iter()
        .filter(|job| job.attribute("gen_ai.agent.name") == Some("build"))
        .map(|job| job.parent())
        .collect();
    assert_eq!(of_build, BTreeSet::from([Some(whole.id())]));
    let jobs: BTreeSet<&str> = jobs.iter().map(|job| job.id()).collect();
    let calls = of_kind(spans, "execute_tool");
    ensure!(!calls.is_empty(), "no tool was called");
    for call in calls {
        let tool = call.attribute("gen_ai.tool.name").context("a tool")?;
        assert_eq!(call.name(), format!("execute_tool {tool}"));
        ensure!(call.attribute("gen_ai.tool.call.id").is_some(), "{call:?}");
        // What an earlier job found is looked up again without a job of its own.
        let of_build = call.attribute("gen_ai.agent.name") == Some("build");
        let of_job = call.parent().is_some_and(|parent| jobs.contains(parent));
        ensure!(of_job || !of_build, "a call is a part of a job: {call:?}");
        for content in ["gen_ai.tool.call.arguments", "gen_ai.tool.call.result"] {
            assert_eq!(call.attribute(content), None, "{call:?}");
        }
    }
    Ok(())
}

/// Lists the spans of what the conventions call so.
fn of_kind<'a>(spans: &[&'a ReceivedSpan], operation: &str) -> Vec<&'a ReceivedSpan> {
    let all = spans.iter().copied();
    all.filter(|span| span.attribute("gen_ai.operation.name") == Some(operation))
        .collect()
}
