//! Three servers keep each event; losing the leader delays and loses nothing.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use ropewalk_bus::{
    FirstConnection, JetStreamOptions, StreamOptions, TransportOptions, TransportStatus,
};
use ropewalk_schemas::ProjectName;
use ropewalk_tests::namespaces;

use crate::server::ConfiguredServer;
use crate::support::{ELECTION, RunningBus, World, finish_each_once, status, stream};

/// Three servers that know each other, on ports that are theirs in a network of their own.
fn cluster() -> Result<Vec<ConfiguredServer>> {
    let ports = [6222, 6223, 6224];
    let routes = ports.map(|port| format!("\"nats://127.0.0.1:{port}\""));
    (1..)
        .zip(ports)
        .map(|(number, port)| {
            ConfiguredServer::start(&format!(
                "server_name: n{number}\njetstream: {{ store_dir: STORE }}\n\
                 cluster {{ name: rope, listen: \"127.0.0.1:{port}\", routes: [{}] }}",
                routes.join(", ")
            ))
        })
        .collect()
}

fn urls(servers: &[Option<ConfiguredServer>]) -> Vec<String> {
    let alive = servers.iter().flatten();
    alive.map(ConfiguredServer::url).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_of_three_is_killed_and_every_event_arrives_once() -> Result<()> {
    if !namespaces::are_own() {
        let name = "cluster::the_leader_of_three_is_killed_and_every_event_arrives_once";
        return Ok(namespaces::run(name, &[])?);
    }
    let mut servers: Vec<Option<ConfiguredServer>> = cluster()?.into_iter().map(Some).collect();
    let world = World::embedded()?;
    let options = JetStreamOptions {
        first_connection: FirstConnection::Retried,
        stream: StreamOptions {
            replicas: 3,
            ..StreamOptions::default()
        },
        ..JetStreamOptions::new(urls(&servers).join(","), ProjectName::parse("contract")?)
    };
    let transport = TransportOptions::JetStream(options);
    let running = RunningBus::start(world.store().await?, transport, world.options.clone()).await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    let mut wanted = BTreeSet::new();
    for _ in 0..30 {
        wanted.insert(world.emit(&running.store, "a", "before").await?);
    }
    status(&running, |status| *status == TransportStatus::Up).await?;
    tokio::time::timeout(ELECTION, running.bus.flush()).await?;
    let info = stream(urls(&servers)).await?.cached_info().clone();
    assert_eq!((info.config.num_replicas, info.state.messages), (3, 30));
    let leader = info.cluster.and_then(|cluster| cluster.leader);
    let leader = leader.context("the stream has no leader")?;
    let number: usize = leader.trim_start_matches('n').parse()?;
    drop(servers[number - 1].take());

    for _ in 0..30 {
        wanted.insert(world.emit(&running.store, "b", "after").await?);
    }
    finish_each_once(&mut inbox, &wanted).await?;
    tokio::time::timeout(ELECTION, running.bus.flush()).await?;
    let info = stream(urls(&servers)).await?.cached_info().clone();
    assert_eq!(info.state.messages, 60, "published again, each once");
    ensure!(info.cluster.and_then(|cluster| cluster.leader) != Some(leader));
    drop(inbox);
    running.stop().await
}
