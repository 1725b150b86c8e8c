//! Defines the event: a CloudEvent with a typed payload (design §5).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{
    BuildId, ComponentName, ContentHash, CorrelationId, EventId, InvalidId, KnowledgeId,
    QuestionId, Slug, SpecId, TaskId, UserSlug,
};
use crate::payload::{Payload, PayloadError};

/// Orders the entities that wait for one subscriber: 1 is the most urgent, 10 the least.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(#[schemars(range(min = 1, max = 10))] u8);

impl Priority {
    /// The priority of whatever does not name one.
    pub const DEFAULT: Self = Self(5);
    /// The priority of work that people wait for.
    pub const URGENT: Self = Self(1);

    /// Checks that `value` lies in 1 to 10.
    pub fn new(value: u8) -> Result<Self, InvalidId> {
        Self::try_from(value)
    }

    /// Returns the number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl TryFrom<u8> for Priority {
    type Error = InvalidId;

    fn try_from(value: u8) -> Result<Self, InvalidId> {
        if (1..=10).contains(&value) {
            Ok(Self(value))
        } else {
            Err(InvalidId {
                what: "priority",
                text: value.to_string(),
                expected: "1 (highest) to 10",
            })
        }
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> Self {
        priority.0
    }
}

/// Names the entity that an event is about; deliveries of one entity keep their order.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct Subject(String);

impl Subject {
    /// Checks that `text` is 1 to 200 visible ASCII characters.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let valid =
            (1..=200).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId {
                what: "subject",
                text: text.chars().take(80).collect(),
                expected: "1 to 200 visible ASCII characters, for example `idea/habits`",
            })
        }
    }

    /// Names an idea.
    pub fn idea(idea: &Slug) -> Self {
        Self(format!("idea/{idea}"))
    }

    /// Names a specification.
    pub fn specification(spec: SpecId) -> Self {
        Self(format!("spec/{spec}"))
    }

    /// Names a build.
    pub fn build(build: BuildId) -> Self {
        Self(format!("build/{build}"))
    }

    /// Names a task of a build.
    pub fn task(build: BuildId, task: &TaskId) -> Self {
        Self(format!("task/{build}/{task}"))
    }

    /// Names a question.
    pub fn question(question: QuestionId) -> Self {
        Self(format!("question/{question}"))
    }

    /// Names what was learned.
    pub fn knowledge(item: KnowledgeId) -> Self {
        Self(format!("knowledge/{item}"))
    }

    /// Names the phone of a person.
    pub fn phone(person: &UserSlug) -> Self {
        Self(format!("phone/{person}"))
    }

    /// Names the whole project.
    pub fn project() -> Self {
        Self("project".to_owned())
    }

    /// Names a component, such as an agent or a loop.
    pub fn component(component: &ComponentName) -> Self {
        Self(format!("component/{component}"))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Subject {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<Self, InvalidId> {
        Self::parse(&text)
    }
}

impl From<Subject> for String {
    fn from(subject: Subject) -> Self {
        subject.0
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Says that something happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Names the event.
    pub id: EventId,
    /// The component that produced it.
    pub source: ComponentName,
    /// The entity it is about.
    pub subject: Subject,
    /// When it happened.
    pub time: DateTime<Utc>,
    /// The request that set it in motion.
    pub correlation_id: CorrelationId,
    /// The event that caused it, if one did.
    pub causation_id: Option<EventId>,
    /// How many events stand between it and the person, timer or claim that began the chain.
    pub hop: u32,
    /// The W3C trace context, if any.
    pub traceparent: Option<String>,
    /// How urgent it is.
    pub priority: Priority,
    /// What happened.
    pub payload: Payload,
}

/// The most events that may follow each other without a person, a timer or a claim between them.
pub const HOP_LIMIT: u32 = 32;

/// The types of the events with which people begin something new: refused first when too much waits to be handled.
pub const INTAKE_TYPES: &[&str] = &["ideation.message"];

/// The form in which an event travels and is stored: CloudEvents 1.0 with our extension attributes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CloudEvent {
    /// Always `1.0`.
    pub specversion: String,
    /// Names the event.
    pub id: EventId,
    /// The component that produced it.
    pub source: ComponentName,
    /// What kind of event it is, for example `task.completed`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The entity it is about.
    pub subject: Subject,
    /// When it happened.
    pub time: DateTime<Utc>,
    /// The version of the payload's schema; 1 when absent.
    #[serde(default = "first_version")]
    pub schemaversion: u32,
    /// The request that set it in motion.
    pub correlationid: CorrelationId,
    /// The event that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causationid: Option<EventId>,
    /// See [`Event::hop`].
    #[serde(default)]
    pub hop: u32,
    /// The W3C trace context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// How urgent it is.
    #[serde(default)]
    pub priority: Priority,
    /// Names the payload by its hash when it is too large to be stored and sent with the event; `data` is `null` where
    /// it was not fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataref: Option<ContentHash>,
    /// The payload.
    #[serde(default)]
    pub data: Value,
}

fn first_version() -> u32 {
    1
}

/// Says why a stored or received event cannot be understood; such an event is parked and shown, never dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No event of this type is known here.
    #[error("event type `{0}` is not known to this version")]
    UnknownType(String),
    /// A newer version of the payload than this program knows.
    #[error("`{event_type}` has schema version {version}, newer than {known}")]
    NewerVersion {
        /// The event type.
        event_type: String,
        /// The version of the event.
        version: u32,
        /// The newest version known here.
        known: u32,
    },
    /// The payload does not fit its type.
    #[error("the payload of `{event_type}` is malformed: {reason}")]
    Malformed {
        /// The event type.
        event_type: String,
        /// What does not fit.
        reason: String,
    },
}

impl Event {
    /// Returns the type, for example `task.completed`.
    pub fn event_type(&self) -> &'static str {
        self.payload.event_type()
    }

    /// Returns the form that travels.
    pub fn to_cloud_event(&self) -> CloudEvent {
        CloudEvent {
            specversion: "1.0".to_owned(),
            id: self.id,
            source: self.source.clone(),
            event_type: self.event_type().to_owned(),
            subject: self.subject.clone(),
            time: self.time,
            schemaversion: self.payload.schema_version(),
            correlationid: self.correlation_id,
            causationid: self.causation_id,
            hop: self.hop,
            traceparent: self.traceparent.clone(),
            priority: self.priority,
            dataref: None,
            data: self.payload.to_value(),
        }
    }
}

impl TryFrom<CloudEvent> for Event {
    type Error = DecodeError;

    fn try_from(event: CloudEvent) -> Result<Self, DecodeError> {
        Self::try_from(&event)
    }
}

impl TryFrom<&CloudEvent> for Event {
    type Error = DecodeError;

    fn try_from(event: &CloudEvent) -> Result<Self, DecodeError> {
        let payload = Payload::decode(&event.event_type, event.schemaversion, &event.data)
            .map_err(|error| match error {
                PayloadError::UnknownType => DecodeError::UnknownType(event.event_type.clone()),
                PayloadError::NewerVersion { known } => DecodeError::NewerVersion {
                    event_type: event.event_type.clone(),
                    version: event.schemaversion,
                    known,
                },
                PayloadError::Malformed(reason) => DecodeError::Malformed {
                    event_type: event.event_type.clone(),
                    reason,
                },
            })?;
        Ok(Self {
            id: event.id,
            source: event.source.clone(),
            subject: event.subject.clone(),
            time: event.time,
            correlation_id: event.correlationid,
            causation_id: event.causationid,
            hop: event.hop,
            traceparent: event.traceparent.clone(),
            priority: event.priority,
            payload,
        })
    }
}

/// Selects events by type and, optionally, by source: exact, or `x.*` for one or more further tokens.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct EventPattern {
    /// An exact type such as `spec.approved`, or a prefix such as `alert.*`; `*` alone takes everything.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The only source taken, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ComponentName>,
}

/// How many letters a name has in common with one that it is taken for.
const LIKENESS: usize = 3;

impl EventPattern {
    /// Selects a type or a `x.*` family from any source.
    pub fn of(event_type: &str) -> Self {
        Self {
            event_type: event_type.to_owned(),
            source: None,
        }
    }

    /// Selects a type or a family that there is; `None` where nothing is called so.
    pub fn known(text: &str) -> Option<Self> {
        let pattern = Self::of(text);
        let any = ComponentName::parse("any").ok()?;
        let mut types = crate::Payload::TYPES.iter();
        let is_known = types.any(|known| pattern.matches(known, &any));
        is_known.then_some(pattern)
    }

    /// Returns what somebody may have meant by a text that no event type is called: the family, else the type that has
    /// the text in its name or begins like it.
    pub fn near(text: &str) -> Option<String> {
        let text = text.trim_matches(['.', '*', ' ']).to_lowercase();
        if text.is_empty() {
            return None;
        }
        let types = crate::Payload::TYPES;
        let family = format!("{text}.");
        if types.iter().any(|known| known.starts_with(&family)) {
            return Some(format!("{family}*"));
        }
        let alike = |known: &str| {
            let letters = known.bytes().zip(text.bytes());
            letters.take_while(|(one, other)| one == other).count()
        };
        let holding = types.iter().find(|known| known.contains(&text));
        let beginning = types.iter().max_by_key(|known| alike(known));
        let found = holding.or(beginning.filter(|known| alike(known) >= LIKENESS))?;
        Some((*found).to_owned())
    }

    /// Narrows the pattern to one source.
    pub fn from_source(self, source: ComponentName) -> Self {
        Self {
            source: Some(source),
            ..self
        }
    }

    /// Returns whether an event of `event_type` from `source` is selected.
    pub fn matches(&self, event_type: &str, source: &ComponentName) -> bool {
        let type_fits = match self.event_type.strip_suffix('*') {
            Some("") => true,
            Some(prefix) => event_type.len() > prefix.len() && event_type.starts_with(prefix),
            None => self.event_type == event_type,
        };
        type_fits && self.source.as_ref().is_none_or(|wanted| wanted == source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_type_is_called_is_taken_for_a_family_or_a_type_that_is_like_it() {
        for (text, near) in [
            ("task", Some("task.*")),
            ("Task.*", Some("task.*")),
            ("ideation.messages", Some("ideation.message")),
            ("abandoned", Some("idea.abandoned")),
            ("xyz", None),
            ("*", None),
        ] {
            assert_eq!(EventPattern::near(text).as_deref(), near, "{text}");
        }
    }

    #[test]
    fn a_pattern_takes_its_type_and_its_family() {
        let source = ComponentName::parse("loop-1").unwrap();
        let cases = [
            ("task.failed", "task.failed", true),
            ("task.failed", "task.failed.again", false),
            ("alert.*", "alert.component_down.cleared", true),
            ("alert.*", "alert", false),
            ("alert.*", "alerts.x", false),
            ("*", "anything", true),
        ];
        for (pattern, event_type, expected) in cases {
            assert_eq!(
                EventPattern::of(pattern).matches(event_type, &source),
                expected,
                "{pattern} {event_type}"
            );
        }
        let narrowed =
            EventPattern::of("task.*").from_source(ComponentName::parse("loop-2").unwrap());
        assert!(!narrowed.matches("task.failed", &source));
    }

    #[test]
    fn a_priority_lies_between_one_and_ten() {
        assert!(Priority::new(0).is_err() && Priority::new(11).is_err());
        assert!(serde_json::from_str::<Priority>("0").is_err());
        assert_eq!(serde_json::from_str::<Priority>("10").unwrap().get(), 10);
    }
}
