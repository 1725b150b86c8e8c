//! Ends the work of a model on what people gave up meanwhile: nobody pays for words that nobody wants any more.

use std::time::Duration;

use ropewalk_desk::ideas::is_abandoned;
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::{Slug, SpecId};
use ropewalk_store::{ReadError, Store};
use tokio_util::sync::CancellationToken;

/// So often the store is asked, by key, whether the work is still wanted; a reply takes seconds to minutes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a model works on for people.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Commission<'a> {
    /// A conversation about an idea.
    Chat(&'a Slug),
    /// The next revision of a specification of an idea.
    Draft(SpecId, &'a Slug),
}

impl Commission<'_> {
    /// Says whether people have given it up.
    pub(crate) async fn is_withdrawn(self, store: &Store) -> Result<bool, ReadError> {
        let (spec, idea) = match self {
            Self::Chat(idea) => (None, idea),
            Self::Draft(spec, idea) => (Some(spec), idea),
        };
        if let Some(spec) = spec {
            let spec = store.get::<Specification>(&spec.to_string()).await?;
            if spec.is_some_and(|spec| spec.state != SpecState::Draft) {
                return Ok(true);
            }
        }
        is_abandoned(store, idea).await
    }

    /// Waits for `work`, and cancels its token `cancel` once people give it up. A store that cannot be asked ends
    /// nothing.
    pub(crate) async fn while_wanted<T>(
        self,
        store: &Store,
        cancel: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                result = &mut work => return result,
                () = tokio::time::sleep(LOOK_EVERY), if !cancel.is_cancelled() => {}
            }
            if matches!(self.is_withdrawn(store).await, Ok(true)) {
                cancel.cancel();
            }
        }
    }
}
