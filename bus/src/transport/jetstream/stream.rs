//! Makes the project's stream, and compares what the server keeps with what was asked.

use async_nats::jetstream::Context;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{
    CreateStreamError, CreateStreamErrorKind, GetStreamError, GetStreamErrorKind,
};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use std::time::Duration;

use super::words::{chain, without_password};
use super::{JetStreamOptions, wire};
use crate::error::BusError;

/// The largest message: 64 KiB of data, and its headers.
const MESSAGE_BYTES: i32 = 96 * 1024;
/// How long the broker remembers message ids.
const DUPLICATE_WINDOW: Duration = Duration::from_mins(2);

/// Returns the stream, made or brought up to date, and whether it is new.
pub(super) async fn ensure(
    context: &Context,
    options: &JetStreamOptions,
) -> Result<(Stream, bool), BusError> {
    let asked = config(options);
    let (stream, new) = match context.get_stream(&asked.name).await {
        Ok(stream) => (stream, false),
        Err(error) if is_not_found(&error) => {
            let stream = context
                .create_stream(asked.clone())
                .await
                .map_err(|error| create_error(options, &asked.name, &error))?;
            (stream, true)
        }
        Err(error) => return Err(get_error(options, &asked.name, &error)),
    };
    if difference(&asked, &stream.cached_info().config).is_none() {
        return Ok((stream, new));
    }
    let updated = context
        .update_stream(asked.clone())
        .await
        .map_err(|error| create_error(options, &asked.name, &error))?;
    match difference(&asked, &updated.config) {
        None => Ok((stream, new)),
        Some((field, asked_value, kept)) => Err(BusError::Configuration {
            name: asked.name,
            field,
            asked: asked_value,
            kept,
        }),
    }
}

fn config(options: &JetStreamOptions) -> Config {
    let max_bytes = options.stream.max_bytes;
    Config {
        name: wire::stream_name(&options.project),
        subjects: vec![format!("ropewalk.{}.>", options.project)],
        retention: RetentionPolicy::Limits,
        storage: StorageType::File,
        discard: DiscardPolicy::Old,
        max_age: options.stream.max_age,
        max_bytes: max_bytes.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
        max_messages: -1,
        max_messages_per_subject: -1,
        max_consumers: -1,
        max_message_size: MESSAGE_BYTES,
        num_replicas: options.stream.replicas.max(1),
        duplicate_window: DUPLICATE_WINDOW.min(options.stream.max_age),
        ..Config::default()
    }
}

/// Names the first field that the server keeps otherwise; older servers drop what they do not know in silence.
fn difference(asked: &Config, kept: &Config) -> Option<(&'static str, String, String)> {
    let fields = [
        ("subjects", shown(&asked.subjects), shown(&kept.subjects)),
        ("retention", shown(&asked.retention), shown(&kept.retention)),
        ("storage", shown(&asked.storage), shown(&kept.storage)),
        ("discard", shown(&asked.discard), shown(&kept.discard)),
        ("max_age", shown(&asked.max_age), shown(&kept.max_age)),
        ("max_bytes", limit(asked.max_bytes), limit(kept.max_bytes)),
        (
            "max_msgs",
            limit(asked.max_messages),
            limit(kept.max_messages),
        ),
        (
            "max_msg_size",
            shown(&asked.max_message_size),
            shown(&kept.max_message_size),
        ),
        (
            "num_replicas",
            shown(&asked.num_replicas),
            shown(&kept.num_replicas),
        ),
        (
            "duplicate_window",
            shown(&asked.duplicate_window),
            shown(&kept.duplicate_window),
        ),
    ];
    fields.into_iter().find(|(_, asked, kept)| asked != kept)
}

fn shown(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

/// Shows a limit; 0 and -1 both mean that there is none.
fn limit(value: i64) -> String {
    if value <= 0 {
        "unlimited".to_owned()
    } else {
        value.to_string()
    }
}

fn is_not_found(error: &GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error)
        if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

fn get_error(options: &JetStreamOptions, name: &str, error: &GetStreamError) -> BusError {
    let disabled = matches!(error.kind(), GetStreamErrorKind::JetStream(error) if is_disabled(error.error_code()));
    broker_error(
        options,
        disabled,
        format!("read the stream `{name}`"),
        &chain(error),
    )
}

fn create_error(options: &JetStreamOptions, name: &str, error: &CreateStreamError) -> BusError {
    let disabled = match error.kind() {
        CreateStreamErrorKind::JetStreamUnavailable => true,
        CreateStreamErrorKind::JetStream(error) => is_disabled(error.error_code()),
        _ => false,
    };
    broker_error(
        options,
        disabled,
        format!("make the stream `{name}`"),
        &chain(error),
    )
}

fn is_disabled(code: ErrorCode) -> bool {
    code == ErrorCode::JETSTREAM_NOT_ENABLED || code == ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT
}

fn broker_error(
    options: &JetStreamOptions,
    disabled: bool,
    action: String,
    reason: &str,
) -> BusError {
    // Without JetStream nobody listens to its API at all.
    if disabled || reason.contains("resource does not exist") || reason.contains("no responders") {
        BusError::NoJetStream {
            url: without_password(&options.url),
        }
    } else {
        BusError::Broker {
            action,
            reason: reason.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::ProjectName;

    use super::*;

    #[test]
    fn a_field_that_the_server_dropped_is_named() {
        let project = ProjectName::parse("habits").unwrap();
        let asked = config(&JetStreamOptions::new("nats://h", project));
        assert_eq!(difference(&asked, &asked), None);
        let kept = Config {
            max_messages: 0,
            description: Some("anything".to_owned()),
            ..asked.clone()
        };
        assert_eq!(difference(&asked, &kept), None);
        let kept = Config {
            discard: DiscardPolicy::New,
            ..asked.clone()
        };
        assert_eq!(
            difference(&asked, &kept),
            Some(("discard", "Old".to_owned(), "New".to_owned()))
        );
    }
}
