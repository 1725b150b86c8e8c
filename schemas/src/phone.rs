//! Defines the phone of a person: who it is in Telegram, and what is talked about there.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{
    BuildId, ChoiceId, CommitId, ContentHash, MessageId, QuestionId, ReplyId, Slug, SpecId,
    UserSlug,
};

/// What is known of the phone of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Phone {
    /// The person; the key of the row.
    pub person: UserSlug,
    /// The code that links it, until it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<LinkCode>,
    /// Who it is in Telegram, where a code linked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked: Option<ChatUser>,
    /// The idea that is talked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idea: Option<Slug>,
    /// The message of that conversation after which nothing was shown yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<MessageId>,
    /// Whether what is said in it comes to the chat: from when it is turned to until another one is.
    #[serde(default)]
    pub listens: bool,
    /// The message that was said in the chat last, until it is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<MessageId>,
    /// What the next words belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words_for: Option<WordsFor>,
    /// The update that Telegram brought last; what it brought before is done, or kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<UpdateRecord>,
    /// The update that was kept last until it has its turn; while there is one, what this person does waits behind it,
    /// but for what stops something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<UpdateRecord>,
    /// The update that was begun last of those that were kept; what Telegram brings meanwhile is counted apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<UpdateRecord>,
    /// The update that stopped something last while others were kept: what came before it sets nothing going any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<UpdateRecord>,
    /// The landing that was shown last, until it is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing: Option<LandingOffer>,
    /// The build that was shown last, until somebody decides not to begin it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting: Option<BuildOffer>,
    /// The message in which the words of an answer are shown while they come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<Draft>,
    /// What is still to be said in answer to what this person did, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<Reply>,
    /// How often a message of an answer may have arrived twice, or one be left of its words that nobody edits.
    #[serde(default)]
    pub repeats: u32,
}

/// A code that links a phone to a person, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkCode {
    /// Its hash.
    pub hash: ContentHash,
    /// Until when it works.
    pub until: DateTime<Utc>,
}

/// A user of Telegram in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChatUser {
    /// The user.
    pub user: i64,
    /// The chat.
    pub chat: i64,
}

/// A choice that waits for its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WordsFor {
    /// The question.
    pub question: QuestionId,
    /// The choice.
    pub choice: ChoiceId,
}

/// An update that was begun, or kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateRecord {
    /// The bot: each counts its updates by itself.
    pub bot: i64,
    /// Its number.
    pub update: i64,
    /// When.
    pub at: DateTime<Utc>,
    /// Whether it is done.
    pub done: bool,
}

/// A landing that was shown to a person, who decides it by a button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandingOffer {
    /// Names it in what its buttons send back; nobody guesses it.
    pub nonce: String,
    /// The build.
    pub build: BuildId,
    /// The head of its branch that was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
    /// The commit of the branch that it would come into; none where nothing was said of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onto: Option<CommitId>,
    /// Until when it can be decided.
    pub until: DateTime<Utc>,
}

/// A build that was shown to a person before it begins, who decides it by a button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BuildOffer {
    /// Names it in what its buttons send back; nobody guesses it.
    pub nonce: String,
    /// What is built.
    pub spec: SpecId,
    /// The hash of the revision that was shown.
    pub hash: ContentHash,
    /// Until when it can be decided.
    pub until: DateTime<Utc>,
}

/// A message in a chat that is edited until it holds a whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Draft {
    /// The chat.
    pub chat: i64,
    /// Its number there, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<i32>,
    /// What is answered.
    pub answers: MessageId,
    /// How many messages of the whole answer are shown; 0 while its words come.
    #[serde(default)]
    pub whole: u32,
    /// Whether another message was handed over; whether that arrived is not known yet.
    #[serde(default)]
    pub sending: bool,
}

/// What somebody is answered in a chat, until all of it arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    /// Names it.
    pub id: ReplyId,
    /// The chat.
    pub chat: i64,
    /// The message there in whose place it is put; it is one of its own without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<i32>,
    /// What is said, with its marks.
    pub text: String,
    /// What can be pressed below it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Button>,
    /// Whether the field for an answer opens.
    #[serde(default)]
    pub wants_words: bool,
    /// How many messages of it arrived, where it is said in several.
    #[serde(default)]
    pub pieces: u32,
    /// Whether the next one was handed over; whether that arrived is not known yet.
    #[serde(default)]
    pub sending: bool,
    /// When it was made.
    pub at: DateTime<Utc>,
}

/// A button below a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Button {
    /// What people read.
    pub label: String,
    /// What comes back when it is pressed; at most 64 bytes.
    pub data: String,
}

impl Phone {
    /// Returns the phone of the same person, of which nothing is known but what it did.
    pub fn anew(&self) -> Self {
        Self {
            begun: self.begun,
            kept: self.kept,
            turn: self.turn,
            stopped: self.stopped,
            ..Self::of(self.person.clone())
        }
    }

    /// Returns the phone of a person, of which nothing is known.
    pub const fn of(person: UserSlug) -> Self {
        Self {
            person,
            code: None,
            linked: None,
            idea: None,
            shown: None,
            listens: false,
            awaits: None,
            words_for: None,
            begun: None,
            kept: None,
            turn: None,
            stopped: None,
            landing: None,
            starting: None,
            draft: None,
            replies: Vec::new(),
            repeats: 0,
        }
    }
}
