//! Puts open questions that wait for nobody who is here to those who are: the people of a project may have changed while it
//! stood still.

use ropewalk_schemas::advice::Words;
use ropewalk_schemas::notice::Notice;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_store::{CommitError, Query, ReadError};
use tracing::warn;

use super::subscriber::Notifier;
use super::{ESCALATE, decide};
use crate::context::Context;
use crate::timers;

impl Notifier {
    /// Puts the open questions that this port brought to nobody whom it reaches now. What was asked before the port was
    /// switched on is history, and none of it is sent.
    pub(super) async fn catch_up(&self, context: &Context) {
        if let Err(error) = self.put_unheard(context).await {
            let port = self.port.name();
            warn!("open questions of `{port}` wait: {}", Words::of(&error));
        }
    }

    async fn put_unheard(&self, context: &Context) -> Result<(), ReadError> {
        let open = Query::new().equal("state", QuestionState::Pending.as_str());
        let reachable = self.reachable(context).await?;
        for question in context.store.list::<Question>(open).await? {
            let told = self.of_question(question.id, context).await?;
            let told: Vec<&Notice> = told.iter().map(|notice| &notice.record).collect();
            let target = question.id.to_string();
            let waits = timers::is_set(&context.store, ESCALATE, &target).await?;
            if !decide::is_unheard(&told, waits, &reachable) {
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
