//! Directories for databases, and what is opened in them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use ropewalk_bus::TransportOptions;
use ropewalk_runtime::Clock;
use ropewalk_store::{Location, Store};
use ropewalk_world::{Plan, World};
use tempfile::TempDir;

/// Makes a directory on the disk of the current directory: what lies in memory is never written through.
pub(crate) fn directory() -> Result<TempDir> {
    Ok(tempfile::Builder::new()
        .prefix("ropewalk-bench-")
        .tempdir()?)
}

/// Names the database in `directory`.
pub(crate) fn database(directory: &Path) -> PathBuf {
    directory.join("ropewalk.db")
}

/// Opens the database in `directory`, with a bus on it; makes it when it is not there.
pub(crate) async fn world(directory: &Path, transport: TransportOptions) -> Result<World> {
    let plan = Plan::unlike_any_other(&Clock::system()).over(transport);
    Ok(plan.open(directory).await?)
}

/// Opens the database in `directory`; makes it when it is not there.
pub(crate) async fn store(directory: &Path) -> Result<Store> {
    let location = Location::Sqlite(database(directory));
    Ok(Store::open(&location, Clock::system()).await?)
}

/// Makes the tables in `directory` and leaves them to somebody else.
pub(crate) async fn tables(directory: &Path) -> Result<()> {
    store(directory).await?.close().await?;
    Ok(())
}
