//! What the program itself dies of: a check that kills it, of a task, of a whole build or of a landing, and a handler that
//! takes it down.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use nix::sys::signal::Signal;
use ropewalk_schemas::AttemptId;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::deaths::Deaths;
use ropewalk_schemas::question::{About, Question, QuestionState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_store::{DeliveryFilter, DeliveryState, Query, Store, Versioned};

use crate::picture::store;
use crate::project::Project;
use crate::running::{RunningProgram, finish, start, stop, until_events};
use crate::sleepy::{commit_all, commit_gate, commit_gate_of_builds};
use crate::trial::{UNTIL_FAULT, approved};

/// How long a start that is killed from outside lives at most: more than it takes to a gate.
const STARTED: Duration = Duration::from_secs(20);

/// Starts `up` until `done` holds while it lives; answers how often it was ended by `signal` before that.
async fn deaths_until(
    project: &Project,
    starting: impl Fn() -> anyhow::Result<RunningProgram>,
    signal: Signal,
    done: impl AsyncFn(&Store) -> anyhow::Result<bool>,
) -> anyhow::Result<(u32, RunningProgram)> {
    for deaths in 0..10 {
        let mut up = starting()?;
        let began = Instant::now();
        let died = loop {
            if let Some(status) = up.0.try_wait()? {
                break status;
            }
            let store = store(project.path()).await?;
            let done = done(&store).await?;
            store.close().await?;
            if done {
                return Ok((deaths, up));
            }
            ensure!(
                began.elapsed() < UNTIL_FAULT,
                "it hangs: {}",
                project.said()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let wanted = died.signal() == Some(signal as i32);
        ensure!(wanted, "it ended with {died}: {}", project.said());
    }
    bail!("it dies for ever: {}", project.said())
}

async fn tasks(project: &Project) -> anyhow::Result<Vec<Task>> {
    let store = store(project.path()).await?;
    let tasks = store.list::<Task>(Query::new().order_by("number")).await?;
    store.close().await?;
    Ok(tasks.into_iter().map(Versioned::into_inner).collect())
}

async fn asked_about(store: &Store, id: &str) -> anyhow::Result<bool> {
    let pending = Query::new().equal("state", QuestionState::Pending.as_str());
    let questions = store.list::<Question>(pending).await?;
    Ok(questions
        .iter()
        .any(|question| matches!(&question.about, About::Task { task, .. } if task.as_str() == id)))
}

#[tokio::test]
async fn a_check_that_kills_the_program_is_run_five_times_and_then_a_person_is_asked()
-> anyhow::Result<()> {
    let project = approved()?;
    let woken = project.path().join("woken");
    let command = format!(
        "test -e {} || ! test -e parts/05.txt || kill -9 $PPID",
        woken.display()
    );
    commit_gate(&project, &command)?;
    let asked = async |store: &Store| asked_about(store, "T-005").await;
    let starting = || start(&project.runner, &["up"]);
    let (deaths, mut up) = deaths_until(&project, starting, Signal::SIGKILL, asked).await?;
    assert_eq!(deaths, 5);
    // The innocent go on: all but the two that build on it.
    until_events(project.path(), &mut up, "task.completed", 9).await?;
    stop(&mut up).await?;
    for task in tasks(&project).await? {
        let expected = match task.id.as_str() {
            "T-005" => TaskState::Failed,
            "T-008" | "T-011" => TaskState::Blocked,
            _ => TaskState::Complete,
        };
        assert_eq!(task.state, expected, "{}", task.id);
    }
    let store = store(project.path()).await?;
    let of_it = Query::new().equal("task", "T-005");
    let attempts = store.list::<Attempt>(of_it).await?;
    assert_eq!(attempts.len(), 5);
    let last = attempts.iter().find(|attempt| attempt.failure.is_some());
    let error = last.and_then(|attempt| Some(attempt.failure.as_ref()?.error.clone()));
    ensure!(error.is_some_and(|error| error.contains("ended 5 times in a row")));
    // What landed meanwhile may be let go of by the next start; what a person was asked about is held for nothing.
    let suspected = store.list::<Deaths>(Query::new()).await?;
    ensure!(
        suspected.iter().all(|row| !row.entity.ends_with("T-005")),
        "{suspected:?}"
    );
    let build = attempts[0].build.to_string();
    store.close().await?;

    // The person mends it and has it run again.
    std::fs::write(&woken, "")?;
    project.verb(&["build", "retry", &build, "T-005"], "")?;
    project.finish_and_check().await?;
    let landed = tasks(&project).await?;
    ensure!(landed.iter().all(|task| task.state == TaskState::Complete));
    Ok(())
}

/// Returns the open question of a trigger.
async fn open_question(store: &Store, trigger: &str) -> anyhow::Result<Option<Question>> {
    let pending = Query::new()
        .equal("state", QuestionState::Pending.as_str())
        .equal("trigger", trigger);
    let mut questions = store.list::<Question>(pending).await?;
    Ok(questions.pop().map(Versioned::into_inner))
}

/// Returns the one build, and whether any work on it is still what the program may have died of.
async fn build_of(project: &Project) -> anyhow::Result<(Build, bool)> {
    let store = store(project.path()).await?;
    let mut builds = store.list::<Build>(Query::new()).await?;
    let suspected = store.list::<Deaths>(Query::new()).await?;
    store.close().await?;
    let is_suspected = suspected.iter().any(|row| row.entity.starts_with("build/"));
    ensure!(builds.len() == 1, "{} builds", builds.len());
    let build = builds.remove(0).into_inner();
    Ok((build, is_suspected))
}

#[tokio::test]
async fn a_check_of_the_whole_that_kills_the_program_holds_its_build_after_five_deaths()
-> anyhow::Result<()> {
    let project = approved()?;
    let woken = project.path().join("woken");
    let command = format!("test -e {} || kill -9 $PPID", woken.display());
    commit_gate_of_builds(&project, &command)?;
    let held = async |store: &Store| Ok(open_question(store, "build_held").await?.is_some());
    let starting = || start(&project.runner, &["up"]);
    let (deaths, mut up) = deaths_until(&project, starting, Signal::SIGKILL, held).await?;
    assert_eq!(deaths, 5);
    stop(&mut up).await?;
    let (build, is_suspected) = build_of(&project).await?;
    let reason = build.reason.unwrap_or_default();
    assert_eq!(build.state, BuildState::Paused, "{reason}");
    ensure!(reason.contains("ended 5 times in a row"), "{reason}");
    ensure!(!is_suspected, "what is held is held for nothing");
    let listed = project.verb(&["build", "list"], "")?.to_string();
    ensure!(listed.contains("ended 5 times in a row"), "{listed}");

    // A person mends it and has it done again.
    std::fs::write(&woken, "")?;
    let question = build.question.map(|id| id.to_string()).unwrap_or_default();
    project.verb(&["question", "answer", &question, "again"], "")?;
    project.finish_and_check().await
}

#[tokio::test]
async fn a_landing_that_kills_the_program_is_refused_after_five_deaths() -> anyhow::Result<()> {
    let project = approved()?;
    let woken = project.path().join("woken");
    let command = format!(
        "test -e {} || ! test -e late.txt || kill -9 $PPID",
        woken.display()
    );
    commit_gate_of_builds(&project, &command)?;
    finish(&project.runner, project.path(), 1).await?;
    // What the branch is joined with makes its check deadly.
    std::fs::write(project.repository().join("late.txt"), "late\n")?;
    commit_all(&project, "Come late")?;
    let (build, _) = build_of(&project).await?;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let question = build.question.map(|id| id.to_string()).unwrap_or_default();
    project.verb(&["question", "answer", &question, "merge"], "")?;
    let refused =
        async |store: &Store| Ok(open_question(store, "landing_refused").await?.is_some());
    let starting = || start(&project.runner, &["up"]);
    let (deaths, mut up) = deaths_until(&project, starting, Signal::SIGKILL, refused).await?;
    assert_eq!(deaths, 5);
    stop(&mut up).await?;
    let (build, is_suspected) = build_of(&project).await?;
    let reason = build.reason.unwrap_or_default();
    ensure!(
        reason.starts_with("not landed: the program ended 5 times"),
        "{reason}"
    );
    ensure!(build.merged.is_none() && !is_suspected);

    std::fs::write(&woken, "")?;
    let question = build.question.map(|id| id.to_string()).unwrap_or_default();
    project.verb(&["question", "answer", &question, "try-again"], "")?;
    let landed = async |store: &Store| {
        let builds = store.list::<Build>(Query::new()).await?;
        Ok(builds.iter().any(|build| build.merged.is_some()))
    };
    let (deaths, mut up) = deaths_until(&project, starting, Signal::SIGKILL, landed).await?;
    assert_eq!(deaths, 0);
    stop(&mut up).await?;
    Ok(())
}

#[tokio::test]
async fn an_event_whose_handler_aborts_the_program_is_a_dead_letter_with_an_alert_after_five_deaths()
-> anyhow::Result<()> {
    let project = approved()?;
    let poison = "frame.handle.improvement.build.completed:1";
    let set_aside = async |store: &Store| {
        let dead = DeliveryFilter {
            states: vec![DeliveryState::Dead],
            ..DeliveryFilter::default()
        };
        Ok(!store.deliveries(&dead).await?.is_empty())
    };
    let starting = || start(&project.runner.failing(poison), &["up"]);
    let (deaths, mut up) = deaths_until(&project, starting, Signal::SIGABRT, set_aside).await?;
    assert_eq!(deaths, 5);
    let letters = project.verb(&["dead-letter", "list"], "")?;
    let text = |name: &str| letters.pointer(name).and_then(|text| text.as_str());
    let error = text("/0/error").unwrap_or_default().to_owned();
    ensure!(error.contains("while `improvement` handled"), "{letters}");
    let store = store(project.path()).await?;
    let alerts = store.list::<Alert>(Query::new()).await?;
    let raised = alerts.iter().filter(|alert| alert.message == error);
    assert_eq!(raised.count(), 1);
    store.close().await?;
    stop(&mut up).await?;

    // Mended and replayed, it is handled as if nothing had been.
    let id = text("/0/id").unwrap_or_default().to_owned();
    project.verb(&["dead-letter", "replay", &id], "")?;
    project.finish_and_check().await
}

#[tokio::test]
async fn kills_from_outside_park_nothing_however_long_a_check_takes() -> anyhow::Result<()> {
    let project = approved()?;
    let woken = project.path().join("woken");
    let slow = format!("test -e {} || sleep 60", woken.display());
    commit_gate(&project, &slow)?;
    let cut = AttemptState::Interrupted;
    // No start lives long enough for one check, so nothing gets further: what was in hand is the same each time. Nor does
    // one outlive the rest before what was in hand is tried alone; on a busy machine fewer of them meet the gate.
    let mut kills = 0;
    while kills < 12 || (kills < 60 && in_state(&project, cut).await?.len() < 5) {
        let before = in_state(&project, AttemptState::Validating).await?;
        let rested = rests(&project)?;
        let up = start(&project.runner, &["up"])?;
        until_another(&project, &before, rested).await?;
        project.kill(up).await?;
        kills += 1;
    }
    std::fs::write(&woken, "")?;
    project.finish_and_check().await?;
    let store = store(project.path()).await?;
    let attempts = store.list::<Attempt>(Query::new()).await?;
    let (cut, rest): (Vec<_>, Vec<_>) = attempts.iter().partition(|row| row.state == cut);
    ensure!(cut.len() >= 5, "only {} attempts were cut off", cut.len());
    ensure!(rest.iter().all(|row| row.state == AttemptState::Landed));
    Ok(store.close().await?)
}

/// Lists the attempts that are in a state: shown to the gate, or cut off.
async fn in_state(project: &Project, state: AttemptState) -> anyhow::Result<BTreeSet<AttemptId>> {
    let store = store(project.path()).await?;
    let query = Query::new().equal("state", state.as_str());
    let attempts = store.list::<Attempt>(query).await?;
    store.close().await?;
    Ok(attempts.iter().map(|attempt| attempt.id).collect())
}

/// Counts the starts that rested before what was in hand is tried alone.
fn rests(project: &Project) -> anyhow::Result<usize> {
    let log = match std::fs::read_to_string(project.runner.log()) {
        // Nothing was started yet.
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        log => log?,
    };
    Ok(log.matches("then tries that alone").count())
}

/// Waits until the gate sees an attempt that is not among `before`, and a moment longer, or until more starts than `rests_before`
/// rested: however slow the start is, that rest is not over by then.
async fn until_another(
    project: &Project,
    before: &BTreeSet<AttemptId>,
    rests_before: usize,
) -> anyhow::Result<()> {
    let began = Instant::now();
    while began.elapsed() < STARTED {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if rests(project)? > rests_before {
            return Ok(());
        }
        let seen = in_state(project, AttemptState::Validating).await?;
        if !seen.is_subset(before) {
            tokio::time::sleep(Duration::from_millis(200)).await;
            return Ok(());
        }
    }
    Ok(())
}
