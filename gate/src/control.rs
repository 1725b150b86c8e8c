//! Puts the tests to the test, for whoever writes the code writes what its tests run in, too.
//!
//! Tests that changed must not be what makes a check pass: the product as it is now has to pass them as they were. And a
//! check that counts tests must be able to fail: beside tests that pass, one is planted that cannot.

mod join;
mod planted;
mod planting;

use std::collections::HashSet;

use ropewalk_schemas::attempt::CheckRun;
use ropewalk_schemas::question::FileChange;
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_workspace::clone::{self, FileKind};
use ropewalk_workspace::commit::NewCommit;
use ropewalk_workspace::{ChangeKind, ChangedFile, CommitMessage, LocalClone};
use tokio_util::sync::CancellationToken;

use crate::counts;
use crate::difference::protected::{ProtectedChange, is_run_with_tests, is_test, supports_tests};
use crate::error::GateError;
use crate::judge::Ruling;
use crate::runner::Check;
use crate::site::Site;
pub(crate) use join::Join;
pub(crate) use planting::{PlantedTests, can_fail};

/// The most changed files of tests of which each is tried by itself.
const TRIED_ALONE: usize = 8;
/// The branches that a commit joins, in its order, as they are told behind the tests that are theirs.
const BRANCHES: [&str; 2] = [" on the first branch", " on the second branch"];

/// What became of the files of tests.
#[derive(Default)]
pub(crate) struct TestFiles {
    /// Those that were there before and that nobody allowed to change so.
    pub(crate) changed: Vec<FileChange>,
    /// Those of them that stood against each other on two branches: with the marks of both, as they were before, none of them runs.
    pub(crate) joined: Vec<String>,
    /// Those that came to them.
    pub(crate) added: Vec<FileChange>,
    /// What came to them and is no test, but is run with them or steers them.
    pub(crate) supports: Vec<FileChange>,
}

impl TestFiles {
    fn all(&self) -> impl Iterator<Item = &FileChange> {
        let came = self.supports.iter().chain(&self.added);
        self.changed.iter().chain(came)
    }

    /// Lists those that a person is asked about: new tests only where nothing else can be the reason.
    fn suspects(&self) -> Vec<&FileChange> {
        let found: Vec<&FileChange> = self.changed.iter().chain(&self.supports).collect();
        if found.is_empty() {
            return self.added.iter().collect();
        }
        found
    }
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
    let may_count = checks_that_may_count(checks, runs);
    may_count
        .filter(|check| check.expected.is_none())
        .copied()
        .collect()
}

/// Picks the checks that have to be able to fail, each command once: the commands of a gate where one of them counted tests,
/// and the tasks' own checks beside them where none did.
pub(crate) fn to_challenge<'a>(checks: &[Check<'a>], runs: &[CheckRun]) -> Vec<Check<'a>> {
    let mut ran = checks.iter().zip(runs);
    let gate_counts = ran.any(|(check, run)| {
        let passed = run.tests.as_ref().map_or(0, |tests| tests.passed);
        check.expected.is_none() && passed > 0
    });
    let mut found: Vec<Check<'a>> = Vec::new();
    for check in checks_that_may_count(checks, runs) {
        let known = found.iter().any(|other| other.command == check.command);
        if !known && (check.expected.is_none() || !gate_counts) {
            found.push(*check);
        }
    }
    found
}

fn checks_that_may_count<'a, 'b>(
    checks: &'b [Check<'a>],
    runs: &'b [CheckRun],
) -> impl Iterator<Item = &'b Check<'a>> {
    let ran = checks.iter().zip(runs);
    let counted = ran.filter(|(check, run)| {
        let passed = run.tests.as_ref().is_none_or(|tests| tests.passed > 0);
        passed && counts::can_count(check.command)
    });
    counted.map(|(check, _)| check)
}

/// What the tests of a candidate were before.
pub(crate) struct Side {
    /// The candidate, without the tests that came with another branch than this one.
    commit: CommitId,
    /// What has the tests as they were.
    parent: CommitId,
    /// The branch whose tests these are, as it is told behind them; empty where none were joined.
    branch: &'static str,
}

impl Side {
    /// Returns the candidate, and what has the tests as they were.
    pub(crate) fn commits(&self) -> (&CommitId, &CommitId) {
        (&self.commit, &self.parent)
    }
}

/// Lists what the tests of `commit` were before: those of `parent`, or, where files stood against each other, those files as each of the
/// branches that it joins has them.
pub(crate) async fn sides(
    clone: &LocalClone,
    (commit, parent): (&CommitId, &CommitId),
    tests: &TestFiles,
) -> Result<Vec<Side>, GateError> {
    let join = if tests.joined.is_empty() {
        None
    } else {
        Join::of(clone, parent).await?
    };
    let Some(join) = join else {
        let (commit, parent) = (commit.clone(), parent.clone());
        return Ok(vec![Side {
            commit,
            parent,
            branch: "",
        }]);
    };
    let mut gained = Vec::new();
    for head in &join.heads {
        let files = clone.changed_files(head.as_str(), parent.as_str());
        gained.push(files.await?);
    }
    let mended = clone
        .changed_files(parent.as_str(), commit.as_str())
        .await?;
    let joined: Vec<&str> = tests.joined.iter().map(String::as_str).collect();
    let mut sides = Vec::new();
    for (number, branch) in BRANCHES.into_iter().enumerate() {
        let files = gained[number].iter().map(|file| (file, file.path.as_str()));
        // What only the other branch changed stays: the product is as that branch has it, too.
        let foreign = files.filter(|(file, path)| {
            let is_new = file.kind == ChangeKind::Added && is_test(path);
            let is_brought = is_new && !supports_tests(path, "");
            is_run_with_tests(path)
                && !has(&mended, path)
                && (is_brought || gained.iter().all(|gained| has(gained, path)))
        });
        let foreign: Vec<&str> = foreign.map(|(_, path)| path).collect();
        let foreign = as_on_branch(clone, (&join, number), &foreign).await?;
        let joined = as_on_branch(clone, (&join, number), &joined).await?;
        sides.push(Side {
            commit: if foreign.is_empty() {
                commit.clone()
            } else {
                altered(clone, commit, &foreign).await?
            },
            parent: altered(clone, parent, &joined).await?,
            branch,
        });
    }
    Ok(sides)
}

/// Lists what makes files what one of two branches has, but for lines that it left and the other one took out or rewrote: they are as
/// that one has them, and so is the product.
async fn as_on_branch(
    clone: &LocalClone,
    (join, number): (&Join, usize),
    paths: &[&str],
) -> Result<Vec<clone::FileChange>, GateError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let head = &join.heads[number];
    let texts = join.read(clone, paths).await?;
    let files = clone.list_files(head, "").await?;
    // What may be run, and what leads elsewhere, is restored as it is.
    let plain = files.iter().filter(|file| file.kind == FileKind::Plain);
    let plain: HashSet<&str> = plain.map(|file| file.path.as_str()).collect();
    let changes = paths.iter().zip(texts).filter_map(|(path, text)| {
        let text = text.filter(|_| plain.contains(path));
        text.map_or_else(
            || as_in(head, path),
            |text| written(path, text.of_branch(number)),
        )
    });
    Ok(changes.collect())
}

fn has(files: &[ChangedFile], path: &str) -> bool {
    files.iter().any(|file| file.path == path)
}

/// Makes `commit` with the tests as they are in `parent`, without those that came to them.
pub(crate) async fn with_tests_as_they_were(
    clone: &LocalClone,
    (commit, parent): (&CommitId, &CommitId),
    tests: &TestFiles,
) -> Result<CommitId, GateError> {
    let changes = tests.all().filter_map(|file| match file.before {
        Some(_) => as_in(parent, &file.path),
        None => removed(&file.path),
    });
    let changes: Vec<_> = changes.collect();
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

fn written(path: &str, text: String) -> Option<clone::FileChange> {
    let path = RepoPath::parse(path).ok()?;
    let content = text.into_bytes();
    Some(clone::FileChange::Write { path, content })
}

/// Runs what held on a candidate where its tests are as they were, on which `site` stands; returns what a person has to accept
/// where something does not hold there, and nothing when it was ended from outside.
pub(crate) async fn holds_as_it_was(
    (site, clone): (&mut Site<'_>, &LocalClone),
    checks: &[Check<'_>],
    before: &Side,
    tests: &TestFiles,
    cancel: &CancellationToken,
) -> Result<Option<Vec<ProtectedChange>>, GateError> {
    for check in checks {
        let Some(missed) = missed(site, check, cancel).await? else {
            return Ok(None);
        };
        let Some(all) = missed else { continue };
        let mut asked = Vec::new();
        let suspects = tests.suspects();
        // Most that changed have nothing to do with it: each is tried by itself, where they are not too many for that. What does not
        // come to its end would not for any of them, and may take its whole time for each.
        if failed_by_itself(&all) && (2..=TRIED_ALONE).contains(&suspects.len()) {
            for test in &suspects {
                let alone = TestFiles {
                    changed: vec![(*test).clone()],
                    ..TestFiles::default()
                };
                site.turn_to(&with_tests_as_they_were(clone, before.commits(), &alone).await?);
                let Some(missed) = self::missed(site, check, cancel).await? else {
                    return Ok(None);
                };
                asked.extend(missed.map(|there| asked_about((check, before), test, &there)));
            }
        }
        if asked.is_empty() {
            let suspects = suspects.into_iter();
            asked = suspects
                .map(|test| asked_about((check, before), test, &all))
                .collect();
        }
        return Ok(Some(asked));
    }
    Ok(Some(Vec::new()))
}

/// Runs a check, and once more where it does not hold, since what fails by chance holds then; returns how it fared where it held
/// neither time, and nothing when it was ended from outside. What could not run has not held.
async fn missed(
    site: &mut Site<'_>,
    check: &Check<'_>,
    cancel: &CancellationToken,
) -> Result<Option<Option<(CheckRun, Ruling)>>, GateError> {
    let mut missed = None;
    for _ in 0..2 {
        let Some((run, ruling)) = site.run(check, cancel).await? else {
            return Ok(None);
        };
        if ruling == Ruling::Holds {
            return Ok(Some(None));
        }
        missed = Some((run, ruling));
    }
    Ok(Some(missed))
}

/// Says whether a check failed by what it ran to its end, and was neither stopped nor ended by a signal.
fn failed_by_itself((run, ruling): &(CheckRun, Ruling)) -> bool {
    ruling.ran_and_failed() && run.exit_code.is_some()
}

fn asked_about(
    (check, side): (&Check<'_>, &Side),
    test: &FileChange,
    there: &(CheckRun, Ruling),
) -> ProtectedChange {
    let (name, path, branch) = (check.name, &test.path, side.branch);
    let (with, without) = match test.before {
        Some(_) => (
            format!("`{path}` as it was changed"),
            "with the tests as they were",
        ),
        None => (
            format!("the new `{path}`"),
            "with nothing but the tests that were there",
        ),
    };
    let why = if failed_by_itself(there) {
        let failure = first_failure(&there.0);
        format!("`{name}` holds only with {with}: {without}{branch} it fails{failure}")
    } else {
        format!(
            "`{name}` holds with {with}, but nobody has seen it hold without that: {without}{branch} it did not run to its end"
        )
    };
    ProtectedChange::of(test.clone(), why)
}

fn first_failure(run: &CheckRun) -> String {
    let failed = run
        .tests
        .as_ref()
        .and_then(|tests| tests.failed_names.first());
    failed.map_or_else(String::new, |name| format!(" (`{name}`)"))
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
    use ropewalk_schemas::ContentHash;
    use ropewalk_schemas::attempt::{FailureClass, TestCounts};
    use ropewalk_schemas::task::Expectation;
    use std::time::Duration;

    use super::*;

    pub(super) fn run(passed: Option<u32>, failed: &[&str], output: &str) -> CheckRun {
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
    fn what_could_not_run_with_the_tests_as_they_were_is_asked_about_and_blamed_on_nobody() {
        let fails = |class| Ruling::Fails {
            class,
            finding: String::new(),
        };
        let held = Ruling::Held {
            finding: "no such program".to_owned(),
        };
        let was = ContentHash::of(b"before");
        let rows = [
            (
                Some(was.clone()),
                (Some(1), fails(FailureClass::ValidationFailed)),
                "",
                "`tests` holds only with `test_a.py` as it was changed: with the tests as they were it fails (`b`)",
            ),
            (
                Some(was.clone()),
                (Some(1), fails(FailureClass::ValidationFailed)),
                " on the second branch",
                "`tests` holds only with `test_a.py` as it was changed: with the tests as they were on the second branch it fails (`b`)",
            ),
            (
                None,
                (Some(1), fails(FailureClass::SyntaxError)),
                "",
                "`tests` holds only with the new `test_a.py`: with nothing but the tests that were there it fails (`b`)",
            ),
            (
                Some(was.clone()),
                // A signal ended it.
                (None, fails(FailureClass::ValidationFailed)),
                "",
                "`tests` holds with `test_a.py` as it was changed, but nobody has seen it hold without that: with the tests as they were it did not run to its end",
            ),
            (
                Some(was),
                (Some(127), held),
                "",
                "`tests` holds with `test_a.py` as it was changed, but nobody has seen it hold without that: with the tests as they were it did not run to its end",
            ),
            (
                None,
                (None, fails(FailureClass::Timeout)),
                "",
                "`tests` holds with the new `test_a.py`, but nobody has seen it hold without that: with nothing but the tests that were there it did not run to its end",
            ),
        ];
        let check = Check::alone("tests", "pytest", Duration::ZERO);
        let commit: CommitId = "0123456789012345678901234567890123456789".parse().unwrap();
        for (before, (exit_code, ruling), branch, expected) in rows {
            let test = FileChange {
                path: "test_a.py".to_owned(),
                before,
                after: Some(ContentHash::of(b"after")),
            };
            let ran = CheckRun {
                exit_code,
                ..run(Some(2), &["b"], "")
            };
            let side = Side {
                commit: commit.clone(),
                parent: commit.clone(),
                branch,
            };
            let asked = asked_about((&check, &side), &test, &(ran, ruling));
            assert_eq!(asked.why, expected);
        }
    }

    #[test]
    fn each_command_has_to_be_able_to_fail_once_and_those_of_tasks_where_no_gate_counts() {
        let own = |command| Check {
            expected: Some(&Expectation::ExitZero),
            ..Check::alone("T-1", command, Duration::ZERO)
        };
        let gate = Check::alone("tests", "sh lint.sh", Duration::ZERO);
        let checks = [gate, own("pytest"), own("pytest"), own("true"), own("./a")];
        for (by_gate, expected) in [
            (None, &["sh lint.sh", "pytest", "./a"][..]),
            (Some(0), &["pytest", "./a"]),
            (Some(2), &["sh lint.sh"]),
        ] {
            let mut runs: Vec<CheckRun> = checks.iter().map(|_| run(None, &[], "")).collect();
            runs[0] = run(by_gate, &[], "");
            let found = to_challenge(&checks, &runs);
            let commands: Vec<&str> = found.iter().map(|check| check.command).collect();
            assert_eq!(commands, expected, "{by_gate:?}");
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
