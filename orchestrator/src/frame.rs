//! Starts agents in order: check, register, charge deaths, recover, try suspects alone, consume; and drains them at the end.

use std::sync::Arc;
use std::time::Duration;

use ropewalk_bus::{BusError, Consumer, Inbox};
use ropewalk_runtime::Supervisor;
use ropewalk_schemas::ComponentName;
use ropewalk_schemas::advice::Advice;
use ropewalk_store::{StartAt, Subscription};
use tokio::sync::mpsc;
use tracing::info;

use crate::agent::{Agent, AgentError, Profile};
use crate::context::{Context, Services};
use crate::deaths::{self, DeathsError};
use crate::parts;
use crate::router::{self, RoutingError};
use crate::runner;
use crate::schedule::{self, LayDownError};
use crate::timers;

/// How long one delivery is handled before others are.
const ALONE_FOR: Duration = Duration::from_mins(1);

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
    /// What the process before died of could not be counted.
    #[error("the deaths of the program could not be counted: {0}")]
    Deaths(#[from] DeathsError),
    /// The bus refused a subscription.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A name of the frame itself is not valid; a mistake in this program.
    #[error(transparent)]
    Name(#[from] ropewalk_schemas::InvalidId),
}

impl Advice for FrameError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Schedule(error) => error.next(),
            Self::Deaths(error) => error.next(),
            Self::Bus(error) => error.next(),
            _ => None,
        }
    }
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
        let suspects = services.registry.suspects();
        let frame = Context::new(services, ComponentName::parse("frame")?);
        suspects.charge(&frame).await?;
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
        let notes = (suspects.clone(), stop.clone());
        supervisor.spawn("notes", async move {
            notes.1.cancelled().await;
            notes.0.stop();
        });
        let timekeeper = Context::new(services, ComponentName::parse(timers::TIMEKEEPER)?);
        let until = stop.clone();
        supervisor.keep("schedule", move || {
            schedule::run(timekeeper.clone(), until.clone())
        });
        if suspects.alone().is_empty() {
            consume(services, consumers, supervisor);
        } else {
            let (services, frame) = (services.clone(), frame.clone());
            let runs = supervisor.clone();
            supervisor.spawn("trial", async move {
                let mut consumers = consumers;
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = try_alone(&mut consumers, &frame, &services, &runs) => {}
                }
                consume(&services, consumers, &runs);
            });
        }
        Ok(())
    }
}

/// An agent, how it is woken, and what wakes it.
type Subscriber = (Arc<dyn Agent>, Profile, Inbox);

/// Handles what the program may have died of, one by one and nothing beside it, so that the innocent go free.
///
/// What cannot be handled now, or is no delivery, is left to whoever takes it later.
async fn try_alone(
    consumers: &mut [Subscriber],
    frame: &Context,
    services: &Services,
    supervisor: &Supervisor,
) {
    let suspects = services.registry.suspects();
    suspects.keep_quiet(frame).await;
    for deaths in suspects.alone() {
        let Some(key) = deaths::delivery_of(&deaths.entity) else {
            continue;
        };
        let of_it = |consumer: &&mut Subscriber| consumer.1.role == key.subscriber;
        let Some((agent, profile, inbox)) = consumers.iter_mut().find(of_it) else {
            continue;
        };
        if let Some(delivery) = inbox.this_one(key.sequence).await {
            info!(bus.delivery = %key, "handling delivery `{key}` alone");
            let (agent, role) = (Arc::clone(agent), profile.role.clone());
            let context = Context::new(services, role.clone());
            let (over, mut is_over) = mpsc::channel::<()>(1);
            let stop = supervisor.shutdown().soft().clone();
            supervisor.spawn("agent", async move {
                runner::handle(agent.as_ref(), &role, delivery, &context, &stop).await;
                drop(over);
            });
            tokio::select! {
                _ = is_over.recv() => {}
                // What kills does so sooner; the others need not wait for a model that thinks.
                () = frame.clock.sleep(ALONE_FOR) => {}
            }
        }
    }
}

/// Starts the loops of every agent, and lets it take deliveries.
fn consume(services: &Services, consumers: Vec<Subscriber>, supervisor: &Supervisor) {
    for (agent, profile, inbox) in consumers {
        let context = Context::new(services, profile.role.clone());
        for worker in agent.workers() {
            services.registry.add(&worker.name, &profile.role);
            let context = context.speaking_as(worker.name.clone());
            parts::keep(worker, context, supervisor);
        }
        info!(agent = %profile.role, "agent `{}` takes deliveries", profile.role);
        let stop = supervisor.shutdown().soft().clone();
        supervisor.spawn(
            "agent",
            runner::run(agent, profile.role, inbox, context, stop),
        );
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

#[cfg(test)]
mod tests {
    use ropewalk_schemas::advice::Words;
    use ropewalk_store::CommitError;

    use super::*;

    #[test]
    fn what_kept_the_frame_from_starting_says_how_it_is_mended() {
        let words = |error: FrameError| Words::of(&error);
        let bus = BusError::Permission("a; b".to_owned());
        assert_eq!(
            words(bus.into()),
            (
                "the NATS server denies permission (a; b)",
                "extend the permissions of the user"
            )
                .into()
        );
        let full = LayDownError::from(CommitError::NoSpace);
        let next = words(full.into()).next;
        assert_eq!(next.as_deref(), Some("make room and try again"));
    }
}
