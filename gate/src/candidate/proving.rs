//! Finds out what the pass of a task's own check is worth: it runs on the tree before, and where that does not tell, there with
//! the task's tests alone.

use ropewalk_schemas::CommitId;
use ropewalk_schemas::attempt::{CheckRun, FailureClass, Proof};
use ropewalk_schemas::task::Action;
use ropewalk_workspace::{ChangeKind, ChangedFile};

use super::{GateRuns, Job, required, run_at};
use crate::control;
use crate::difference::protected::{is_run_with_tests, is_test};
use crate::error::GateError;
use crate::install;
use crate::judge::Ruling;
use crate::packages::Install;
use crate::parent::Parent;
use crate::proof;
use crate::runner::{Check, Findings, ParentRun};

/// Runs the task's own check where that says what its pass is worth; false when it was ended from outside.
pub(super) async fn prove(
    job: &mut Job<'_>,
    changed: &[ChangedFile],
    ran: &mut GateRuns,
    findings: &mut Findings,
) -> Result<bool, GateError> {
    let candidate = job.candidate;
    let block = &candidate.task.block;
    let verifies = block.action == Action::Verify;
    // What no requirement rests on needs no proof.
    if required(candidate.task).is_empty() && (verifies || !block.preserves) {
        return Ok(true);
    }
    // Who only comes again on a head that moved has shown it already.
    ran.proof = job.runner.proof(candidate.attempt);
    let Some(check) = job.checks.first().copied().filter(|_| ran.proof.is_none()) else {
        return Ok(true);
    };
    if ran.checks.first().is_some_and(proof::selected_no_test) {
        ran.proof = Some(Proof::RanNoTest);
        return Ok(true);
    }
    let before = match candidate.base {
        // What changes nothing has no tree before but the one that its build began with.
        Some(base) if verifies => before_build(job, base, &check).await?,
        None if verifies => return Ok(true),
        _ => job.parent.run(&check, job.cancel).await?,
    };
    let Some(before) = before else {
        return Ok(false);
    };
    if block.preserves && !verifies && before.ruling != Ruling::Holds {
        let line = format!(
            "the task says that it preserves what is, but its check does not pass on the tree before: {}",
            check.command
        );
        findings.fail(FailureClass::Unknown, line, &before.run.output);
    }
    let expected = &block.validation.expected;
    let with_work = ran.checks.first();
    let runs = (&before.run, with_work);
    let mut proof = proof::of(&before.ruling, runs, expected, block.preserves);
    if (proof.is_weak() || proof == Proof::PassedBefore) && findings.is_clean() {
        let tried = with_tests_alone(job, (&check, with_work), changed, proof).await?;
        let Some(tried) = tried else {
            return Ok(false);
        };
        proof = tried;
    }
    if findings.is_clean() {
        job.runner.keep_proof(candidate.attempt, proof);
    }
    ran.proof = Some(proof);
    Ok(true)
}

/// Runs a check on the tree that the build of a candidate began with.
async fn before_build(
    job: &Job<'_>,
    base: &CommitId,
    check: &Check<'_>,
) -> Result<Option<ParentRun>, GateError> {
    let passed = &job.candidate.precedents.passed;
    let installs = installs_at(job, base).await?;
    let mut before = Parent::new(job.runner, (base, job.history), installs, passed).await?;
    before.run(check, job.cancel).await
}

async fn installs_at(job: &Job<'_>, commit: &CommitId) -> Result<Vec<Install>, GateError> {
    let gate = job.runner.gate_at(job.candidate.base).await?;
    install::for_tasks(job.runner, &gate, commit, [job.candidate.task]).await
}

/// Says what a check is worth that tells nothing of the work on the tree before, or that nobody has seen fail there: by how it
/// fares there with the tests of the candidate and nothing else of it. Where that cannot be tried, it is worth what it was
/// `before`. None when it was ended from outside.
async fn with_tests_alone(
    job: &Job<'_>,
    (check, with_work): (&Check<'_>, Option<&CheckRun>),
    changed: &[ChangedFile],
    before: Proof,
) -> Result<Option<Proof>, GateError> {
    let with_tests = |file: &&ChangedFile| is_run_with_tests(&file.path);
    let (tests, work): (Vec<_>, Vec<_>) = changed.iter().partition(with_tests);
    let written = tests.iter().filter(|file| file.kind != ChangeKind::Deleted);
    let tests: Vec<&str> = written.map(|file| file.path.as_str()).collect();
    let block = &job.candidate.task.block;
    let made = block.file.as_str();
    let tells = is_document(made) && work.iter().all(|file| is_document(&file.path));
    // Where tests, and words about them, are what a task makes, there is no work for them to be without: that they pass takes
    // nothing from it.
    let are_the_work = is_run_with_tests(made) || tells;
    if !tests.iter().any(|path| is_new_test(path)) || before.is_weak() && are_the_work {
        return Ok(Some(before));
    }
    // The candidate is those tests and nothing else, and passes.
    if work.is_empty() {
        let nothing = if before == Proof::PassedBefore {
            before
        } else {
            Proof::PassedWithoutWork
        };
        return Ok(Some(nothing));
    }
    let commits = (job.candidate.commit, job.candidate.parent);
    let alone = control::with_tests_alone(&job.runner.clone, commits, &tests).await?;
    let installs = installs_at(job, &alone).await?;
    let run = run_at(job, check, &installs, &alone).await?;
    let expected = &block.validation.expected;
    Ok(run.map(|alone| proof::of_tests_alone(&alone.ruling, (&alone.run, with_work), expected)))
}

/// Says whether a file is written for people, by how its name ends.
fn is_document(path: &str) -> bool {
    let end = path.rsplit_once('.').map(|(_, end)| end);
    end.is_some_and(|end| matches!(end, "md" | "markdown" | "txt" | "rst" | "adoc"))
}

/// Says whether a file holds tests, and is not what is only loaded beside them.
fn is_new_test(path: &str) -> bool {
    let name = path.rsplit('/').next();
    is_test(path) && !matches!(name, Some("conftest.py" | "__init__.py"))
}
