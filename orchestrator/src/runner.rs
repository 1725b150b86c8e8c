//! Takes deliveries for one agent, hands them over, and commits what comes back.

use std::sync::Arc;

use ropewalk_bus::{Delivery, Failure, Inbox};
use ropewalk_runtime::{Supervisor, failpoint, idle, traces};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::agent::AgentState;
use ropewalk_schemas::{ComponentName, Event};
use ropewalk_store::{ChangeSet, CommitError};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use crate::agent::{Agent, AgentError};
use crate::context::Context;
use crate::deaths::Suspects;
use crate::traced::DeliverySpan;

/// How often a handler is run again because somebody else changed what it had read. It is no `retry_on_conflict`: a lock that is held
/// or lost meanwhile is read anew, too, and what keeps changing is a failure of the delivery, which comes again after a rest.
const CONFLICTS: u32 = 16;

/// Runs `agent` on the deliveries of `inbox` until the inbox ends; then waits for those in hand.
pub(crate) async fn run(
    agent: Arc<dyn Agent>,
    role: ComponentName,
    mut inbox: Inbox,
    context: Context,
    stop: CancellationToken,
) {
    let mut in_hand = JoinSet::new();
    while let Some(delivery) = inbox.next().await {
        while in_hand.try_join_next().is_some() {}
        let (agent, role, context) = (Arc::clone(&agent), role.clone(), context.clone());
        let stop = stop.clone();
        in_hand
            .spawn(async move { handle(agent.as_ref(), &role, delivery, &context, &stop).await });
    }
    while in_hand.join_next().await.is_some() {}
}

/// Hands one delivery to the agent, shown in the registry and noted as in hand from its first moment to its last.
///
/// Whoever has nothing in hand after `stop` is let go; the delivery stays open.
pub(crate) async fn handle(
    agent: &dyn Agent,
    role: &ComponentName,
    delivery: Delivery,
    context: &Context,
    stop: &CancellationToken,
) {
    let handled = hand_over(agent, role, delivery, context);
    idle::unless_idle(stop, handled).await;
}

async fn hand_over(agent: &dyn Agent, role: &ComponentName, delivery: Delivery, context: &Context) {
    let registry = context.registry.clone();
    let entity = delivery.event.subject.to_string();
    let suspects = registry.suspects();
    let suspect = Suspects::delivery(delivery.key());
    let mark = suspects.hold_delivery(delivery.key(), delivery.attempt);
    registry.set(role, AgentState::Loading, Some(&entity));
    let handling = DeliverySpan::begin(role, &delivery, context);
    // What is put around it would copy it each time.
    let work = mark.around(Box::pin(settle(agent, role, delivery, context)));
    let shown = traces::within(handling.as_ref().map(DeliverySpan::place), work).await;
    if let Some(handling) = handling {
        handling.end(shown, context.now());
    }
    suspects.let_go(&suspect, &context.store).await;
    // Shown until it was written down once; then the registry has it rest.
    if shown == AgentState::Complete {
        mark.done();
    }
    registry.set(role, shown, Some(&entity));
}

/// Runs the handler until its change set is committed or its failure is stored; returns what is shown of that.
async fn settle(
    agent: &dyn Agent,
    role: &ComponentName,
    mut delivery: Delivery,
    context: &Context,
) -> AgentState {
    let event = delivery.event.clone();
    let context = context.caused_by(&event);
    for _ in 0..CONFLICTS {
        let failure = match call(agent, role, &delivery, &context).await {
            Ok(changes) => match delivery.finish(changes).await {
                Ok(_) => {
                    tell(agent, role, &event, &context).await;
                    return AgentState::Complete;
                }
                // Somebody else has handled it, and told of it.
                Err(CommitError::Closed { .. }) => return AgentState::Complete,
                Err(
                    CommitError::Conflict { .. }
                    | CommitError::Held { .. }
                    | CommitError::Fenced { .. },
                ) => {
                    continue;
                }
                Err(error) => AgentError::from(error),
            },
            Err(failure) => failure,
        };
        return fail(role, delivery, failure).await;
    }
    let failure = AgentError::transient("what it reads keeps changing");
    fail(role, delivery, failure).await
}

/// Calls the handler; a panic is a failure like any other.
async fn call(
    agent: &dyn Agent,
    role: &ComponentName,
    delivery: &Delivery,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    context.registry.set(
        role,
        AgentState::Active,
        Some(delivery.event.subject.as_str()),
    );
    let handled = async {
        failpoint!(&format!(
            "frame.handle.{role}.{}",
            delivery.event.event_type()
        ));
        agent.handle(&delivery.event, context).await
    };
    match Supervisor::guard("agent", handled).await {
        Ok(outcome) => outcome,
        Err(crash) => Err(AgentError::transient(crash)),
    }
}

/// Lets the agent tell what was committed; that it crashes there changes nothing any more.
async fn tell(agent: &dyn Agent, role: &ComponentName, event: &Event, context: &Context) {
    if let Err(crash) = Supervisor::guard("agent", agent.committed(event, context)).await {
        warn!(agent = %role, event.id = %event.id, "`{role}` could not tell what it did: {crash}");
    }
}

async fn fail(role: &ComponentName, delivery: Delivery, failure: AgentError) -> AgentState {
    let (event_id, event_type) = (delivery.event.id, delivery.event.event_type());
    let shown = if let AgentError::Postponed { .. } = failure {
        // Told once by whoever found what is away.
        debug!(agent = %role, event.id = %event_id, "`{role}` puts off `{event_type}`: {failure}");
        AgentState::Idle
    } else {
        warn!(agent = %role, event.id = %event_id, "`{role}` could not handle `{event_type}`: {failure}");
        AgentState::Error
    };
    let failure = match failure {
        AgentError::Transient(reason) => Failure::Transient(reason),
        AgentError::Postponed { after, reason } => Failure::Postponed { after, reason },
        AgentError::Permanent(reason) => Failure::Permanent(reason),
    };
    if let Err(error) = delivery.fail(failure).await {
        error!(agent = %role, event.id = %event_id, "the failure could not be stored, the delivery comes again: {}", Words::of(&error));
    }
    shown
}
