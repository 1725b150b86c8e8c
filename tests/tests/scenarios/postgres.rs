//! The main job with its truth on a PostgreSQL server and its events over a real nats-server.

use std::path::Path;

use anyhow::{Context, ensure};
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
    travels(directory.path())
}

/// Takes the rehearsal along in a file, to where its truth lies in a database file.
fn travels(directory: &Path) -> anyhow::Result<()> {
    let rehearsal = directory.join("rehearsal");
    let [archive, there] = ["habits.ropewalk", "there"].map(|name| directory.join(name));
    let [from, archive, to] = [&rehearsal, &archive, &there].map(|path| path.display().to_string());
    let runner = Runner::new(directory);
    let ask = |arguments: &[&str]| -> anyhow::Result<Value> {
        let output = runner.run(&[arguments, &["--json"]].concat(), REHEARSAL)?;
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{arguments:?}: {complaint}");
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    ask(&["-C", &from, "export", &archive])?;
    ask(&["import", &archive, &to, "--name", "there"])?;
    // Nobody has trusted it there yet, which it says by how it ends.
    let asked = runner.run(&["-C", &to, "trust", "--json"], REHEARSAL)?;
    let asked: Value = serde_json::from_slice(&asked.stdout)?;
    let hash = asked["hash"].as_str().context("a hash")?;
    ask(&["-C", &to, "trust", "--hash", hash])?;
    for view in [
        &["idea", "list"][..],
        &["spec", "list"],
        &["build", "list"],
        &["question", "list", "--all"],
        &["knowledge", "list"],
        &["usage", "--by", "build"],
    ] {
        let [here, there] = [&from, &to].map(|path| ask(&[&["-C", path], view].concat()));
        let (here, there) = (here?, there?);
        assert_ne!(here, Value::Null);
        assert_eq!(here, there, "{view:?}");
    }
    check_branches(&rehearsal)
}
