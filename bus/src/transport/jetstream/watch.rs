//! Watches the broker: keeps its advisories in a stream, and sees when events are dropped before their time.

use std::time::Duration;

use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, State, StorageType, Stream};
use chrono::{DateTime, Utc};
use ropewalk_schemas::ProjectName;
use tracing::debug;

use super::link::Link;
use super::notices::{Notice, NoticeKind};
use super::words::chain;
use super::{JetStreamOptions, wire};

/// How many advisories the broker keeps.
const KEPT_ADVISORIES: i64 = 10_000;
/// How many of them one look reads.
const READ_AT_ONCE: u64 = 100;
/// What the broker tells that means trouble, and where in the subject the stream stands.
const ADVISORIES: &[&str] = &[
    "CONSUMER.MAX_DELIVERIES.STREAM.>",
    "CONSUMER.MSG_TERMINATED.STREAM.>",
    "CONSUMER.QUORUM_LOST.STREAM.>",
    "STREAM.QUORUM_LOST.STREAM",
    "STREAM.DELETED.STREAM",
];

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The last advisory that was read.
    read: u64,
    /// The first event of the stream at the last look.
    first_kept: Option<u64>,
}

impl Watch {
    /// Looks once; what cannot be read now is read later.
    pub(super) async fn look(&mut self, link: &Link) {
        if !link.is_connected() {
            return;
        }
        if let Err(reason) = self.read_advisories(link).await {
            debug!("cannot read the advisories of the NATS server: {reason}");
        }
        if let Err(reason) = self.look_for_discards(link).await {
            debug!("cannot look at the stream: {reason}");
        }
    }

    async fn read_advisories(&mut self, link: &Link) -> Result<(), String> {
        let stream = advisories(link).await?;
        let state = &stream.cached_info().state;
        let first = state.first_sequence.max(self.read + 1);
        let first = first.max((state.last_sequence + 1).saturating_sub(READ_AT_ONCE));
        for sequence in first..=state.last_sequence {
            match stream.get_raw_message(sequence).await {
                Ok(message) => link.notices().add(Notice {
                    at: told_at(&message.payload).unwrap_or_else(|| link.now()),
                    kind: NoticeKind::Advisory,
                    text: format!("advisory `{}`", message.subject),
                }),
                // Deleted in between.
                Err(error) => debug!("advisory {sequence} cannot be read: {}", chain(&error)),
            }
            self.read = sequence;
        }
        Ok(())
    }

    async fn look_for_discards(&mut self, link: &Link) -> Result<(), String> {
        let options = link.options();
        let name = wire::stream_name(&options.project);
        let stream = link.context().get_stream(&name).await;
        let stream = stream.map_err(|error| chain(&error))?;
        let state = &stream.cached_info().state;
        let before = self.first_kept.replace(state.first_sequence);
        let too_early = discarded(before, state, link.now(), options.stream.max_age);
        if too_early > 0 {
            link.notices().add(Notice {
                at: link.now(),
                kind: NoticeKind::Discarded,
                text: format!(
                    "the stream `{name}` is full and dropped {too_early} events before their time; \
                     raise `bus.max_megabytes`. They are safe in the store"
                ),
            });
        }
        Ok(())
    }
}

/// Returns the stream of the advisories, made if it is not there.
async fn advisories(link: &Link) -> Result<Stream, String> {
    let asked = config(link.options());
    match link.context().get_stream(&asked.name).await {
        Ok(stream) => Ok(stream),
        Err(error) if matches!(error.kind(), GetStreamErrorKind::JetStream(_)) => link
            .context()
            .create_stream(asked)
            .await
            .map_err(|error| chain(&error)),
        Err(error) => Err(chain(&error)),
    }
}

/// Returns the name of the stream of the advisories; no project has a name with `~`.
fn advisories_name(project: &ProjectName) -> String {
    format!("ropewalk~{project}~advisories")
}

fn config(options: &JetStreamOptions) -> Config {
    let stream = wire::stream_name(&options.project);
    Config {
        name: advisories_name(&options.project),
        subjects: ADVISORIES
            .iter()
            .map(|advisory| {
                let (kind, rest) = advisory.split_at(advisory.rfind("STREAM").unwrap_or(0));
                format!(
                    "$JS.EVENT.ADVISORY.{kind}{}",
                    rest.replacen("STREAM", &stream, 1)
                )
            })
            .collect(),
        storage: StorageType::File,
        discard: DiscardPolicy::Old,
        max_age: options.stream.max_age,
        max_messages: KEPT_ADVISORIES,
        num_replicas: options.stream.replicas.max(1),
        ..Config::default()
    }
}

/// Counts what the stream dropped since the last look although its time was not over. Pure.
fn discarded(before: Option<u64>, state: &State, now: DateTime<Utc>, max_age: Duration) -> u64 {
    let Some(before) = before else { return 0 };
    let oldest = DateTime::from_timestamp(state.first_timestamp.unix_timestamp(), 0);
    // What lies right behind the dropped ones is about as old as they were.
    let aged = oldest.is_some_and(|oldest| {
        (now - oldest)
            .to_std()
            .is_ok_and(|age| age + max_age / 100 >= max_age)
    });
    if aged || state.messages == 0 {
        return 0;
    }
    // A stream that never held anything begins at 0, and its first message is 1.
    state.first_sequence.saturating_sub(before.max(1))
}

fn told_at(payload: &[u8]) -> Option<DateTime<Utc>> {
    let advisory: serde_json::Value = serde_json::from_slice(payload).ok()?;
    advisory["timestamp"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_was_there_and_is_gone_too_early_was_dropped() {
        let now: DateTime<Utc> = "2026-03-08T08:00:00Z".parse().unwrap();
        let state = |first: u64, messages: u64, since: &str| -> State {
            serde_json::from_value(json!({
                "messages": messages, "bytes": 1, "first_seq": first, "first_ts": since,
                "last_seq": first + messages, "last_ts": since, "consumer_count": 0,
            }))
            .unwrap()
        };
        let (young, old) = ("2026-03-08T07:00:00Z", "2026-03-01T08:00:00Z");
        let week = Duration::from_hours(7 * 24);
        for (before, state, dropped) in [
            (None, state(5, 9, young), 0),
            (Some(0), state(1, 1, young), 0),
            (Some(1), state(1, 9, young), 0),
            (Some(1), state(5, 9, young), 4),
            (Some(1), state(5, 9, old), 0),
            (Some(1), state(5, 0, young), 0),
        ] {
            assert_eq!(discarded(before, &state, now, week), dropped, "{before:?}");
        }
    }
}
