//! What happens between processes: pokes, and the broker that we run ourselves.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use ropewalk_bus::supervise::{SuperviseError, SupervisedServer};
use ropewalk_bus::{JetStreamOptions, LiveEvent, LiveRelay, Poker, SocketHome, TransportOptions};
use ropewalk_runtime::{Shutdown, Supervisor};
use ropewalk_schemas::{ProjectName, Subject};
use ropewalk_store::ChangeSet;
use ropewalk_tests::servers::nats_server_program;
use serde_json::json;

use crate::support::{PATIENCE, RunningBus, World, finish_all, next};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poke_brings_what_another_process_committed() -> Result<()> {
    let world = World::embedded()?;
    let running = world.start().await?;
    let home = SocketHome::new(world.directory.path(), None);
    Poker::listen(&running.bus, &home, &running.supervisor)?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    let first = world.emit(&running.store, "a", "here").await?;
    assert_eq!(finish_all(&mut inbox, 1).await?, [first]);
    let other = world.store().await?;
    let second = world.emit(&other, "a", "there").await?;
    ensure!(Poker::poke(world.directory.path())?);
    assert_eq!(finish_all(&mut inbox, 1).await?, [second]);
    // Without a poke the next commit of this process shows that something came in between.
    let third = world.emit(&other, "a", "there, silently").await?;
    let fourth = world.emit(&running.store, "a", "here").await?;
    assert_eq!(finish_all(&mut inbox, 2).await?, [third, fourth]);
    running.stop().await?;
    ensure!(
        !Poker::poke(world.directory.path())?,
        "nobody is left to hear it"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poke_brings_what_another_process_committed_to_whoever_follows_the_timeline() -> Result<()>
{
    let world = World::embedded()?;
    let running = world.start_without_time().await?;
    let home = SocketHome::new(world.directory.path(), None);
    Poker::listen(&running.bus, &home, &running.supervisor)?;
    let mut heard = running.bus.tail().listen().await?;
    let other = world.store().await?;
    for number in 0..3 {
        let there = world.emit(&other, "a", &format!("there {number}")).await?;
        ensure!(Poker::poke(world.directory.path())?);
        let came = tokio::time::timeout(PATIENCE, heard.next()).await??;
        assert_eq!(came.sequence, there);
    }
    running.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_ephemeral_is_heard_by_another_process_as_it_was_told() -> Result<()> {
    let world = World::embedded()?;
    let running = world.start().await?;
    let state = world.directory.path();
    let home = SocketHome::new(state, None);
    LiveRelay::serve(&running.bus, &home, &running.supervisor)?;
    let mut heard = LiveRelay::listen(state).await.context("nobody tells")?;
    let spoken = |text: &str| {
        Ok::<_, anyhow::Error>(LiveEvent {
            event_type: "ideation.delta".to_owned(),
            subject: Subject::parse("idea/walks")?,
            data: json!({ "text": text, "lines": ["a\nb", "ü"] }),
        })
    };
    let (first, second) = (spoken("one")?, spoken("two")?);
    // Who has only just come is heard of a moment later, and what was told before is lost.
    let told = async {
        loop {
            running.bus.live().publish(first.clone());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let came = tokio::select! {
        () = told => None,
        came = tokio::time::timeout(PATIENCE, heard.next()) => came?,
    };
    assert_eq!(came.as_ref(), Some(&first));
    running.bus.live().publish(second.clone());
    let came = async {
        loop {
            match heard.next().await {
                Some(event) if event == first => {}
                other => return other,
            }
        }
    };
    let came = tokio::time::timeout(PATIENCE, came).await?;
    assert_eq!(came, Some(second));
    running.stop().await?;
    let end = tokio::time::timeout(PATIENCE, heard.next()).await?;
    assert_eq!(end, None, "who tells has ended");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_runs_is_found_again_after_its_runtime_directory_is_gone() -> Result<()> {
    let world = World::embedded()?;
    let running = world.start().await?;
    let (state, runtime) = (world.directory.path(), world.directory.path().join("run"));
    DirBuilder::new().mode(0o700).create(&runtime)?;
    let home = SocketHome::new(state, Some(runtime.clone()));
    Poker::listen(&running.bus, &home, &running.supervisor)?;
    LiveRelay::serve(&running.bus, &home, &running.supervisor)?;
    ensure!(Poker::poke(state)? && LiveRelay::listen(state).await.is_some());
    // So it goes when the user logs out, and the program stays.
    std::fs::remove_dir_all(&runtime)?;
    ensure!(!Poker::poke(state)?, "nothing is left of it");
    tokio::time::timeout(PATIENCE, async {
        while !(Poker::poke(state)? && LiveRelay::listen(state).await.is_some()) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    })
    .await??;
    running.stop().await
}

fn pid(state: &Path) -> Result<i32> {
    let text = std::fs::read_to_string(state.join("nats/nats-server.pid"))?;
    Ok(text.trim().parse()?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_own_broker_is_started_again_and_ends_with_us() -> Result<()> {
    let world = World::embedded()?;
    let state = world.directory.path();
    let supervisor = Supervisor::new(Shutdown::new());
    let program = nats_server_program()?;
    let server = SupervisedServer::start_program(&program, state, &supervisor).await?;
    let options = JetStreamOptions::new(server.url(), ProjectName::parse("contract")?);
    let transport = TransportOptions::JetStream(options);
    let running = RunningBus::start(world.store().await?, transport, world.options.clone()).await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    world.emit(&running.store, "a", "1").await?;
    finish_all(&mut inbox, 1).await?;

    let before = pid(state)?;
    let killed = nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(before),
        nix::sys::signal::Signal::SIGKILL,
    );
    killed.context("the broker is not there")?;
    let sequence = world.emit(&running.store, "a", "2").await?;
    let mut delivery = next(&mut inbox).await?;
    assert_eq!(delivery.key().sequence, sequence);
    delivery.finish(ChangeSet::new()).await?;
    // The store may hand it out before the broker is back.
    let again = async {
        loop {
            match pid(state) {
                Ok(after) if after != before => break after,
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let after = tokio::time::timeout(PATIENCE, again).await?;
    running.stop().await?;
    supervisor.shutdown().begin();
    let late = supervisor.drain(PATIENCE).await?;
    ensure!(late.is_empty(), "{late:?} ran on");
    ensure!(
        !Path::new(&format!("/proc/{after}")).exists(),
        "it is still there"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_left_behind_by_a_killed_process_is_ended() -> Result<()> {
    let state = tempfile::tempdir()?;
    let directory = state.path().join("nats");
    std::fs::create_dir_all(&directory)?;
    let program = nats_server_program()?;
    let mut left = Command::new(&program)
        .args([
            "--addr",
            "127.0.0.1",
            "--port",
            "-1",
            "--jetstream",
            "--store_dir",
        ])
        .arg(&directory)
        .arg("--pid")
        .arg(directory.join("nats-server.pid"))
        .stderr(Stdio::null())
        .spawn()?;
    let written = async {
        while pid(state.path()).is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, written).await?;
    let supervisor = Supervisor::new(Shutdown::new());
    SupervisedServer::start_program(&program, state.path(), &supervisor).await?;
    assert_eq!(left.wait()?.signal(), Some(9));
    supervisor.shutdown().begin();
    let late = supervisor.drain(PATIENCE).await?;
    ensure!(late.is_empty(), "{late:?} ran on");
    Ok(())
}

#[tokio::test]
async fn a_missing_broker_program_names_the_cure() -> Result<()> {
    let state = tempfile::tempdir()?;
    let supervisor = Supervisor::new(Shutdown::new());
    let program = Path::new("/nowhere/nats-server");
    let started = SupervisedServer::start_program(program, state.path(), &supervisor).await;
    ensure!(
        matches!(started, Err(SuperviseError::Missing)),
        "{started:?}"
    );
    ensure!(supervisor.running().is_empty(), "something runs");
    Ok(())
}
