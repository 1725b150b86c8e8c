//! Carries ephemeral events: heartbeats, deltas, progress. Nothing here is stored, and a slow reader misses some.

use ropewalk_schemas::Subject;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::sync::{broadcast, mpsc};

/// How many events a reader may lie behind before it misses the oldest.
const CAPACITY: usize = 1_024;

/// An event that matters only now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveEvent {
    /// What kind of event it is, for example `build.progress`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The entity it is about.
    pub subject: Subject,
    /// What there is to say.
    pub data: Value,
}

/// Publishes and hears ephemeral events; cheap to clone.
#[derive(Debug, Clone)]
pub struct LiveChannel {
    local: broadcast::Sender<LiveEvent>,
    remote: Option<mpsc::Sender<LiveEvent>>,
}

impl LiveChannel {
    /// Returns a broadcast inside this process.
    pub(crate) fn local() -> Self {
        Self {
            local: broadcast::Sender::new(CAPACITY),
            remote: None,
        }
    }

    /// Returns a broadcast inside this process that also feeds other processes through what is received.
    pub(crate) fn with_remote() -> (Self, mpsc::Receiver<LiveEvent>) {
        let (remote, outgoing) = mpsc::channel(CAPACITY);
        let live = Self {
            local: broadcast::Sender::new(CAPACITY),
            remote: Some(remote),
        };
        (live, outgoing)
    }

    /// Publishes to whoever listens now; never waits.
    pub fn publish(&self, event: LiveEvent) {
        if let Some(remote) = &self.remote {
            // A full queue means that the broker is slow or gone; what is ephemeral may be dropped.
            drop(remote.try_send(event.clone()));
        }
        self.receive(event);
    }

    /// Tells the listeners of this process what another one published.
    pub(crate) fn receive(&self, event: LiveEvent) {
        // An error only says that nobody listens.
        drop(self.local.send(event));
    }

    /// Listens from now on.
    pub fn subscribe(&self) -> LiveEvents {
        LiveEvents(Source::Here(self.local.subscribe()))
    }
}

/// The ephemeral events from the moment of subscribing.
#[derive(Debug)]
pub struct LiveEvents(Source);

#[derive(Debug)]
enum Source {
    /// This process publishes them.
    Here(broadcast::Receiver<LiveEvent>),
    /// Another process on this machine does, a line each.
    There(Lines<BufReader<UnixStream>>),
}

impl LiveEvents {
    /// Hears what another process tells.
    pub(crate) fn from_stream(stream: UnixStream) -> Self {
        Self(Source::There(BufReader::new(stream).lines()))
    }

    /// Waits for the next event; skips what was missed; `None` when the bus is gone.
    pub async fn next(&mut self) -> Option<LiveEvent> {
        loop {
            match &mut self.0 {
                Source::Here(events) => match events.recv().await {
                    Ok(event) => return Some(event),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                },
                Source::There(lines) => {
                    let line = lines.next_line().await.ok()??;
                    // What a newer program tells and this one does not know is passed over.
                    if let Ok(event) = serde_json::from_str(&line) {
                        return Some(event);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize) -> LiveEvent {
        LiveEvent {
            event_type: "build.progress".to_owned(),
            subject: Subject::parse("build/1").unwrap(),
            data: number.into(),
        }
    }

    #[tokio::test]
    async fn a_slow_listener_misses_the_oldest_and_stops_nobody() {
        let live = LiveChannel::local();
        let mut events = live.subscribe();
        for number in 0..CAPACITY + 10 {
            live.publish(event(number));
        }
        assert_eq!(events.next().await, Some(event(10)));
        drop(live);
        let mut left = 0;
        while events.next().await.is_some() {
            left += 1;
        }
        assert_eq!(left, CAPACITY - 1);
    }

    #[test]
    fn publishing_without_a_listener_is_no_error() {
        LiveChannel::local().publish(event(1));
    }
}
