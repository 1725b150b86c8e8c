//! Defines attempts at a task, their failures and the evidence of the gate (design §10).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, BuildId, CommitId, ComponentName, KnowledgeId, RequirementId, TaskId};
use crate::repo_path::RepoPath;
use crate::state::states;

states! {
    /// Says how far an attempt has come.
    AttemptState ("attempt") {
        /// The engine works in a slot.
        Working = "working" => [Validating, Failed, Interrupted],
        /// The gate runs.
        Validating = "validating" => [Working, Landing, Failed, Interrupted],
        /// The candidate waits for its turn.
        Landing = "landing" => [Landed, Failed, Interrupted],
        /// Its commit is the build's head or below it.
        Landed = "landed" => [],
        /// It failed; its work is kept under a preserve ref.
        Failed = "failed" => [],
        /// It was ended from outside; its work is kept and the try is not counted.
        Interrupted = "interrupted" => [],
    }
}

/// One attempt at a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Names it.
    pub id: AttemptId,
    /// The build.
    pub build: BuildId,
    /// The task.
    pub task: TaskId,
    /// Its first try, from 1, over all attempts.
    pub number: u32,
    /// The conversation that it holds, from 1: one that was cut off is taken up again by the next attempt.
    #[serde(default)]
    pub round: u32,
    /// The tries that its gate refused and sent back into the conversation, oldest first.
    #[serde(default)]
    pub tries: Vec<RefusedTry>,
    /// The loop that ran it.
    pub loop_name: ComponentName,
    /// How far it has come.
    pub state: AttemptState,
    /// The lease token that its landing must still hold.
    pub token: i64,
    /// The commit it started from.
    pub base: CommitId,
    /// The commit it proposes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<CommitId>,
    /// The ref that keeps its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserve_ref: Option<String>,
    /// Files granted beyond the declared set.
    #[serde(default)]
    pub granted: Vec<RepoPath>,
    /// The lessons that its prompt carried.
    #[serde(default)]
    pub gotchas: Vec<KnowledgeId>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// What the agent said it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Tokens used.
    pub tokens: u64,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
}

impl Attempt {
    /// Returns the number of its latest try.
    pub fn latest_try(&self) -> u32 {
        self.number + u32::try_from(self.tries.len()).unwrap_or(u32::MAX)
    }

    /// Lists what failed, oldest first: the tries that were sent back, then what ended it, if that was a failure.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        let last = self.failure.iter();
        let ended = last.filter(|_| self.state == AttemptState::Failed);
        self.tries.iter().map(|one| &one.failure).chain(ended)
    }
}

/// A try that the gate refused, after which the conversation went on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedTry {
    /// The turn of the conversation that handed it in, from 1.
    pub turn: u32,
    /// Why.
    pub failure: Failure,
    /// What was handed in.
    pub candidate: CommitId,
    /// The ref that keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserve_ref: Option<String>,
    /// What the agent said it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Its class, which decides what follows.
    pub class: FailureClass,
    /// The actual output, bounded to 8 KiB.
    pub error: String,
    /// The try it belongs to, counted over all attempts.
    pub attempt: u32,
    /// A hash of class, error and changed files, to tell a repetition.
    pub fingerprint: String,
}

/// Classifies a failure (seed pipeline §5.3, design §10).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FailureClass {
    /// The code does not parse or compile.
    SyntaxError,
    /// A package or module is missing.
    MissingDependency,
    /// The head changed the same lines.
    Conflict,
    /// The gate's command failed.
    ValidationFailed,
    /// Nothing was changed though something should be, or the other way round.
    EmptyChange,
    /// A file outside the declared set was changed.
    OutOfScope,
    /// A stub was left in the change.
    StubMarker,
    /// A changed file holds a key, token or password of the program.
    SecretFound,
    /// A test that passed before is gone, ignored or failing.
    WeakenedTest,
    /// A gate or CI file was changed.
    Tampered,
    /// A check could not run.
    ToolMissing,
    /// The network failed.
    Network,
    /// A time limit passed.
    Timeout,
    /// Memory, disk or processes ran out.
    Resource,
    /// The provider's quota is used up.
    Quota,
    /// The model's provider does not answer.
    ProviderDown,
    /// The conversation does not fit into the model's context.
    ContextFull,
    /// A reply of the model was larger than is kept.
    ReplyTooLarge,
    /// The agent repeats itself.
    DoomLoop,
    /// The judges were never satisfied.
    EvalExhausted,
    /// The sandbox refused what the task needs.
    SandboxDenied,
    /// The same failure came three times without a change.
    NoProgress,
    /// The model stopped without doing the work.
    AgentRefused,
    /// The agent said why the task cannot be done as it stands.
    Blocked,
    /// It was cut off again and again: the program ended with it in hand, or it could not go on.
    Interrupted,
    /// Anything else.
    Unknown,
}

impl FailureClass {
    /// Returns whether it says something about the work, and not only about who was asked to do it.
    pub const fn is_of_the_work(self) -> bool {
        !matches!(self, Self::ProviderDown | Self::Quota)
    }

    /// Says in a few words what failed, for people.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::SyntaxError => "the code does not parse or compile",
            Self::MissingDependency => "a package or module is missing",
            Self::Conflict => "the same lines were changed meanwhile",
            Self::ValidationFailed => "a check failed",
            Self::EmptyChange => "nothing was changed, or what should stay as it is",
            Self::OutOfScope => "a file was changed that is not its own",
            Self::StubMarker => "a stub was left",
            Self::SecretFound => "a changed file holds a secret",
            Self::WeakenedTest => "a test that passed before is gone, ignored or failing",
            Self::Tampered => "it changes files that judge its work",
            Self::ToolMissing => "a check could not run",
            Self::Network => "the network failed",
            Self::Timeout => "a time limit passed",
            Self::Resource => "memory, disk or processes ran out",
            Self::Quota => "the provider's quota is used up",
            Self::ProviderDown => "the model's provider does not answer",
            Self::ContextFull => "the conversation does not fit into the model's context",
            Self::ReplyTooLarge => "a reply of the model was too large",
            Self::DoomLoop => "the model repeated itself",
            Self::EvalExhausted => "the judges were never satisfied",
            Self::SandboxDenied => "the sandbox refused what it needs",
            Self::NoProgress => "no progress was made",
            Self::AgentRefused => "the model stopped without doing the work",
            Self::Blocked => "the model said why it cannot be done as it stands",
            Self::Interrupted => "it was cut off again and again",
            Self::Unknown => "nobody knows why",
        }
    }
}

/// Says what the gate found.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every check ran and held.
    Passed,
    /// A check ran and did not hold.
    Failed,
    /// A check could not run.
    Held,
}

/// Says how deep a validation looks; each level includes those before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Syntax, types, lint.
    Quick,
    /// Unit tests too.
    Standard,
    /// Integration and edge cases too.
    Thorough,
    /// Performance and security too.
    Comprehensive,
    /// The full regression.
    Release,
}

impl Level {
    /// Lists the levels from the shallowest to the deepest.
    pub const ALL: [Self; 5] = [
        Self::Quick,
        Self::Standard,
        Self::Thorough,
        Self::Comprehensive,
        Self::Release,
    ];

    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Thorough => "thorough",
            Self::Comprehensive => "comprehensive",
            Self::Release => "release",
        }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Says what a check looks for, where that decides what people are asked about its result.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum CheckKind {
    /// Style and suspicious code: what it finds is a warning beside other failures.
    Lint,
    /// Holes; it prints `file:line: what` for each.
    Security,
    /// How much the tests cover; it prints a percentage of the whole.
    Coverage,
}

/// Says that a text names no level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no level; write `quick`, `standard`, `thorough`, `comprehensive` or `release`")]
pub struct InvalidLevel(String);

impl std::str::FromStr for Level {
    type Err = InvalidLevel;

    fn from_str(text: &str) -> Result<Self, InvalidLevel> {
        let plain = text.trim().to_lowercase();
        let found = Self::ALL.into_iter().find(|level| level.as_str() == plain);
        found.ok_or_else(|| InvalidLevel(text.to_owned()))
    }
}

/// What the gate saw for one commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The build.
    pub build: BuildId,
    /// The task; none for a check of the whole build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptId>,
    /// The commit that was checked, on a clean checkout.
    pub commit: CommitId,
    /// Its tree.
    pub tree: String,
    /// Names what its commands saw of what was before: the commit that git showed them, and the tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// What was found.
    pub verdict: Verdict,
    /// The class, unless it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    /// What did not hold, a line each.
    #[serde(default)]
    pub findings: Vec<String>,
    /// How deep it looked; none when no check of its gate has a level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// The requirements that the commit is for.
    #[serde(default)]
    pub requirements: Vec<RequirementId>,
    /// The installs of packages that came before the checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub installs: Vec<CheckRun>,
    /// Every check that ran.
    #[serde(default)]
    pub checks: Vec<CheckRun>,
    /// The checks of the gate that were not run: of a deeper level, after one that did not hold, or accepted by a person.
    #[serde(default)]
    pub not_run: Vec<String>,
    /// The checks of which nobody has seen that they can fail by what is planted into their tests, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blind: Vec<String>,
    /// What the pass of the task's own check proves; none where the tree before was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// When.
    pub at: DateTime<Utc>,
}

/// Names what a person accepts who says that the tests of a check do count, though nobody has seen that it can fail: nothing is planted
/// beside them then, and [`Evidence::not_run`] holds it.
pub fn planted_beside(check: &str) -> String {
    format!("planted tests beside {check}")
}

impl Evidence {
    /// Lists the checks that count on the word of a person: nobody has seen that they can fail.
    pub fn unproven(&self) -> impl Iterator<Item = &CheckRun> {
        let is_accepted = move |run: &&CheckRun| self.not_run.contains(&planted_beside(&run.name));
        self.checks.iter().filter(is_accepted)
    }

    /// Adds up the tests that passed; none where none of its checks was counted.
    pub fn tests_passed(&self) -> Option<u32> {
        let counted = self.checks.iter().filter_map(|run| run.tests.as_ref());
        counted
            .map(|tests| tests.passed)
            .reduce(u32::saturating_add)
    }
}

/// Says how the check of a task fared without the task's work, which is what its pass is worth.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// It ran there and did not hold: strong evidence.
    AssertionFailed,
    /// With the new tests alone some test failed there. Whoever did the work wrote them, so that it is less than a check that was
    /// approved, and more than one that nobody has seen fail.
    NewTestsFailed,
    /// It could not even run there, or with the new tests alone: a file was missing, or something did not compile. Weak evidence.
    CouldNotRun,
    /// It failed there, or with the new tests alone, and no known runner told of a test that did, though it runs some. Weak evidence.
    FailedUncounted,
    /// It held there but for the number of its tests. Weak evidence: nobody has seen the new ones fail.
    TooFewTests,
    /// It held there too, so that it proves nothing.
    PassedBefore,
    /// Its new tests pass on that tree by themselves, so that they prove nothing.
    PassedWithoutWork,
    /// Its runner ran no test with the work, so that it proves nothing.
    RanNoTest,
    /// It held there too, as it must where a task preserves what is.
    Preserved,
}

impl Proof {
    /// Says whether nobody has seen a test of it fail for want of the work.
    pub const fn is_weak(self) -> bool {
        matches!(
            self,
            Self::CouldNotRun | Self::FailedUncounted | Self::TooFewTests
        )
    }

    /// Says in a few words what it is worth.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::AssertionFailed => "failed without the work",
            Self::NewTestsFailed => "failed without the work, by the new tests that came with it",
            Self::CouldNotRun => "could not run without the work, which is weak evidence",
            Self::FailedUncounted => {
                "failed without the work, though no runner told of a test that did, which is weak evidence"
            }
            Self::TooFewTests => {
                "had too few tests without the work, and nobody has seen the new ones fail, which is weak evidence"
            }
            Self::PassedBefore => "passed before too, which proves nothing",
            Self::PassedWithoutWork => {
                "passes with its tests alone, without the work, which proves nothing"
            }
            Self::RanNoTest => "ran no test, which proves nothing",
            Self::Preserved => "passed before too, as it should",
        }
    }
}

/// One command of the gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRun {
    /// The check, for example `validation`.
    pub name: String,
    /// The level that it belongs to; none for a check of every level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// What it looks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<CheckKind>,
    /// The command line.
    pub command: String,
    /// The exit code; none when it was killed or could not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Milliseconds.
    pub duration_ms: u64,
    /// The tests it counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// The tests that failed at first and passed when it was run once more on a restored checkout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flaky: Vec<String>,
    /// The end of its output, bounded to 16 KiB.
    pub output: String,
}

/// How a finding ends that names how many tests were wanted, where fewer passed and none failed: what the command wrote is
/// no failure then.
pub const TOO_FEW_TESTS: &str = "are asked for";

/// Tests that a command reported.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestCounts {
    /// Passed.
    pub passed: u32,
    /// Failed.
    pub failed: u32,
    /// Ignored or skipped.
    pub ignored: u32,
    /// Names of the passed tests, where the runner prints them.
    #[serde(default)]
    pub names: Vec<String>,
    /// Names of the failed tests, where the runner prints them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_names: Vec<String>,
}
