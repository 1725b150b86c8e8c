//! Puts open questions that wait for nobody who is here to those who are: the people of a project may have changed while it
//! stood still, and a phone may be linked where there was none.

use ropewalk_schemas::QuestionId;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::notice::Notice;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_store::{ChangeSet, CommitOrRead, Query, ReadError, retry_on_conflict};
use tracing::warn;

use super::subscriber::Notifier;
use super::{decide, row};
use crate::context::Context;

impl Notifier {
    /// Looks for them, or for `one` alone, and puts them. What goes wrong is told and holds nothing else up.
    pub(super) async fn look_at_unheard(&self, context: &Context, one: Option<QuestionId>) {
        let put = retry_on_conflict!(CommitOrRead, self.role, {
            let changes = self.put_unheard(context, one).await?;
            if !changes.is_empty() {
                context.store.commit(changes).await?;
            }
            Ok(Some(()))
        });
        if let Err(error) = put {
            let (role, why) = (&self.role, Words::of(&error));
            warn!("open questions of `{role}` that were brought to nobody wait: {why}");
        }
    }

    /// Returns what puts the open questions that this port brought to nobody whom it reaches by now. What was asked before the port
    /// was switched on is history, and none of it is sent.
    pub(super) async fn put_unheard(
        &self,
        context: &Context,
        one: Option<QuestionId>,
    ) -> Result<ChangeSet, ReadError> {
        let mut changes = ChangeSet::new();
        let reachable = self.reachable(context).await?;
        if reachable.is_empty() {
            return Ok(changes);
        }
        let open = Query::new().equal("state", QuestionState::Pending.as_str());
        for question in context.store.list::<Question>(open).await? {
            if one.is_some_and(|one| one != question.id) {
                continue;
            }
            let known = self.of_question(question.id, context).await?;
            let told: Vec<&Notice> = known.iter().map(|notice| &notice.record).collect();
            if decide::is_unheard(&told, &reachable) {
                changes.merge(self.asked(question.id, context).await?);
            } else {
                // Somebody may have asked for it in the moment in which it was noted that it reaches nobody.
                row::delete_unreached(&mut changes, &known);
            }
        }
        Ok(changes)
    }
}
