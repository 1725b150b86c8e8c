//! Three servers keep each event; losing the leader delays and loses nothing.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use async_nats::jetstream::{self, stream::Stream};
use ropewalk_bus::{
    FirstConnection, JetStreamOptions, StreamOptions, TransportOptions, TransportStatus,
};
use ropewalk_schemas::ProjectName;
use ropewalk_store::ChangeSet;

use crate::server::ConfiguredServer;
use crate::support::{Running, World, next};

/// How long a cluster may take to choose its leaders, and the bus to go on without one.
const ELECTION: Duration = Duration::from_mins(1);

/// Three servers that know each other.
fn cluster() -> Result<Vec<ConfiguredServer>> {
    let sockets: Vec<TcpListener> = (0..3)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<std::io::Result<_>>()?;
    let ports: Vec<u16> = sockets
        .iter()
        .map(|socket| Ok(socket.local_addr()?.port()))
        .collect::<std::io::Result<_>>()?;
    drop(sockets);
    let routes: Vec<String> = ports
        .iter()
        .map(|port| format!("\"nats://127.0.0.1:{port}\""))
        .collect();
    (1..)
        .zip(&ports)
        .map(|(number, port)| {
            ConfiguredServer::start(&format!(
                "server_name: n{number}\njetstream: {{ store_dir: STORE }}\n\
                 cluster {{ name: rope, listen: \"127.0.0.1:{port}\", routes: [{}] }}",
                routes.join(", ")
            ))
        })
        .collect()
}

async fn stream(servers: &[Option<ConfiguredServer>]) -> Result<Stream> {
    let alive: Vec<String> = servers
        .iter()
        .flatten()
        .map(ConfiguredServer::url)
        .collect();
    let client = async_nats::connect(alive).await?;
    Ok(jetstream::new(client)
        .get_stream("ropewalk-contract")
        .await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_of_three_is_killed_and_every_event_arrives_once() -> Result<()> {
    let mut servers: Vec<Option<ConfiguredServer>> = cluster()?.into_iter().map(Some).collect();
    let world = World::embedded()?;
    let urls: Vec<String> = servers
        .iter()
        .flatten()
        .map(ConfiguredServer::url)
        .collect();
    let options = JetStreamOptions {
        first_connection: FirstConnection::Retried,
        stream: StreamOptions {
            replicas: 3,
            ..StreamOptions::default()
        },
        ..JetStreamOptions::new(urls.join(","), ProjectName::parse("contract")?)
    };
    let transport = TransportOptions::JetStream(options);
    let running = Running::start(world.store().await?, transport, world.options).await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    let mut wanted = BTreeSet::new();
    for _ in 0..30 {
        wanted.insert(world.emit(&running.store, "a", "before").await?);
    }
    let up = async {
        while running.bus.status() != TransportStatus::Up {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        running.bus.flush().await;
    };
    tokio::time::timeout(ELECTION, up).await?;
    let info = stream(&servers).await?.cached_info().clone();
    assert_eq!((info.config.num_replicas, info.state.messages), (3, 30));
    let leader = info.cluster.and_then(|cluster| cluster.leader);
    let leader = leader.context("the stream has no leader")?;
    let number: usize = leader.trim_start_matches('n').parse()?;
    drop(servers[number - 1].take());

    for _ in 0..30 {
        wanted.insert(world.emit(&running.store, "b", "after").await?);
    }
    let mut done = BTreeSet::new();
    while done.len() < wanted.len() {
        let mut delivery = tokio::time::timeout(ELECTION, next(&mut inbox)).await??;
        ensure!(done.insert(delivery.key().sequence), "delivered twice");
        delivery.finish(ChangeSet::new()).await?;
    }
    assert_eq!(done, wanted);
    tokio::time::timeout(ELECTION, running.bus.flush()).await?;
    let info = stream(&servers).await?.cached_info().clone();
    assert_eq!(info.state.messages, 60, "published again, each once");
    ensure!(info.cluster.and_then(|cluster| cluster.leader) != Some(leader));
    drop(inbox);
    running.stop().await
}
