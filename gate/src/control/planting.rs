//! Plants tests that cannot pass, and looks whether the checks tell of them.

use ropewalk_schemas::attempt::{CheckRun, FailureClass};
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_workspace::LocalClone;
use ropewalk_workspace::clone::{self, FileKind};
use tokio_util::sync::CancellationToken;

use super::{altered, planted};
use crate::difference::protected::is_test;
use crate::error::GateError;
use crate::judge::Ruling;
use crate::runner::{Check, Findings, OUTPUT_BYTES};
use crate::site::Site;

/// The most files into which tests are planted, and that are looked at for it.
const PLANTED: usize = 40;
const LOOKED_AT: usize = 1_000;
/// So many files are named in a finding.
const NAMED: usize = 3;
/// How a line of a runner goes on that tells of a test that failed.
const TOLD: [&str; 4] = ["cannot pass", "FAIL", "not ok", "panicked"];

/// A test that was planted into a file.
struct PlantedTest {
    path: String,
    name: String,
    /// Whether the file says of itself that tests of it may be left out.
    may_skip: bool,
}

/// Where tests were planted.
pub(crate) struct PlantedCommits {
    tests: Vec<PlantedTest>,
    /// The commit itself, with them.
    here: CommitId,
    /// The same, where files of tests hold them and nothing else.
    alone: CommitId,
    /// The base with them, as far as it has their files.
    base: Option<CommitId>,
}

/// Plants tests that cannot pass into the files of tests of `commit`; none where no file takes one.
pub(crate) async fn plant(
    clone: &LocalClone,
    (commit, base): (&CommitId, &CommitId),
) -> Result<Option<PlantedCommits>, GateError> {
    let files = texts(clone, commit).await?;
    let mut tests: Vec<PlantedTest> = Vec::new();
    let (mut here, mut alone) = (Vec::new(), Vec::new());
    for (path, text) in &files {
        let name = planted::name(commit, path);
        let takes = here.len() < PLANTED && planted::may_take(path);
        let planted = takes.then(|| planted::plant(path, text, &name)).flatten();
        let name = planted.as_ref().map(|_| name.as_str());
        let names = name.into_iter().flat_map(|name| planted::names(path, name));
        let may_skip = text.to_ascii_lowercase().contains("skip");
        tests.extend(names.map(|name| PlantedTest {
            path: path.clone(),
            name,
            may_skip,
        }));
        // What is no file of tests holds what they test: there, too, it is planted beside that.
        let is_cleared = planted::is_for_tests(path);
        let cleared = is_cleared.then(|| planted::alone(path, text, name));
        alone.extend(
            cleared
                .or_else(|| planted.clone())
                .and_then(|text| written(path, text)),
        );
        here.extend(planted.and_then(|text| written(path, text)));
    }
    if tests.is_empty() {
        return Ok(None);
    }
    Ok(Some(PlantedCommits {
        here: altered(clone, commit, &here).await?,
        alone: altered(clone, commit, &alone).await?,
        base: at_base(clone, (commit, base), &tests).await?,
        tests,
    }))
}

/// Plants the same tests at the base; none where it has none of their files.
async fn at_base(
    clone: &LocalClone,
    (commit, base): (&CommitId, &CommitId),
    tests: &[PlantedTest],
) -> Result<Option<CommitId>, GateError> {
    let mut paths: Vec<&str> = tests.iter().map(|test| test.path.as_str()).collect();
    paths.dedup();
    let contents = clone.read_files(base, &paths).await?;
    let changes = paths.iter().zip(contents).filter_map(|(path, content)| {
        let text = String::from_utf8(content?).ok()?;
        let changed = planted::plant(path, &text, &planted::name(commit, path))?;
        written(path, changed)
    });
    let changes: Vec<_> = changes.collect();
    if changes.is_empty() {
        return Ok(None);
    }
    altered(clone, base, &changes).await.map(Some)
}

/// Reads what may hold tests, or is there for them, at a commit: what is named like tests first.
async fn texts(clone: &LocalClone, commit: &CommitId) -> Result<Vec<(String, String)>, GateError> {
    let takes = |path: &str| planted::may_take(path) || planted::is_for_tests(path);
    let files = clone.list_files(commit, "").await?.into_iter();
    let plain = files.filter(|file| file.kind == FileKind::Plain && takes(&file.path));
    let mut paths: Vec<String> = plain.map(|file| file.path).collect();
    paths.sort_by_key(|path| !is_test(path));
    paths.truncate(LOOKED_AT);
    let names: Vec<&str> = paths.iter().map(String::as_str).collect();
    let contents = clone.read_files(commit, &names).await?;
    let texts = paths.into_iter().zip(contents);
    Ok(texts
        .filter_map(|(path, content)| Some((path, String::from_utf8(content?).ok()?)))
        .collect())
}

fn written(path: &str, text: String) -> Option<clone::FileChange> {
    let path = RepoPath::parse(path).ok()?;
    let content = text.into_bytes();
    Some(clone::FileChange::Write { path, content })
}

/// Notes each check that passes whatever is planted into a file, though it tells of it where that file holds nothing else, or
/// at the base; false when it was ended from outside.
pub(crate) async fn can_fail(
    site: &mut Site<'_>,
    checks: &[Check<'_>],
    planting: &PlantedCommits,
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<bool, GateError> {
    for check in checks {
        let Some(hidden) = hidden_by(site, check, planting, cancel).await? else {
            return Ok(false);
        };
        if let Some((files, elsewhere)) = hidden {
            let line = format!(
                "`{}` (`{}`) passes whatever the tests in {} find: one that cannot pass was planted there, and it is not told to fail, as it is {elsewhere}",
                check.name,
                check.command,
                told(&files)
            );
            findings.add(FailureClass::Tampered, line);
        }
    }
    Ok(true)
}

/// Files whose planted tests a check does not tell of, and where it does.
type HiddenFiles<'a> = (Vec<&'a str>, &'static str);

/// Finds the files of tests in which a check finds nothing, whatever stands there; nothing when it was ended from outside.
async fn hidden_by<'a>(
    site: &mut Site<'_>,
    check: &Check<'_>,
    planting: &'a PlantedCommits,
    cancel: &CancellationToken,
) -> Result<Option<Option<HiddenFiles<'a>>>, GateError> {
    let Some(here) = run_at(site, check, &planting.here, cancel).await? else {
        return Ok(None);
    };
    let Some((run, ruling)) = here else {
        return Ok(Some(None));
    };
    let untold = |run: &CheckRun| -> Vec<&'a PlantedTest> {
        let tests = planting.tests.iter();
        tests.filter(|test| !is_told(run, &test.name)).collect()
    };
    let missed = untold(&run);
    let tells_none = missed.len() == planting.tests.len();
    // Whatever else stands against it, it can fail. What tells of some only may have told of the others where it was cut.
    let is_open = if tells_none {
        ruling == Ruling::Holds
    } else {
        tells_all(&run)
    };
    if missed.is_empty() || !is_open {
        return Ok(Some(None));
    }
    let alone = (&planting.alone, "where that file holds nothing else");
    let base = planting.base.as_ref().filter(|_| tells_none);
    for (commit, elsewhere) in
        std::iter::once(alone).chain(base.map(|base| (base, "at the build's base")))
    {
        let Some(there) = run_at(site, check, commit, cancel).await? else {
            return Ok(None);
        };
        // Where it is not told of there either, the check does not look there, or says nothing of single tests.
        let Some((run, ruling)) = there else { continue };
        if !ruling.ran_and_failed() {
            continue;
        }
        let unseen = untold(&run);
        let is_unseen = |test: &PlantedTest| unseen.iter().any(|other| other.name == test.name);
        let is_missed = |test: &PlantedTest| missed.iter().any(|other| other.name == test.name);
        // What tells of less may have ended elsewhere.
        if planting
            .tests
            .iter()
            .any(|test| is_unseen(test) && !is_missed(test))
        {
            continue;
        }
        let is_hidden = |test: &&&PlantedTest| !is_unseen(test) && (tells_none || !test.may_skip);
        let mut files: Vec<&str> = missed
            .iter()
            .filter(is_hidden)
            .map(|test| test.path.as_str())
            .collect();
        files.dedup();
        if !files.is_empty() {
            return Ok(Some(Some((files, elsewhere))));
        }
    }
    Ok(Some(None))
}

/// Runs a check on another commit: none when it was ended from outside, and no run where that cannot be made ready any more.
async fn run_at(
    site: &mut Site<'_>,
    check: &Check<'_>,
    commit: &CommitId,
    cancel: &CancellationToken,
) -> Result<Option<Option<(CheckRun, Ruling)>>, GateError> {
    site.turn_to(commit);
    match site.run(check, cancel).await {
        Err(GateError::NotReady(_)) => Ok(Some(None)),
        ran => Ok(ran?.map(Some)),
    }
}

/// Says whether a run tells that a test failed, by the names of those that did or by a line about it.
fn is_told(run: &CheckRun, name: &str) -> bool {
    let mut failed = run.tests.iter().flat_map(|tests| &tests.failed_names);
    let mut lines = run.output.lines();
    failed.any(|test| test.contains(name))
        || lines.any(|line| line.contains(name) && TOLD.iter().any(|told| line.contains(told)))
}

/// Says whether all is known that a run told: its runner names what failed, or nothing of its output was left out.
fn tells_all(run: &CheckRun) -> bool {
    let mut failed = run.tests.iter().flat_map(|tests| &tests.failed_names);
    failed.next().is_some() || run.output.len() < OUTPUT_BYTES / 2
}

fn told(files: &[&str]) -> String {
    let mut named: Vec<String> = files
        .iter()
        .take(NAMED)
        .map(|file| format!("`{file}`"))
        .collect();
    if files.len() > NAMED {
        named.push(format!("{} more", files.len() - NAMED));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tests::run;

    #[test]
    fn a_planted_test_is_told_of_by_the_names_that_failed_or_in_a_line_that_says_so() {
        let cases = [
            (run(Some(2), &["a.case_1.test"], ""), true),
            (run(Some(2), &["a.other"], "FAILED case_1"), true),
            (run(None, &[], "not ok 3 - case_1"), true),
            (run(None, &[], "AssertionError: case_1 cannot pass"), true),
            (run(Some(2), &["a.other"], "FAILED other"), false),
            // The line of a source that could not even run.
            (
                run(None, &[], "it('case_1', () => {\nReferenceError"),
                false,
            ),
            (run(None, &[], ""), false),
        ];
        for (run, told) in cases {
            assert_eq!(is_told(&run, "case_1"), told, "{run:?}");
        }
    }
}
