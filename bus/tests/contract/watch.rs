//! What the bus notices about its broker: advisories, events dropped early, consumers that fall silent.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use async_nats::jetstream::{
    self,
    consumer::{AckPolicy, pull},
};
use futures::StreamExt;
use ropewalk_bus::{JetStreamOptions, NoticeKind, StreamOptions, TransportOptions};

use crate::support::{PATIENCE, RunningBus, World, finish_all, jetstream_options, stream};

const SWEEP: Duration = Duration::from_millis(50);
/// Where the bus keeps what the broker says once.
const ADVISORIES: &str = "ropewalk~contract~advisories";

/// Starts a bus that looks at its broker all the time, on a stream like this.
async fn watchful(world: &mut World, stream: StreamOptions) -> Result<RunningBus> {
    world.options.sweep_every = SWEEP;
    let options = JetStreamOptions {
        stream,
        ..jetstream_options(world.nats.as_ref().context("a broker")?)?
    };
    let transport = TransportOptions::JetStream(options);
    RunningBus::start(world.store().await?, transport, world.options.clone()).await
}

fn url(world: &World) -> Result<String> {
    Ok(world.nats.as_ref().context("a broker")?.url())
}

/// Waits until the bus has noticed something of `kind`, and returns what.
async fn noticed(running: &RunningBus, kind: NoticeKind) -> Result<String> {
    let found = async {
        loop {
            let notices = running.bus.notices();
            if let Some(notice) = notices.into_iter().find(|notice| notice.kind == kind) {
                return notice.text;
            }
            tokio::time::sleep(SWEEP).await;
        }
    };
    tokio::time::timeout(PATIENCE, found)
        .await
        .with_context(|| format!("no {kind:?} was noticed"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_advisory_is_kept_and_told_also_to_a_process_that_starts_later() -> Result<()> {
    let mut world = World::jetstream()?;
    let running = watchful(&mut world, StreamOptions::default()).await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    world.emit(&running.store, "a", "1").await?;
    finish_all(&mut inbox, 1).await?;
    running.bus.flush().await;
    let client = async_nats::connect(url(&world)?).await?;
    let context = jetstream::new(client);
    let kept = async {
        while context.get_stream(ADVISORIES).await.is_err() {
            tokio::time::sleep(SWEEP).await;
        }
    };
    tokio::time::timeout(PATIENCE, kept).await?;
    // Somebody else's consumer gives a message up: the broker says so once, and never again.
    let forgetful = stream(url(&world)?)
        .await?
        .create_consumer(pull::Config {
            durable_name: Some("forgetful".to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: Duration::from_millis(100),
            max_deliver: 1,
            ..pull::Config::default()
        })
        .await?;
    let mut taken = forgetful.fetch().max_messages(1).messages().await?;
    ensure!(taken.next().await.is_some(), "there was nothing to give up");
    drop(taken);
    let mut again = forgetful.stream().messages().await?;
    let nothing = tokio::time::timeout(Duration::from_millis(300), again.next()).await;
    ensure!(nothing.is_err(), "the message came twice");
    let text = noticed(&running, NoticeKind::Advisory).await?;
    ensure!(
        text.contains("MAX_DELIVERIES") && text.contains("forgetful"),
        "{text}"
    );
    drop(inbox);
    running.stop().await?;

    let later = watchful(&mut world, StreamOptions::default()).await?;
    assert_eq!(noticed(&later, NoticeKind::Advisory).await?, text);
    later.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_stream_that_drops_events_is_told_and_loses_nothing() -> Result<()> {
    let mut world = World::jetstream()?;
    let small = StreamOptions {
        max_bytes: Some(100_000),
        ..StreamOptions::default()
    };
    let running = watchful(&mut world, small).await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    world.emit(&running.store, "a", "first").await?;
    finish_all(&mut inbox, 1).await?;
    running.bus.flush().await;
    tokio::time::sleep(4 * SWEEP).await;
    let long = "x".repeat(4_000);
    for number in 0..60 {
        world
            .emit(&running.store, &format!("e{number}"), &long)
            .await?;
    }
    running.bus.flush().await;
    let text = noticed(&running, NoticeKind::Discarded).await?;
    ensure!(text.contains("bus.max_megabytes"), "{text}");
    let kept = stream(url(&world)?).await?.cached_info().state.messages;
    ensure!(kept < 61, "nothing was dropped");
    assert_eq!(finish_all(&mut inbox, 60).await?.len(), 60);
    running.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_has_messages_and_is_silent_is_made_anew() -> Result<()> {
    let mut world = World::jetstream()?;
    let running = watchful(&mut world, StreamOptions::default()).await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    world.emit(&running.store, "a", "1").await?;
    finish_all(&mut inbox, 1).await?;
    // A paused consumer keeps its heartbeats and hands nothing out: the silence is nobody's error.
    let client = async_nats::connect(world.nats.as_ref().context("a broker")?.url()).await?;
    let pause = r#"{"pause_until":"2099-01-01T00:00:00Z"}"#;
    let answer = client
        .request(
            "$JS.API.CONSUMER.PAUSE.ropewalk-contract.build",
            pause.into(),
        )
        .await?;
    let answer = String::from_utf8_lossy(&answer.payload).into_owned();
    ensure!(answer.contains("\"paused\":true"), "{answer}");
    world.emit(&running.store, "a", "2").await?;
    finish_all(&mut inbox, 1).await?;
    let text = noticed(&running, NoticeKind::SilentConsumer).await?;
    ensure!(text.contains("`build`"), "{text}");
    let awake = async {
        loop {
            let stream = stream(url(&world)?).await?;
            let found = stream.get_consumer::<pull::Config>("build").await;
            if found.is_ok_and(|consumer| !consumer.cached_info().paused) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(SWEEP).await;
        }
    };
    tokio::time::timeout(PATIENCE, awake).await??;
    world.emit(&running.store, "a", "3").await?;
    finish_all(&mut inbox, 1).await?;
    running.stop().await
}
