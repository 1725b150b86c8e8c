//! Writes events as NATS messages: subjects, filters and the headers of CloudEvents binary mode; reads what a message
//! announces in that form, and as one document. Pure.

use std::fmt::Write as _;

use async_nats::{HeaderMap, HeaderName};
use ropewalk_schemas::{CloudEvent, ComponentName, EventId, EventPattern, ProjectName};
use serde::Deserialize;

/// The header with the event's position in the store.
pub(super) const SEQUENCE: &str = "ropewalk-sequence";
/// The header with the position up to which everything was published when the message was.
pub(super) const POSITION: &str = "ropewalk-position";
/// The header by which the broker drops duplicates.
pub(super) const MESSAGE_ID: &str = "Nats-Msg-Id";

/// Returns the name of the project's stream.
pub(super) fn stream_name(project: &ProjectName) -> String {
    format!("ropewalk-{project}")
}

/// Returns the subject of an event type.
pub(super) fn subject(project: &ProjectName, event_type: &str) -> String {
    format!("ropewalk.{project}.{}", tokens(event_type))
}

/// Returns the subject of an ephemeral event type.
pub(super) fn live_subject(project: &ProjectName, event_type: &str) -> String {
    format!("ropewalk-live.{project}.{}", tokens(event_type))
}

/// Replaces what a subject may not hold, and empty tokens; the type itself travels in a header.
fn tokens(event_type: &str) -> String {
    let token = |token: &str| {
        if token.is_empty() {
            return "_".to_owned();
        }
        token
            .chars()
            .map(|letter| match letter {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => letter,
                _ => '_',
            })
            .collect()
    };
    event_type
        .split('.')
        .map(token)
        .collect::<Vec<String>>()
        .join(".")
}

/// Returns the filters of a subscription; none covers another, since the server refuses that.
pub(super) fn filters(project: &ProjectName, patterns: &[EventPattern]) -> Vec<String> {
    let mut filters: Vec<String> = patterns
        .iter()
        .map(|pattern| match pattern.event_type.strip_suffix('*') {
            // `a.b*` has no filter of its own: take the family, the store's routing narrows it.
            Some(prefix) => match prefix.rsplit_once('.') {
                Some((family, _)) => format!("{}.>", subject(project, family)),
                None => format!("ropewalk.{project}.>"),
            },
            None => subject(project, &pattern.event_type),
        })
        .collect();
    filters.sort_unstable();
    filters.dedup();
    let all = filters.clone();
    filters.retain(|filter| {
        !all.iter()
            .any(|other| other != filter && covers(other, filter))
    });
    filters
}

fn covers(wide: &str, narrow: &str) -> bool {
    wide.strip_suffix('>')
        .is_some_and(|prefix| narrow.starts_with(prefix))
}

/// Returns the name of a subscriber's durable consumer; a name may not hold a dot there.
pub(super) fn consumer_name(subscriber: &ropewalk_schemas::ComponentName) -> String {
    subscriber.as_str().replace('.', "~")
}

/// Returns the headers of an event: CloudEvents binary mode, and our positions.
pub(super) fn headers(
    event: &CloudEvent,
    sequence: i64,
    position: i64,
    message_id: &str,
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut set = |name: &str, value: &str| headers.insert(name, encoded(value).as_str());
    set("ce-specversion", &event.specversion);
    set("ce-id", &event.id.to_string());
    set("ce-source", event.source.as_str());
    set("ce-type", &event.event_type);
    set("ce-subject", event.subject.as_str());
    set(
        "ce-time",
        &event
            .time
            .to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
    );
    set("ce-schemaversion", &event.schemaversion.to_string());
    set("ce-correlationid", &event.correlationid.to_string());
    set("ce-hop", &event.hop.to_string());
    set("ce-priority", &event.priority.get().to_string());
    if let Some(causation) = &event.causationid {
        set("ce-causationid", &causation.to_string());
    }
    if let Some(traceparent) = &event.traceparent {
        set("ce-traceparent", traceparent);
    }
    if let Some(hash) = &event.dataref {
        set("ce-dataref", hash.as_str());
    }
    set("content-type", "application/json");
    set(SEQUENCE, &sequence.to_string());
    set(POSITION, &position.to_string());
    set(MESSAGE_ID, message_id);
    headers
}

/// The type of a message that is an event as one document (CloudEvents structured mode).
const DOCUMENT: &str = "application/cloudevents+json";

/// Which event a message announces, and what decides who takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Announcement {
    pub(super) id: EventId,
    pub(super) event_type: String,
    pub(super) source: ComponentName,
    /// The event's position in the store, where the message says it.
    pub(super) sequence: Option<i64>,
}

/// What of a document is looked at; the store knows the rest.
#[derive(Deserialize)]
struct EventDocument {
    specversion: String,
    id: EventId,
    source: ComponentName,
    #[serde(rename = "type")]
    event_type: String,
}

/// Reads what a message announces, by its headers or, where its type says so, as one document; `None` where it is no event.
pub(super) fn announced(headers: Option<&HeaderMap>, payload: &[u8]) -> Option<Announcement> {
    let headers = headers?;
    let sequence = number(Some(headers), SEQUENCE);
    if !is_document(headers) {
        let header = |name| text(Some(headers), name);
        return Some(Announcement {
            id: header("ce-id")?.parse().ok()?,
            event_type: header("ce-type")?.to_owned(),
            source: ComponentName::parse(header("ce-source")?).ok()?,
            sequence,
        });
    }
    let document: EventDocument = serde_json::from_slice(payload).ok()?;
    (document.specversion == "1.0").then_some(Announcement {
        id: document.id,
        event_type: document.event_type,
        source: document.source,
        sequence,
    })
}

fn is_document(headers: &HeaderMap) -> bool {
    let mut named = headers.iter();
    let is_type = |name: &HeaderName| name.to_string().eq_ignore_ascii_case("content-type");
    let named = named.find(|(name, _)| is_type(name));
    let value = named.and_then(|(_, values)| values.first());
    let media = value.and_then(|value| value.as_str().split(';').next());
    media.is_some_and(|media| media.trim().eq_ignore_ascii_case(DOCUMENT))
}

/// Percent-encodes what a header may not hold, as the CloudEvents binding for NATS asks.
fn encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        if letter.is_ascii_graphic() && !matches!(letter, '%' | '"') {
            text.push(letter);
        } else {
            let mut bytes = [0; 4];
            for byte in letter.encode_utf8(&mut bytes).bytes() {
                // Writing to a String cannot fail.
                write!(text, "%{byte:02X}").ok();
            }
        }
    }
    text
}

/// Reads a number from a header.
pub(super) fn number(headers: Option<&HeaderMap>, name: &str) -> Option<i64> {
    headers?.get(name)?.as_str().parse().ok()
}

/// Reads a text from a header.
pub(super) fn text<'a>(headers: Option<&'a HeaderMap>, name: &str) -> Option<&'a str> {
    headers?.get(name).map(async_nats::HeaderValue::as_str)
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::Subject;
    use uuid::Uuid;

    use super::*;

    fn project() -> ProjectName {
        ProjectName::parse("habits").unwrap()
    }

    #[test]
    fn a_type_becomes_a_subject_whatever_it_holds() {
        let cases = [
            ("task.failed", "ropewalk.habits.task.failed"),
            (
                "alert.component_down.cleared",
                "ropewalk.habits.alert.component_down.cleared",
            ),
            ("a b.>.*", "ropewalk.habits.a_b._._"),
            ("", "ropewalk.habits._"),
            ("a..b", "ropewalk.habits.a._.b"),
        ];
        for (event_type, expected) in cases {
            assert_eq!(subject(&project(), event_type), expected);
        }
        assert_eq!(
            live_subject(&project(), "build.progress"),
            "ropewalk-live.habits.build.progress"
        );
    }

    #[test]
    fn no_filter_of_a_consumer_covers_another() {
        let cases: &[(&[&str], &[&str])] = &[
            (&["spec.approved"], &["ropewalk.habits.spec.approved"]),
            (&["task.*", "task.failed"], &["ropewalk.habits.task.>"]),
            (
                &["task.failed", "alert.*", "task.failed"],
                &["ropewalk.habits.alert.>", "ropewalk.habits.task.failed"],
            ),
            (&["task.f*"], &["ropewalk.habits.task.>"]),
            (&["*", "alert.*"], &["ropewalk.habits.>"]),
            (
                &["alert.*", "alerts.x"],
                &["ropewalk.habits.alert.>", "ropewalk.habits.alerts.x"],
            ),
        ];
        for (patterns, expected) in cases {
            let patterns: Vec<EventPattern> =
                patterns.iter().map(|each| EventPattern::of(each)).collect();
            assert_eq!(filters(&project(), &patterns), *expected);
        }
    }

    #[test]
    fn the_headers_carry_every_attribute() {
        let id = Uuid::from_u128(7);
        let event = CloudEvent {
            specversion: "1.0".to_owned(),
            id: id.into(),
            source: ComponentName::parse("loop-1").unwrap(),
            event_type: "task.failed".to_owned(),
            subject: Subject::parse("task/1/T-1").unwrap(),
            time: chrono::DateTime::UNIX_EPOCH,
            schemaversion: 1,
            correlationid: id.into(),
            causationid: Some(id.into()),
            hop: 3,
            traceparent: Some("00-é\r\n".to_owned()),
            priority: ropewalk_schemas::Priority::URGENT,
            dataref: None,
            data: serde_json::json!({}),
        };
        let headers = headers(&event, 12, 11, "id.1");
        let expected = [
            ("ce-specversion", "1.0"),
            ("ce-id", "00000000-0000-0000-0000-000000000007"),
            ("ce-source", "loop-1"),
            ("ce-type", "task.failed"),
            ("ce-subject", "task/1/T-1"),
            ("ce-time", "1970-01-01T00:00:00.000Z"),
            ("ce-schemaversion", "1"),
            ("ce-correlationid", "00000000-0000-0000-0000-000000000007"),
            ("ce-causationid", "00000000-0000-0000-0000-000000000007"),
            ("ce-hop", "3"),
            ("ce-traceparent", "00-%C3%A9%0D%0A"),
            ("ce-priority", "1"),
            ("content-type", "application/json"),
            (SEQUENCE, "12"),
            (POSITION, "11"),
            (MESSAGE_ID, "id.1"),
        ];
        for (name, value) in expected {
            assert_eq!(text(Some(&headers), name), Some(value), "{name}");
        }
        assert_eq!(headers.len(), expected.len());
        let announcement = Announcement {
            id: id.into(),
            event_type: "task.failed".to_owned(),
            source: event.source.clone(),
            sequence: Some(12),
        };
        assert_eq!(announced(Some(&headers), b"{}"), Some(announcement.clone()));
        // The same as one document, as others pass it on.
        let document = serde_json::to_vec(&event).unwrap();
        for (media, is_event) in [
            ("application/cloudevents+json", true),
            ("Application/CloudEvents+JSON; charset=UTF-8", true),
            ("application/json", false),
            ("application/cloudevents-batch+json", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("Content-Type", media);
            let expected = Announcement {
                sequence: None,
                ..announcement.clone()
            };
            let found = announced(Some(&headers), &document);
            assert_eq!(found, is_event.then_some(expected), "{media}");
            assert_eq!(announced(Some(&headers), b"{\"id\": 1"), None);
        }
        assert_eq!(announced(None, &document), None);
    }
}
