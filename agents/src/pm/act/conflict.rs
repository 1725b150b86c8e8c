//! Rules on a file that two builds want.

use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::payload::{ConflictDetected, DecisionMade};
use ropewalk_store::ChangeSet;

use super::decided;
use crate::pm::context;
use crate::pm::decide::{self, Claimant};

/// Decides by who owns the file now, which may have changed since the conflict was seen.
pub(super) async fn detected(
    conflict: &ConflictDetected,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let Some(build) = context::build(&context.store, conflict.build_id).await? else {
        return Ok(changes);
    };
    let asks = Claimant {
        build: build.id,
        priority: build.priority,
    };
    let owner = context::owner(&context.store, &conflict.file).await?;
    let ruling = decide::conflict(conflict.file.as_str(), asks, owner);
    let about = (build.id, &conflict.task_id);
    let decision = DecisionMade {
        file: Some(conflict.file.clone()),
        ..DecisionMade::of_task(about, ruling.verdict, ruling.reason)
    };
    decided(&mut changes, context, decision);
    Ok(changes)
}
