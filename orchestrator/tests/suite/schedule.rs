//! Timers and schedules come due once.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use ropewalk_orchestrator::timers;
use ropewalk_runtime::Clock;
use ropewalk_schemas::Payload;
use ropewalk_store::ChangeSet;

use crate::house::{House, Recorder, count, noon};

#[tokio::test]
async fn a_timer_fires_once_also_when_its_time_passed_while_nothing_ran() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let house = House::open(directory.path(), clock.clone(), Vec::new()).await?;
    let context = house.context("pm")?;
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
    house.services.store.commit(changes).await?;
    house.close().await?;

    clock.advance(Duration::from_hours(1));
    for expected in [1, 0] {
        let agent = Recorder::new("pm", "schedule.due")?;
        let seen = agent.seen();
        let house = House::open(directory.path(), clock.clone(), vec![Arc::new(agent)]).await?;
        house
            .until("the timer", || async {
                house.pass(Duration::from_secs(5)).await;
                Ok((count(&seen) >= expected).then_some(()))
            })
            .await?;
        house.pass(Duration::from_mins(2)).await;
        assert_eq!(count(&seen), expected);
        house.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_schedule_comes_due_at_each_of_its_times() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let agent =
        Recorder::new("monitor", "schedule.due")?.on_schedule("monitor.tick", "*/2 * * * *");
    let seen = agent.seen();
    let house = House::open(
        directory.path(),
        Clock::manual(noon()),
        vec![Arc::new(agent)],
    )
    .await?;
    for expected in 1..=3 {
        house
            .until("a tick", || async {
                house.pass(Duration::from_secs(10)).await;
                Ok((count(&seen) >= expected).then_some(()))
            })
            .await?;
    }
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for event in &seen {
        assert_eq!(event.hop, 0);
        assert!(matches!(&event.payload, Payload::ScheduleDue(due) if due.name == "monitor.tick"));
    }
    let elapsed = house.clock.now() - noon();
    assert!(
        i32::try_from(seen.len())? <= i32::try_from(elapsed.num_minutes() / 2)?,
        "{elapsed}"
    );
    house.close().await
}
