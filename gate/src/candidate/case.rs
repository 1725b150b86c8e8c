//! Says what the gate is asked about: a candidate, what was seen and said before, and the commands of its gate.

use chrono::{DateTime, Utc};
use ropewalk_schemas::attempt::Evidence;
use ropewalk_schemas::question::Content;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{AttemptId, CommitId, RepoPath};

use crate::checks::Gate;
use crate::runner::{Check, GateRunner};

/// The name of a task's own check in the evidence.
const VALIDATION: &str = "validation";

/// A candidate before the gate.
pub struct Candidate<'a> {
    /// What was to be done.
    pub task: &'a Task,
    /// The attempt that made it.
    pub attempt: AttemptId,
    /// The commit itself.
    pub commit: &'a CommitId,
    /// What it stands on.
    pub parent: &'a CommitId,
    /// What its build began with, which says what the gate is.
    pub base: Option<&'a CommitId>,
    /// The files that it may change.
    pub allowed: &'a [RepoPath],
    /// The changed files that were kept out of the commit, since they hold a secret of this program.
    pub withheld: &'a [String],
    /// What was seen and said before.
    pub precedents: &'a Precedents,
    /// The time.
    pub now: DateTime<Utc>,
}

/// What was seen and said before about the build of a candidate.
#[derive(Debug, Default)]
pub struct Precedents {
    /// The evidence of what passed in this build.
    pub passed: Vec<Evidence>,
    /// What a person allowed this task to change.
    pub consents: Vec<Content>,
}

/// Lists the commands of a task's gate, its own first; a command is run once.
pub(crate) fn checks<'a>(runner: &GateRunner, gate: &'a Gate, task: &'a Task) -> Vec<Check<'a>> {
    let validation = &task.block.validation;
    let mut checks = vec![Check {
        name: VALIDATION,
        command: &validation.command,
        level: None,
        kind: None,
        expected: Some(&validation.expected),
        counts: Some(&gate.counts),
        timeout: runner.validation_timeout,
        install: None,
    }];
    checks.extend(
        gate.up_to(gate.task_level)
            .map(|check| Check::of(gate, check)),
    );
    checks
}
