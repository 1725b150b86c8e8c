//! What people decide about who hears of events.

use ropewalk_schemas::ComponentName;
use ropewalk_schemas::person::Right;
use ropewalk_store::{CommitError, ReadError, Store};

use crate::people::{PermissionError, Person};

/// Says why nothing was replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Nobody is called so.
    #[error("no subscriber is called `{name}`")]
    Unknown {
        /// The name.
        name: ComponentName,
        /// Those there are.
        known: Vec<ComponentName>,
    },
    /// The person may not have it so.
    #[error(transparent)]
    Forbidden(#[from] PermissionError),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Has a subscriber handle the stored events from a position on that it never got, since it began later: what it got
/// once, it does not get again. Returns how many, at most 10,000 at once; poke whoever consumes.
pub async fn replay(
    store: &Store,
    name: &ComponentName,
    from: i64,
    by: &Person,
) -> Result<u64, ReplayError> {
    by.demand(Right::Stop)?;
    if let Some(count) = store.replay(name, from).await? {
        return Ok(count);
    }
    let known = store.subscriptions().await?;
    Err(ReplayError::Unknown {
        name: name.clone(),
        known: known.into_iter().map(|known| known.name).collect(),
    })
}
