//! A loop that crashes is shown, rests, and is started again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile, Worker};
use ropewalk_runtime::Clock;
use ropewalk_schemas::agent::{AgentState, Component};
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::payload::BuildRequest;
use ropewalk_schemas::{BuildId, ComponentName, Event, EventPattern, Payload, Subject};
use ropewalk_store::{ChangeSet, EventFilter, Query};

use crate::world::{FrameWorld, Recorder, noon};

/// An agent whose one loop crashes at its first start.
struct ShakyAgent {
    name: ComponentName,
    starts: Arc<AtomicU32>,
}

#[async_trait]
impl Agent for ShakyAgent {
    fn profile(&self) -> Profile {
        Profile {
            role: ComponentName::parse("build").unwrap_or_else(|error| panic!("{error}")),
            patterns: vec![EventPattern::of("build.*")],
            in_flight: 1,
            schedules: Vec::new(),
        }
    }

    async fn handle(&self, _event: &Event, _context: &Context) -> Result<ChangeSet, AgentError> {
        Ok(ChangeSet::new())
    }

    fn workers(&self) -> Vec<Worker> {
        let starts = Arc::clone(&self.starts);
        vec![Worker {
            name: self.name.clone(),
            run: Box::new(move |_context, stop| {
                let before = starts.fetch_add(1, Ordering::SeqCst);
                Box::pin(async move {
                    assert!(before > 0, "out of rope");
                    stop.cancelled().await;
                })
            }),
        }]
    }
}

#[tokio::test]
async fn a_loop_that_crashes_is_shown_and_started_again() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let starts: Arc<AtomicU32> = Arc::default();
    let agent = ShakyAgent {
        name: ComponentName::parse("loop-1")?,
        starts: Arc::clone(&starts),
    };
    let agents: Vec<Arc<dyn Agent>> = vec![Arc::new(agent)];
    let world = FrameWorld::open(directory.path(), Clock::manual(noon()), agents).await?;
    world
        .until("the second start", || async {
            Ok((starts.load(Ordering::SeqCst) == 2).then_some(()))
        })
        .await?;
    let store = &world.services.store;
    let alerts = store.list::<Alert>(Query::new()).await?;
    assert_eq!(alerts.len(), 1);
    assert_eq!(
        (alerts[0].cause.as_str(), alerts[0].message.as_str()),
        (
            "component/loop-1",
            "`loop-1` crashed and is started again in 1s: out of rope"
        )
    );
    let told = EventFilter {
        pattern: Some(EventPattern::of("alert.component_down")),
        ..EventFilter::default()
    };
    assert_eq!(store.events(&told).await?.len(), 1);
    world.close().await
}

#[tokio::test]
async fn an_agent_that_is_done_is_shown_as_complete_before_it_rests() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let agents: Vec<Arc<dyn Agent>> = vec![Arc::new(Recorder::new("build", "build.*")?)];
    let world = FrameWorld::open(directory.path(), Clock::manual(noon()), agents).await?;
    let context = world.context("cli")?;
    let build = BuildId(context.ids.next());
    let payload = BuildRequest {
        build_id: build,
        requested_by: "pat".to_owned(),
        reason: None,
    };
    let mut changes = ChangeSet::new();
    changes.emit(context.event(Subject::build(build), Payload::BuildPause(payload)));
    world.services.store.commit(changes).await?;
    for wanted in [AgentState::Complete, AgentState::Idle] {
        world
            .until("the state", || async {
                world.pass(Duration::from_millis(250)).await;
                let row = world.services.store.get::<Component>("build").await?;
                Ok(row.filter(|row| row.state == wanted).map(drop))
            })
            .await?;
    }
    world.close().await
}
