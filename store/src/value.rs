//! Holds a column value that every supported database can store.

use chrono::{DateTime, Utc};
use ropewalk_schemas::agent::AgentState;
use ropewalk_schemas::attempt::AttemptState;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::idea::{IdeaState, Phase};
use ropewalk_schemas::ids::{
    AttemptId, BuildId, CallId, CommitId, ComponentName, ContentHash, CorrelationId, EventId,
    KnowledgeId, MessageId, ProjectName, QuestionId, ReviewId, SessionId, Slug, SpecId, TaskId,
    TimerId, UserSlug,
};
use ropewalk_schemas::knowledge::KnowledgeState;
use ropewalk_schemas::lease::LeaseState;
use ropewalk_schemas::question::{QuestionKind, QuestionState};
use ropewalk_schemas::specification::SpecState;
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{Priority, RepoPath, Subject};
use serde::{Serialize, Serializer};

/// A column value: text, a whole number or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// Nothing.
    Null,
    /// A text.
    Text(String),
    /// A whole number; times are milliseconds since 1970, truth is 0 or 1.
    Integer(i64),
}

impl Value {
    /// Replaces zero bytes, which not every database takes in a text; what is looked for and what is stored alike.
    pub(crate) fn without_zero_bytes(self) -> Self {
        match self {
            Self::Text(text) if text.contains('\0') => Self::Text(text.replace('\0', "\u{FFFD}")),
            other => other,
        }
    }

    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Text(text) => Some(text),
            Self::Integer(number) => Some(number.to_string()),
        }
    }

    pub(crate) fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Null | Self::Text(_) => None,
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Integer(number) => serializer.serialize_i64(*number),
        }
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(i64::from(number))
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Integer(i64::from(number))
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Integer(i64::from(truth))
    }
}

impl From<DateTime<Utc>> for Value {
    fn from(time: DateTime<Utc>) -> Self {
        Self::Integer(time.timestamp_millis())
    }
}

impl From<Priority> for Value {
    fn from(priority: Priority) -> Self {
        Self::Integer(i64::from(priority.get()))
    }
}

macro_rules! written {
    ($($name:ty),+ $(,)?) => { $(
        impl From<$name> for Value {
            fn from(id: $name) -> Self {
                Self::Text(id.to_string())
            }
        }

        impl From<&$name> for Value {
            fn from(id: &$name) -> Self {
                Self::Text(id.to_string())
            }
        }
    )+ };
}

written! {
    AttemptId, BuildId, CallId, CommitId, ComponentName, ContentHash, CorrelationId, EventId,
    KnowledgeId, MessageId, ProjectName, QuestionId, ReviewId, SessionId, Slug, SpecId, TaskId,
    TimerId, UserSlug, RepoPath, Subject,
}

macro_rules! named {
    ($($name:ty),+ $(,)?) => { $(
        impl From<$name> for Value {
            fn from(state: $name) -> Self {
                Self::Text(state.as_str().to_owned())
            }
        }
    )+ };
}

named! {
    AgentState, AttemptState, BuildState, IdeaState, Phase, KnowledgeState, LeaseState,
    QuestionKind, QuestionState, SpecState, TaskState,
}
