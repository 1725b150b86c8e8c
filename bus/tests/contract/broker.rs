//! What the broker adds to the contract: its stream, its faults, and its own errors.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use async_nats::jetstream;
use futures::StreamExt;
use ropewalk_bus::{
    BusError, FirstConnection, Inbox, JetStreamOptions, LiveEvent, LiveEvents, TransportOptions,
    TransportStatus,
};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::{Event, ProjectName, Subject};
use ropewalk_store::{ChangeSet, DeliveryFilter, DeliveryState};
use ropewalk_tests::servers::NatsServer;

use crate::server::ConfiguredServer;
use crate::support::{
    PATIENCE, RunningBus, World, commit, finish_all, finish_each_once, jetstream_options, next,
    nothing_more, retry, sequence, status, stop_request, stream, subscription,
};

fn nats(world: &mut World) -> Result<&mut NatsServer> {
    world.nats.as_mut().context("the world has a broker")
}

async fn message_ids(url: &str) -> Result<Vec<String>> {
    let stream = stream(url).await?;
    let state = &stream.cached_info().state;
    let mut ids = Vec::new();
    for sequence in state.first_sequence..=state.last_sequence {
        let message = stream.get_raw_message(sequence).await?;
        let id = message
            .headers
            .get("Nats-Msg-Id")
            .context("no message id")?;
        ids.push(id.as_str().to_owned());
    }
    Ok(ids)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_lie_in_the_stream_with_their_cloud_events_headers() -> Result<()> {
    let world = World::jetstream()?;
    let before = world.event("task/1", retry("before the bus started")?)?;
    commit(&world.store().await?, [before.clone()]).await?;
    let running = world.start().await?;
    let routed = world.event("task/1", retry("do it again")?)?;
    let unrouted = world.event("build/1", stop_request())?;
    running
        .store
        .subscribe(&subscription("build", &["task.*"])?)
        .await?;
    commit(&running.store, [routed.clone(), unrouted.clone()]).await?;
    running.bus.flush().await;

    let url = world.nats.as_ref().context("a broker")?.url();
    let stream = stream(&url).await?;
    let events = [before, routed, unrouted];
    assert_eq!(stream.cached_info().state.messages, 3);
    for (sequence, event) in (1..).zip(&events) {
        let message = stream.get_raw_message(sequence).await?;
        let subject = format!("ropewalk.contract.{}", event.event_type());
        assert_eq!(message.subject.as_str(), subject);
        let header = |name: &str| {
            message
                .headers
                .get(name)
                .map(async_nats::HeaderValue::as_str)
        };
        assert_eq!(header("ce-specversion"), Some("1.0"));
        assert_eq!(header("ce-id"), Some(event.id.to_string().as_str()));
        assert_eq!(header("ce-type"), Some(event.event_type()));
        assert_eq!(header("ce-source"), Some(event.source.as_str()));
        assert_eq!(header("ce-subject"), Some(event.subject.as_str()));
        assert_eq!(header("Nats-Msg-Id"), Some(event.id.to_string().as_str()));
        let data: serde_json::Value = serde_json::from_slice(&message.payload)?;
        assert_eq!(data, event.payload.to_value());
    }
    let config = &stream.cached_info().config;
    assert_eq!(config.max_age, Duration::from_hours(7 * 24));
    assert_eq!(config.discard, jetstream::stream::DiscardPolicy::Old);
    running.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_comes_as_one_document_wakes_its_subscriber() -> Result<()> {
    let mut world = World::jetstream()?;
    let running = world.start().await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    let first = world.emit(&running.store, "a", "here").await?;
    assert_eq!(finish_all(&mut inbox, 1).await?, [first]);
    let (silent, committed) = committed_in_silence(&mut world, &mut inbox).await?;
    let url = world.nats.as_ref().context("a broker")?.url();
    let client = jetstream::new(async_nats::connect(url).await?);
    let mut document = serde_json::to_value(silent.to_cloud_event())?;
    let mut headers = async_nats::HeaderMap::new();
    headers.insert(
        "Content-Type",
        "application/cloudevents+json; charset=utf-8",
    );
    let subject = "ropewalk.contract.task.retry";
    // What is no event of ours wakes nobody and stays nowhere.
    let strange = serde_json::to_vec(&serde_json::json!({ "specversion": "1.0" }))?;
    for payload in [strange, serde_json::to_vec(&document)?] {
        let published = client.publish_with_headers(subject, headers.clone(), payload.into());
        published.await?.await?;
    }
    assert_eq!(finish_all(&mut inbox, 1).await?, [committed]);
    // Once more, and of an event that nobody ever stored.
    document["id"] = serde_json::json!(uuid::Uuid::from_u128(7));
    let unknown = serde_json::to_vec(&document)?;
    client
        .publish_with_headers(subject, headers, unknown.into())
        .await?
        .await?;
    let last = world.emit(&running.store, "a", "here again").await?;
    assert_eq!(finish_all(&mut inbox, 1).await?, [last]);
    running.stop().await
}

/// Commits an event of another process that nobody was told of; answers it and its sequence.
async fn committed_in_silence(world: &mut World, inbox: &mut Inbox) -> Result<(Event, i64)> {
    let elsewhere = world.store().await?;
    for _ in 0..20 {
        let event = world.event("b", retry("there")?)?;
        let sequence = sequence(&commit(&elsewhere, [event.clone()]).await?)?;
        // The publisher may still have been looking at what came before.
        match tokio::time::timeout(Duration::from_millis(300), inbox.next()).await {
            Err(_elapsed) => return Ok((event, sequence)),
            Ok(found) => {
                let mut found = found.context("the inbox ended")?;
                ensure!(found.key().sequence == sequence, "{:?} came", found.key());
                found.finish(ChangeSet::new()).await?;
            }
        }
    }
    bail!("whatever another process commits is found at once")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_bus_publishes_nothing_twice_and_nothing_not_at_all() -> Result<()> {
    let world = World::jetstream()?;
    let running = world.start().await?;
    world.emit(&running.store, "a", "1").await?;
    running.bus.flush().await;
    running.stop().await?;
    let store = world.store().await?;
    world.emit(&store, "a", "2").await?;
    let running = world.start().await?;
    running.bus.flush().await;
    let url = world.nats.as_ref().context("a broker")?.url();
    assert_eq!(stream(&url).await?.cached_info().state.messages, 2);
    running.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_the_broker_is_killed_and_restarted() -> Result<()> {
    broker_fault(|_| Ok(())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_the_data_of_the_broker_is_deleted() -> Result<()> {
    broker_fault(|nats| {
        let streams = nats.store_directory().join("jetstream");
        ensure!(streams.is_dir(), "there is nothing to delete");
        Ok(std::fs::remove_dir_all(streams)?)
    })
    .await
}

/// Emits before, during and after an outage of the broker, and expects each event once.
async fn broker_fault(damage: impl FnOnce(&NatsServer) -> Result<()>) -> Result<()> {
    let mut world = World::jetstream()?;
    let running = world.start().await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    let mut wanted = BTreeSet::new();
    for number in 0..30 {
        wanted.insert(
            world
                .emit(&running.store, &format!("e{}", number % 5), "before")
                .await?,
        );
    }
    // Some are in hand while the broker dies.
    let mut in_hand = Vec::new();
    for _ in 0..3 {
        in_hand.push(next(&mut inbox).await?);
    }
    nats(&mut world)?.kill();
    status(&running, |status| {
        matches!(status, TransportStatus::Down { .. })
    })
    .await?;
    for number in 0..30 {
        wanted.insert(
            world
                .emit(&running.store, &format!("e{}", number % 5), "during")
                .await?,
        );
    }
    for mut delivery in in_hand {
        wanted.remove(&delivery.key().sequence);
        delivery.finish(ChangeSet::new()).await?;
    }
    // 27 came before: the store hands out what the broker cannot.
    for sequence in finish_all(&mut inbox, 40).await? {
        ensure!(wanted.remove(&sequence), "`{sequence}` came twice");
    }
    damage(nats(&mut world)?)?;
    nats(&mut world)?.restart()?;
    for number in 0..30 {
        wanted.insert(
            world
                .emit(&running.store, &format!("e{}", number % 5), "after")
                .await?,
        );
    }
    finish_each_once(&mut inbox, &wanted).await?;
    nothing_more(&mut inbox).await?;
    status(&running, |status| *status == TransportStatus::Up).await?;
    running.bus.flush().await;
    let url = nats(&mut world)?.url();
    let ids: BTreeSet<String> = message_ids(&url).await?.into_iter().collect();
    assert_eq!(ids.len(), 90, "the stream has every event again");
    // The broker is used again: a fresh event arrives without the sweep.
    let fresh = world.emit(&running.store, "e0", "fresh").await?;
    finish_each_once(&mut inbox, &BTreeSet::from([fresh])).await?;
    nothing_more(&mut inbox).await?;
    running.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_lost_while_nothing_happens_is_rebuilt() -> Result<()> {
    let mut world = World::jetstream()?;
    let running = world.start().await?;
    for number in 0..3 {
        world
            .emit(&running.store, &format!("e{number}"), "x")
            .await?;
    }
    running.bus.flush().await;
    let before = message_ids(&nats(&mut world)?.url()).await?;
    nats(&mut world)?.kill();
    status(&running, |status| {
        matches!(status, TransportStatus::Down { .. })
    })
    .await?;
    std::fs::remove_dir_all(nats(&mut world)?.store_directory().join("jetstream"))?;
    nats(&mut world)?.restart()?;
    status(&running, |status| *status == TransportStatus::Up).await?;
    let url = nats(&mut world)?.url();
    let rebuilt = async {
        while stream(&url).await?.cached_info().state.messages < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, rebuilt).await??;
    assert_eq!(message_ids(&url).await?, before);
    running.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_not_there_is_named_or_waited_for() -> Result<()> {
    let mut world = World::jetstream()?;
    nats(&mut world)?.kill();
    let url = nats(&mut world)?.url();
    let refused = world.start().await.map(|_| ()).unwrap_err();
    let refused = Words::of(&refused.downcast::<BusError>()?).to_string();
    ensure!(
        refused.contains(&url) && refused.contains("start it"),
        "{refused}"
    );

    let options = JetStreamOptions {
        first_connection: FirstConnection::Retried,
        ..jetstream_options(nats(&mut world)?)?
    };
    let transport = TransportOptions::JetStream(options);
    let running = RunningBus::start(world.store().await?, transport, world.options.clone()).await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    let sequence = world.emit(&running.store, "a", "1").await?;
    status(&running, |status| {
        matches!(status, TransportStatus::Down { .. })
    })
    .await?;
    nats(&mut world)?.restart()?;
    finish_each_once(&mut inbox, &BTreeSet::from([sequence])).await?;
    nothing_more(&mut inbox).await?;
    status(&running, |status| *status == TransportStatus::Up).await?;
    running.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_too_old_is_refused_by_name() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let old = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut client, _) = listener.accept()?;
        client.write_all(b"INFO {\"server_id\":\"x\",\"version\":\"2.9.10\",\"max_payload\":1048576,\"headers\":true}\r\n")?;
        let mut heard = [0; 1024];
        while client.read(&mut heard)? > 0 {
            client.write_all(b"PONG\r\n")?;
        }
        Ok(())
    });
    let world = World::embedded()?;
    let options = JetStreamOptions::new(
        format!("nats://127.0.0.1:{port}"),
        ProjectName::parse("contract")?,
    );
    let transport = TransportOptions::JetStream(options);
    let refused = RunningBus::start(world.store().await?, transport, world.options.clone()).await;
    match refused.map(|_| ()) {
        Err(error) => {
            let told = Words::of(&error.downcast::<BusError>()?).to_string();
            ensure!(
                told.contains("2.9.10") && told.contains("2.10.23"),
                "{told}"
            );
        }
        Ok(()) => bail!("the old server was taken"),
    }
    drop(old);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_jetstream_is_refused() -> Result<()> {
    let server = ConfiguredServer::start("")?;
    let error = refused(server.url()).await?;
    ensure!(matches!(error, BusError::NoJetStream { .. }), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_permission_is_not_read_as_a_time_out() -> Result<()> {
    let server = ConfiguredServer::start(
        "jetstream: { store_dir: STORE }
         authorization: { users: [ { user: rope, password: walk, permissions: {
            publish: { deny: [\"$JS.API.>\"] } } } ] }",
    )?;
    let url = server.url().replace("nats://", "nats://rope:walk@");
    let error = refused(url).await?;
    ensure!(matches!(error, BusError::Permission(_)), "{error}");
    ensure!(error.to_string().contains("$JS.API"), "{error}");

    let error = refused(server.url()).await?;
    ensure!(matches!(error, BusError::Refused { .. }), "{error}");
    Ok(())
}

async fn refused(url: String) -> Result<BusError> {
    let world = World::embedded()?;
    let options = JetStreamOptions::new(url, ProjectName::parse("contract")?);
    let transport = TransportOptions::JetStream(options);
    let started = RunningBus::start(world.store().await?, transport, world.options.clone()).await;
    match started.map(|_| ()) {
        Err(error) => Ok(error.downcast::<BusError>()?),
        Ok(()) => bail!("the bus started"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sweep_publishes_again_what_nobody_took() -> Result<()> {
    let mut world = World::jetstream()?;
    world.options.sweep_every = Duration::from_millis(50);
    let running = world.start().await?;
    running
        .store
        .subscribe(&subscription("elsewhere", &["task.*"])?)
        .await?;
    let client = async_nats::connect(nats(&mut world)?.url()).await?;
    let mut messages = client.subscribe("ropewalk.contract.>").await?;
    client.flush().await?;
    let event = world.event("a", retry("again")?)?;
    commit(&running.store, [event.clone()]).await?;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let message = tokio::time::timeout(PATIENCE, messages.next())
            .await?
            .context("no message")?;
        let id = message.headers.context("no headers")?;
        ids.push(id.get("Nats-Msg-Id").context("no id")?.to_string());
    }
    assert_eq!(ids, [event.id.to_string(), format!("{}.1", event.id)]);
    running.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handled_messages_are_acknowledged() -> Result<()> {
    let world = World::jetstream()?;
    let running = world.start().await?;
    let mut inbox = running.consume("build", &["task.*"]).await?;
    let mut wanted = BTreeSet::new();
    for number in 0..20 {
        wanted.insert(
            world
                .emit(&running.store, &format!("e{number}"), "x")
                .await?,
        );
    }
    finish_each_once(&mut inbox, &wanted).await?;
    nothing_more(&mut inbox).await?;
    running.bus.flush().await;
    let url = world.nats.as_ref().context("a broker")?.url();
    let stream = stream(&url).await?;
    let acknowledged = async {
        loop {
            let info = stream.consumer_info("build").await?;
            let acknowledged = info.ack_floor.stream_sequence == 20;
            if acknowledged && (info.num_pending, info.num_ack_pending) == (0, 0) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, acknowledged).await??;
    let open = DeliveryFilter {
        states: vec![DeliveryState::Open],
        ..DeliveryFilter::default()
    };
    ensure!(running.store.deliveries(&open).await?.is_empty());
    running.stop().await
}

/// Listens until this event came.
async fn until_heard(events: &mut LiveEvents, wanted: &LiveEvent) -> Result<()> {
    let heard = async {
        while events.next().await.context("the bus is gone")? != *wanted {}
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, heard).await?
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ephemeral_events_reach_other_processes_once() -> Result<()> {
    let world = World::jetstream()?;
    let (one, other) = (world.start().await?, world.start().await?);
    let (mut here, mut there) = (one.bus.live().subscribe(), other.bus.live().subscribe());
    let event = |number: u32| -> Result<LiveEvent> {
        Ok(LiveEvent {
            event_type: "build.progress".to_owned(),
            subject: Subject::parse("build/1")?,
            data: number.into(),
        })
    };
    // The other process may only just be subscribing.
    let heard = async {
        loop {
            one.bus.live().publish(event(1)?);
            tokio::select! {
                heard = there.next() => return anyhow::Ok(heard),
                () = tokio::time::sleep(Duration::from_millis(50)) => {}
            }
        }
    };
    assert_eq!(
        tokio::time::timeout(PATIENCE, heard).await??,
        Some(event(1)?)
    );
    one.bus.live().publish(event(2)?);
    until_heard(&mut there, &event(2)?).await?;
    // What came back to the publisher would lie between its own two.
    until_heard(&mut here, &event(2)?).await?;
    one.bus.live().publish(event(3)?);
    let third = tokio::time::timeout(PATIENCE, here.next()).await?;
    assert_eq!(third, Some(event(3)?));
    one.stop().await?;
    other.stop().await
}
