//! Defines what a tool is: words and a schema for the model, and what happens when the model calls it.

mod arguments;
mod cache;
mod derived;
mod progress;
mod toolbox;
mod truncate;

use std::ops::RangeInclusive;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use ropewalk_config::settings::Permission;
use ropewalk_llm::Image;
use ropewalk_schemas::RepoPath;
use ropewalk_schemas::job_event::Todo;
use serde_json::Value;
use similar::TextDiff;
use tokio_util::sync::CancellationToken;

pub use cache::{CacheBounds, Freshness};
pub use derived::{plain_schema_of, schema_of};
pub use progress::Progress;
pub use toolbox::{Toolbox, ToolboxError};

pub(crate) use arguments::{Schema, violations};
pub(crate) use toolbox::{malformed, without_namespace};

/// Does one thing for a model.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns the name to call it by, in snake case.
    fn name(&self) -> &str;

    /// Returns what it does, in words for the model.
    fn description(&self) -> &str;

    /// Returns the JSON Schema of its arguments, an object; [`plain_schema_of`] derives it from their type.
    fn parameters(&self) -> Value;

    /// Says whether it may run beside others of its kind: it changes nothing.
    fn concurrency_safe(&self) -> bool;

    /// Says by which rules its calls are judged; none for what does nothing to files and runs nothing.
    fn permission(&self) -> Option<Permission> {
        None
    }

    /// Returns what a call does it to: paths, or a shell line. The arguments fit the schema.
    fn subjects(&self, _: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Says how long the result of a call that is made now would hold for the same call. The arguments fit the schema.
    fn freshness(&self, _: &Value) -> Freshness {
        Freshness::Never
    }

    /// Says what of an output that is too long the model gets to read.
    fn keep(&self) -> Keep {
        Keep::Head
    }

    /// Says whether its results stay word for word however long the conversation grows: what a person said or allowed.
    fn outlasts(&self) -> bool {
        false
    }

    /// Says whether it asks something of the outside, which answers otherwise every time.
    fn goes_out(&self) -> bool {
        false
    }

    /// Hears of files whose text the model can read no more.
    fn forget(&self, _: &[String]) {}

    /// Runs it; the arguments fit the schema.
    async fn execute(
        &self,
        arguments: Value,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolFailure>;
}

/// Says what of a long output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The beginning.
    Head,
    /// The beginning and, mostly, the end.
    Ends,
    /// All of it: the tool bounds its output itself.
    Everything,
}

/// Is what a tool knows about the call.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The agent that calls, by its work: the journal key of the job. People are told it where they are asked.
    pub agent: String,
    /// When the reply came that makes the call, the same for whoever hears it from the journal.
    pub called_at: DateTime<Utc>,
    /// Whether the call closes the third round of a circle, so that only a person can allow it.
    pub closes_circle: bool,
    /// Whether the model that called sees pictures.
    pub sees_images: bool,
    /// Fires when the caller gave up.
    pub cancel: CancellationToken,
    /// Hears what the tool says before it has ended.
    pub progress: Progress,
}

#[cfg(test)]
impl ToolContext {
    /// Makes that of a test.
    pub(crate) fn of_test() -> Self {
        Self {
            agent: "test".to_owned(),
            called_at: DateTime::UNIX_EPOCH,
            closes_circle: false,
            sees_images: true,
            cancel: CancellationToken::new(),
            progress: Progress::default(),
        }
    }
}

/// Is what a tool answers.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// What the model gets to read.
    pub text: String,
    /// The pictures that it gets to see beside it.
    pub images: Vec<Image>,
    /// Whether the call failed, as the model is told.
    pub is_error: bool,
    /// What the call did, for whoever watches whether the work moves.
    pub effect: Effect,
    /// The files that it changed, for the watcher.
    pub changes: Vec<FileChange>,
    /// What only the watcher gets to see; null for nothing.
    pub metadata: Value,
}

/// Is what became of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub path: RepoPath,
    /// The difference, as `diff -u` shows it.
    pub difference: String,
}

impl FileChange {
    /// Compares what a file held with what it holds.
    pub fn between(path: &RepoPath, before: &str, after: &str) -> Self {
        let difference = TextDiff::from_lines(before, after);
        Self {
            path: path.clone(),
            difference: difference.unified_diff().context_radius(2).to_string(),
        }
    }
}

/// Says what a call did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that counts.
    Nothing,
    /// A file holds something else than before.
    Changed,
    /// Lines of a file were shown.
    Showed {
        /// The file.
        path: String,
        /// The lines of each part, from 1.
        lines: Vec<RangeInclusive<usize>>,
    },
    /// Something ran or was looked up; what counts is whether its answer is new.
    Answered,
    /// The list of what is to be done is this now.
    Planned(Vec<Todo>),
}

impl ToolOutput {
    /// Answers with text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            images: Vec::new(),
            is_error: false,
            effect: Effect::Answered,
            changes: Vec::new(),
            metadata: Value::Null,
        }
    }

    /// Answers that the call failed.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            effect: Effect::Nothing,
            ..Self::text(text)
        }
    }

    /// Says what the call did.
    pub fn with_effect(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// Adds pictures for the model to see.
    pub fn with_images(self, images: Vec<Image>) -> Self {
        Self { images, ..self }
    }

    /// Names the files that the call changed.
    pub fn with_changes(self, changes: Vec<FileChange>) -> Self {
        Self { changes, ..self }
    }

    /// Adds what only the watcher gets to see.
    pub fn with_metadata(self, metadata: Value) -> Self {
        Self { metadata, ..self }
    }
}

/// Says why a tool gave no output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolFailure {
    /// The call cannot be carried out; the model reads why.
    #[error("{0}")]
    Refused(String),
    /// The work must stop now; the model is not asked again.
    #[error("the work was ended: {0}")]
    Ended(String),
}

impl ToolFailure {
    /// Refuses a call with a reason for the model.
    pub fn refused(reason: impl Into<String>) -> Self {
        Self::Refused(reason.into())
    }
}
