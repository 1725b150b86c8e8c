//! What an attempt says of itself: to its rows, and in its model's own words.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::task::KeptWork;
use ropewalk_schemas::{AttemptId, CommitId, KnowledgeId, RepoPath};
use ropewalk_store::{ChangeSet, attempt_key, retry_on_conflict};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::BuilderError;

/// What an attempt has learned about itself so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) summary: Option<String>,
    pub(crate) tokens: u64,
    pub(crate) candidate: Option<CommitId>,
    /// The turn of the conversation that handed the candidate in; none where no conversation goes on with it.
    pub(crate) turn: Option<u32>,
    pub(crate) preserve_ref: Option<String>,
    /// The changed files that are in no commit, since they hold a secret.
    pub(crate) withheld: Vec<String>,
    pub(crate) granted: Vec<RepoPath>,
    pub(crate) gotchas: Vec<KnowledgeId>,
    pub(crate) lesson: Option<Lesson>,
    /// Why files of the task are in no commit, a sentence each.
    pub(crate) unkept: Vec<String>,
    /// Why the task cannot be done as it stands.
    pub(crate) blocked: Option<String>,
}

impl Report {
    /// Returns the candidate with what it was allowed, once there is one.
    pub(crate) fn kept(&self) -> Option<KeptWork> {
        self.candidate.clone().map(|candidate| KeptWork {
            candidate,
            granted: self.granted.clone(),
        })
    }
}

/// Writes down where the work of an attempt is kept that somebody else ended meanwhile.
pub(crate) async fn kept(
    context: &Context,
    attempt: AttemptId,
    report: &Report,
) -> Result<(), BuilderError> {
    let Some(reference) = &report.preserve_ref else {
        return Ok(());
    };
    retry_on_conflict!(BuilderError, attempt, {
        let row = context.store.get::<Attempt>(&attempt_key(attempt)).await?;
        if let Some(row) = row.filter(|row| row.preserve_ref.is_none()) {
            let after = Attempt {
                preserve_ref: Some(reference.clone()),
                ..row.record.clone()
            };
            let mut changes = ChangeSet::new();
            changes.update(&row, &after);
            context.store.commit(changes).await?;
        }
        Ok(Some(()))
    })
}

/// Says with a refusal that what was said of the work holds: whoever only mends that has nothing to write again.
pub(crate) const SUMMARY_KEPT: &str = "your summary is kept: leave it out unless it changed";

/// A result as the model hands it in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(description = "")]
pub(crate) struct TaskResult {
    /// What you changed, and what whoever builds on it has to know: names, signatures, decisions. Two to five sentences.
    // None where the one before holds.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1))]
    pub(crate) summary: Option<String>,
    /// Only where the task cannot be done as it stands: why, and what would have to change. Nothing lands then, and a
    /// person decides.
    #[serde(default)]
    pub(crate) blocked: Option<String>,
    /// A mistake that you made and mended and that others should avoid, if there was one.
    #[serde(default)]
    #[schemars(with = "Lesson")]
    pub(crate) lesson: Option<Lesson>,
}

/// Something learned, as the model tells it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(expecting = "an object with its `text`, and `globs` where it is about some files alone")]
pub(crate) struct Lesson {
    // What to heed.
    #[schemars(length(min = 1))]
    pub(crate) text: String,
    // The files that it applies to.
    #[serde(default)]
    pub(crate) globs: Vec<String>,
}
