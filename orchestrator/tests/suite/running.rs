//! Deliveries reach their agent once, however it behaves.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile};
use ropewalk_runtime::Clock;
use ropewalk_schemas::payload::BuildRequest;
use ropewalk_schemas::{BuildId, ComponentName, Event, EventPattern, Payload, Subject};
use ropewalk_store::{ChangeSet, EventFilter};

use crate::world::{FrameWorld, Reaction, Recorder, count, noon};

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
    let world = FrameWorld::open(
        directory.path(),
        Clock::manual(noon()),
        vec![Arc::new(agent)],
    )
    .await?;
    world
        .services
        .store
        .commit(request(&world.context("cli")?))
        .await?;
    world
        .until("the third try", || async {
            world.pass(Duration::from_secs(2)).await;
            Ok((count(&seen) == 1).then_some(()))
        })
        .await?;
    world
        .until("the end of the delivery", || async {
            let open = world.services.store.open_deliveries(None, 0, 10).await?;
            Ok(open.is_empty().then_some(()))
        })
        .await?;
    assert_eq!(count(&seen), 1);
    world.close().await
}

#[tokio::test]
async fn a_refused_event_is_a_dead_letter_and_the_next_one_of_another_entity_flows()
-> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let agent = Recorder::new("build", "build.*")?.reacting(&[Reaction::Refuse]);
    let seen = agent.seen();
    let world = FrameWorld::open(
        directory.path(),
        Clock::manual(noon()),
        vec![Arc::new(agent)],
    )
    .await?;
    let context = world.context("cli")?;
    world.services.store.commit(request(&context)).await?;
    let dead = world
        .until("the dead letter", || async {
            let dead = world.services.bus.dead_letters().list(10).await?;
            Ok((!dead.is_empty()).then_some(dead))
        })
        .await?;
    assert_eq!(dead.len(), 1);
    world.services.store.commit(request(&context)).await?;
    world
        .until("the next event", || async {
            Ok((count(&seen) == 1).then_some(()))
        })
        .await?;
    world.close().await
}

#[tokio::test]
async fn an_event_committed_before_a_stop_is_handled_after_the_restart() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let clock = Clock::manual(noon());
    let failing = Recorder::new("build", "build.*")?.reacting(&[Reaction::Fail]);
    let world = FrameWorld::open(directory.path(), clock.clone(), vec![Arc::new(failing)]).await?;
    world
        .services
        .store
        .commit(request(&world.context("cli")?))
        .await?;
    world
        .until("the failed try", || async {
            let open = world.services.store.open_deliveries(None, 0, 10).await?;
            Ok(open
                .first()
                .filter(|delivery| delivery.attempts == 1)
                .map(|_| ()))
        })
        .await?;
    world.close().await?;

    let agent = Recorder::new("build", "build.*")?;
    let seen = agent.seen();
    let world = FrameWorld::open(directory.path(), clock, vec![Arc::new(agent)]).await?;
    world
        .until("the event after the restart", || async {
            world.pass(Duration::from_secs(2)).await;
            Ok((count(&seen) == 1).then_some(()))
        })
        .await?;
    world.close().await
}

/// An agent that answers every pause with a resume, or the other way round.
struct Echo {
    role: &'static str,
}

#[async_trait]
impl Agent for Echo {
    fn profile(&self) -> Profile {
        let takes = if self.role == "ping" {
            "build.pause"
        } else {
            "build.resume"
        };
        Profile {
            role: ComponentName::parse(self.role).unwrap_or_else(|_| unreachable!("a name")),
            patterns: vec![EventPattern::of(takes)],
            in_flight: 4,
            schedules: Vec::new(),
        }
    }

    async fn handle(&self, event: &Event, context: &Context) -> Result<ChangeSet, AgentError> {
        let mut changes = ChangeSet::new();
        let answer = match &event.payload {
            Payload::BuildPause(request) => Payload::BuildResume(request.clone()),
            Payload::BuildResume(request) => Payload::BuildPause(request.clone()),
            _ => return Ok(changes),
        };
        changes.emit(context.event(event.subject.clone(), answer));
        Ok(changes)
    }
}

#[tokio::test]
async fn two_agents_that_answer_each_other_are_stopped_by_the_hop_limit() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let agents: Vec<Arc<dyn Agent>> = ["ping", "pong"]
        .into_iter()
        .map(|role| Arc::new(Echo { role }) as Arc<dyn Agent>)
        .collect();
    let world = FrameWorld::open(directory.path(), Clock::manual(noon()), agents).await?;
    let context = world.context("cli")?;
    world.services.store.commit(request(&context)).await?;
    let dead = world
        .until("the end of the storm", || async {
            let dead = world.services.bus.dead_letters().list(10).await?;
            Ok((!dead.is_empty()).then_some(dead))
        })
        .await?;
    let [last] = dead.as_slice() else {
        anyhow::bail!("one event stops the storm: {dead:?}")
    };
    assert_eq!(last.attempts, 1, "no further try helps");
    let reason = last.error.as_deref().unwrap_or_default();
    anyhow::ensure!(reason.contains("hop 33"), "{reason}");
    let events = world.services.store.events(&EventFilter::default()).await?;
    assert_eq!(events.len(), 33, "the first and one per hop");
    assert!(
        world
            .services
            .store
            .open_deliveries(None, 0, 10)
            .await?
            .is_empty()
    );
    // What a person begins next starts to count anew.
    world.services.store.commit(request(&context)).await?;
    world
        .until("the end of the next storm", || async {
            let events = world.services.store.events(&EventFilter::default()).await?;
            Ok((events.len() == 66).then_some(()))
        })
        .await?;
    world.close().await
}
