//! Breaks a cycle of waits that nobody has broken.

use ropewalk_coordination::deadlock::{self, Deadlock};
use ropewalk_coordination::graph::Link;
use ropewalk_coordination::ownership::FileRequest;
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::BuildId;
use ropewalk_schemas::payload::DeadlockDetected;
use ropewalk_schemas::wait::{Party, Resource};
use ropewalk_store::ChangeSet;

use super::of_build;
use crate::pm::context;
use crate::pm::decide::{self, Member};

/// Takes the locks of one member, if the cycle still stands; without one, a file of one build goes to the one that
/// waits for it. The alert of the cycle is closed, not raised again.
pub(super) async fn found(
    alert: &DeadlockDetected,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let now = context.now();
    let standing = deadlock::find_all(&context.store, now).await?;
    let named = standing
        .iter()
        .find(|deadlock| deadlock.cycle.names() == alert.cycle);
    let Some(deadlock) = named else {
        return Ok(changes);
    };
    if deadlock.victim.is_none() {
        untie(deadlock, context, &mut changes).await?;
        return Ok(changes);
    }
    // The events belong to whoever gives way.
    let context = match &deadlock.victim {
        Some(Party::Task { build, .. } | Party::Build { build }) => {
            let build = context::build(&context.store, *build).await?;
            build.map_or_else(|| context.clone(), |build| of_build(context, &build))
        }
        None => context.clone(),
    };
    deadlock.resolve(&mut changes, now, &|subject, payload| {
        context.event(subject, payload)
    });
    Ok(changes)
}

/// Lets one of the builds that wait for each other's files hand over the one that the deadlock waits for.
async fn untie(
    deadlock: &Deadlock,
    context: &Context,
    changes: &mut ChangeSet,
) -> Result<(), AgentError> {
    let waits: Vec<(&Link, BuildId)> = for_owners(deadlock).collect();
    let mut members = Vec::new();
    for (_, owner) in &waits {
        let build = context::build(&context.store, *owner).await?;
        members.extend(build.map(|build| Member {
            build: build.id,
            priority: build.priority,
            created_at: build.created_at,
        }));
    }
    let Some(giver) = decide::hands_over(&members) else {
        return Ok(());
    };
    let found = waits.into_iter().find(|(_, owner)| *owner == giver);
    let Some((link, owner)) = found else {
        return Ok(());
    };
    let (Party::Task { build, task }, Some(Resource::Ownership { path })) =
        (&link.waiter, &link.resource)
    else {
        return Ok(());
    };
    let request = FileRequest {
        build: *build,
        task: task.clone(),
        owner,
        file: path.clone(),
    };
    let reason = format!(
        "build `{owner}` hands it over to end a cycle of waits: {}",
        deadlock.cycle.names().join(", ")
    );
    request.answer(changes, true, &reason, &|subject, payload| {
        context.event(subject, payload)
    });
    Ok(())
}

/// Lists the waits of a deadlock for owners of files, with these owners.
fn for_owners(deadlock: &Deadlock) -> impl Iterator<Item = (&Link, BuildId)> {
    let links = &deadlock.cycle.links;
    let next = links.iter().cycle().skip(1);
    links
        .iter()
        .zip(next)
        .filter_map(|(link, next)| match (&link.resource, &next.waiter) {
            (Some(Resource::Ownership { .. }), Party::Build { build }) => Some((link, *build)),
            _ => None,
        })
}
