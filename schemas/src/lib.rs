//! Holds the words of Ropewalk: ids, events and their payloads, and the records that every other crate speaks of.
//!
//! What it is not: it does no I/O, asks no clock and makes no id; it never decides. A type here says what
//! may be written down and which state may follow which, and nothing else.
//!
//! To add an event: write its payload struct in `payload/`, name it in the list of [`payload`], and give it a
//! row in `docs/architecture.md`. To add a record: write its struct here and its table in the `store` crate.

mod state;

pub mod advice;
pub mod agent;
pub mod alert;
pub mod amendment;
pub mod amount;
pub mod attempt;
pub mod build;
pub mod clip;
pub mod deaths;
pub mod document;
pub mod event;
pub mod fulfilment;
pub mod glob_pattern;
pub mod halt;
pub mod host_pattern;
pub mod idea;
pub mod ids;
pub mod illegal;
pub mod image;
pub mod job_event;
pub mod keyed_request;
pub mod knowledge;
pub mod lease;
pub mod model_call;
pub mod natural;
pub mod notice;
pub mod outage;
pub mod payload;
pub mod person;
pub mod phone;
pub mod question;
pub mod repo_path;
pub mod review;
pub mod specification;

pub mod task;
pub mod timer;
pub mod trace;
pub mod wait;
pub mod wish;

pub use event::{CloudEvent, DecodeError, Event, EventPattern, Priority, Subject};
pub use glob_pattern::{GlobPattern, GlobPatternError};
pub use host_pattern::{HostPattern, HostPatternError};
pub use ids::{
    AttemptId, BuildId, CallId, ChoiceId, CommitId, ComponentName, ContentHash, CorrelationId,
    EventId, InvalidId, KnowledgeId, MessageId, ProjectName, QuestionId, ReplyId, RequirementId,
    ReviewId, SessionId, Slug, SpecId, TaskId, TimerId, UserSlug,
};
pub use payload::Payload;
pub use repo_path::{RepoPath, RepoPathError};
pub use state::{IllegalTransition, UnknownState};
