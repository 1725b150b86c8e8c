//! Who holds which files, as people see it: tasks by locks, and builds by owning what they change.

use ropewalk_coordination::ownership;
use ropewalk_schemas::RepoPath;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_store::{Query, ReadError, Store};

use super::records;

/// How many of the newest builds are looked at for what they own.
const OWNERS: u32 = 200;

/// Lists the file locks and who holds them; `all` shows those that no longer hold too.
pub async fn list(store: &Store, all: bool) -> Result<Vec<Lease>, ReadError> {
    let mut query = Query::new();
    if !all {
        query = query.equal("state", LeaseState::Granted.as_str());
    }
    Ok(records(store.list::<Lease>(query).await?))
}

/// Lists the builds that own files, the newest first, and the files of each by path; of builds that began before many others
/// nothing is told.
pub async fn owned(store: &Store) -> Result<Vec<(Build, Vec<RepoPath>)>, ReadError> {
    ownership::kept_by_newest(store, OWNERS).await
}
