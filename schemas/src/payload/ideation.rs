//! Payloads of ideation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::idea::Phase;
use crate::ids::{MessageId, SessionId, Slug, UserSlug};

/// A person wrote to a session; the text lies in the message record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdeationMessage {
    /// The session.
    pub session_id: SessionId,
    /// The idea.
    pub idea_slug: Slug,
    /// The stored message.
    pub message_id: MessageId,
    /// Who wrote it.
    pub user_slug: UserSlug,
    /// Whether the person has nothing to add: the session ends with the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
}

/// A session began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdeationStarted {
    /// The session.
    pub session_id: SessionId,
    /// The idea.
    pub idea_slug: Slug,
    /// Whose idea it is.
    pub user_slug: UserSlug,
}

/// A session moved to its next phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseChanged {
    /// The session.
    pub session_id: SessionId,
    /// The idea.
    pub idea_slug: Slug,
    /// The phase left.
    pub from: Phase,
    /// The phase entered.
    pub to: Phase,
    /// The overall confidence at that moment, 0 to 1.
    pub confidence: f64,
}

/// An artifact was written to the idea folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactSaved {
    /// The session.
    pub session_id: SessionId,
    /// The idea.
    pub idea_slug: Slug,
    /// The kind of artifact, for example `target-user`.
    pub artifact: String,
    /// The file in the idea folder.
    pub path: String,
    /// How sure the agent is, 0 to 1.
    pub confidence: f64,
}

/// An idea became a candidate with its first artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateCreated {
    /// The session.
    pub session_id: SessionId,
    /// The idea.
    pub idea_slug: Slug,
    /// Whose idea it is.
    pub user_slug: UserSlug,
    /// The title of the idea.
    pub title: String,
}

/// A person gave an idea up; what of it is not landed ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdeaAbandoned {
    /// The idea.
    pub idea_slug: Slug,
    /// Who gave it up.
    pub abandoned_by: UserSlug,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A session is complete and its brief written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdeationCompleted {
    /// The session.
    pub session_id: SessionId,
    /// The idea.
    pub idea_slug: Slug,
    /// Whose idea it is.
    pub user_slug: UserSlug,
    /// The brief, relative to the idea folder.
    pub brief_path: String,
    /// The overall confidence, 0 to 1.
    pub confidence: f64,
    /// Whether a specification may be asked for.
    pub ready_for_spec: bool,
}
