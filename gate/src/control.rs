//! Puts the tests to the test, for whoever writes the code writes what its tests run in, too.
//!
//! Tests that changed must not be what makes a check pass: the product as it is now has to pass them as they were. And a
//! check that counts tests must be able to fail: beside tests that pass, one is planted that cannot.

mod planted;

use ropewalk_schemas::attempt::{CheckRun, FailureClass};
use ropewalk_schemas::{CommitId, ContentHash, RepoPath};
use ropewalk_workspace::clone::{FileChange, FileKind};
use ropewalk_workspace::commit::NewCommit;
use ropewalk_workspace::{CommitMessage, LocalClone};
use tokio_util::sync::CancellationToken;

use crate::difference::protected::{ProtectedChange, is_test};
use crate::error::GateError;
use crate::judge::Ruling;
use crate::runner::{Check, Findings};
use crate::site::Site;

/// The most files into which a test is planted, and that are looked at for it.
const PLANTED: usize = 40;
const LOOKED_AT: usize = 1_000;

/// What became of the files of tests.
#[derive(Default)]
pub(crate) struct TestFiles {
    /// Those that were there when the build began and that nobody allowed to change.
    pub(crate) changed: Vec<ChangedTest>,
    /// Those that came to them.
    pub(crate) added: Vec<String>,
}

/// A file of tests that was changed.
pub(crate) struct ChangedTest {
    /// The file.
    pub(crate) path: String,
    /// What it held.
    pub(crate) before: Vec<u8>,
    /// What it holds now; none where it is gone.
    pub(crate) after: Option<Vec<u8>>,
}

/// Makes `commit` with the tests as they were, without those that came to them.
pub(crate) async fn with_tests_as_they_were(
    clone: &LocalClone,
    commit: &CommitId,
    tests: &TestFiles,
) -> Result<CommitId, GateError> {
    let restored = tests.changed.iter().filter_map(|test| {
        let path = RepoPath::parse(&test.path).ok()?;
        let content = test.before.clone();
        Some(FileChange::Write { path, content })
    });
    let added = tests
        .added
        .iter()
        .filter_map(|path| RepoPath::parse(path).ok());
    let changes: Vec<FileChange> = restored.chain(added.map(FileChange::Remove)).collect();
    altered(clone, commit, &changes).await
}

/// Runs what held on a candidate where its tests are as they were; returns what a person has to accept where something does
/// not hold there, and nothing when it was ended from outside.
pub(crate) async fn holds_as_it_was(
    site: &mut Site<'_>,
    checks: &[Check<'_>],
    tests: &TestFiles,
    cancel: &CancellationToken,
) -> Result<Option<Vec<ProtectedChange>>, GateError> {
    for check in checks {
        let mut failed = None;
        // What fails by chance passes the second time.
        for _ in 0..2 {
            let Some((run, ruling)) = site.run(check, cancel).await? else {
                return Ok(None);
            };
            failed = ruling.ran_and_failed().then_some(run);
            if failed.is_none() {
                break;
            }
        }
        if let Some(run) = failed {
            let asked = tests.changed.iter().map(|test| ProtectedChange {
                path: test.path.clone(),
                before: Some(ContentHash::of(&test.before)),
                after: test.after.as_deref().map(ContentHash::of),
                why: format!(
                    "`{}` holds only with `{}` as it was changed: with the tests as they were it fails{}",
                    check.name,
                    test.path,
                    first_failure(&run)
                ),
            });
            return Ok(Some(asked.collect()));
        }
    }
    Ok(Some(Vec::new()))
}

fn first_failure(run: &CheckRun) -> String {
    let failed = run
        .tests
        .as_ref()
        .and_then(|tests| tests.failed_names.first());
    failed.map_or_else(String::new, |name| format!(" (`{name}`)"))
}

/// Plants a test that has to fail beside those of `commit`, and notes each check that does not tell of it though it tells
/// of it at `base`; false when it was ended from outside.
pub(crate) async fn can_fail(
    site: &mut Site<'_>,
    (checks, commit, base): (&[Check<'_>], &CommitId, &CommitId),
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<bool, GateError> {
    let clone = site.repository();
    let name = planted::name(commit);
    let mut planted = None;
    for check in checks {
        if planted.is_none() {
            planted = plant(clone, commit, base, &name).await?;
        }
        let Some((here, there)) = &planted else {
            return Ok(true);
        };
        let Some(told) = tells(site, check, (here, &name), cancel).await? else {
            return Ok(false);
        };
        if told {
            continue;
        }
        // Where it was not told of before either, the check does not look there, or says nothing of single tests.
        let Some(told) = tells(site, check, (there, &name), cancel).await? else {
            return Ok(false);
        };
        if told {
            let line = format!(
                "`{}` passes whatever its tests find: a test that cannot pass was planted, and it is not told to fail, as it is at the build's base",
                check.name
            );
            findings.add(FailureClass::Tampered, line);
        }
    }
    Ok(true)
}

/// Says whether a check fails at a commit and names the planted test; none when it was ended from outside.
async fn tells(
    site: &mut Site<'_>,
    check: &Check<'_>,
    (commit, name): (&CommitId, &str),
    cancel: &CancellationToken,
) -> Result<Option<bool>, GateError> {
    site.turn_to(commit);
    let Some((run, ruling)) = site.run(check, cancel).await? else {
        return Ok(None);
    };
    Ok(Some(is_told(&run, &ruling, name)))
}

fn is_told(run: &CheckRun, ruling: &Ruling, name: &str) -> bool {
    let names = |tests: &[String]| tests.iter().any(|test| test.contains(name));
    let is_passed = run.tests.as_ref().is_some_and(|tests| names(&tests.names));
    let is_failed = run
        .tests
        .as_ref()
        .is_some_and(|tests| names(&tests.failed_names));
    // A time-out tells nothing, for or against.
    let ended = matches!(
        ruling,
        Ruling::Fails {
            class: FailureClass::Timeout,
            ..
        }
    );
    ended || (ruling.ran_and_failed() && !is_passed && (is_failed || run.output.contains(name)))
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
            Some(FileChange::Write { path, content })
        });
        let changes: Vec<FileChange> = with_test.take(PLANTED).collect();
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
    changes: &[FileChange],
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
