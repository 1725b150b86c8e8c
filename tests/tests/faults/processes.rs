//! Processes that are killed, stopped, started twice, or short of files.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use ropewalk_tests::soak::count;

use crate::picture::{events_of, store};
use crate::project::{PATIENCE, Project};
use crate::running::{RunningProgram, start, stop, until_events, until_ready};
use crate::sleepy::SleepyGate;
use crate::trial::{UNTIL_FAULT, approved, end_of, pause, scatter};

/// How long a stop may take beyond what it takes on a busy machine that has nothing to do.
const STOPPED: Duration = Duration::from_secs(10);

/// How much longer than a first start the work of a killed process may rest once it is started again.
const RESUMED: Duration = Duration::from_secs(20);

/// How long it may rest at most: what is left of a lease of a minute just before it is renewed is more, and at its end the
/// work would go on in any case.
const BEFORE_LEASE: Duration = Duration::from_secs(35);

/// Waits until more than `before` tasks were started; false when the build has ended instead.
async fn until_started(
    project: &Project,
    up: &mut RunningProgram,
    before: usize,
) -> anyhow::Result<bool> {
    let began = Instant::now();
    loop {
        if count_events(project, "task.started").await? > before {
            return Ok(true);
        }
        if count_events(project, "build.completed").await? > 0 {
            return Ok(false);
        }
        ensure!(up.0.try_wait()?.is_none(), "it ended before a task started");
        let late = began.elapsed() > UNTIL_FAULT;
        ensure!(!late, "nothing goes on: {}", project.said());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn soak_stops_under_load_take_no_longer_than_ten_seconds_and_lose_nothing()
-> anyhow::Result<()> {
    let wanted = count("ROPEWALK_SOAK_STOPS", 3)?;
    let (mut slowest, mut usual, mut stops) = (Duration::ZERO, Duration::ZERO, 0);
    while stops < wanted {
        let project = approved()?;
        for started in 1..=(wanted - stops).min(6) {
            let before = count_events(&project, "task.started").await?;
            let mut up = start(&project.runner, &["up"])?;
            // A start of its own shows that it has begun to work, and to listen to signals.
            if !until_started(&project, &mut up, before).await? {
                // A quick machine has nothing left to do; its stop is under no load.
                stop(&mut up).await?;
                break;
            }
            until_ready(project.path(), &mut up).await?;
            tokio::time::sleep(scatter(started, Duration::from_millis(200))).await;
            slowest = slowest.max(stop(&mut up).await?);
            stops += 1;
        }
        project.finish_and_check().await?;
        // With nothing left to do, it takes what this machine takes for any end.
        let mut up = start(&project.runner, &["up"])?;
        until_ready(project.path(), &mut up).await?;
        usual = usual.max(stop(&mut up).await?);
    }
    let most = STOPPED + 3 * usual.min(STOPPED);
    ensure!(slowest <= most, "{slowest:?}, and {usual:?} at rest");
    println!("{stops} stops under load, the slowest took {slowest:?}: 0 lost, 0 doubled");
    Ok(())
}

async fn count_events(project: &Project, event_type: &str) -> anyhow::Result<usize> {
    let store = store(project.path()).await?;
    let events = events_of(&store, event_type).await?;
    store.close().await?;
    Ok(events.len())
}

#[tokio::test]
async fn a_second_up_is_refused_while_verbs_work_beside_the_first() -> anyhow::Result<()> {
    let project = approved()?;
    let mut up = start(&project.runner, &["up"])?;
    until_events(project.path(), &mut up, "task.started", 1).await?;
    let second = project.runner.run(&["up"], PATIENCE)?;
    assert_eq!(second.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&second.stderr).into_owned();
    ensure!(
        complaint.contains(&up.pid()?.to_string()),
        "it does not name the first: {complaint}"
    );
    let builds = project.verb(&["build", "list"], "")?;
    assert_eq!(builds.as_array().map(Vec::len), Some(1));
    project.verb(&["idea", "new", "Another idea", "--slug", "another"], "")?;
    stop(&mut up).await?;
    project.finish_and_check().await
}

#[tokio::test]
async fn sixty_four_open_files_are_enough_for_a_build() -> anyhow::Result<()> {
    let project = approved()?;
    let mut up = start(&project.runner.clone().with_open_files(64), &["up"])?;
    until_events(project.path(), &mut up, "task.started", 1).await?;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", up.pid()?))?;
    let limited = limits
        .lines()
        .any(|line| line.starts_with("Max open files") && line.contains(" 64 "));
    ensure!(limited, "{limits}");
    until_events(project.path(), &mut up, "build.completed", 1).await?;
    stop(&mut up).await?;
    project.finish_and_check().await
}

#[tokio::test]
async fn too_few_open_files_fail_in_words_and_harm_nothing() -> anyhow::Result<()> {
    let project = approved()?;
    let mut refusals = 0;
    for limit in [12, 20, 24, 28, 32] {
        let mut up = start(&project.runner.clone().with_open_files(limit), &["up"])?;
        // It may end by itself, as it does with the fewest, or hang on to what it has; only the truth must not suffer.
        let patience = if limit == 12 {
            UNTIL_FAULT
        } else {
            Duration::from_secs(2)
        };
        if let Ok(status) = end_of(&mut up, patience).await {
            assert_eq!(status.code(), Some(1), "{limit}: {}", project.said());
            refusals += 1;
        }
    }
    ensure!(refusals > 0, "no limit was too low");
    let log = std::fs::read_to_string(project.runner.log())?;
    ensure!(!log.contains("panicked"), "{log}");
    project.finish_and_check().await
}

#[tokio::test]
async fn soak_kills_while_starting_converge() -> anyhow::Result<()> {
    let project = approved()?;
    // The first leaves work behind that the next starts have to recover.
    let mut up = start(&project.runner, &["up"])?;
    until_events(project.path(), &mut up, "task.started", 2).await?;
    project.kill(up).await?;
    let kills = count("ROPEWALK_SOAK_STARTS", 5)?;
    for number in 0..kills {
        let after = scatter(number, Duration::from_millis(300));
        project.kill_after(after).await?;
    }
    project.finish_and_check().await?;
    println!("{kills} kills while starting: 0 lost, 0 doubled");
    Ok(())
}

/// Starts `up`, kills it once another task has started, and answers how long that took.
async fn kill_at_work(project: &Project) -> anyhow::Result<Duration> {
    let before = count_events(project, "task.started").await?;
    let began = Instant::now();
    let mut up = start(&project.runner, &["up"])?;
    let started = until_started(project, &mut up, before).await?;
    ensure!(started, "the build ended before it was killed");
    let took = began.elapsed();
    project.kill(up).await?;
    Ok(took)
}

#[tokio::test]
async fn soak_kills_at_any_moment_lose_nothing() -> anyhow::Result<()> {
    let wanted = count("ROPEWALK_SOAK_KILLS", 5)?;
    let (mut kills, mut builds) = (0, 0);
    let mut slowest = Duration::ZERO;
    while kills < wanted {
        let project = approved()?;
        let first = kill_at_work(&project).await?;
        // This one goes on with what the one before left; a busy machine is slow at either.
        let again = kill_at_work(&project).await?;
        let most = (RESUMED + 3 * first).min(BEFORE_LEASE);
        ensure!(again <= most, "it took {again:?} to go on, after {first:?}");
        slowest = slowest.max(again);
        kills += 2;
        // More kills than that and a build may rarely get anywhere between them.
        for _ in 0..wanted.saturating_sub(kills).min(8) {
            let after = Duration::from_millis(200) + scatter(kills, Duration::from_millis(1_800));
            project.kill_after(after).await?;
            kills += 1;
        }
        project.finish_and_check().await?;
        builds += 1;
    }
    println!(
        "{kills} kills in {builds} builds: 0 lost, 0 doubled, went on after {slowest:?} at most"
    );
    Ok(())
}

#[tokio::test]
async fn soak_a_process_that_was_paused_goes_on() -> anyhow::Result<()> {
    let project = approved()?;
    let mut up = start(&project.runner, &["up"])?;
    until_events(project.path(), &mut up, "task.started", 2).await?;
    kill(up.pid()?, Signal::SIGSTOP)?;
    tokio::time::sleep(pause(3)?).await;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", up.pid()?))?;
    ensure!(stat.contains(") T "), "it was not paused: {stat}");
    kill(up.pid()?, Signal::SIGCONT)?;
    until_events(project.path(), &mut up, "build.completed", 1)
        .await
        .with_context(|| project.said())?;
    stop(&mut up).await?;
    project.finish_and_check().await
}

#[tokio::test]
async fn a_command_that_a_killed_process_left_is_ended_by_the_next() -> anyhow::Result<()> {
    let project = approved()?;
    let gate = SleepyGate::of(&project, 97531)?;
    let up = start(&project.runner, &["up"])?;
    gate.until_asleep().await.with_context(|| project.said())?;
    project.kill(up).await?;
    ensure!(gate.sleeps(), "the command ended with its starter");
    gate.wake()?;
    project.finish_and_check().await?;
    ensure!(!gate.sleeps(), "it still sleeps");
    Ok(())
}
