//! Starts agents in order: check, register, recover, consume; and drains them at the end.

use std::sync::Arc;

use ropewalk_bus::{BusError, Consumer};
use ropewalk_runtime::Supervisor;
use ropewalk_schemas::ComponentName;
use ropewalk_store::{StartAt, Subscription};
use tracing::info;

use crate::agent::{Agent, AgentError, Profile};
use crate::context::{Context, Services};
use crate::router::{self, RoutingError};
use crate::runner;
use crate::schedule::{self, LayDownError};

/// Says why the frame could not start.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The agents cannot run together.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// A schedule cannot be laid down.
    #[error(transparent)]
    Schedule(#[from] LayDownError),
    /// An agent could not set right what a crash left behind.
    #[error("agent `{role}` could not recover: {error}")]
    Recovery {
        /// The agent.
        role: ComponentName,
        /// Why.
        error: AgentError,
    },
    /// The bus refused a subscription.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A name of the frame itself is not valid; a mistake in this program.
    #[error(transparent)]
    Name(#[from] ropewalk_schemas::InvalidId),
}

/// Runs agents on the bus.
pub struct Frame;

impl Frame {
    /// Starts `agents`: every subscription stands before the first agent recovers, and every agent has
    /// recovered before the first delivery is taken, so that nothing emitted by a recovery is missed.
    pub async fn start(
        services: &Services,
        agents: Vec<Arc<dyn Agent>>,
        supervisor: &Supervisor,
    ) -> Result<(), FrameError> {
        let profiles: Vec<Profile> = agents.iter().map(|agent| agent.profile()).collect();
        router::check(&profiles)?;
        let mut consumers = Vec::with_capacity(agents.len());
        for (agent, profile) in agents.into_iter().zip(profiles) {
            services.registry.add(&profile.role, &profile.role);
            let inbox = services
                .bus
                .consume(consumer(&profile, agent.yields()))
                .await?;
            consumers.push((agent, profile, inbox));
        }
        for (agent, profile, _) in &consumers {
            let context = Context::new(services, profile.role.clone());
            schedule::lay_down(&profile.schedules, &context).await?;
            agent
                .recover(&context)
                .await
                .map_err(|error| FrameError::Recovery {
                    role: profile.role.clone(),
                    error,
                })?;
        }
        let stop = supervisor.shutdown().soft().clone();
        supervisor.spawn(
            "registry",
            services
                .registry
                .clone()
                .run(services.store.clone(), stop.clone()),
        );
        let timekeeper = Context::new(services, ComponentName::parse("schedule")?);
        supervisor.spawn("schedule", schedule::run(timekeeper, stop.clone()));
        for (agent, profile, inbox) in consumers {
            let context = Context::new(services, profile.role.clone());
            for worker in agent.workers() {
                services.registry.add(&worker.name, &profile.role);
                let context = context.speaking_as(worker.name.clone());
                supervisor.spawn("worker", (worker.run)(context, stop.clone()));
            }
            info!(agent = %profile.role, "agent `{}` takes deliveries", profile.role);
            supervisor.spawn("agent", runner::run(agent, profile.role, inbox, context));
        }
        Ok(())
    }
}

fn consumer(profile: &Profile, yields: bool) -> Consumer {
    Consumer {
        subscription: Subscription {
            name: profile.role.clone(),
            patterns: profile.patterns.clone(),
            from: StartAt::Now,
        },
        in_flight: profile.in_flight,
        yields,
    }
}
