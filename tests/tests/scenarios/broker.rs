//! The main job over a real nats-server.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use futures::StreamExt;
use ropewalk_store::EventFilter;
use ropewalk_tests::servers::NatsServer;
use serde_json::Value;

use crate::picture::{at, store};
use crate::rehearsal::{check_branches, rehearse};

#[tokio::test]
async fn a_rehearsal_over_nats_lands_the_same_and_its_events_lie_in_the_stream()
-> anyhow::Result<()> {
    let server = NatsServer::start()?;
    let directory = tempfile::tempdir()?;
    let report = rehearse(directory.path(), &["--bus", &server.url()])?;
    assert_eq!(at(&report, "/ok")?, &Value::Bool(true));
    assert_eq!(at(&report, "/bus")?.as_str(), Some(server.url().as_str()));
    let rehearsal = directory.path().join("rehearsal");
    check_branches(&rehearsal)?;
    let stored = stored_events(&rehearsal).await?;
    assert!(!stored.is_empty());
    assert_eq!(streamed_events(&server.url()).await?, stored);
    Ok(())
}

/// Returns id and type of every event in the store.
async fn stored_events(rehearsal: &Path) -> anyhow::Result<BTreeSet<(String, String)>> {
    let store = store(rehearsal).await?;
    let events = store
        .events(&EventFilter {
            limit: Some(10_000),
            ..EventFilter::default()
        })
        .await?;
    Ok(events
        .into_iter()
        .map(|stored| (stored.event.id.to_string(), stored.event.event_type.clone()))
        .collect())
}

/// Returns `ce-id` and `ce-type` of every message in the stream of the project.
async fn streamed_events(url: &str) -> anyhow::Result<BTreeSet<(String, String)>> {
    let client = async_nats::connect(url).await?;
    let stream = async_nats::jetstream::new(client)
        .get_stream("ropewalk-rehearsal")
        .await?;
    let consumer = stream
        .create_consumer(pull::Config {
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::None,
            ..pull::Config::default()
        })
        .await?;
    let mut batch = consumer
        .fetch()
        .max_messages(10_000)
        .expires(Duration::from_secs(5))
        .messages()
        .await?;
    let mut events = BTreeSet::new();
    while let Some(message) = batch.next().await {
        let message = message.map_err(|error| anyhow::anyhow!("{error}"))?;
        let headers = message
            .headers
            .clone()
            .context("a message without headers")?;
        let header = |name: &str| headers.get(name).map(ToString::to_string);
        assert_eq!(header("ce-specversion").as_deref(), Some("1.0"));
        let id = header("ce-id").context("no ce-id")?;
        events.insert((id, header("ce-type").context("no ce-type")?));
    }
    Ok(events)
}
