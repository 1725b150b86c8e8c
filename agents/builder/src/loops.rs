//! Runs one build loop: claims the most fitting task, runs its attempt, looks again.

use std::sync::Arc;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::agent::AgentState;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::SharedState;
use super::signals::LOOK_EVERY;
use super::{attempt, claim};

/// Works until `ending`; an attempt in hand is finished after that.
pub(crate) async fn run(shared: Arc<SharedState>, context: Context, ending: CancellationToken) {
    let name = context.source().clone();
    let mut bell = shared.signals.loops();
    loop {
        // What was taken now would only hold its files, and count as begun, until people let everything go on.
        shared.engine.brake().pass(&ending).await;
        if ending.is_cancelled() {
            break;
        }
        // Marked as heard before looking, so that a bell during the look is not missed.
        bell.borrow_and_update();
        match claim::next(&shared, &context).await {
            Ok(Some(claim)) => {
                let entity = format!("task/{}/{}", claim.task.build, claim.task.id);
                let registry = context.registry.clone();
                registry.set(&name, AgentState::Active, Some(&entity));
                shared.signals.wake_scheduler();
                Box::pin(attempt::run(&shared, &context, claim)).await;
                registry.set(&name, AgentState::Complete, Some(&entity));
                continue;
            }
            Ok(None) => {}
            Err(error) => warn!("loop `{name}` could not look for tasks: {error}"),
        }
        tokio::select! {
            () = ending.cancelled() => break,
            _ = bell.changed() => {}
            () = context.clock.sleep(LOOK_EVERY) => {}
        }
    }
}
