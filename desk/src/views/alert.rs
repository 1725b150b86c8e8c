//! Alerts as people see them.

use ropewalk_schemas::alert::Alert;
use ropewalk_store::{Query, ReadError, Store};

use super::records;

/// Lists what is wrong, the oldest first; `all` shows what is gone too.
pub async fn list(store: &Store, all: bool) -> Result<Vec<Alert>, ReadError> {
    let mut query = Query::new().order_by("raised_at");
    if !all {
        query = query.equal("cleared", 0);
    }
    Ok(records(store.list::<Alert>(query).await?))
}
