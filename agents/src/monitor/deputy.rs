//! Says in the place of the monitor that it is gone: each process has one, since the monitor cannot tell of its own end.

use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_store::CommitError;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::decide::{self, ListeningPeriod};
use super::{MonitorOptions, act, context as load};

/// Looks whether a monitor is left, in one process.
#[derive(Debug)]
pub struct Deputy {
    options: MonitorOptions,
    listening: Option<ListeningPeriod>,
}

impl Deputy {
    /// Makes one that has not listened yet.
    pub const fn new(options: MonitorOptions) -> Self {
        Self {
            options,
            listening: None,
        }
    }

    /// Looks again and again until `stop`.
    pub async fn run(mut self, context: Context, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = context.clock.sleep(self.options.check_components_every) => {}
            }
            if let Err(error) = self.look(&context).await {
                warn!("nobody can tell whether a monitor is left: {error}");
            }
        }
    }

    /// Looks once, and raises an alert about the process of a monitor that is gone while there is no other.
    pub async fn look(&mut self, context: &Context) -> Result<(), AgentError> {
        let components = load::components(&context.store).await?;
        let (limit, now) = (self.options.component_down_after, context.now());
        let listening = decide::listen(self.listening, limit, now);
        self.listening = Some(listening);
        let causes = decide::unwatched(&components, limit, listening.since, now);
        let changes = act::raise_missing(causes, context).await?;
        if changes.is_empty() {
            return Ok(());
        }
        match context.store.commit(changes).await {
            // Whoever was faster has told of it.
            Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
