//! A cluster whose servers are cut off from each other, in networks of its own.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use async_nats::jetstream::{self, stream::Stream};
use ropewalk_bus::{
    FirstConnection, JetStreamOptions, StreamOptions, TransportOptions, TransportStatus,
};
use ropewalk_schemas::ProjectName;
use ropewalk_tests::namespaces;
use ropewalk_tests::soak::count;

use crate::server::ConfiguredServer;
use crate::support::{
    ELECTION, RunningBus, World, commit, finish_all, finish_each_once, retry, status,
};

/// How long the loss of a leader may hold events up.
const STALL: Duration = Duration::from_secs(30);

/// How long a wire that comes and goes stays as it is.
const BETWEEN_FLAPS: Duration = Duration::from_secs(2);

fn run(program: &str, arguments: &str) -> Result<()> {
    let output = Command::new(program).args(arguments.split(' ')).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {arguments}: {said}");
    Ok(())
}

/// One machine: clients reach it over one wire, the other servers over another.
struct Machine {
    /// Keeps its network.
    keeper: Child,
    number: usize,
}

impl Machine {
    fn new(number: usize) -> Result<Self> {
        let keeper = Command::new("unshare")
            .args(["--net", "sleep", "1000000"])
            .stdin(Stdio::null())
            .spawn()?;
        let machine = Self { keeper, number };
        let began = Instant::now();
        let own = std::fs::read_link("/proc/self/ns/net")?;
        while std::fs::read_link(machine.network()).is_ok_and(|network| network == own) {
            ensure!(began.elapsed() < ELECTION, "no network of its own");
            std::thread::sleep(Duration::from_millis(5));
        }
        for (wire, bridge, net) in [("c", "clients", 77), ("p", "peers", 78)] {
            let pid = machine.keeper.id();
            run(
                "ip",
                &format!("link add {wire}{number} type veth peer name {bridge} netns {pid}"),
            )?;
            run("ip", &format!("link set {wire}{number} master {bridge} up"))?;
            let inside = format!("--net={} ip", machine.network());
            run(
                "nsenter",
                &format!("{inside} addr add 10.{net}.0.{number}/24 dev {bridge}"),
            )?;
            run("nsenter", &format!("{inside} link set {bridge} up"))?;
        }
        Ok(machine)
    }

    fn network(&self) -> String {
        format!("/proc/{}/ns/net", self.keeper.id())
    }

    fn serve(&self) -> Result<ConfiguredServer> {
        let number = self.number;
        ConfiguredServer::start_in(
            &self.network(),
            &format!("10.77.0.{number}"),
            &format!(
                "server_name: n{number}\njetstream: {{ store_dir: STORE }}\n\
                 cluster {{ name: rope, listen: \"10.78.0.{number}:6222\", no_advertise: true,\n\
                 routes: [\"nats://10.78.0.1:6222\", \"nats://10.78.0.2:6222\", \"nats://10.78.0.3:6222\"] }}"
            ),
        )
    }

    /// Cuts it off from the other servers, or joins it to them; clients reach it either way.
    fn join(&self, joined: bool) -> Result<()> {
        let state = if joined { "up" } else { "down" };
        run("ip", &format!("link set p{} {state}", self.number))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.keeper.kill().ok();
        self.keeper.wait().ok();
    }
}

struct Cluster {
    servers: Vec<ConfiguredServer>,
    machines: Vec<Machine>,
}

impl Cluster {
    fn start() -> Result<Self> {
        for (bridge, net) in [("clients", 77), ("peers", 78)] {
            run("ip", &format!("link add {bridge} type bridge"))?;
            run("ip", &format!("addr add 10.{net}.0.254/24 dev {bridge}"))?;
            run("ip", &format!("link set {bridge} up"))?;
        }
        let machines: Vec<Machine> = (1..=3).map(Machine::new).collect::<Result<_>>()?;
        let servers = machines.iter().map(Machine::serve).collect::<Result<_>>()?;
        Ok(Self { servers, machines })
    }

    /// Starts a bus that knows these servers, by position.
    async fn bus(&self, world: &World, project: &str, known: &[usize]) -> Result<RunningBus> {
        let urls: Vec<String> = known.iter().map(|each| self.servers[*each].url()).collect();
        let options = JetStreamOptions {
            first_connection: FirstConnection::Retried,
            stream: StreamOptions {
                replicas: 3,
                ..StreamOptions::default()
            },
            ..JetStreamOptions::new(urls.join(","), ProjectName::parse(project)?)
        };
        let transport = TransportOptions::JetStream(options);
        let running =
            RunningBus::start(world.store().await?, transport, world.options.clone()).await?;
        status(&running, |status| *status == TransportStatus::Up).await?;
        Ok(running)
    }

    async fn stream(&self, project: &str, server: usize) -> Result<Stream> {
        let client = async_nats::connect(self.servers[server].url()).await?;
        let context = jetstream::new(client);
        Ok(context.get_stream(format!("ropewalk-{project}")).await?)
    }

    /// Counts the messages of the stream, by what a server knows of it.
    async fn messages(&self, project: &str, server: usize) -> Result<usize> {
        let stream = self.stream(project, server).await?;
        Ok(usize::try_from(stream.cached_info().state.messages)?)
    }

    /// Returns the position of the stream's leader.
    async fn leader(&self, project: &str) -> Result<usize> {
        let info = self.stream(project, 0).await?.cached_info().clone();
        let leader = info.cluster.and_then(|cluster| cluster.leader);
        let leader = leader.context("the stream has no leader")?;
        Ok(leader.trim_start_matches('n').parse::<usize>()? - 1)
    }
}

/// Commits so many events at once, so that they go to the broker at once.
async fn emit(world: &World, running: &RunningBus, count: usize) -> Result<BTreeSet<i64>> {
    let events: Vec<_> = (0..count)
        .map(|number| world.event(&format!("e{}", number % 5), retry("x")?))
        .collect::<Result<_>>()?;
    let committed = commit(&running.store, events).await?;
    Ok(committed.events.iter().map(|each| each.sequence).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_costs_seconds_and_no_event() -> Result<()> {
    if !namespaces::are_own() {
        let name = "network::a_leader_that_is_cut_off_costs_seconds_and_no_event";
        return Ok(namespaces::run(name, &[])?);
    }
    let (cluster, world) = (Cluster::start()?, World::embedded()?);
    let running = cluster.bus(&world, "many", &[0, 1, 2]).await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    let before = emit(&world, &running, 20).await?;
    finish_each_once(&mut inbox, &before).await?;
    tokio::time::timeout(ELECTION, running.bus.flush()).await?;

    let leader = cluster.leader("many").await?;
    cluster.machines[leader].join(false)?;
    let cut = Instant::now();
    let during = emit(&world, &running, 20).await?;
    finish_each_once(&mut inbox, &during).await?;
    ensure!(cut.elapsed() <= STALL, "it took {:?}", cut.elapsed());
    let healthy = (leader + 1) % 3;
    tokio::time::timeout(ELECTION, running.bus.flush()).await?;
    assert_eq!(cluster.messages("many", healthy).await?, 40);
    drop(inbox);
    running.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn soak_a_wire_that_comes_and_goes_loses_and_doubles_nothing() -> Result<()> {
    if !namespaces::are_own() {
        let name = "network::soak_a_wire_that_comes_and_goes_loses_and_doubles_nothing";
        return Ok(namespaces::run(name, &[])?);
    }
    let flaps = count("ROPEWALK_SOAK_FLAPS", 3)?;
    let (cluster, world) = (Cluster::start()?, World::embedded()?);
    let running = cluster.bus(&world, "many", &[0, 1, 2]).await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    let leader = cluster.leader("many").await?;
    let flapping = async {
        let mut emitted = BTreeSet::new();
        for _ in 0..flaps {
            for joined in [false, true] {
                cluster.machines[leader].join(joined)?;
                emitted.extend(emit(&world, &running, 5).await?);
                tokio::time::sleep(BETWEEN_FLAPS).await;
            }
        }
        Ok(emitted)
    };
    let all = usize::try_from(flaps)? * 10;
    let (emitted, done) = tokio::try_join!(flapping, finish_all(&mut inbox, all))?;
    let different: BTreeSet<i64> = done.into_iter().collect();
    assert_eq!(different, emitted, "one was delivered twice");
    tokio::time::timeout(ELECTION, running.bus.flush()).await?;
    let seen = cluster.messages("many", (leader + 1) % 3).await?;
    assert_eq!(seen, all, "each event lies in the stream once");
    drop(inbox);
    running.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_smaller_side_claims_no_progress_and_loses_nothing() -> Result<()> {
    if !namespaces::are_own() {
        let name = "network::the_smaller_side_claims_no_progress_and_loses_nothing";
        return Ok(namespaces::run(name, &[])?);
    }
    let (cluster, world) = (Cluster::start()?, World::embedded()?);
    let alone = cluster.bus(&world, "alone", &[0]).await?;
    let mut inbox = alone.consume("build", &["task.*"]).await?;
    let before = emit(&world, &alone, 5).await?;
    finish_each_once(&mut inbox, &before).await?;
    tokio::time::timeout(ELECTION, alone.bus.flush()).await?;

    cluster.machines[0].join(false)?;
    let during = emit(&world, &alone, 5).await?;
    status(&alone, |status| {
        matches!(status, TransportStatus::Down { .. })
    })
    .await?;
    let flushed = tokio::time::timeout(Duration::from_secs(2), alone.bus.flush()).await;
    ensure!(flushed.is_err(), "it claims that the broker has everything");
    let majority = async {
        // Its leader may have been the one that is cut off.
        loop {
            if let Ok(messages) = cluster.messages("alone", 1).await {
                return messages;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    assert_eq!(tokio::time::timeout(ELECTION, majority).await?, 5);

    cluster.machines[0].join(true)?;
    finish_each_once(&mut inbox, &during).await?;
    tokio::time::timeout(ELECTION, alone.bus.flush()).await?;
    assert_eq!(cluster.messages("alone", 1).await?, 10);
    drop(inbox);
    alone.stop().await
}
