//! Several processes of the agents on one PostgreSQL server, one nats-server and one state directory.

mod away;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_schemas::payload::WorkAssigned;
use ropewalk_schemas::review::{Review, ReviewKind};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::wait::Wait;
use ropewalk_schemas::{ComponentName, Event, Payload, Priority, Subject, TaskId};
use ropewalk_store::{ChangeSet, EventFilter, Location, Query, Store, StoredEvent};
use ropewalk_tests::servers::{NatsServer, PostgresServer};
use serde_json::{Value, json};

use crate::picture::git;
use crate::project::{PATIENCE, Project};
use crate::running::{RunningProgram, start, stop};
use crate::sleepy::SleepyGate;
use crate::trial::{pause, until};

/// The roles beside `build`.
const OTHERS: [&str; 7] = [
    "agent",
    "ideation",
    "specification",
    "improvement",
    "monitor",
    "pm",
    "questions",
];
/// How long a lock lives without renewal.
const LEASE_SECONDS: u64 = 6;
/// After how long a silent component is down, and how often that is looked at.
const DOWN_SECONDS: u64 = 30;
const CHECK_SECONDS: u64 = 5;

/// An approved project whose truth lies on a server.
pub(crate) struct Team {
    pub(crate) project: Project,
    pub(crate) store: Store,
    // Ended after everything that uses them.
    postgres: PostgresServer,
    _nats: NatsServer,
}

impl Team {
    /// Makes the project; `change` sees each rule of its scripted model first.
    pub(crate) async fn new(change: impl Fn(&Path, &mut Value)) -> anyhow::Result<Self> {
        let (postgres, nats) = (PostgresServer::start()?, NatsServer::start()?);
        let mut project = Project::new()?;
        let settings = [
            ("ROPEWALK_STORE__LOCATION", postgres.url()),
            ("ROPEWALK_BUS__TRANSPORT", nats.url()),
            ("ROPEWALK_BUILD__LOOPS", "1".to_owned()),
            // Commands of some of these models look at what a test lays beside their checkouts.
            ("ROPEWALK_SANDBOX", "off".to_owned()),
            ("ROPEWALK_BUILD__LEASE_SECONDS", LEASE_SECONDS.to_string()),
            (
                "ROPEWALK_MONITOR__COMPONENT_DOWN_SECONDS",
                DOWN_SECONDS.to_string(),
            ),
            (
                "ROPEWALK_MONITOR__COMPONENT_CHECK_SECONDS",
                CHECK_SECONDS.to_string(),
            ),
        ];
        for (name, value) in settings {
            project.runner = project.runner.with_variable(name, &value);
        }
        let script = project.path().join("script.yaml");
        let mut rules: Value = serde_json::from_str(&fs::read_to_string(&script)?)?;
        for rule in rules.as_array_mut().context("a list of rules")? {
            change(project.path(), rule);
        }
        fs::write(&script, rules.to_string())?;
        project.approve()?;
        let location = Location::parse(&postgres.url(), project.path())?;
        let store = Store::open(&location, Clock::system()).await?;
        Ok(Self {
            project,
            store,
            postgres,
            _nats: nats,
        })
    }

    /// Starts a process and waits until the component `first` of it shows signs of life.
    pub(crate) async fn start(
        &self,
        arguments: &[&str],
        first: &str,
    ) -> anyhow::Result<RunningProgram> {
        let mut process = start(&self.project.runner, arguments)?;
        self.until(first, async || {
            ensure!(process.0.try_wait()?.is_none(), "{arguments:?} ended");
            let shown = self.store.get::<Component>(first).await?;
            Ok(shown
                .filter(|component| !component.stopped)
                .map(|component| component.process.clone()))
        })
        .await?;
        Ok(process)
    }

    /// Looks until `look` finds something.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        look: impl AsyncFnMut() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        until(&self.project, what, look).await
    }

    pub(crate) async fn events(&self, event_type: &str) -> anyhow::Result<Vec<StoredEvent>> {
        let filter = EventFilter {
            limit: Some(100_000),
            ..EventFilter::default()
        };
        let mut events = self.store.events(&filter).await?;
        events.retain(|stored| stored.event.event_type == event_type);
        Ok(events)
    }

    pub(crate) async fn until_events(
        &self,
        event_type: &str,
        count: usize,
    ) -> anyhow::Result<Vec<StoredEvent>> {
        self.until(event_type, async || {
            let events = self.events(event_type).await?;
            Ok((events.len() >= count).then_some(events))
        })
        .await
    }

    /// Waits until a loop works on a task.
    async fn at_work(&self, loop_name: &str) -> anyhow::Result<Attempt> {
        self.until("a task of the loop", async || {
            let query = Query::new().equal("state", AttemptState::Working.as_str());
            let running = self.store.list::<Attempt>(query).await?;
            let theirs = |row: &&Attempt| row.loop_name.as_str() == loop_name;
            Ok(running.iter().map(|row| &row.record).find(theirs).cloned())
        })
        .await
    }

    /// Waits until the build is reviewed and everything is handled.
    async fn until_reviewed(&self) -> anyhow::Result<()> {
        self.until("review", async || {
            let reviews = self.store.list::<Review>(Query::new()).await?;
            let open = self.store.open_deliveries(None, 0, 1).await?;
            let reviewed = reviews.iter().any(|row| row.kind == ReviewKind::Build);
            Ok((reviewed && open.is_empty()).then_some(()))
        })
        .await
    }

    /// Stops the processes in order and checks that the whole build happened, once.
    async fn finish(
        self,
        processes: impl IntoIterator<Item = RunningProgram>,
    ) -> anyhow::Result<()> {
        self.until_reviewed().await?;
        for mut process in processes {
            stop(&mut process).await?;
        }
        self.check_schedules().await?;
        let said = self.project.said();
        self.project.check_in(self.store).await.context(said)
    }

    /// Checks that no schedule was due twice at once, however many processes watch it.
    async fn check_schedules(&self) -> anyhow::Result<()> {
        let mut last = BTreeMap::new();
        for stored in self.events("schedule.due").await? {
            let name = stored.event.data["name"].to_string();
            if name.contains("monitor") {
                let at = stored.event.time;
                let before = last.insert(name.clone(), at);
                let apart = before.map(|before| at - before);
                ensure!(
                    apart.is_none_or(|apart| apart.num_milliseconds() > 500),
                    "{name} was due twice at {at}"
                );
            }
        }
        ensure!(!last.is_empty(), "no schedule was ever due");
        Ok(())
    }

    async fn tasks(&self) -> anyhow::Result<BTreeMap<String, Task>> {
        let rows = self.store.list::<Task>(Query::new()).await?;
        let tasks = rows.into_iter().map(|row| row.record);
        Ok(tasks.map(|task| (task.id.to_string(), task)).collect())
    }
}

fn is_of_build(rule: &Value) -> bool {
    rule["agent"] == "build"
}

/// Lets a task last long enough for something to happen to it.
fn slowly(_: &Path, rule: &mut Value) {
    if is_of_build(rule) {
        rule["reply"]["delay_ms"] = json!(400);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_build_processes_share_a_build_and_the_death_of_one_doubles_nothing()
-> anyhow::Result<()> {
    let team = Team::new(slowly).await?;
    let others = team.start(&OTHERS, "monitor-1").await?;
    let mut doomed = team.start(&["agent", "build"], "loop-2-1").await?;
    let second = team.start(&["agent", "build"], "loop-3-1").await?;

    // Whoever would be alone is refused, and verbs know that somebody is at work.
    let alone = team.project.runner.run(&["up"], PATIENCE)?;
    assert_eq!(alone.status.code(), Some(1));
    let said = String::from_utf8_lossy(&alone.stderr).into_owned();
    ensure!(said.contains("ropewalk agent"), "{said}");

    team.until_events("task.completed", 3).await?;
    team.at_work("loop-2-1").await?;
    kill(doomed.pid()?, Signal::SIGKILL)?;
    doomed.0.wait()?;
    // Whoever comes next takes its place, and sets right at once what it left.
    let third = team.start(&["agent", "build"], "loop-2-1").await?;
    team.until_reviewed().await?;
    let attempts = team.store.list::<Attempt>(Query::new()).await?;
    let landed: BTreeSet<&str> = attempts
        .iter()
        .filter(|row| row.state == AttemptState::Landed)
        .map(|row| row.loop_name.as_str())
        .collect();
    assert_eq!(landed, BTreeSet::from(["loop-2-1", "loop-3-1"]));
    team.finish([second, third, others]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_works_in_a_checkout_beside_a_command_that_a_killed_process_left_there()
-> anyhow::Result<()> {
    let team = Team::new(|_, _| {}).await?;
    let gate = SleepyGate::of(&team.project, 86_421)?;
    let others = team.start(&OTHERS, "monitor-1").await?;
    let mut doomed = team.start(&["agent", "build"], "loop-2-1").await?;
    gate.until_asleep().await?;
    gate.wake()?;
    // It is there before the other one dies, and so does not take its number.
    let second = team.start(&["agent", "build"], "loop-3-1").await?;
    kill(doomed.pid()?, Signal::SIGKILL)?;
    doomed.0.wait()?;
    ensure!(gate.sleeps(), "the command ended with its starter");
    team.until_reviewed().await?;
    ensure!(!gate.sleeps(), "it still sleeps");
    team.finish([second, others]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn soak_a_process_that_was_paused_finds_its_work_done_by_another() -> anyhow::Result<()> {
    let team = Team::new(slowly).await?;
    let others = team.start(&OTHERS, "monitor-1").await?;
    let paused = team.start(&["agent", "build"], "loop-2-1").await?;
    let second = team.start(&["agent", "build"], "loop-3-1").await?;
    let attempt = team.at_work("loop-2-1").await?;
    kill(paused.pid()?, Signal::SIGSTOP)?;
    // In `./check` as long as its locks live, and a while more.
    tokio::time::sleep(pause(2 * u32::try_from(LEASE_SECONDS)?)?).await;
    team.until("the end of its attempt", async || {
        let row = team.store.get::<Attempt>(&attempt.id.to_string()).await?;
        Ok(row.filter(|row| row.state == AttemptState::Interrupted))
    })
    .await?;
    let landed = team.until("its task, landed by the other", async || {
        let query = Query::new().equal("state", AttemptState::Landed.as_str());
        let landed = team.store.list::<Attempt>(query).await?;
        Ok(landed.into_iter().find(|row| row.task == attempt.task))
    });
    assert_eq!(landed.await?.loop_name.as_str(), "loop-3-1");
    kill(paused.pid()?, Signal::SIGCONT)?;
    team.finish([paused, second, others]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_goes_on_while_its_database_server_crashes_again_and_again() -> anyhow::Result<()> {
    let mut team = Team::new(slowly).await?;
    // No lock runs out while the server is away, however slowly it starts again.
    let runner = team.project.runner.clone();
    team.project.runner = runner.with_variable("ROPEWALK_BUILD__LEASE_SECONDS", "60");
    let others = team.start(&OTHERS, "monitor-1").await?;
    let builder = team.start(&["agent", "build"], "loop-2-1").await?;
    for completed in [1, 3, 6, 9] {
        team.until("progress", async || {
            // A connection that broke is told of once.
            let events = team.events("task.completed").await.unwrap_or_default();
            Ok((events.len() >= completed).then_some(()))
        })
        .await?;
        team.at_work("loop-2-1").await?;
        team.postgres.kill();
        let port = team.postgres.port();
        let reached = TcpStream::connect(("127.0.0.1", port));
        ensure!(reached.is_err(), "the server still answers");
        tokio::time::sleep(Duration::from_millis(300)).await;
        team.postgres.restart()?;
    }
    team.until("the whole build", async || {
        let events = team.events("build.completed").await.unwrap_or_default();
        Ok((events.len() == 1).then_some(()))
    })
    .await?;
    let tasks = team.tasks().await?;
    let attempts = team.store.list::<Attempt>(Query::new()).await?;
    assert_eq!(attempts.len(), tasks.len(), "a crash costs no attempt");
    team.finish([builder, others]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_death_of_the_monitor_is_told_once_by_the_others_until_it_is_back() -> anyhow::Result<()>
{
    let team = Team::new(|_, _| {}).await?;
    let pm = team.start(&["agent", "pm"], "pm-1").await?;
    let questions = team.start(&["agent", "questions"], "questions-2").await?;
    let mut doomed = team.start(&["agent", "monitor"], "monitor-3").await?;
    kill(doomed.pid()?, Signal::SIGKILL)?;
    doomed.0.wait()?;
    team.until("the alert", async || {
        let alert = team.store.get::<Alert>("component/monitor-3").await?;
        Ok(alert.filter(|alert| alert.cleared_at.is_none()))
    })
    .await?;
    let monitor = team.start(&["agent", "monitor"], "monitor-3").await?;
    team.until_events("alert.component_down.cleared", 1).await?;
    assert_eq!(team.events("alert.component_down").await?.len(), 1);
    let alert = team.store.get::<Alert>("component/monitor-3").await?;
    ensure!(alert.is_some_and(|alert| alert.cleared_at.is_some()));
    for mut process in [pm, questions, monitor] {
        stop(&mut process).await?;
    }
    Ok(())
}

/// Says that `task` is meant for `to`.
fn assigned(ids: &Ids, build: &Build, task: &str, to: &ComponentName) -> anyhow::Result<Event> {
    let task = TaskId::parse(task)?;
    Ok(Event {
        id: ids.next().into(),
        source: ComponentName::parse("pm")?,
        subject: Subject::task(build.id, &task),
        time: Clock::system().now(),
        correlation_id: build.correlation_id,
        causation_id: None,
        hop: 0,
        traceparent: None,
        priority: Priority::DEFAULT,
        payload: Payload::WorkAssigned(WorkAssigned {
            build_id: build.id,
            task_id: task,
            from: None,
            to: to.clone(),
            reason: None,
        }),
    })
}

/// Lets the first three tasks write their file and then wait for the file `go`.
fn wait_for_go(directory: &Path, rule: &mut Value) {
    let first = ["T-001", "T-002", "T-003"];
    let is_first = rule["task"].as_str().is_some_and(|id| first.contains(&id));
    if is_of_build(rule) && is_first && rule["turn"] == 1 {
        let go = directory.join("go").display().to_string();
        let wait = format!("while [ ! -e '{go}' ]; do sleep 0.1; done");
        let bash = json!({ "name": "bash", "input": { "command": wait } });
        if let Some(tools) = rule["reply"]["tools"].as_array_mut() {
            tools.push(bash);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_work_of_a_dead_process_moves_on_to_the_living() -> anyhow::Result<()> {
    let team = Team::new(wait_for_go).await?;
    let others = team.start(&OTHERS, "monitor-1").await?;
    let mut builders = Vec::new();
    for number in 2..=4 {
        let name = format!("loop-{number}-1");
        builders.push(team.start(&["agent", "build"], &name).await?);
    }
    let dead = ComponentName::parse("loop-3-1")?;
    let attempts = team.until("three busy loops", async || {
        let query = Query::new().equal("state", AttemptState::Working.as_str());
        let running = team.store.list::<Attempt>(query).await?;
        let slots = team.project.path().join("state/slots");
        let edited = (1..=3).filter(|number| {
            let parts = slots.join(format!("{number}/tree/parts"));
            fs::read_dir(parts).is_ok_and(|mut files| files.next().is_some())
        });
        let ready = running.len() == 3 && edited.count() == 3;
        Ok(ready.then_some(running))
    });
    let attempts = attempts.await?;
    let theirs = attempts.iter().find(|row| row.loop_name == dead);
    let theirs = theirs.context("an attempt of each loop")?.record.clone();
    let build = team
        .store
        .list::<Build>(Query::new())
        .await?
        .remove(0)
        .record;
    let ids = Ids::system(Clock::system());
    let mut changes = ChangeSet::new();
    for task in ["T-005", "T-008"] {
        changes.emit(assigned(&ids, &build, task, &dead)?);
    }
    team.store.commit(changes).await?;
    team.until("the assignments", async || {
        let tasks = team.tasks().await?;
        let theirs = |id: &str| tasks[id].assigned_to.as_ref() == Some(&dead);
        Ok((theirs("T-005") && theirs("T-008")).then_some(()))
    })
    .await?;

    let mut killed = builders.remove(1);
    kill(killed.pid()?, Signal::SIGKILL)?;
    killed.0.wait()?;
    check_down(&team, &dead).await?;
    check_put_back(&team, &theirs).await?;
    check_given(&team, &theirs, &dead).await?;
    for process in &mut builders {
        ensure!(process.0.try_wait()?.is_none(), "another process ended");
    }
    fs::write(team.project.path().join("go"), "")?;
    builders.push(others);
    team.finish(builders).await
}

/// Checks that the silence of a process is noticed in time, and told to people in one message.
async fn check_down(team: &Team, dead: &ComponentName) -> anyhow::Result<()> {
    let down = team.until_events("alert.component_down", 1).await?;
    let [down] = down.as_slice() else {
        anyhow::bail!("{down:?}");
    };
    assert_eq!(down.event.data["component"], dead.as_str());
    let silent = down.event.data["silent_seconds"].as_u64();
    let silent = silent.context("a number")?;
    let in_time = DOWN_SECONDS..=DOWN_SECONDS + 2 * CHECK_SECONDS;
    ensure!(in_time.contains(&silent), "silent for {silent} s");
    let alerts = team.store.list::<Alert>(Query::new()).await?;
    let [alert] = alerts.as_slice() else {
        anyhow::bail!("{alerts:?}");
    };
    for name in ["loop-3-1", "build-3", "build-scheduler-3"] {
        ensure!(alert.message.contains(name), "{}", alert.message);
    }
    Ok(())
}

/// Checks that an attempt that died is put back: its lock free, its edit kept and in no branch, its task ready.
async fn check_put_back(team: &Team, attempt: &Attempt) -> anyhow::Result<()> {
    let ended = team.until("the end of the attempt", async || {
        let row = team.store.get::<Attempt>(&attempt.id.to_string()).await?;
        Ok(row.filter(|row| row.state == AttemptState::Interrupted))
    });
    let ended = ended.await?;
    let leases = team.store.list::<Lease>(Query::new()).await?;
    let held = leases
        .iter()
        .any(|row| row.holder.attempt == attempt.id && row.state == LeaseState::Granted);
    ensure!(!held, "{leases:?}");
    let reference = ended.preserve_ref.clone().context("a preserve ref")?;
    let clone = team.project.path().join("state/repository.git");
    let files = git(&clone, &["show", "--name-only", "--format=", &reference])?;
    let number = attempt.task.as_str().trim_start_matches("T-0");
    assert_eq!(files.trim(), format!("parts/{number}.txt"));
    let holders = git(
        &clone,
        &[
            "for-each-ref",
            "--format=%(refname)",
            "--contains",
            &reference,
        ],
    )?;
    assert_eq!(holders, reference, "in no branch");
    let task = team.tasks().await?[attempt.task.as_str()].clone();
    assert_eq!((task.state, task.attempts), (TaskState::Ready, 1));
    let waits = team.store.list::<Wait>(Query::new()).await?;
    ensure!(waits.is_empty(), "{waits:?}");
    Ok(())
}

/// Checks that the three tasks go to the living by load, counted anew after each.
async fn check_given(team: &Team, attempt: &Attempt, dead: &ComponentName) -> anyhow::Result<()> {
    let given = team.until("three assignments", async || {
        let mut given = team.events("work.assigned").await?;
        given.retain(|stored| stored.event.data["from"] == dead.as_str());
        Ok((given.len() >= 3).then_some(given))
    });
    let given = given.await?;
    let text = |stored: &StoredEvent, field: &str| stored.event.data[field].to_string();
    let given: Vec<(String, String)> = given
        .iter()
        .map(|stored| (text(stored, "task_id"), text(stored, "to")))
        .collect();
    let quoted = |text: &str| format!("\"{text}\"");
    let expected = [
        (attempt.task.as_str(), "loop-2-1"),
        ("T-005", "loop-4-1"),
        ("T-008", "loop-2-1"),
    ];
    let expected = expected.map(|(task, to)| (quoted(task), quoted(to)));
    assert_eq!(given, expected);
    Ok(())
}
