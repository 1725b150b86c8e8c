//! V01: idea to working branch, by the verbs a product owner uses.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use ropewalk_schemas::attempt::{Evidence, Verdict};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::document::tasks_md;
use ropewalk_schemas::idea::{Idea, Session};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::review::{Review, ReviewKind};
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{CorrelationId, trace};
use ropewalk_store::{EventFilter, Query, Store, StoredEvent};

use crate::picture::{at, check_at_rest, git, landed, store};
use crate::project::{LINES, PATIENCE, Project, TASKS, identity};
use crate::running::finish;

#[tokio::test]
async fn an_idea_becomes_a_verified_branch_by_the_verbs_of_its_owner() -> anyhow::Result<()> {
    let project = Project::new()?;
    let opening = "I want to build a habit tracking app";
    project.verb(&["idea", "new", opening, "--slug", "habits"], "")?;
    project
        .runner
        .run_with_input(&["idea", "chat", "habits"], LINES, PATIENCE)?;
    let folder = project.path().join("state/users/pat/ideas/habits");
    for file in [
        "README.md",
        "target-users.md",
        "problem-solution.md",
        "planning/brief.md",
    ] {
        ensure!(
            folder.join(file).is_file(),
            "`{file}` is missing from the idea folder"
        );
    }
    let early = store(project.path()).await?;
    assert_eq!(early.count::<Specification>(Query::new()).await?, 0);
    assert_eq!(
        early.count::<Build>(Query::new()).await?,
        0,
        "ideation alone builds nothing"
    );
    let made = project.verb(&["spec", "generate", "habits"], "")?;
    let (id, hash) = identity(&made)?;
    for file in ["build/spec.md", "build/tasks.md"] {
        ensure!(
            folder.join(file).is_file(),
            "`{file}` is missing from the idea folder"
        );
    }
    let stale = "0".repeat(64);
    let refused = project
        .runner
        .run(&["spec", "approve", &id, "--hash", &stale], PATIENCE)?;
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(early.count::<Build>(Query::new()).await?, 0);
    assert_eq!(early.count::<Task>(Query::new()).await?, 0);
    early.close().await?;
    project.verb(&["spec", "approve", &id, "--hash", &hash], "")?;
    finish(&project.runner, project.path(), 1).await?;

    let store = store(project.path()).await?;
    check_records(&store).await?;
    check_events(&store).await?;
    check_whole(&store).await?;
    check_at_rest(&store).await?;
    check_branch(&project.repository())?;
    check_tasks_file(&folder)
}

async fn check_records(store: &Store) -> anyhow::Result<()> {
    let idea = store.get::<Idea>("habits").await?.context("the idea")?;
    let session = store
        .get::<Session>(&idea.session.to_string())
        .await?
        .context("the session")?;
    let phases: Vec<String> = session
        .phases
        .iter()
        .map(|entry| entry.phase.to_string())
        .collect();
    assert_eq!(
        phases,
        [
            "exploring",
            "narrowing",
            "validating",
            "refining",
            "complete"
        ]
    );
    let specs = store.list::<Specification>(Query::new()).await?;
    assert_eq!(specs.len(), 1);
    assert_eq!(specs[0].state, SpecState::Approved);
    let approval = specs[0].approval.as_ref().context("an approval")?;
    assert_eq!(
        (approval.by.as_str(), Some(&approval.hash)),
        ("pat", specs[0].hash.as_ref())
    );
    let builds = store.list::<Build>(Query::new()).await?;
    assert_eq!(builds.len(), 1);
    assert_eq!(builds[0].state, BuildState::Succeeded);
    assert_eq!(builds[0].head, builds[0].published);
    let tasks = store.list::<Task>(Query::new()).await?;
    assert_eq!(tasks.len(), TASKS);
    assert!(
        tasks
            .iter()
            .all(|task| task.state == TaskState::Complete && task.attempts == 1)
    );
    let reviews = store.list::<Review>(Query::new()).await?;
    let review = reviews
        .iter()
        .find(|review| review.kind == ReviewKind::Build)
        .context("a review")?;
    assert!((review.metrics["first_pass_success"] - 1.0).abs() < f64::EPSILON);
    let open = Query::new().equal("state", QuestionState::Pending.as_str());
    let open = store.list::<Question>(open).await?;
    let triggers: Vec<&str> = open
        .iter()
        .map(|question| question.trigger.as_str())
        .collect();
    assert_eq!(triggers, ["build_finished"]);
    Ok(())
}

/// Checks that the whole was judged after its last task and before it was called a success, by who had approved it.
async fn check_whole(store: &Store) -> anyhow::Result<()> {
    let build = store.list::<Build>(Query::new()).await?.remove(0);
    let evidence = store.list::<Evidence>(Query::new()).await?;
    let of_whole: Vec<_> = evidence
        .iter()
        .filter(|evidence| evidence.task.is_none())
        .collect();
    let [whole] = of_whole[..] else {
        bail!("one check of the whole, not {of_whole:?}")
    };
    assert_eq!(
        (whole.verdict, Some(&whole.commit)),
        (Verdict::Passed, build.head.as_ref())
    );
    let tasks = store.list::<Task>(Query::new()).await?;
    let last = tasks.iter().filter_map(|task| task.completed_at).max();
    ensure!(last <= Some(whole.at), "the whole is judged too early");
    ensure!(
        Some(whole.at) <= build.completed_at,
        "it is judged too late"
    );
    let spec = store.list::<Specification>(Query::new()).await?.remove(0);
    let approved = spec.approval.as_ref().context("an approval")?.at;
    let first = tasks.iter().filter_map(|task| task.claimed_at).min();
    ensure!(Some(approved) <= first, "a task began before the approval");
    Ok(())
}

/// Checks that all of a chain, events and calls of models, is one trace to tools that others wrote.
async fn check_trace(
    store: &Store,
    events: &[StoredEvent],
    chain: CorrelationId,
) -> anyhow::Result<()> {
    for stored in events {
        let event = &stored.event;
        let expected = trace::of_event(chain, event.id, false);
        assert_eq!(
            event.traceparent.as_ref(),
            Some(&expected),
            "{}",
            event.event_type
        );
    }
    let calls = store.list::<ModelCall>(Query::new()).await?;
    let mut roles = BTreeSet::new();
    for call in &calls {
        let expected = trace::of_call(chain, &call.key, false);
        assert_eq!(call.traceparent.as_ref(), Some(&expected), "{}", call.key);
        roles.insert(call.role.as_str());
    }
    let of_agents = ["build", "chat", "spec"];
    ensure!(
        of_agents.iter().all(|role| roles.contains(role)),
        "{roles:?}"
    );
    Ok(())
}

/// Checks that nothing is told twice for one cause.
fn check_once(events: &[StoredEvent]) {
    let mut told = BTreeSet::new();
    for stored in events {
        let event = &stored.event;
        let cause = event.causationid.map(|cause| cause.to_string());
        let data = event.data.to_string();
        let fact = (cause, event.event_type.clone(), event.subject.clone(), data);
        assert!(told.insert(fact), "told twice: {event:?}");
    }
}

/// What people and the time begin.
const ROOTS: [&str; 4] = [
    "ideation.message",
    "spec.requested",
    "spec.approved",
    "schedule.due",
];

async fn check_events(store: &Store) -> anyhow::Result<()> {
    let idea = store.get::<Idea>("habits").await?.context("the idea")?;
    let filter = EventFilter {
        limit: Some(10_000),
        ..EventFilter::default()
    };
    let all = store.events(&filter).await?;
    let chain = EventFilter {
        correlation: Some(idea.correlation_id),
        ..filter
    };
    let of_chain = store.events(&chain).await?;
    let foreign: BTreeSet<&str> = all
        .iter()
        .filter(|stored| stored.event.correlationid != idea.correlation_id)
        .map(|stored| stored.event.event_type.as_str())
        .collect();
    assert!(
        foreign
            .iter()
            .all(|event_type| *event_type == "schedule.due"),
        "{foreign:?}"
    );
    check_trace(store, &of_chain, idea.correlation_id).await?;
    check_order(&of_chain)?;
    check_once(&of_chain);
    let positions: Vec<i64> = of_chain.iter().map(|stored| stored.sequence).collect();
    assert!(positions.is_sorted());
    for stored in &of_chain {
        let Some(cause) = stored.event.causationid else {
            // Only what a person began, or the time, has no cause.
            let event_type = stored.event.event_type.as_str();
            ensure!(ROOTS.contains(&event_type), "no cause of `{event_type}`");
            continue;
        };
        let cause = all
            .iter()
            .find(|other| other.event.id == cause)
            .context("a cause")?;
        assert!(
            cause.sequence < stored.sequence,
            "{} before its cause",
            stored.event.event_type
        );
    }
    Ok(())
}

fn check_order(events: &[StoredEvent]) -> anyhow::Result<()> {
    let of = |event_type: &str| -> Vec<&StoredEvent> {
        events
            .iter()
            .filter(|stored| stored.event.event_type == event_type)
            .collect()
    };
    let once = |event_type: &str| -> anyhow::Result<&StoredEvent> {
        let found = of(event_type);
        ensure!(found.len() == 1, "{} times `{event_type}`", found.len());
        Ok(found[0])
    };
    let mut last = 0;
    for event_type in [
        "ideation.started",
        "candidate.created",
        "ideation.completed",
        "spec.requested",
        "spec.generated",
        "spec.approved",
        "build.started",
        "build.completed",
    ] {
        let position = once(event_type)?.sequence;
        ensure!(position > last, "`{event_type}` comes too early");
        last = position;
    }
    let completed = &once("ideation.completed")?.event.data;
    for field in [
        "session_id",
        "idea_slug",
        "user_slug",
        "brief_path",
        "confidence",
        "ready_for_spec",
    ] {
        at(completed, &format!("/{field}"))?;
    }
    assert_eq!(
        at(&once("spec.generated")?.event.data, "/task_count")?,
        TASKS
    );
    assert_eq!(of("task.completed").len(), TASKS);
    let first = of("task.started")
        .first()
        .context("a started task")?
        .sequence;
    ensure!(
        first > once("build.started")?.sequence,
        "a task began before its build"
    );
    for task in of("task.completed") {
        at(&task.event.data, "/duration_seconds")?;
        at(&task.event.data, "/commit_sha")?;
        ensure!(
            task.sequence < last,
            "a task landed after the end of its build"
        );
    }
    check_ending(events, once("build.completed")?)
}

/// Checks what is told of the end of the build, and that its review follows.
fn check_ending(events: &[StoredEvent], end: &StoredEvent) -> anyhow::Result<()> {
    let built = &end.event.data;
    for field in ["build_id", "counts", "duration_seconds", "branch"] {
        at(built, &format!("/{field}"))?;
    }
    assert_eq!(at(built, "/status")?, "succeeded");
    assert_eq!(at(built, "/commits")?.as_array().map(Vec::len), Some(TASKS));
    let reviewed = events
        .iter()
        .find(|stored| {
            stored.event.event_type == "review.completed" && stored.event.data["kind"] == "build"
        })
        .context("a review of the build")?;
    ensure!(
        reviewed.sequence > end.sequence,
        "it is reviewed before its end"
    );
    for field in ["patterns_found", "gotchas_found"] {
        at(&reviewed.event.data, &format!("/{field}"))?;
    }
    Ok(())
}

fn check_branch(repository: &Path) -> anyhow::Result<()> {
    let commits = landed(repository, "build/habits")?;
    let tasks: Vec<String> = commits.iter().map(|commit| commit.task.clone()).collect();
    let wanted: Vec<String> = (1..=TASKS).map(|number| format!("T-{number:03}")).collect();
    assert_eq!(tasks, wanted);
    for (number, commit) in (1..).zip(&commits) {
        assert_eq!(commit.files, [format!("parts/{number:02}.txt")]);
        assert_eq!(commit.requirements, [format!("FR-{number}")]);
    }
    let first = git(
        repository,
        &["log", "--reverse", "--format=%H", "main..build/habits"],
    )?;
    let first = first.lines().next().context("a first commit")?;
    let files = git(repository, &["show", "--format=", "--name-only", first])?;
    ensure!(
        files.lines().all(|file| file.starts_with("ideas/habits/")),
        "{files}"
    );
    assert_eq!(git(repository, &["rev-list", "--count", "main"])?, "1");
    Ok(())
}

/// Checks that tasks.md says what the store says.
fn check_tasks_file(folder: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(folder.join("build/tasks.md"))?;
    let document = tasks_md::parse(&text)?;
    assert_eq!(
        (document.header().total, document.header().completed),
        (TASKS, TASKS)
    );
    for entry in document.entries() {
        assert_eq!(
            entry.progress.status,
            TaskState::Complete,
            "{}",
            entry.block.id
        );
        ensure!(
            entry.progress.completed_at.is_some(),
            "`{}` has no time",
            entry.block.id
        );
    }
    assert_eq!(document.entries().len(), TASKS);
    Ok(())
}
