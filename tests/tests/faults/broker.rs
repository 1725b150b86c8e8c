//! A broker that is absent, killed, paused, emptied, or that says things twice and in another order.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use bytes::Bytes;
use futures::StreamExt;
use ropewalk_store::{DeliveryFilter, EventFilter};
use ropewalk_tests::servers::NatsServer;
use ropewalk_tests::soak::count;

use crate::picture::{TIMER, store};
use crate::project::Project;
use crate::running::{finish, start, stop, until_events, until_ready};
use crate::trial::{approved, pause, until};

const STREAM: &str = "ropewalk-habits";

/// Returns an approved project whose bus is `server`.
fn over(server: &NatsServer) -> anyhow::Result<Project> {
    let project = approved()?;
    let file = project.path().join("ropewalk.toml");
    let settings = fs::read_to_string(&file)?;
    let bus = format!("{settings}\n[bus]\ntransport = \"{}\"\n", server.url());
    fs::write(file, bus)?;
    Ok(project)
}

#[tokio::test]
async fn a_build_survives_a_crash_at_every_seam_of_the_broker() -> anyhow::Result<()> {
    let server = NatsServer::start()?;
    let project = over(&server)?;
    for seam in [
        "bus.publish.before:1",
        "bus.publish.after:1",
        "bus.acknowledge.before:1",
        "bus.acknowledge.after:1",
        "bus.publish.after:7",
        "bus.publish.before:9",
        "bus.acknowledge.before:4",
        "bus.acknowledge.after:3",
    ] {
        project.crash_at(seam, &[]).await?;
    }
    project.finish_and_check().await?;
    check_stream(&project, &server).await
}

#[tokio::test]
async fn soak_a_build_goes_on_while_its_broker_is_killed_paused_and_emptied() -> anyhow::Result<()>
{
    let wanted = count("ROPEWALK_SOAK_BROKER_KILLS", 4)?;
    let (mut kills, mut rounds) = (0, 0);
    while kills < wanted {
        let mut server = NatsServer::start()?;
        let project = over(&server)?;
        let mut up = start(&project.runner, &["up"])?;
        until_events(project.path(), &mut up, "task.started", 1).await?;
        for completed in [1, 2, 3] {
            server.kill();
            tokio::time::sleep(Duration::from_millis(300)).await;
            server.restart()?;
            until_events(project.path(), &mut up, "task.completed", completed).await?;
        }
        ensure!(server.pause(), "there is no broker to pause");
        // One long pause is enough.
        let long = if rounds == 0 {
            pause(2)?
        } else {
            Duration::from_secs(2)
        };
        tokio::time::sleep(long).await;
        ensure!(server.resume(), "the broker is gone");
        until_events(project.path(), &mut up, "task.completed", 4).await?;
        server.kill();
        fs::remove_dir_all(server.store_directory().join("jetstream"))?;
        server.restart()?;
        (kills, rounds) = (kills + 4, rounds + 1);
        until_events(project.path(), &mut up, "build.completed", 1)
            .await
            .with_context(|| project.said())?;
        stop(&mut up).await?;
        project.finish_and_check().await?;
        check_stream(&project, &server).await?;
    }
    println!("{kills} kills, {rounds} pauses, {rounds} empty stores: 0 lost, 0 doubled");
    Ok(())
}

#[tokio::test]
async fn a_broker_that_comes_after_the_start_is_waited_for() -> anyhow::Result<()> {
    let mut server = NatsServer::start()?;
    let project = over(&server)?;
    server.kill();
    let mut up = start(&project.runner, &["up"])?;
    let address = format!("127.0.0.1:{}", server.port());
    until(&project, "word of what it waits for", async || {
        Ok(project.said().contains(&address).then_some(()))
    })
    .await?;
    // It goes on to wait after that.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let ended = up.0.try_wait()?;
    ensure!(
        ended.is_none(),
        "`up` did not wait for its broker: {}",
        project.said()
    );
    server.restart()?;
    until_events(project.path(), &mut up, "build.completed", 1)
        .await
        .with_context(|| project.said())?;
    stop(&mut up).await?;
    project.finish_and_check().await
}

#[tokio::test]
async fn messages_that_come_again_and_in_another_order_do_nothing() -> anyhow::Result<()> {
    let server = NatsServer::start()?;
    let project = over(&server)?;
    let mut up = start(&project.runner, &["up"])?;
    until_events(project.path(), &mut up, "task.completed", 1).await?;
    let mut again = 0;
    for completed in [3, 6, 9] {
        // Five times each, backwards.
        for _ in 0..5 {
            again += publish_again(&server).await?;
        }
        until_events(project.path(), &mut up, "task.completed", completed).await?;
    }
    ensure!(again > 100, "only {again} messages came again");
    until_events(project.path(), &mut up, "build.completed", 1).await?;
    stop(&mut up).await?;
    project.finish_and_check().await?;

    // As a day later: everything once more, when all is done.
    let before = counts(&project).await?;
    let replayed = publish_again(&server).await?;
    ensure!(replayed > 0, "nothing was replayed");
    finish(&project.runner, project.path(), 1).await?;
    assert_eq!(
        counts(&project).await?,
        before,
        "replayed messages had effects"
    );
    project.check().await
}

/// Counts the deliveries and the events that are not told by a timer.
async fn counts(project: &Project) -> anyhow::Result<(usize, usize)> {
    let store = store(project.path()).await?;
    let events = store.events(&EventFilter::default()).await?;
    let deliveries = store.deliveries(&DeliveryFilter::default()).await?;
    store.close().await?;
    let events = events
        .iter()
        .filter(|stored| stored.event.event_type != TIMER);
    let deliveries = deliveries.iter().filter(|row| row.event_type != TIMER);
    Ok((events.count(), deliveries.count()))
}

/// Publishes every message of the stream once more, the last first; returns how many.
async fn publish_again(server: &NatsServer) -> anyhow::Result<usize> {
    let client = async_nats::connect(server.url()).await?;
    let context = async_nats::jetstream::new(client);
    let mut messages = messages(server).await?;
    messages.reverse();
    for (subject, headers, payload) in &messages {
        let mut copy = HeaderMap::new();
        for (name, values) in headers.iter() {
            for value in values
                .iter()
                .filter(|_| AsRef::<str>::as_ref(name) != "Nats-Msg-Id")
            {
                copy.append(name.clone(), value.clone());
            }
        }
        context
            .publish_with_headers(subject.clone(), copy, payload.clone())
            .await?
            .await?;
    }
    Ok(messages.len())
}

/// Returns subject, headers and payload of each event in the stream, however often it lies there.
async fn messages(server: &NatsServer) -> anyhow::Result<Vec<(String, HeaderMap, Bytes)>> {
    let client = async_nats::connect(server.url()).await?;
    let mut stream = async_nats::jetstream::new(client)
        .get_stream(STREAM)
        .await?;
    let count = usize::try_from(stream.info().await?.state.messages)?;
    let consumer = stream
        .create_consumer(pull::Config {
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::None,
            ..pull::Config::default()
        })
        .await?;
    let (mut found, mut seen) = (Vec::new(), BTreeSet::<String>::new());
    let mut batch = consumer.fetch().max_messages(count).messages().await?;
    while let Some(message) = batch.next().await {
        let message = message.map_err(|error| anyhow::anyhow!("{error}"))?;
        let headers = message
            .headers
            .clone()
            .context("a message without headers")?;
        let id = headers
            .get("ce-id")
            .context("no `ce-id`")?
            .as_str()
            .to_owned();
        if seen.insert(id) {
            found.push((
                message.subject.to_string(),
                headers,
                message.payload.clone(),
            ));
        }
    }
    Ok(found)
}

/// Checks that every event of the store gets into the stream; what a stop cut off, the next start brings.
async fn check_stream(project: &Project, server: &NatsServer) -> anyhow::Result<()> {
    let mut up = start(&project.runner, &["up"])?;
    until_ready(project.path(), &mut up).await?;
    let began = Instant::now();
    loop {
        let missing = missing(project, server).await?;
        if missing.is_empty() {
            break;
        }
        let late = began.elapsed() > Duration::from_mins(2);
        ensure!(!late, "not in the stream: {missing:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    stop(&mut up).await.map(drop)
}

/// Returns the events of the store that are not in the stream.
async fn missing(project: &Project, server: &NatsServer) -> anyhow::Result<Vec<String>> {
    let store = store(project.path()).await?;
    let events = store.events(&EventFilter::default()).await?;
    store.close().await?;
    let streamed: BTreeSet<String> = messages(server)
        .await?
        .iter()
        .filter_map(|(_, headers, _)| Some(headers.get("ce-id")?.as_str().to_owned()))
        .collect();
    Ok(events
        .iter()
        .filter(|stored| !streamed.contains(&stored.event.id.to_string()))
        .map(|stored| format!("{} {}", stored.event.event_type, stored.event.id))
        .collect())
}
