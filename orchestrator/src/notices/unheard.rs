//! Puts open questions that wait for nobody who is here to those who are: the people of a project may have changed while it
//! stood still, and somebody may be reached who was not before.

use std::time::Duration;

use ropewalk_schemas::advice::Words;
use ropewalk_schemas::notice::Notice;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_store::{CommitError, Query, ReadError};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::subscriber::Notifier;
use super::{UNREACHED, decide};
use crate::context::Context;
use crate::timers;

/// How often it is looked whether the port reaches somebody whom it did not before.
const LOOK: Duration = Duration::from_secs(5);

impl Notifier {
    /// Puts the open questions that this port brought to nobody whom it reaches, until `stop`: at once, and whenever it reaches
    /// somebody more. What was asked before the port was switched on is history, and none of it is sent.
    pub(super) async fn reach(&self, context: &Context, stop: &CancellationToken) {
        let mut reached = Vec::new();
        loop {
            match self.put_to_new(&reached, context).await {
                Ok(now) => reached = now,
                Err(error) => {
                    let port = self.port.name();
                    warn!("open questions of `{port}` wait: {}", Words::of(&error));
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = context.clock.sleep(LOOK) => {}
            }
        }
    }

    /// Puts what is unheard where the port reaches others than those `before`; returns whom it reaches.
    async fn put_to_new(
        &self,
        before: &[String],
        context: &Context,
    ) -> Result<Vec<String>, ReadError> {
        let reachable = self.reachable(context).await?;
        if reachable.iter().any(|one| !before.contains(one)) {
            self.put_unheard(&reachable, context).await?;
        }
        Ok(reachable)
    }

    async fn put_unheard(&self, reachable: &[String], context: &Context) -> Result<(), ReadError> {
        let open = Query::new().equal("state", QuestionState::Pending.as_str());
        for question in context.store.list::<Question>(open).await? {
            let told = self.of_question(question.id, context).await?;
            let told: Vec<&Notice> = told.iter().map(|notice| &notice.record).collect();
            let target = self.unreached(question.id);
            let waits = timers::is_set(&context.store, UNREACHED, &target).await?;
            if !decide::is_unheard(&told, waits, reachable) {
                continue;
            }
            let changes = self.asked(question.id, context).await?;
            match context.store.commit(changes).await {
                // Whoever was faster has put it.
                Ok(_) | Err(CommitError::Conflict { .. }) => {}
                Err(error) => warn!("question `{}` waits: {}", question.id, Words::of(&error)),
            }
        }
        Ok(())
    }
}
