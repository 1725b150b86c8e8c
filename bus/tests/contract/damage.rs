//! A broker whose files are damaged or whose disk is full.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use ropewalk_bus::{TransportOptions, TransportStatus};
use ropewalk_tests::namespaces;
use ropewalk_tests::servers::NatsServer;

use crate::support::{
    RunningBus, World, finish_each_once, jetstream_options, status, stream, subscription,
};

/// Returns the files below `directory` that end in `.blk`.
fn blocks(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(blocks(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "blk") {
            found.push(path);
        }
    }
    Ok(found)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_in_the_stream_loses_nothing() -> Result<()> {
    let mut world = World::jetstream()?;
    let running = world.start().await?;
    let build = subscription("build", &["task.*"])?;
    running.store.subscribe(&build).await?;
    let mut wanted = BTreeSet::new();
    for number in 0..40 {
        wanted.insert(
            world
                .emit(&running.store, &format!("e{number}"), "x")
                .await?,
        );
    }
    running.bus.flush().await;
    running.stop().await?;

    let nats = world.nats.as_mut().context("a broker")?;
    nats.kill();
    let messages = nats
        .store_directory()
        .join("jetstream/$G/streams/ropewalk-contract/msgs");
    let [block] = &blocks(&messages)?[..] else {
        anyhow::bail!("one block of messages")
    };
    let mut bytes = fs::read(block)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(block, bytes)?;
    nats.restart()?;
    let damaged = stream(nats.url()).await?;
    let mut unreadable = 0;
    for sequence in 1..=40 {
        unreadable += u32::from(damaged.get_raw_message(sequence).await.is_err());
    }
    ensure!(unreadable > 0, "the flipped bit harmed nothing");

    let running = world.start().await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    wanted.insert(world.emit(&running.store, "after", "x").await?);
    finish_each_once(&mut inbox, &wanted).await?;
    drop(inbox);
    running.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_the_broker_is_told_and_a_restart_with_room_brings_everything() -> Result<()>
{
    if !namespaces::are_own() {
        let name =
            "damage::a_full_disk_of_the_broker_is_told_and_a_restart_with_room_brings_everything";
        return Ok(namespaces::run(name, &[])?);
    }
    let place = tempfile::tempdir()?;
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"])
        .arg(place.path())
        .status()?;
    ensure!(mounted.success(), "cannot mount a tmpfs");
    let mut world = World::embedded()?;
    world.options.sweep_every = Duration::from_millis(200);
    let mut nats = NatsServer::start_in(place.path())?;
    let transport = TransportOptions::JetStream(jetstream_options(&nats)?);
    let running = RunningBus::start(world.store().await?, transport, world.options.clone()).await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    let first = world.emit(&running.store, "a", "before").await?;
    finish_each_once(&mut inbox, &BTreeSet::from([first])).await?;
    running.bus.flush().await;

    let filler = place.path().join("filler");
    let mut file = fs::File::create(&filler)?;
    for size in [65_536, 4_096, 1] {
        let chunk = vec![1; size];
        while file.write_all(&chunk).is_ok() {}
    }
    let long = "x".repeat(20_000);
    let mut wanted = BTreeSet::new();
    for number in 0..30 {
        wanted.insert(
            world
                .emit(&running.store, &format!("e{number}"), &long)
                .await?,
        );
    }
    status(&running, |status| {
        matches!(status, TransportStatus::Down { .. })
    })
    .await?;
    // The store knows what the broker does not take, and the sweep brings it.
    finish_each_once(&mut inbox, &wanted).await?;

    drop(file);
    fs::remove_file(filler)?;
    nats.restart()?;
    let after = world.emit(&running.store, "a", "after").await?;
    finish_each_once(&mut inbox, &BTreeSet::from([after])).await?;
    status(&running, |status| *status == TransportStatus::Up).await?;
    running.bus.flush().await;
    let stream = stream(nats.url()).await?;
    assert_eq!(stream.cached_info().state.messages, 32);
    drop(inbox);
    running.stop().await
}
