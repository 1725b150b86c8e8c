//! Timers and schedules come due once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use ropewalk_orchestrator::{Agent, timers};
use ropewalk_runtime::Clock;
use ropewalk_schemas::{ComponentName, Event, Payload};
use ropewalk_store::ChangeSet;

use crate::world::{FrameWorld, Recorder, count, noon};

#[tokio::test]
async fn a_timer_fires_once_also_when_its_time_passed_while_nothing_ran() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let world = FrameWorld::open(directory.path(), clock.clone(), Vec::new()).await?;
    let context = world.context("pm")?;
    let mut changes = ChangeSet::new();
    timers::set(
        &mut changes,
        &context,
        "pm.stuck",
        "task/1",
        noon() + TimeDelta::minutes(5),
    );
    timers::set(
        &mut changes,
        &context,
        "pm.stuck",
        "task/1",
        noon() + TimeDelta::minutes(6),
    );
    world.services.store.commit(changes).await?;
    world.close().await?;

    clock.advance(Duration::from_hours(1));
    for expected in [1, 0] {
        let agent = Recorder::new("pm", "schedule.due")?;
        let seen = agent.seen();
        let world =
            FrameWorld::open(directory.path(), clock.clone(), vec![Arc::new(agent)]).await?;
        world
            .until("the timer", || async {
                world.pass(Duration::from_secs(5)).await;
                Ok((count(&seen) >= expected).then_some(()))
            })
            .await?;
        world.pass(Duration::from_mins(2)).await;
        assert_eq!(count(&seen), expected);
        world.close().await?;
    }
    Ok(())
}

/// Lists the names of the timers that are noted.
fn names(seen: &Mutex<Vec<Event>>) -> Vec<String> {
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let names = seen.iter().filter_map(|event| match &event.payload {
        Payload::ScheduleDue(due) => Some(due.name.clone()),
        _ => None,
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_timer_wakes_those_of_its_family_alone() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let (first, second) = (
        Recorder::of_timers("notify.one", "notices")?,
        Recorder::of_timers("notify.two", "notices")?,
    );
    let other = Recorder::of_timers("monitor", "monitor")?;
    let (first_seen, second_seen, other_seen) = (first.seen(), second.seen(), other.seen());
    let agents: Vec<Arc<dyn Agent>> = vec![Arc::new(first), Arc::new(second), Arc::new(other)];
    let world = FrameWorld::open(directory.path(), clock, agents).await?;
    let context = world.context("monitor")?;
    let mut changes = ChangeSet::new();
    let names_of_timers = [
        "monitor.tick",
        "notices.escalate",
        "monitor.health",
        "notices.summary",
    ];
    for (name, minutes) in names_of_timers.into_iter().zip(1..) {
        timers::set(
            &mut changes,
            &context,
            name,
            "",
            noon() + TimeDelta::minutes(minutes),
        );
    }
    world.services.store.commit(changes).await?;
    world
        .until("the last timer", || async {
            world.pass(Duration::from_secs(5)).await;
            let all = [&first_seen, &second_seen, &other_seen];
            Ok(all.iter().all(|seen| count(seen) >= 2).then_some(()))
        })
        .await?;
    world.settle().await?;
    for told in [&first_seen, &second_seen] {
        assert_eq!(names(told), ["notices.escalate", "notices.summary"]);
    }
    assert_eq!(names(&other_seen), ["monitor.health", "monitor.tick"]);
    world.close().await
}

#[test]
fn a_timer_that_an_older_program_brought_wakes_everybody_as_before() -> anyhow::Result<()> {
    let patterns = timers::patterns(["alert.*", "schedule.due"], "notices")?;
    for (source, is_taken) in [
        ("schedule.notices", true),
        ("schedule", true),
        ("schedule.monitor", false),
    ] {
        let from = ComponentName::parse(source)?;
        let takes = |event: &str| patterns.iter().any(|each| each.matches(event, &from));
        assert_eq!(takes("schedule.due"), is_taken, "{source}");
        assert!(takes("alert.deadlock"), "others come from anybody");
    }
    Ok(())
}

#[tokio::test]
async fn a_schedule_comes_due_at_each_of_its_times() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let agent =
        Recorder::new("monitor", "schedule.due")?.on_schedule("monitor.tick", "*/2 * * * *");
    let seen = agent.seen();
    let world = FrameWorld::open(
        directory.path(),
        Clock::manual(noon()),
        vec![Arc::new(agent)],
    )
    .await?;
    for expected in 1..=3 {
        world
            .until("a tick", || async {
                world.pass(Duration::from_secs(10)).await;
                Ok((count(&seen) >= expected).then_some(()))
            })
            .await?;
    }
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for event in &seen {
        assert_eq!(event.hop, 0);
        assert!(matches!(&event.payload, Payload::ScheduleDue(due) if due.name == "monitor.tick"));
    }
    let elapsed = world.clock.now() - noon();
    assert!(
        i32::try_from(seen.len())? <= i32::try_from(elapsed.num_minutes() / 2)?,
        "{elapsed}"
    );
    world.close().await
}
