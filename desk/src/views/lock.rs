//! File locks as people see them.

use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_store::{Query, ReadError, Store};

use super::records;

/// Lists the file locks and who holds them; `all` shows those that no longer hold too.
pub async fn list(store: &Store, all: bool) -> Result<Vec<Lease>, ReadError> {
    let mut query = Query::new();
    if !all {
        query = query.equal("state", LeaseState::Granted.as_str());
    }
    Ok(records(store.list::<Lease>(query).await?))
}
