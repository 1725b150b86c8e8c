//! The main job with its truth on a PostgreSQL server and its events over a real nats-server.

use std::path::Path;

use ropewalk_runtime::Clock;
use ropewalk_store::{Location, Store};
use ropewalk_tests::program::Runner;
use ropewalk_tests::servers::{NatsServer, PostgresServer};
use serde_json::Value;

use crate::picture::{REHEARSAL, at, check_at_rest};
use crate::rehearsal::{check_branches, rehearse};

#[tokio::test]
async fn a_rehearsal_on_postgresql_and_nats_lands_the_same() -> anyhow::Result<()> {
    let (broker, server) = (NatsServer::start()?, PostgresServer::start()?);
    let directory = tempfile::tempdir()?;
    let (bus, location) = (broker.url(), server.url());
    let report = rehearse(directory.path(), &["--bus", &bus, "--store", &location])?;
    assert_eq!(at(&report, "/ok")?, &Value::Bool(true));
    assert_eq!(at(&report, "/store")?.as_str(), Some(location.as_str()));
    check_branches(&directory.path().join("rehearsal"))?;

    let store = Store::open(&Location::parse(&location, Path::new(""))?, Clock::system()).await?;
    check_at_rest(&store).await?;
    store.close().await?;
    assert!(
        !directory
            .path()
            .join("rehearsal/state/ropewalk.db")
            .exists()
    );

    // The database is not empty any more, and a second rehearsal there would mix its ideas with the first one's.
    let second = directory.path().join("second").display().to_string();
    let refused = Runner::new(directory.path()).run(
        &["rehearse", "--dir", &second, "--store", &location],
        REHEARSAL,
    )?;
    assert_eq!(refused.status.code(), Some(1));
    assert!(!Path::new(&second).exists());
    Ok(())
}
