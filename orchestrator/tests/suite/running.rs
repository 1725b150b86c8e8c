//! Deliveries reach their agent once, however it behaves.

use std::sync::Arc;
use std::time::Duration;

use ropewalk_orchestrator::Context;
use ropewalk_runtime::Clock;
use ropewalk_schemas::payload::BuildRequest;
use ropewalk_schemas::{BuildId, Payload, Subject};
use ropewalk_store::ChangeSet;

use crate::house::{House, Reaction, Recorder, count, noon};

fn request(context: &Context) -> ChangeSet {
    let build = BuildId(context.ids.next());
    let payload = BuildRequest {
        build_id: build,
        requested_by: "pat".to_owned(),
        reason: None,
    };
    let mut changes = ChangeSet::new();
    changes.emit(context.event(Subject::build(build), Payload::BuildPause(payload)));
    changes
}

#[tokio::test]
async fn a_handler_that_crashes_and_fails_gets_its_event_again_and_finishes_it_once()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let agent = Recorder::new("build", "build.*")?.reacting(&[Reaction::Crash, Reaction::Fail]);
    let seen = agent.seen();
    let house = House::open(
        directory.path(),
        Clock::manual(noon()),
        vec![Arc::new(agent)],
    )
    .await?;
    house
        .services
        .store
        .commit(request(&house.context("cli")?))
        .await?;
    house
        .until("the third try", || async {
            house.pass(Duration::from_secs(2)).await;
            Ok((count(&seen) == 1).then_some(()))
        })
        .await?;
    house
        .until("the end of the delivery", || async {
            let open = house.services.store.open_deliveries(None, 0, 10).await?;
            Ok(open.is_empty().then_some(()))
        })
        .await?;
    assert_eq!(count(&seen), 1);
    house.close().await
}

#[tokio::test]
async fn a_refused_event_is_a_dead_letter_and_the_next_one_of_another_entity_flows()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let agent = Recorder::new("build", "build.*")?.reacting(&[Reaction::Refuse]);
    let seen = agent.seen();
    let house = House::open(
        directory.path(),
        Clock::manual(noon()),
        vec![Arc::new(agent)],
    )
    .await?;
    let context = house.context("cli")?;
    house.services.store.commit(request(&context)).await?;
    let dead = house
        .until("the dead letter", || async {
            let dead = house.services.bus.dead_letters().list(10).await?;
            Ok((!dead.is_empty()).then_some(dead))
        })
        .await?;
    assert_eq!(dead.len(), 1);
    house.services.store.commit(request(&context)).await?;
    house
        .until("the next event", || async {
            Ok((count(&seen) == 1).then_some(()))
        })
        .await?;
    house.close().await
}

#[tokio::test]
async fn an_event_committed_before_a_stop_is_handled_after_the_restart() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let failing = Recorder::new("build", "build.*")?.reacting(&[Reaction::Fail]);
    let house = House::open(directory.path(), clock.clone(), vec![Arc::new(failing)]).await?;
    house
        .services
        .store
        .commit(request(&house.context("cli")?))
        .await?;
    house
        .until("the failed try", || async {
            let open = house.services.store.open_deliveries(None, 0, 10).await?;
            Ok(open
                .first()
                .filter(|delivery| delivery.attempts == 1)
                .map(|_| ()))
        })
        .await?;
    house.close().await?;

    let agent = Recorder::new("build", "build.*")?;
    let seen = agent.seen();
    let house = House::open(directory.path(), clock, vec![Arc::new(agent)]).await?;
    house
        .until("the event after the restart", || async {
            house.pass(Duration::from_secs(2)).await;
            Ok((count(&seen) == 1).then_some(()))
        })
        .await?;
    house.close().await
}
