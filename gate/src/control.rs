//! Puts the tests to the test, for whoever writes the code writes what its tests run in, too.
//!
//! Tests that changed must not be what makes a check pass: the product as it is now has to pass them as they were. And a
//! check that counts tests must be able to fail: beside tests that pass, one is planted that cannot.

mod planted;

use ropewalk_schemas::attempt::{CheckRun, FailureClass};
use ropewalk_schemas::question::FileChange;
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_workspace::clone::{self, FileKind};
use ropewalk_workspace::commit::NewCommit;
use ropewalk_workspace::{CommitMessage, LocalClone};
use tokio_util::sync::CancellationToken;

use crate::counts;
use crate::difference::protected::{ProtectedChange, is_test};
use crate::error::GateError;
use crate::judge::Ruling;
use crate::runner::{Check, Findings};
use crate::site::Site;

/// The most files into which a test is planted, and that are looked at for it.
const PLANTED: usize = 40;
const LOOKED_AT: usize = 1_000;
/// The most changed files of tests of which each is tried by itself.
const TRIED_ALONE: usize = 8;

/// What became of the files of tests.
#[derive(Default)]
pub(crate) struct TestFiles {
    /// Those that were there before and that nobody allowed to change so.
    pub(crate) changed: Vec<FileChange>,
    /// Those that came to them.
    pub(crate) added: Vec<String>,
}

/// What a person allowed to change: files of tests, and whatever decides which tests run.
#[derive(Default)]
pub(crate) struct AllowedFiles {
    pub(crate) changes: Vec<FileChange>,
    /// The files as they were, for the names of tests in them.
    pub(crate) before: Vec<String>,
}

/// Picks the commands of a gate that counted tests, or that may have run some unseen; what a task's own check looks at is
/// what the task made.
pub(crate) fn of_tests<'a>(checks: &[Check<'a>], runs: &[CheckRun]) -> Vec<Check<'a>> {
    let ran = checks.iter().zip(runs);
    let of_tests = ran.filter(|(check, run)| {
        let passed = run.tests.as_ref().is_none_or(|tests| tests.passed > 0);
        check.expected.is_none() && passed && counts::can_count(check.command)
    });
    of_tests.map(|(check, _)| *check).collect()
}

/// Makes `commit` with the tests as they are in `parent`, without those that came to them.
pub(crate) async fn with_tests_as_they_were(
    clone: &LocalClone,
    (commit, parent): (&CommitId, &CommitId),
    tests: &TestFiles,
) -> Result<CommitId, GateError> {
    let restored = tests.changed.iter();
    let restored = restored.filter_map(|test| as_in(parent, &test.path));
    let added = tests.added.iter().filter_map(|path| removed(path));
    let changes: Vec<_> = restored.chain(added).collect();
    altered(clone, commit, &changes).await
}

/// Makes `parent` with nothing of `commit` but what a person allowed.
pub(crate) async fn with_what_was_allowed(
    clone: &LocalClone,
    (commit, parent): (&CommitId, &CommitId),
    allowed: &AllowedFiles,
) -> Result<CommitId, GateError> {
    let changes = allowed.changes.iter().filter_map(|file| match file.after {
        Some(_) => as_in(commit, &file.path),
        None => removed(&file.path),
    });
    let changes: Vec<_> = changes.collect();
    altered(clone, parent, &changes).await
}

/// Makes `parent` with these files of tests as they are in `commit`.
pub(crate) async fn with_tests_alone(
    clone: &LocalClone,
    (commit, parent): (&CommitId, &CommitId),
    tests: &[&str],
) -> Result<CommitId, GateError> {
    let changes = tests.iter().filter_map(|path| as_in(commit, path));
    let changes: Vec<_> = changes.collect();
    altered(clone, parent, &changes).await
}

fn as_in(from: &CommitId, path: &str) -> Option<clone::FileChange> {
    let (path, from) = (RepoPath::parse(path).ok()?, from.clone());
    Some(clone::FileChange::Restore { path, from })
}

fn removed(path: &str) -> Option<clone::FileChange> {
    RepoPath::parse(path).ok().map(clone::FileChange::Remove)
}

/// Runs what held on a candidate where its tests are as they were, on which `site` stands; returns what a person has to accept
/// where something does not hold there, and nothing when it was ended from outside.
pub(crate) async fn holds_as_it_was(
    (site, clone): (&mut Site<'_>, &LocalClone),
    checks: &[Check<'_>],
    commits: (&CommitId, &CommitId),
    tests: &TestFiles,
    cancel: &CancellationToken,
) -> Result<Option<Vec<ProtectedChange>>, GateError> {
    for check in checks {
        let Some(failed) = failed(site, check, cancel).await? else {
            return Ok(None);
        };
        let Some(all) = failed else { continue };
        let mut asked = Vec::new();
        // Most that changed have nothing to do with it: each is tried by itself, where they are not too many for that.
        if (2..=TRIED_ALONE).contains(&tests.changed.len()) {
            for test in &tests.changed {
                let alone = TestFiles {
                    changed: vec![test.clone()],
                    ..TestFiles::default()
                };
                site.turn_to(&with_tests_as_they_were(clone, commits, &alone).await?);
                let Some(failed) = self::failed(site, check, cancel).await? else {
                    return Ok(None);
                };
                asked.extend(failed.map(|run| asked_about(check, test, &run)));
            }
        }
        if asked.is_empty() {
            let changed = tests.changed.iter();
            asked = changed.map(|test| asked_about(check, test, &all)).collect();
        }
        return Ok(Some(asked));
    }
    Ok(Some(Vec::new()))
}

/// Runs a check, and once more where it failed, since what fails by chance passes then; returns the run that failed, if it did,
/// and nothing when it was ended from outside.
async fn failed(
    site: &mut Site<'_>,
    check: &Check<'_>,
    cancel: &CancellationToken,
) -> Result<Option<Option<CheckRun>>, GateError> {
    let mut failed = None;
    for _ in 0..2 {
        let Some((run, ruling)) = site.run(check, cancel).await? else {
            return Ok(None);
        };
        failed = ruling.ran_and_failed().then_some(run);
        if failed.is_none() {
            break;
        }
    }
    Ok(Some(failed))
}

fn asked_about(check: &Check<'_>, test: &FileChange, run: &CheckRun) -> ProtectedChange {
    let why = format!(
        "`{}` holds only with `{}` as it was changed: with the tests as they were it fails{}",
        check.name,
        test.path,
        first_failure(run)
    );
    ProtectedChange::of(test.clone(), why)
}

fn first_failure(run: &CheckRun) -> String {
    let failed = run
        .tests
        .as_ref()
        .and_then(|tests| tests.failed_names.first());
    failed.map_or_else(String::new, |name| format!(" (`{name}`)"))
}

/// Plants a test that cannot pass beside those of `commit`, and notes each check that passes all the same, though it tells of
/// that test at `base`; false when it was ended from outside.
pub(crate) async fn can_fail(
    (site, clone): (&mut Site<'_>, &LocalClone),
    checks: &[Check<'_>],
    (commit, base): (&CommitId, &CommitId),
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<bool, GateError> {
    let name = planted::name(commit);
    if checks.is_empty() {
        return Ok(true);
    }
    let Some((here, there)) = plant(clone, commit, base, &name).await? else {
        return Ok(true);
    };
    for check in checks {
        site.turn_to(&here);
        let Some((_, ruling)) = site.run(check, cancel).await? else {
            return Ok(false);
        };
        // Whatever stands against it, it can fail.
        if ruling != Ruling::Holds {
            continue;
        }
        site.turn_to(&there);
        let before = match site.run(check, cancel).await {
            // What cannot be made ready there any more says nothing.
            Err(GateError::NotReady(_)) => continue,
            ran => ran?,
        };
        let Some((run, ruling)) = before else {
            return Ok(false);
        };
        // Where it was not told of before either, the check does not look there, or says nothing of single tests.
        if ruling.ran_and_failed() && is_told(&run, &name) {
            let line = format!(
                "`{}` passes whatever its tests find: a test that cannot pass was planted, and it is not told to fail, as it is at the build's base",
                check.name
            );
            findings.add(FailureClass::Tampered, line);
        }
    }
    Ok(true)
}

/// Says whether a run that failed names a test.
fn is_told(run: &CheckRun, name: &str) -> bool {
    let failed = run.tests.iter().flat_map(|tests| &tests.failed_names);
    failed.into_iter().any(|test| test.contains(name)) || run.output.contains(name)
}

/// Makes `commit` and `base` with the planted test; none where no file of tests can take it at both.
async fn plant(
    clone: &LocalClone,
    commit: &CommitId,
    base: &CommitId,
    name: &str,
) -> Result<Option<(CommitId, CommitId)>, GateError> {
    let files = clone.list_files(base, "").await?;
    let plain = files
        .into_iter()
        .filter(|file| file.kind == FileKind::Plain);
    let mut paths: Vec<String> = plain
        .map(|file| file.path)
        .filter(|path| planted::may_take(path))
        .collect();
    paths.sort_by_key(|path| !is_test(path));
    paths.truncate(LOOKED_AT);
    let names: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut made = Vec::new();
    for at in [base, commit] {
        let contents = clone.read_files(at, &names).await?;
        let with_test = names.iter().zip(contents).filter_map(|(path, content)| {
            let content = String::from_utf8(content?).ok()?;
            let text = planted::plant(path, &content, name)?;
            let (path, content) = (RepoPath::parse(path).ok()?, text.into_bytes());
            Some(clone::FileChange::Write { path, content })
        });
        let changes: Vec<_> = with_test.take(PLANTED).collect();
        if changes.is_empty() {
            return Ok(None);
        }
        made.push(altered(clone, at, &changes).await?);
    }
    let there = made.remove(0);
    Ok(made.pop().map(|here| (here, there)))
}

/// Makes a commit that nothing refers to: `commit` with changes.
async fn altered(
    clone: &LocalClone,
    commit: &CommitId,
    changes: &[clone::FileChange],
) -> Result<CommitId, GateError> {
    let tree = clone.create_tree(commit, changes).await?;
    let message = CommitMessage::new("Tests that are put to the test");
    let altered = NewCommit {
        tree: &tree,
        parents: std::slice::from_ref(commit),
        message: &message,
        when: clone.committed_at(commit).await?,
    };
    Ok(clone.create_commit(altered).await?)
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::attempt::TestCounts;
    use ropewalk_schemas::task::Expectation;
    use std::time::Duration;

    use super::*;

    fn run(passed: Option<u32>, failed: &[&str], output: &str) -> CheckRun {
        let tests = passed.map(|passed| TestCounts {
            passed,
            failed_names: failed.iter().map(|name| (*name).to_owned()).collect(),
            ..TestCounts::default()
        });
        CheckRun {
            name: "tests".to_owned(),
            level: None,
            kind: None,
            command: String::new(),
            exit_code: Some(1),
            duration_ms: 0,
            tests,
            flaky: Vec::new(),
            output: output.to_owned(),
        }
    }

    #[test]
    fn a_planted_test_is_told_of_by_the_names_that_failed_or_in_the_output() {
        let cases = [
            (run(Some(2), &["a.case_1.test"], ""), true),
            (run(Some(2), &["a.other"], "FAILED case_1"), true),
            (run(None, &[], "not ok 3 - case_1"), true),
            (run(Some(2), &["a.other"], "FAILED other"), false),
            (run(None, &[], ""), false),
        ];
        for (run, told) in cases {
            assert_eq!(is_told(&run, "case_1"), told, "{run:?}");
        }
    }

    #[test]
    fn only_what_may_have_run_tests_for_the_gate_is_put_to_the_test() {
        let alone = |command| Check::alone("check", command, Duration::ZERO);
        let own = Check {
            expected: Some(&Expectation::ExitZero),
            ..alone("pytest")
        };
        let cases = [
            (alone("pytest"), Some(3), true),
            (alone("sh gate.sh"), None, true),
            (alone("pytest"), Some(0), false),
            (alone("cargo clippy"), None, false),
            (own, Some(3), false),
        ];
        for (check, passed, put) in cases {
            let found = of_tests(&[check], &[run(passed, &[], "")]);
            assert_eq!(!found.is_empty(), put, "{} {passed:?}", check.command);
        }
    }
}
