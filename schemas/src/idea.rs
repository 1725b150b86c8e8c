//! Defines ideas and the sessions in which they are explored (seed pipeline §3, design §6).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ContentHash, CorrelationId, MessageId, QuestionId, SessionId, Slug, UserSlug};
use crate::state::states;

states! {
    /// Says how far an ideation session has come.
    Phase ("session phase") {
        /// The shape of the idea is open.
        Exploring = "exploring" => [Narrowing, Complete],
        /// The scope is being drawn.
        Narrowing = "narrowing" => [Validating, Complete],
        /// Assumptions are being tested.
        Validating = "validating" => [Refining, Complete],
        /// The concept is being polished.
        Refining = "refining" => [Complete],
        /// The brief is written.
        Complete = "complete" => [],
    }
}

states! {
    /// Says what an idea has become.
    IdeaState ("idea") {
        /// A session began; nothing is saved yet.
        Draft = "draft" => [Candidate, Landed, Abandoned],
        /// The first artifact is saved.
        Candidate = "candidate" => [Captured, Landed, Abandoned],
        /// The session is complete.
        Captured = "captured" => [Landed, Abandoned],
        /// A build of it was landed.
        Landed = "landed" => [],
        /// A person gave it up.
        Abandoned = "abandoned" => [],
    }
}

/// Says what sort of idea it is, which sets what has to be known before it is complete.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum IdeaKind {
    /// Something that has to find customers.
    Venture,
    /// Something that other people use.
    Product,
    /// Something that the person and people like them use.
    Tool,
    /// More of what is in the repository.
    Feature,
    /// Something in the repository that is wrong.
    Fix,
}

impl IdeaKind {
    /// Says whether nobody has to be won for it: it need not be told for whom it is, or what sets it apart.
    pub const fn is_small(self) -> bool {
        matches!(self, Self::Tool | Self::Feature | Self::Fix)
    }
}

/// An idea and where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Idea {
    /// Its name.
    pub slug: Slug,
    /// Whose it is.
    pub user: UserSlug,
    /// Its title.
    pub title: String,
    /// What sort of idea it is, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<IdeaKind>,
    /// What it has become.
    pub state: IdeaState,
    /// The session that explores it.
    pub session: SessionId,
    /// The chain of events that began with it.
    pub correlation_id: CorrelationId,
    /// When it began.
    pub created_at: DateTime<Utc>,
}

/// An ideation session: the conversation about one idea.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Names it.
    pub id: SessionId,
    /// The idea.
    pub idea: Slug,
    /// Whose idea it is.
    pub user: UserSlug,
    /// The phase.
    pub phase: Phase,
    /// What was learned so far.
    pub signals: Signals,
    /// The open blocking question, if the session waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<QuestionId>,
    /// Every phase entered, in order.
    #[serde(default)]
    pub phases: Vec<PhaseEntry>,
    /// The chain of events that began with it.
    pub correlation_id: CorrelationId,
    /// When it began.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
}

/// A phase that a session entered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseEntry {
    /// The phase.
    pub phase: Phase,
    /// When.
    pub at: DateTime<Utc>,
}

/// Everything that the messages of a session have shown so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Signals {
    /// The newest artifact of each kind.
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    /// Decisions of the person.
    #[serde(default)]
    pub decisions: Vec<Decision>,
    /// Risks found.
    #[serde(default)]
    pub risks: Vec<Risk>,
    /// The overall confidence, 0 to 1.
    pub confidence: f64,
}

/// A piece of the idea that is clear enough to be written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// The kind, for example `target-user`, `problem`, `solution-concept`, `mvp-features`, `differentiator` or `brief`.
    pub kind: String,
    /// One line.
    pub summary: String,
    /// The text that goes into the idea folder, Markdown.
    pub content: String,
    /// 0 to 1.
    pub confidence: f64,
    /// The file in the idea folder, once saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// A decision of the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// The kind; `validation` for an assumption with evidence.
    pub kind: String,
    /// What was decided.
    pub summary: String,
}

/// A risk of the idea.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Risk {
    /// The risk.
    pub summary: String,
    /// Where it was learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Says who wrote a message.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Author {
    /// A person.
    Person,
    /// The ideation agent.
    Agent,
}

/// One message of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Names it; ids sort by time.
    pub id: MessageId,
    /// The session.
    pub session: SessionId,
    /// Who wrote it.
    pub author: Author,
    /// The person who did; none where the agent wrote it, and in older rows, where the owner of the idea is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserSlug>,
    /// The text, at most 64 KiB.
    pub text: String,
    /// The files that came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// When.
    pub at: DateTime<Utc>,
    /// The message that it answers; none where a person wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<MessageId>,
    /// What a model was told of the session before it wrote this, which later requests repeat; none where no model did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
}

impl Message {
    /// Returns the person who said it in an idea of `owner`; none where the agent did.
    pub fn speaker<'a>(&'a self, owner: &'a UserSlug) -> Option<&'a UserSlug> {
        match self.author {
            Author::Person => Some(self.user.as_ref().unwrap_or(owner)),
            Author::Agent => None,
        }
    }
}

/// A file that a person sent along with a message; it lies in the folder of the idea.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Where it lies in the folder of the idea.
    pub path: String,
    /// What sort of file its sender says it is, such as `image/jpeg`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Its size.
    pub size_bytes: u64,
    /// The hash of what it holds.
    pub hash: ContentHash,
}
