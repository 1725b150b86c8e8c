//! Gives the work of a dead loop to the living.

use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::payload::{DecisionMade, Verdict, WorkAssigned};
use ropewalk_schemas::{ComponentName, Payload, Subject};
use ropewalk_store::ChangeSet;

use super::{decided, of_build};
use crate::pm::PmOptions;
use crate::pm::{context, decide};

/// Assigns every task of a dead loop anew; what nobody can take stays where it is, said aloud.
pub(super) async fn divided(
    options: &PmOptions,
    dead: &ComponentName,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let mut changes = ChangeSet::new();
    let down_after = options.component_down_after;
    let left = context::left_by(&context.store, dead, down_after, context.now()).await?;
    let Some(left) = left else {
        return Ok(changes);
    };
    for ((build, task), to) in decide::spread(left.orphans, left.loads) {
        let context = of_build(context, &build);
        if let Some(to) = to {
            changes.emit(context.event(
                Subject::task(build.id, &task.id),
                Payload::WorkAssigned(WorkAssigned {
                    build_id: build.id,
                    task_id: task.id,
                    from: Some(dead.clone()),
                    to,
                    reason: Some(format!("`{dead}` gives no sign of life")),
                }),
            ));
        } else {
            let reason =
                format!("`{dead}` is down and no other loop lives; the task stays pending");
            let about = (build.id, &task.id);
            let decision = DecisionMade::of_task(about, Verdict::Watch, reason);
            decided(&mut changes, &context, decision);
        }
    }
    Ok(changes)
}
