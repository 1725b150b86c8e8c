//! Carries ephemeral events between processes outside the stream.

use std::sync::Arc;

use async_nats::HeaderMap;
use futures::StreamExt;
use ropewalk_runtime::Supervisor;
use tokio::sync::mpsc;
use tracing::debug;
use uuid::Uuid;

use super::link::Link;
use super::wire;
use crate::live::{LiveChannel, LiveEvent};

/// Names the process that published, so that it does not hear itself twice.
const ORIGIN: &str = "ropewalk-origin";

/// Publishes what this process says, and hears what others say.
pub(super) fn start(
    link: &Arc<Link>,
    live: &LiveChannel,
    mut outgoing: mpsc::Receiver<LiveEvent>,
    process: Uuid,
    supervisor: &Supervisor,
) {
    let origin = process.to_string();
    let (publishing, stop) = (Arc::clone(link), supervisor.shutdown().soft().clone());
    let own = origin.clone();
    supervisor.spawn("bus.live.publish", async move {
        let publish = async {
            while let Some(event) = outgoing.recv().await {
                publish(&publishing, &event, &own).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = publish => {}
        }
    });
    let (hearing, live) = (Arc::clone(link), live.clone());
    let stop = supervisor.shutdown().soft().clone();
    supervisor.spawn("bus.live.hear", async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = hear(&hearing, &live, &origin) => {}
        }
    });
}

async fn publish(link: &Link, event: &LiveEvent, origin: &str) {
    let subject = wire::live_subject(&link.options().project, &event.event_type);
    let mut headers = HeaderMap::new();
    headers.insert(ORIGIN, origin);
    let payload = match serde_json::to_vec(event) {
        Ok(payload) => payload,
        Err(error) => {
            debug!("an ephemeral event cannot be written: {error}");
            return;
        }
    };
    let published = link
        .client()
        .publish_with_headers(subject, headers, payload.into())
        .await;
    if let Err(error) = published {
        debug!("an ephemeral event was not published: {error}");
    }
}

async fn hear(link: &Link, live: &LiveChannel, origin: &str) {
    let subject = format!("ropewalk-live.{}.>", link.options().project);
    // The subscription survives reconnections; it fails only when the client is closed.
    let mut messages = match link.client().subscribe(subject).await {
        Ok(messages) => messages,
        Err(error) => {
            debug!("cannot hear ephemeral events of other processes: {error}");
            return;
        }
    };
    while let Some(message) = messages.next().await {
        if wire::text(message.headers.as_ref(), ORIGIN) == Some(origin) {
            continue;
        }
        match serde_json::from_slice(&message.payload) {
            Ok(event) => live.receive(event),
            Err(error) => debug!("dropped an ephemeral event that cannot be read: {error}"),
        }
    }
}
