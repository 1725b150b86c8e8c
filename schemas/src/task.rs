//! Defines tasks: the block in tasks.md and the task of a build (seed pipeline §4-5, design §6, §10).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::attempt::Failure;
use crate::ids::{
    AttemptId, BuildId, CommitId, ComponentName, EventId, KnowledgeId, QuestionId, RequirementId,
    TaskId,
};
use crate::repo_path::RepoPath;
use crate::state::states;

/// Says what a task does to its primary file.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Action {
    /// Makes a new file.
    Create,
    /// Changes a file.
    Update,
    /// Adds to a file.
    Add,
    /// Removes a file.
    Delete,
    /// Changes nothing, runs a check.
    Verify,
}

impl Action {
    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Add => "ADD",
            Self::Delete => "DELETE",
            Self::Verify => "VERIFY",
        }
    }
}

states! {
    /// Says how far a task has come.
    TaskState ("task") {
        /// Waits for its dependencies.
        Pending = "pending" => [Ready, Blocked, Skipped, Complete],
        /// May be claimed.
        Ready = "ready" => [Pending, Claimed, Waiting, Blocked, Skipped],
        /// A loop holds its locks.
        Claimed = "claimed" => [Working, Ready, Waiting, Failed, Skipped],
        /// An attempt runs.
        Working = "working" => [Validating, Ready, Waiting, Failed, Skipped],
        /// The gate runs.
        Validating = "validating" => [Working, Landing, Ready, Waiting, Failed, Skipped],
        /// The candidate waits for its turn.
        Landing = "landing" => [Complete, Ready, Waiting, Failed, Skipped],
        /// Landed with gate evidence.
        Complete = "complete" => [],
        /// All tries failed.
        Failed = "failed" => [Ready, Skipped],
        /// Left out by a decision.
        Skipped = "skipped" => [Pending, Ready, Blocked],
        /// A task it needs failed.
        Blocked = "blocked" => [Pending, Ready, Skipped],
        /// Waits for a lock, an owner, a person or a quota.
        Waiting = "waiting" => [Pending, Ready, Blocked, Failed, Skipped],
    }
}

impl TaskState {
    /// Returns whether an attempt holds the task.
    pub const fn is_active(self) -> bool {
        matches!(
            self,
            Self::Claimed | Self::Working | Self::Validating | Self::Landing
        )
    }
}

states! {
    /// Says how far a request to the owner of a file has come.
    ChangeRequestState ("change request") {
        /// The owner has it.
        Requested = "requested" => [Approved, Rejected, Needless],
        /// The change may be made.
        Approved = "approved" => [Applied, Needless],
        /// The file stays as its owner has it.
        Rejected = "rejected" => [],
        /// The change landed.
        Applied = "applied" => [],
        /// The file came free, or the task was left out, before the change was made by consent.
        Needless = "needless" => [],
    }
}

/// A change that a task needs in a file that another build owns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeRequest {
    /// The file.
    pub file: RepoPath,
    /// The build that owned it.
    pub owner: BuildId,
    /// How far it has come.
    pub state: ChangeRequestState,
    /// Why it was decided so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was filed.
    pub requested_at: DateTime<Utc>,
    /// When it was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<DateTime<Utc>>,
    /// The commit that made the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
}

/// Says what a waiting task waits for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WaitReason {
    /// A file lock.
    Lock,
    /// The build that owns a file.
    Owner,
    /// An answer.
    Person,
    /// A provider's quota.
    Quota,
    /// A budget.
    Budget,
    /// A check that could not run.
    Check,
    /// A provider that is away.
    Outage,
}

/// A task as tasks.md holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskBlock {
    /// Names it inside the specification.
    pub id: TaskId,
    /// The phase, for example `database`; orders ties only.
    #[serde(default = "plain_phase")]
    pub phase: String,
    /// What it comes to, in a few words; the subject of its commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    pub action: Action,
    /// The primary file.
    pub file: RepoPath,
    /// The files that it changes beside the primary one; up to 8 in all are usual.
    #[serde(default)]
    pub more_files: Vec<RepoPath>,
    /// The files to read first, which it does not change: callers, tests, an example to follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_first: Vec<RepoPath>,
    /// What has to stay as it is, such as a public signature; a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave_alone: Vec<String>,
    /// What it must fulfil.
    #[serde(default)]
    pub requirements: Vec<RequirementLine>,
    /// Lessons to heed, at most five.
    #[serde(default)]
    pub gotchas: Vec<GotchaReference>,
    /// How it is checked.
    pub validation: Validation,
    /// Whether it leaves as it is what its check looks at, as a refactoring does: the check must pass before and after.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preserves: bool,
    /// A starting point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_template: Option<String>,
    /// The tasks that must be complete first.
    #[serde(default)]
    pub depends_on: Vec<TaskId>,
    /// 1 (first) to 10; 5 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// How long it should take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_minutes: Option<u32>,
    /// Anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// A lesson carried by a task or a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GotchaReference {
    /// The knowledge item; none when a person wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<KnowledgeId>,
    /// What it says.
    pub text: String,
}

/// What a task must fulfil.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequirementLine {
    /// The requirement of the specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<RequirementId>,
    /// What is to be done; with an id, left out where the requirement says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// The command that checks a task and what it must show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    /// A shell line, run in a clean checkout.
    pub command: String,
    /// What it must show.
    pub expected: Expectation,
}

/// The phase of a task that names none.
pub const PLAIN_PHASE: &str = "core";

fn plain_phase() -> String {
    PLAIN_PHASE.to_owned()
}

/// The candidate of an attempt that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptWork {
    /// The commit.
    pub candidate: CommitId,
    /// The files that were granted to it beyond the declared ones.
    #[serde(default)]
    pub granted: Vec<RepoPath>,
}

/// A task of a build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// The build.
    pub build: BuildId,
    /// Names it inside the build.
    pub id: TaskId,
    /// Its position in the plan, from 1.
    pub number: u32,
    /// What to do.
    pub block: TaskBlock,
    /// How far it has come.
    pub state: TaskState,
    /// Why it does not run, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitReason>,
    /// Since when it waits for that, or for others of its kind; none where it waits for nothing, and where that was written down
    /// before the time was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<DateTime<Utc>>,
    /// Since when it wants its files, whether it waits or is ready in between; kept until it gets them, so that who came first goes
    /// first.
    #[serde(
        rename = "waits_since",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub wants_files_since: Option<DateTime<Utc>>,
    /// What it asked of the owners of files, oldest first.
    #[serde(default)]
    pub change_requests: Vec<ChangeRequest>,
    /// The open question about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    /// The chain of tasks that blocks it, the failed one last; of a task that was left out with one that it needs, the chain to that.
    #[serde(default)]
    pub blocked_by: Vec<TaskId>,
    /// Who left it out; none where a task that it needs was left out, and where that was written down before the name was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped_by: Option<String>,
    /// Tries begun, over all attempts: each that comes to the gate is one; what goes there again as it is, is no other.
    pub attempts: u32,
    /// Counted tries in this round.
    pub tries: u32,
    /// Dependency installs in this round.
    pub installs: u32,
    /// Rebases in this round.
    pub rebases: u32,
    /// The failures of this round, oldest first.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// The failures of earlier rounds, oldest first.
    #[serde(default)]
    pub earlier_failures: Vec<Failure>,
    /// Attempts in a row that could not go on, which are no tries.
    #[serde(default)]
    pub cut_off: u32,
    /// What people advised, oldest first.
    #[serde(default)]
    pub guidance: Vec<String>,
    /// So many of these a model was told, from the oldest on.
    #[serde(default)]
    pub heard: u32,
    /// Not to be claimed earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<DateTime<Utc>>,
    /// The loop that should take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned_to: Option<ComponentName>,
    /// The running attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptId>,
    /// The event that told of the newest attempt's start; how it ended is caused by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<EventId>,
    /// Kept work that the next attempt starts with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_from: Option<CommitId>,
    /// The files that were granted to that work beyond the declared ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resume_granted: Vec<RepoPath>,
    /// Kept work that goes to the gate again as it is, without a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regate: Option<KeptWork>,
    /// The head of another branch that the work on it joins into the build, resolving what stands against that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<CommitId>,
    /// The landed commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// When the running attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<DateTime<Utc>>,
    /// When the running attempt last made progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_at: Option<DateTime<Utc>>,
    /// When it landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
}

/// What a validation command must show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Expectation {
    /// The command ends with exit code 0.
    ExitZero,
    /// Exit code 0 and at least so many tests passed.
    Tests(u32),
    /// Exit code 0 and the output contains a text.
    Contains(String),
}

/// Says why an expectation cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an expectation; write `exit 0`, `tests >= N` or `contains TEXT`")]
pub struct InvalidExpectation(String);

impl TryFrom<String> for Expectation {
    type Error = InvalidExpectation;

    fn try_from(text: String) -> Result<Self, InvalidExpectation> {
        let trimmed = text.trim();
        let tests = trimmed
            .strip_prefix("tests")
            .map(str::trim_start)
            .and_then(|rest| rest.strip_prefix(">=").or_else(|| rest.strip_prefix('≥')))
            .and_then(|number| number.trim().parse().ok());
        match (trimmed, tests) {
            ("exit 0", _) => Ok(Self::ExitZero),
            (_, Some(count)) => Ok(Self::Tests(count)),
            _ => match trimmed.strip_prefix("contains ").map(str::trim) {
                Some(wanted) if !wanted.is_empty() => Ok(Self::Contains(wanted.to_owned())),
                _ => Err(InvalidExpectation(text)),
            },
        }
    }
}

impl From<Expectation> for String {
    fn from(expectation: Expectation) -> Self {
        expectation.to_string()
    }
}

impl std::fmt::Display for Expectation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ExitZero => formatter.write_str("exit 0"),
            Self::Tests(count) => write!(formatter, "tests >= {count}"),
            Self::Contains(text) => write!(formatter, "contains {text}"),
        }
    }
}

impl Validation {
    /// Returns a check that holds when its command ends well.
    pub fn passes(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            expected: Expectation::ExitZero,
        }
    }
}

impl TaskBlock {
    /// Returns a block that says what has to be said, and nothing more.
    pub fn new(
        id: TaskId,
        phase: impl Into<String>,
        action: Action,
        file: RepoPath,
        validation: Validation,
    ) -> Self {
        Self {
            id,
            phase: phase.into(),
            title: None,
            action,
            file,
            more_files: Vec::new(),
            read_first: Vec::new(),
            leave_alone: Vec::new(),
            requirements: Vec::new(),
            gotchas: Vec::new(),
            validation,
            preserves: false,
            code_template: None,
            depends_on: Vec::new(),
            priority: None,
            estimate_minutes: None,
            notes: None,
        }
    }

    /// Says in a few words what the task comes to: its title, else what it does to its file and what for.
    pub fn in_words(&self) -> String {
        if let Some(title) = self.title() {
            return title.to_owned();
        }
        let does = self.action.as_str().to_lowercase();
        let first = self.requirements.first().map(|line| line.text.trim());
        match first.and_then(|text| text.lines().next()) {
            Some(text) => format!("{does} `{}`: {text}", self.file),
            None => format!("{does} `{}`", self.file),
        }
    }

    /// Returns the title, if it says anything.
    pub fn title(&self) -> Option<&str> {
        let title = self.title.as_deref()?.trim();
        (!title.is_empty()).then_some(title)
    }

    /// Returns every file the task may touch: the primary one first.
    pub fn files(&self) -> impl Iterator<Item = &RepoPath> {
        std::iter::once(&self.file).chain(&self.more_files)
    }

    /// Returns whether it names a requirement.
    pub fn is_for(&self, requirement: &RequirementId) -> bool {
        let mut lines = self.requirements.iter();
        lines.any(|line| line.id.as_ref() == Some(requirement))
    }
}

impl Task {
    /// Returns whether it names a requirement.
    pub fn is_for(&self, requirement: &RequirementId) -> bool {
        self.block.is_for(requirement)
    }

    /// Returns the words that a model has taken into a reply, or into the first message of its conversation.
    pub fn told(&self) -> &[String] {
        let heard = usize::try_from(self.heard).unwrap_or(usize::MAX);
        self.guidance.get(..heard).unwrap_or(&self.guidance)
    }

    /// Returns how many words no model has taken into a reply yet.
    pub fn unheard(&self) -> usize {
        self.guidance.len() - self.told().len()
    }

    /// Returns whether its model has to hear something before the task can be complete. A task that only verifies has none.
    pub fn has_to_hear(&self) -> bool {
        self.block.action != Action::Verify && self.unheard() > 0
    }

    /// Takes the first `words` for told.
    pub fn hear(&mut self, words: u32) {
        self.heard = self.heard.max(words);
    }

    /// Lets the next attempt start with kept work, and with the files that were granted to it.
    pub fn resume(&mut self, kept: Option<KeptWork>) {
        let kept = kept.map(|kept| (kept.candidate, kept.granted));
        let (candidate, granted) = kept.unzip();
        self.resume_from = candidate;
        self.resume_granted = granted.unwrap_or_default();
    }

    /// Returns the task of a build that nothing has happened to yet; `number` counts from 1.
    pub fn planned(build: BuildId, number: u32, block: TaskBlock) -> Self {
        Self {
            build,
            id: block.id.clone(),
            number,
            block,
            state: TaskState::Pending,
            reason: None,
            waiting_for: None,
            waiting_since: None,
            wants_files_since: None,
            change_requests: Vec::new(),
            question: None,
            blocked_by: Vec::new(),
            skipped_by: None,
            attempts: 0,
            tries: 0,
            installs: 0,
            rebases: 0,
            failures: Vec::new(),
            earlier_failures: Vec::new(),
            cut_off: 0,
            guidance: Vec::new(),
            heard: 0,
            not_before: None,
            assigned_to: None,
            attempt: None,
            cause: None,
            resume_from: None,
            resume_granted: Vec::new(),
            regate: None,
            joins: None,
            commit: None,
            claimed_at: None,
            progress_at: None,
            completed_at: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expectation_reads_back_as_it_was_written() {
        for text in ["exit 0", "tests >= 3", "contains all good"] {
            assert_eq!(
                Expectation::try_from(text.to_owned()).unwrap().to_string(),
                text
            );
        }
        assert_eq!(
            Expectation::try_from("tests ≥ 2".to_owned()),
            Ok(Expectation::Tests(2))
        );
        for bad in ["", "exit 1", "tests", "contains ", "tests >= many"] {
            assert!(Expectation::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
