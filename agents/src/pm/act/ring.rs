//! Breaks a ring of waits that nobody has broken.

use ropewalk_bus::deadlock;
use ropewalk_bus::graph::Link;
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::payload::DeadlockDetected;
use ropewalk_schemas::wait::Party;
use ropewalk_store::ChangeSet;

use super::of_build;
use crate::pm::context;

/// Takes the locks of one member, if the ring still stands. The alert of the ring is closed, not raised again.
pub(super) async fn found(
    alert: &DeadlockDetected,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let now = context.now();
    let standing = deadlock::find_all(&context.store, now).await?;
    let named = standing
        .iter()
        .find(|ring| ring.cycle.names() == alert.cycle);
    if let Some(ring) = named {
        // The events belong to whoever gives way; a ring without such a member stays shown for people.
        let first = ring.cycle.links.first().map(|Link { waiter, .. }| waiter);
        let context = match ring.victim.as_ref().or(first) {
            Some(Party::Task { build, .. } | Party::Build { build }) => {
                let build = context::build(&context.store, *build).await?;
                build.map_or_else(|| context.clone(), |build| of_build(context, &build))
            }
            None => context.clone(),
        };
        ring.resolve(&mut changes, now, &|subject, payload| {
            context.event(subject, payload)
        });
    }
    Ok(changes)
}
