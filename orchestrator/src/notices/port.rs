//! Defines a way of telling people something.

use std::time::Duration;

use async_trait::async_trait;
use ropewalk_schemas::notice::NoticeText;
use ropewalk_schemas::person::Role;
use ropewalk_schemas::question::Choice;
use ropewalk_schemas::{QuestionId, Subject, UserSlug};
use ropewalk_store::{ReadError, Store};

/// What is told now.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// Names it in what is sent back; nobody guesses it.
    pub nonce: String,
    /// The type of the event.
    pub event_type: String,
    /// What it is about.
    pub subject: Subject,
    /// The words.
    pub text: NoticeText,
    /// The question that it puts, while that is open.
    pub question: Option<PosedQuestion>,
    /// Whether nobody should be woken by it.
    pub silent: bool,
    /// How many pieces of it arrived before, where the port tells it in several.
    pub pieces: u32,
}

/// What arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrival {
    /// What the message is called, where it can be mended or replied to later.
    pub message: Option<String>,
    /// Whether more pieces of what is told are to be sent.
    pub more: bool,
}

/// A question as it is put to somebody.
#[derive(Debug, Clone, PartialEq)]
pub struct PosedQuestion {
    /// The question.
    pub id: QuestionId,
    /// What can be chosen.
    pub choices: Vec<Choice>,
    /// Whether words alone are an answer.
    pub free_text: bool,
    /// What those are there for who are asked first.
    pub role: Role,
}

/// Says why something was not told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Another try may succeed.
    #[error("{reason}")]
    Later {
        /// How long to wait, where somebody said so.
        after: Option<Duration>,
        /// Why.
        reason: String,
    },
    /// Nobody knows whether it arrived: it was handed over, and the answer was lost.
    #[error("{0}")]
    Unanswered(String),
    /// No try will succeed.
    #[error("{0}")]
    Refused(String),
}

/// A way of telling people something.
#[async_trait]
pub trait Port: Send + Sync + 'static {
    /// Returns its name, for example `telegram`.
    fn name(&self) -> &'static str;

    /// Returns those of `people` whom it reaches; a port by which all hear at once is one receiver itself.
    async fn receivers(&self, people: &[UserSlug], store: &Store)
    -> Result<Vec<String>, ReadError>;

    /// Tells `receiver` something, or the next piece of it.
    async fn send(
        &self,
        receiver: &str,
        telling: &Notification,
        store: &Store,
    ) -> Result<Arrival, SendError>;

    /// Puts `telling` in the place of what a message said.
    async fn edit(&self, message: &str, telling: &Notification) -> Result<(), SendError>;
}
