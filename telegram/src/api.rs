//! Defines what is asked of Telegram, in words of our own.

use std::time::Duration;

use async_trait::async_trait;
use ropewalk_orchestrator::notices::SendError;
use ropewalk_schemas::phone::ChatUser;
use serde::{Deserialize, Serialize};

use url::Url;

use crate::styled::StyledText;

pub(crate) use ropewalk_schemas::phone::Button;

/// A message to a chat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) text: StyledText,
    pub(crate) buttons: Vec<Button>,
    pub(crate) silent: bool,
    /// Whether the field for an answer opens.
    pub(crate) wants_words: bool,
}

/// What somebody did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Update {
    /// Its number; each is larger than the one before.
    pub(crate) id: i64,
    /// Who, and in which chat; nobody where it is none of a person.
    pub(crate) from: Option<ChatUser>,
    pub(crate) did: Interaction,
}

/// What can be done in a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Interaction {
    /// Somebody wrote.
    Wrote {
        text: String,
        /// The message that it answers.
        reply_to: Option<i32>,
        /// Whether somebody else wrote it.
        forwarded: bool,
        /// Whether nobody else is in the chat.
        private: bool,
    },
    /// Somebody sent a file.
    Sent {
        file: File,
        /// What was written below it.
        words: String,
        /// Whether somebody else sent it.
        forwarded: bool,
    },
    /// Somebody pressed a button.
    Pressed {
        /// What an answer to it names.
        press: String,
        /// The message that bears it.
        message: i32,
        data: String,
    },
    /// Anything else, which is left alone.
    Other,
}

/// A file at Telegram.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct File {
    /// By what it is fetched.
    pub(crate) id: String,
    pub(crate) kind: Kind,
    /// What its sender calls it; for what has no name, what it is.
    pub(crate) name: String,
    pub(crate) media_type: Option<String>,
    pub(crate) size_bytes: Option<u64>,
}

/// What sort of message a file came as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Photo,
    /// With how long it is.
    Voice(Duration),
    Document,
}

/// Says why Telegram did not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// Another try may succeed.
    #[error("{reason}")]
    Later {
        /// How long to wait, where Telegram said so.
        after: Option<Duration>,
        /// Why.
        reason: String,
    },
    /// Nobody knows whether it was done: it was asked for, and the answer was lost.
    #[error("{0}")]
    Unanswered(String),
    /// No try will succeed.
    #[error("{0}")]
    Refused(String),
}

impl ApiError {
    /// Says whether Telegram, or whoever stands for it, answered at all.
    pub const fn was_answered(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Later { after: Some(_), .. })
    }

    /// Returns how long to rest after it, at least `least`; long where no other try will succeed.
    pub(crate) fn rest(&self, least: Duration) -> Duration {
        match self {
            Self::Later { after, .. } => after.unwrap_or(least).max(least),
            Self::Unanswered(_) => least,
            Self::Refused(_) => least * 10,
        }
    }
}

impl From<ApiError> for SendError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Later { after, reason } => Self::Later { after, reason },
            ApiError::Unanswered(reason) => Self::Unanswered(reason),
            ApiError::Refused(reason) => Self::Refused(reason),
        }
    }
}

/// What is asked of Telegram.
#[async_trait]
pub(crate) trait Api: Send + Sync + 'static {
    /// Returns the name of the bot.
    async fn name(&self) -> Result<String, ApiError>;

    /// Lets Telegram bring what people do to `address`, one at a time, each with `secret`.
    async fn hook(&self, address: &Url, secret: &str) -> Result<(), ApiError>;

    /// Lets Telegram keep what people do until it is asked for.
    async fn unhook(&self) -> Result<(), ApiError>;

    /// Waits for what people do, from the update `offset` on; what was before is forgotten there.
    async fn updates(&self, offset: i64) -> Result<Vec<Update>, ApiError>;

    /// Sends a message; returns its number in the chat.
    async fn send(&self, chat: i64, letter: &Letter) -> Result<i32, ApiError>;

    /// Puts a text without buttons in the place of a message.
    async fn edit(&self, chat: i64, message: i32, text: &StyledText) -> Result<(), ApiError>;

    /// Removes a message.
    async fn remove(&self, chat: i64, message: i32) -> Result<(), ApiError>;

    /// Fetches what somebody sent, of at most `most` bytes.
    async fn fetch(&self, id: &str, most: u64) -> Result<Vec<u8>, ApiError>;

    /// Shows a line to whoever pressed a button; without letters the phone waits no longer, and shows nothing.
    async fn show(&self, press: &str, line: &str) -> Result<(), ApiError>;

    /// Says which commands there are.
    async fn offer(&self, commands: &[(&str, &str)]) -> Result<(), ApiError>;
}
