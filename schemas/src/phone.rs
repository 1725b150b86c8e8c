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
    /// When whoever writes in the chat was told last that nobody hears them, since its person is nobody by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_unheard: Option<DateTime<Utc>>,
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
    /// How far it is with what the person does.
    #[serde(flatten)]
    pub updates: UpdateProgress,
    /// The landing that was shown last, until it is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing: Option<LandingOffer>,
    /// The build that was shown last, until somebody decides not to begin it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting: Option<BuildOffer>,
    /// The end of an idea that was shown last, until it is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandonment: Option<AbandonmentOffer>,
    /// The words that came too late for their idea, until somebody begins another one with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<OpeningOffer>,
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

/// What waits for the words that come next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum WordsFor {
    /// A choice that was pressed.
    Choice {
        /// The question.
        question: QuestionId,
        /// The choice.
        choice: ChoiceId,
    },
    /// The wish for another revision.
    Revision {
        /// The specification.
        spec: SpecId,
        /// Until when words are for it; none in a row of before, whose time is over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<DateTime<Utc>>,
    },
}

/// How far a phone is with what its person does: the updates by which it is known what becomes of the next one.
///
/// Each bot counts its updates by itself, so that what is of one says nothing of another ([`UpdateProgress::of`]). All of
/// them outlive that the phone is linked anew: what was done stays done, whoever holds the phone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateProgress {
    /// The update that Telegram brought last. What it brought before is done or kept; so is this one where it says `done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<UpdateRecord>,
    /// The update that was kept last until it has its turn; gone once that is done. While there is one, what this person
    /// does waits behind it, but for what stops something. Telegram brought it, no later than `begun`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<UpdateRecord>,
    /// The update that was begun last of those that were kept. It is counted apart from `begun`, which goes on meanwhile,
    /// and falls back where one is handled again that was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<UpdateRecord>,
    /// The update that stopped something last; it was never kept. What came before it and is done after it sets nothing
    /// going any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<UpdateRecord>,
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

/// The end of an idea that was shown to a person, who decides it by a button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AbandonmentOffer {
    /// Names it in what its button sends back; nobody guesses it.
    pub nonce: String,
    /// The idea.
    pub idea: Slug,
    /// The builds that were shown to end with it.
    pub builds: Vec<BuildId>,
    /// Until when it can be decided.
    pub until: DateTime<Utc>,
}

/// Words for an idea of which nothing is changed by words any more, which may begin another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpeningOffer {
    /// Names it in what its button sends back; nobody guesses it.
    pub nonce: String,
    /// The words.
    pub words: String,
    /// Until when they can begin one.
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
            updates: self.updates,
            ..Self::of(self.person.clone())
        }
    }

    /// Returns the nonces of what was shown to be decided by a button.
    pub fn offers(&self) -> [Option<&str>; 4] {
        [
            self.landing.as_ref().map(|offer| offer.nonce.as_str()),
            self.starting.as_ref().map(|offer| offer.nonce.as_str()),
            self.abandonment.as_ref().map(|offer| offer.nonce.as_str()),
            self.opening.as_ref().map(|offer| offer.nonce.as_str()),
        ]
    }

    /// Forgets what was shown with a nonce; its buttons mean nothing from now on.
    pub fn close_offer(&mut self, nonce: &str) {
        self.landing.take_if(|offer| offer.nonce == nonce);
        self.starting.take_if(|offer| offer.nonce == nonce);
        self.abandonment.take_if(|offer| offer.nonce == nonce);
        self.opening.take_if(|offer| offer.nonce == nonce);
    }

    /// Returns the phone of a person, of which nothing is known.
    pub const fn of(person: UserSlug) -> Self {
        Self {
            person,
            code: None,
            linked: None,
            told_unheard: None,
            idea: None,
            shown: None,
            listens: false,
            awaits: None,
            words_for: None,
            updates: UpdateProgress {
                begun: None,
                kept: None,
                turn: None,
                stopped: None,
            },
            landing: None,
            starting: None,
            abandonment: None,
            opening: None,
            draft: None,
            replies: Vec::new(),
            repeats: 0,
        }
    }
}

impl UpdateProgress {
    /// Returns what it says of the updates of one bot.
    pub fn of(self, bot: i64) -> Self {
        let of_it = |record: &UpdateRecord| record.bot == bot;
        Self {
            begun: self.begun.filter(of_it),
            kept: self.kept.filter(of_it),
            turn: self.turn.filter(of_it),
            stopped: self.stopped.filter(of_it),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_before_its_progress_was_one_thing_is_read_and_written_as_it_was() {
        let record = |update: i64| serde_json::json!({ "bot": 1, "update": update, "at": "2026-11-21T12:00:00Z", "done": true });
        let row = serde_json::json!({
            "person": "ada", "listens": false, "repeats": 0, "begun": record(7), "kept": record(6), "stopped": record(5),
        });
        let phone: Phone = serde_json::from_value(row.clone()).unwrap();
        let numbers = |progress: UpdateProgress| {
            let records = [
                progress.begun,
                progress.kept,
                progress.turn,
                progress.stopped,
            ];
            records.map(|record| record.map(|record| record.update))
        };
        assert_eq!(numbers(phone.updates), [Some(7), Some(6), None, Some(5)]);
        assert_eq!(numbers(phone.updates.of(2)), [None; 4]);
        assert_eq!(serde_json::to_value(&phone).unwrap(), row);
        let fresh: Phone = serde_json::from_value(serde_json::json!({ "person": "ada" })).unwrap();
        assert_eq!(fresh, Phone::of(UserSlug::parse("ada").unwrap()));
    }

    #[test]
    fn what_waits_for_words_is_told_apart_by_what_it_names() {
        let id = "00000000-0000-7000-8000-000000000001";
        for (row, is_choice) in [
            (
                serde_json::json!({ "question": id, "choice": "guide" }),
                true,
            ),
            (serde_json::json!({ "spec": id }), false),
            (
                serde_json::json!({ "spec": id, "until": "2026-11-21T12:00:00Z" }),
                false,
            ),
        ] {
            let words: WordsFor = serde_json::from_value(row.clone()).unwrap();
            assert_eq!(matches!(words, WordsFor::Choice { .. }), is_choice, "{row}");
            assert_eq!(serde_json::to_value(&words).unwrap(), row);
        }
    }
}
