//! A provider that is away for several processes at once (V41): each of their loops spends a call, and then nobody asks but
//! the probe, until it is back.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::task::{TaskState, WaitReason};
use ropewalk_store::Query;
use serde_json::{Value, json};

use super::{OTHERS, Team};
use crate::running::stop;

/// The provider of the models that build.
const NAME: &str = "gone";
/// The loops of both processes.
const LOOPS: [&str; 4] = ["loop-2-1", "loop-2-2", "loop-3-1", "loop-3-2"];
/// Stands before the number of the task in a request for work on one; a probe has none.
const OF_TASK: &str = "BUILD TASK: T-";
/// So soon work begins once the provider is back.
const SOON: Duration = Duration::from_secs(30);
/// It asks nobody to come again soon, so that a call is one request.
const REFUSAL: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 3600\r\ncontent-length: 2\r\n\
                       connection: close\r\n\r\n{}";

/// How the provider answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// It does not, yet.
    Silent,
    /// That it is away.
    Refuses,
    /// As it should.
    Serves,
}

/// What the provider does, and how often it was asked.
#[derive(Debug)]
struct Conduct {
    mood: Mood,
    calls: usize,
    probes: usize,
}

/// A provider over HTTP, in the format of chat completions.
struct Provider {
    url: String,
    conduct: Arc<Mutex<Conduct>>,
}

impl Provider {
    /// Starts it silent; it ends with the process of the test.
    fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let conduct = Arc::new(Mutex::new(Conduct {
            mood: Mood::Silent,
            calls: 0,
            probes: 0,
        }));
        let shared = Arc::clone(&conduct);
        thread::spawn(move || {
            for caller in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                // Who hangs up wants no answer.
                thread::spawn(move || drop(answer(caller, &shared)));
            }
        });
        Ok(Self { url, conduct })
    }

    fn becomes(&self, mood: Mood) {
        locked(&self.conduct).mood = mood;
    }

    fn calls(&self) -> usize {
        locked(&self.conduct).calls
    }

    fn probes(&self) -> usize {
        locked(&self.conduct).probes
    }
}

fn locked(conduct: &Mutex<Conduct>) -> MutexGuard<'_, Conduct> {
    conduct.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers one request as it is the mood, once that is not to be silent.
fn answer(mut caller: TcpStream, conduct: &Mutex<Conduct>) -> io::Result<()> {
    let body = read(&caller)?;
    let task = task_of(&body);
    {
        let mut conduct = locked(conduct);
        conduct.calls += usize::from(task.is_some());
        conduct.probes += usize::from(task.is_none());
    }
    while locked(conduct).mood == Mood::Silent {
        thread::sleep(Duration::from_millis(10));
    }
    let serves = locked(conduct).mood == Mood::Serves;
    let page = if serves {
        reply(task, &body)
    } else {
        REFUSAL.to_owned()
    };
    caller.write_all(page.as_bytes())
}

/// Reads the body of a request.
fn read(caller: &TcpStream) -> io::Result<String> {
    let mut reader = BufReader::new(caller);
    let mut length = 0_u64;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim().to_ascii_lowercase();
        match line.split_once(':') {
            Some(("content-length", count)) => {
                length = count.trim().parse().map_err(io::Error::other)?;
            }
            _ if line.is_empty() => break,
            _ => {}
        }
    }
    let mut body = String::new();
    reader.take(length).read_to_string(&mut body)?;
    Ok(body)
}

fn task_of(body: &str) -> Option<usize> {
    let (_, rest) = body.split_once(OF_TASK)?;
    rest.get(..3)?.parse().ok()
}

/// Writes the part of a task, and says so once it is written; a probe gets a word.
fn reply(task: Option<usize>, body: &str) -> String {
    let call = |tool: &str, input: &Value| {
        json!({ "tool_calls": [{ "index": 0, "id": format!("call_{tool}"),
            "function": { "name": tool, "arguments": input.to_string() } }] })
    };
    let delta = match task {
        None => json!({ "content": "Yes." }),
        Some(_) if body.contains("\"role\":\"tool\"") => {
            call("finish", &json!({ "summary": "Wrote the part." }))
        }
        Some(number) => {
            let path = format!("parts/{number:02}.txt");
            let content = format!("part {number} is ready\n");
            call("write", &json!({ "path": path, "content": content }))
        }
    };
    let why = if task.is_some() { "tool_calls" } else { "stop" };
    let events = [
        json!({ "model": "any", "choices": [{ "index": 0, "delta": delta }] }),
        json!({ "model": "any", "choices": [{ "index": 0, "delta": {}, "finish_reason": why }] }),
        json!({ "model": "any", "choices": [],
            "usage": { "prompt_tokens": 900, "completion_tokens": 90 } }),
    ];
    let events = events.map(|event| format!("data: {event}\n\n")).concat();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         {events}data: [DONE]\n\n"
    )
}

/// Lets every task of the plan be ready from the beginning.
fn at_once(_: &Path, rule: &mut Value) {
    if rule["agent"] == "specification"
        && let Some(tasks) = rule.pointer_mut("/reply/tools/0/input/tasks")
        && let Some(tasks) = tasks.as_array_mut()
    {
        for task in tasks {
            task["depends_on"] = json!([]);
        }
    }
}

/// Makes a team whose processes have two loops, which ask `provider`.
async fn asking(provider: &Provider) -> anyhow::Result<Team> {
    let mut team = Team::new(at_once).await?;
    let model = format!("{NAME}/any");
    let settings = [
        ("ROPEWALK_PROVIDERS__GONE__KIND", "openai"),
        ("ROPEWALK_PROVIDERS__GONE__BASE_URL", provider.url.as_str()),
        ("ROPEWALK_MODELS__BUILD", model.as_str()),
        ("ROPEWALK_BUILD__LOOPS", "2"),
        // Nobody loses a lock while the provider lets all wait, however busy the machine is.
        ("ROPEWALK_BUILD__LEASE_SECONDS", "60"),
    ];
    for (name, value) in settings {
        let runner = team.project.runner.clone();
        team.project.runner = runner.with_variable(name, value);
    }
    Ok(team)
}

async fn until_build(
    team: &Team,
    what: &str,
    wanted: impl Fn(&Build) -> bool,
) -> anyhow::Result<()> {
    team.until(what, async || {
        let builds = team.store.list::<Build>(Query::new()).await?;
        Ok(builds.iter().any(|row| wanted(row)).then_some(()))
    })
    .await
}

/// Checks what it costs that the provider is away: a call of each loop, and a try of nobody. Returns the outage.
async fn check_away(team: &Team, provider: &Provider) -> anyhow::Result<Outage> {
    assert_eq!(provider.calls(), LOOPS.len());
    let outages = team.store.list::<Outage>(Query::new()).await?;
    let [outage] = outages.as_slice() else {
        bail!("{outages:?}");
    };
    ensure!(outage.provider == NAME && outage.stands(), "{outage:?}");
    let alerts = team.store.list::<Alert>(Query::new()).await?;
    let [alert] = alerts.as_slice() else {
        bail!("{alerts:?}");
    };
    ensure!(alert.cause == Outage::cause(NAME), "{alert:?}");
    ensure!(alert.cleared_at.is_none(), "{alert:?}");
    assert_eq!(team.events("alert.provider_down").await?.len(), 1);
    let tasks = team.tasks().await?;
    for task in tasks.values() {
        let charged = (task.tries, task.cut_off, task.failures.len());
        assert_eq!(charged, (0, 0, 0), "{}", task.id);
        let goes_on = matches!(task.state, TaskState::Ready | TaskState::Waiting);
        ensure!(goes_on, "`{}` is {}", task.id, task.state);
    }
    let attempts = team.store.list::<Attempt>(Query::new()).await?;
    assert_eq!(attempts.len(), LOOPS.len());
    for attempt in &attempts {
        let ended = (attempt.state, attempt.failure.is_some());
        assert_eq!(ended, (AttemptState::Interrupted, false));
    }
    let spent: BTreeSet<&str> = attempts.iter().map(|row| row.loop_name.as_str()).collect();
    assert_eq!(spent, BTreeSet::from(LOOPS));
    let leases = team.store.list::<Lease>(Query::new()).await?;
    let held = leases.iter().any(|row| row.state == LeaseState::Granted);
    ensure!(!held, "{leases:?}");
    let questions = team.store.list::<Question>(Query::new()).await?;
    let of_work = |row: &Question| matches!(row.about, About::Task { .. } | About::Build { .. });
    ensure!(!questions.iter().any(|row| of_work(row)), "{questions:?}");
    Ok(outage.record.clone())
}

/// Checks that the list of builds says who is away, since when, and when that is looked at again.
fn check_told(team: &Team, since: &Outage) -> anyhow::Result<()> {
    let builds = team.project.verb(&["build", "list"], "")?;
    let told = builds.pointer("/0/outage").context("an outage")?;
    assert_eq!(told["provider"], NAME);
    assert_eq!(told["since"], json!(since.since));
    ensure!(told["probe_at"].is_string(), "{told}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_loops_of_two_processes_spend_a_call_each_on_a_provider_that_is_away()
-> anyhow::Result<()> {
    let provider = Provider::start()?;
    let team = asking(&provider).await?;
    let others = team.start(&OTHERS, "monitor-1").await?;
    let mut first = team.start(&["agent", "build"], "loop-2-2").await?;
    let second = team.start(&["agent", "build"], "loop-3-2").await?;
    // Nobody hears anything before all have asked.
    team.until("a call of each loop", async || {
        Ok((provider.calls() >= LOOPS.len()).then_some(()))
    })
    .await?;
    provider.becomes(Mood::Refuses);
    team.until("tasks that wait", async || {
        let tasks = team.tasks().await?;
        let reasons = tasks.values().map(|task| task.waiting_for);
        let waiting = reasons.filter(|reason| *reason == Some(WaitReason::Outage));
        Ok((waiting.count() == LOOPS.len()).then_some(()))
    })
    .await?;
    let probed = async |more: usize| {
        let before = provider.probes();
        team.until("probes", async || {
            Ok((provider.probes() >= before + more).then_some(()))
        })
        .await
    };
    probed(3).await?;
    let outage = check_away(&team, &provider).await?;
    check_told(&team, &outage)?;

    // Neither a start in the middle nor a pause changes anything.
    stop(&mut first).await?;
    let first = team.start(&["agent", "build"], "loop-2-2").await?;
    let builds = team.store.list::<Build>(Query::new()).await?;
    let build = builds.first().context("a build")?.id.to_string();
    team.project.verb(&["build", "pause", &build], "")?;
    let is_paused = |build: &Build| {
        build.state == BuildState::Paused && build.pause_reason == Some(PauseReason::Person)
    };
    until_build(&team, "pause", is_paused).await?;
    team.project.verb(&["build", "resume", &build], "")?;
    let runs = |build: &Build| build.state == BuildState::Running && !build.pause_requested;
    until_build(&team, "end of the pause", runs).await?;
    probed(1).await?;
    assert_eq!(check_away(&team, &provider).await?.since, outage.since);

    let (back, calls) = (Instant::now(), provider.calls());
    provider.becomes(Mood::Serves);
    team.until(
        "work",
        async || Ok((provider.calls() > calls).then_some(())),
    )
    .await?;
    ensure!(back.elapsed() < SOON, "after {:?}", back.elapsed());
    team.until_reviewed().await?;
    let alerts = team.store.list::<Alert>(Query::new()).await?;
    let [alert] = alerts.as_slice() else {
        bail!("{alerts:?}");
    };
    ensure!(alert.cleared_at.is_some(), "{alert:?}");
    assert_eq!(team.events("alert.provider_down.cleared").await?.len(), 1);
    for task in team.tasks().await?.values() {
        assert_eq!((task.tries, task.failures.len()), (0, 0), "{}", task.id);
    }
    team.finish([first, second, others]).await
}
