//! Names things: uuid ids made by the runtime, and checked textual names.

use std::fmt;
use std::str::FromStr;

use deunicode::deunicode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Says why a text is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {what}: {expected}")]
pub struct InvalidId {
    /// The kind of id, for example `slug`.
    pub what: &'static str,
    /// The text as given, cut to 80 characters.
    pub text: String,
    /// What would be valid.
    pub expected: &'static str,
}

impl InvalidId {
    fn new(what: &'static str, text: &str, expected: &'static str) -> Self {
        Self {
            what,
            text: text.chars().take(80).collect(),
            expected,
        }
    }
}

macro_rules! uuid_ids {
    ($( $(#[$doc:meta])* $name:ident = $what:literal ),+ $(,)?) => { $(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Uuid::parse_str(text)
                    .map(Self)
                    .map_err(|_| InvalidId::new($what, text, "a uuid as the lists show it"))
            }
        }
    )+ };
}

uuid_ids! {
    /// Names an event.
    EventId = "event id",
    /// Names everything that one request set in motion.
    CorrelationId = "correlation id",
    /// Names an ideation session.
    SessionId = "session id",
    /// Names a chat message.
    MessageId = "message id",
    /// Names what somebody is answered in a chat.
    ReplyId = "reply id",
    /// Names a specification over all its revisions.
    SpecId = "specification id",
    /// Names a build.
    BuildId = "build id",
    /// Names one attempt at a task.
    AttemptId = "attempt id",
    /// Names a question.
    QuestionId = "question id",
    /// Names a knowledge item.
    KnowledgeId = "knowledge id",
    /// Names a review.
    ReviewId = "review id",
    /// Names a durable timer.
    TimerId = "timer id",
    /// Names one call of a model.
    CallId = "model call id",
}

macro_rules! text_ids {
    ($( $(#[$doc:meta])* $name:ident = $what:literal, $valid:expr, $expected:literal );+ $(;)?) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks `text` and wraps it.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                let valid: fn(&str) -> bool = $valid;
                if valid(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidId::new($what, text, $expected))
                }
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    )+ };
}

text_ids! {
    /// Names an idea, uniquely in a project; becomes a folder and a branch name.
    Slug = "slug", is_slug, "1 to 63 of `a-z 0-9 -`, beginning with a letter or digit";
    /// Names a person.
    UserSlug = "user", is_slug, "1 to 63 of `a-z 0-9 -`, beginning with a letter or digit";
    /// Names a project: one repository with its state.
    ProjectName = "project name", is_slug, "1 to 63 of `a-z 0-9 -`, beginning with a letter or digit";
    /// Names a task inside one specification, for example `T-001`.
    TaskId = "task id", is_label, "1 to 64 of `A-Z a-z 0-9 . _ -`, beginning with a letter or digit";
    /// Names a requirement inside one specification, for example `FR-1`.
    RequirementId = "requirement id", is_label, "1 to 64 of `A-Z a-z 0-9 . _ -`, beginning with a letter or digit";
    /// Names an agent, a loop or another part that produces events, for example `build` or `loop-1`.
    ComponentName = "component name", is_label, "1 to 64 of `A-Z a-z 0-9 . _ -`, beginning with a letter or digit";
    /// Names a choice inside its question, for example `merge`.
    ChoiceId = "choice", is_choice, "1 to 63 of `a-z 0-9 -`, and no number";
    /// Names a git commit by its full object id.
    CommitId = "commit id", is_object_id, "40 or 64 hexadecimal digits in lower case";
    /// Names content by its SHA-256.
    ContentHash = "content hash", is_sha256, "64 hexadecimal digits in lower case";
}

fn is_slug(text: &str) -> bool {
    text.len() <= 63
        && text.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && !text.ends_with('-')
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// People answer by number as well, so no number names a choice.
fn is_choice(text: &str) -> bool {
    is_slug(text) && !text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_label(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !text.ends_with('.')
        && !text.contains("..")
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && is_lower_hex(text)
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && is_lower_hex(text)
}

impl ContentHash {
    /// Hashes `content`.
    pub fn of(content: &[u8]) -> Self {
        Self(hex::encode(Sha256::digest(content)))
    }
}

impl CommitId {
    /// Returns the first 12 digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl Slug {
    /// Makes a slug of free text: other scripts in Latin letters, lower case, words joined by `-`, at most 48 characters;
    /// `None` when nothing is left.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut slug = String::new();
        for word in deunicode(text).split(|letter: char| !letter.is_ascii_alphanumeric()) {
            if word.is_empty() {
                continue;
            }
            let room = 48_usize.saturating_sub(slug.len() + usize::from(!slug.is_empty()));
            // The first word alone may be cut, since without it there is no name.
            let word = if slug.is_empty() {
                &word[..word.len().min(room)]
            } else {
                word
            };
            if word.len() > room {
                break;
            }
            if !slug.is_empty() {
                slug.push('-');
            }
            slug.push_str(&word.to_ascii_lowercase());
        }
        Self::parse(&slug).ok()
    }

    /// Names an idea by its title, and by no more than that it is one where no letter can be made of that.
    pub fn of_title(title: &str) -> Self {
        Self::from_text(title).unwrap_or_else(|| Self("idea".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_made_of_free_text() {
        let cases = [
            ("I want a Habit tracker!", Some("i-want-a-habit-tracker")),
            ("  ", None),
            ("Ünïcode only é", Some("unicode-only-e")),
            (
                "Приложение для привычек",
                Some("prilozhenie-dlia-privychek"),
            ),
            ("習慣", Some("xi-guan")),
            ("!!!", None),
        ];
        for (text, slug) in cases {
            assert_eq!(
                Slug::from_text(text).map(String::from).as_deref(),
                slug,
                "{text}"
            );
        }
        let long = Slug::from_text(&format!("{} x", "w".repeat(150))).map(String::from);
        assert_eq!(long, Some("w".repeat(48)));
        assert_eq!(Slug::of_title("!!!").as_str(), "idea");
    }

    #[test]
    fn names_that_would_escape_a_folder_or_a_ref_are_refused() {
        for bad in ["", "..", "a/b", "-a", "a.", "a..b", "a b", "é"] {
            assert!(TaskId::parse(bad).is_err(), "{bad}");
            assert!(Slug::parse(bad).is_err(), "{bad}");
        }
        assert!(TaskId::parse("T-001").is_ok());
        assert!(Slug::parse("T-001").is_err());
    }

    #[test]
    fn a_bad_name_is_refused_when_it_is_read_too() {
        assert!(serde_json::from_str::<Slug>("\"../etc\"").is_err());
        assert_eq!(
            serde_json::from_str::<Slug>("\"habits\"").unwrap().as_str(),
            "habits"
        );
    }
}
