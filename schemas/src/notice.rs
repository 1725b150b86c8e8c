//! Defines notices: what one person, or all by one way, are told of one event.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::Subject;
use crate::ids::QuestionId;
use crate::state::states;

states! {
    /// Says how far a notice has come.
    NoticeState ("notice") {
        /// It is to be sent.
        Waiting = "waiting" => [Sending, Over, Dead],
        /// It was handed over; whether it arrived is not known yet.
        Sending = "sending" => [Waiting, Sending, Sent, Over, Dead],
        /// It arrived.
        Sent = "sent" => [Waiting],
        /// It no longer mattered before it arrived.
        Over = "over" => [],
        /// It was given up.
        Dead = "dead" => [Waiting],
    }
}

/// What is told, without what differs between ways of telling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeText {
    /// What happened, in one line.
    pub title: String,
    /// What there is to know about it; paragraphs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// What is best done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
}

/// What somebody is told of one event by one port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// Names it: the port, what it tells and whom; the key of the row.
    pub key: String,
    /// How it is told, for example `telegram`.
    pub port: String,
    /// Who is told: the name of a person, or that of the port where all hear by it; empty where a question reaches nobody.
    pub receiver: String,
    /// The type of the event.
    pub event_type: String,
    /// What it is about.
    pub subject: Subject,
    /// The question that it puts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    /// What is told; of a question this is made when it is sent, and kept while only a part of it arrived.
    pub text: NoticeText,
    /// Whether work stands still: it waits for no other, and for no end of quiet hours.
    pub urgent: bool,
    /// How far it has come.
    pub state: NoticeState,
    /// Whether what arrived is no longer so and has to be mended.
    pub outdated: bool,
    /// Names it in what is sent back; nobody guesses it.
    pub nonce: String,
    /// What the port calls the messages by which it arrived and that are to be mended when it is over, the newest last. Each that is
    /// sent again takes the place of those before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
    /// What the port calls what arrived before those: the pieces, where it is told in several, and what was mended since another
    /// message asks. They are not mended when it is over, but what is said in reply to one is said of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<String>,
    /// How many pieces of it arrived, while it is told in several and not all did.
    #[serde(default)]
    pub pieces: u32,
    /// How often it was handed over in vain, or for nobody knows what.
    pub tries: u32,
    /// How often it may have arrived twice.
    pub repeats: u32,
    /// Why it did not arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When the port is next to do something about it.
    pub due: DateTime<Utc>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When all of it last arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<DateTime<Utc>>,
}

impl Notice {
    /// Returns whether the port has something to do about it.
    pub const fn is_open(&self) -> bool {
        match self.state {
            NoticeState::Waiting | NoticeState::Sending => true,
            NoticeState::Sent => self.outdated,
            NoticeState::Over | NoticeState::Dead => false,
        }
    }
}
