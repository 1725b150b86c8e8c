//! Plants tests that cannot pass, and looks whether the checks tell of them.

use std::collections::BTreeSet;

use ropewalk_schemas::attempt::{CheckRun, FailureClass};
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_workspace::LocalClone;
use ropewalk_workspace::clone::{self, FileKind};
use tokio_util::sync::CancellationToken;

use super::{altered, planted};
use crate::difference::protected::is_test;
use crate::error::GateError;
use crate::judge::Ruling;
use crate::proof;
use crate::runner::{Check, Findings};
use crate::site::Site;

/// The most files into which tests are planted, and that are looked at for it.
const PLANTED: usize = 40;
const LOOKED_AT: usize = 1_000;
/// How often a check runs with what it did not tell of before: what it told of may have kept it from the rest.
const ROUNDS: usize = 3;
/// So many files are named in a finding.
const NAMED: usize = 3;
/// How a line of a runner goes on that tells of a test that failed.
const TOLD: [&str; 4] = ["cannot pass", "FAIL", "not ok", "panicked"];

/// A file that holds tests, or is there for them.
struct TestFile {
    path: String,
    text: String,
    /// Whether it is not as it was at the base.
    is_changed: bool,
}

/// A test that is planted into a file.
struct PlantedTest {
    path: String,
    name: String,
    /// Whether the file says of itself that tests of it may be left out.
    may_skip: bool,
}

/// Tests that cannot pass, and the commits that can hold them.
pub(crate) struct PlantedTests<'a> {
    clone: &'a LocalClone,
    commit: &'a CommitId,
    base: &'a CommitId,
    files: Vec<TestFile>,
    tests: Vec<PlantedTest>,
}

impl<'a> PlantedTests<'a> {
    /// Chooses what is planted into the files of tests of a commit, those first that are not as they were at `base`.
    pub(crate) async fn of(
        clone: &'a LocalClone,
        (commit, base): (&'a CommitId, &'a CommitId),
    ) -> Result<Self, GateError> {
        let files = files(clone, (commit, base)).await?;
        let mut tests: Vec<PlantedTest> = Vec::new();
        let mut count = 0;
        for file in files.iter().filter(|file| planted::may_take(&file.path)) {
            let name = planted::name(commit, &file.path);
            let is_understood = planted::plant(&file.path, &file.text, &[&name]).is_some();
            if !is_understood || count == PLANTED {
                continue;
            }
            count += 1;
            let may_skip = file.text.to_ascii_lowercase().contains("skip");
            let names = planted::names(&file.path, &name).into_iter();
            tests.extend(names.map(|name| PlantedTest {
                path: file.path.clone(),
                name,
                may_skip,
            }));
        }
        Ok(Self {
            clone,
            commit,
            base,
            files,
            tests,
        })
    }

    fn is_changed(&self, test: &PlantedTest) -> bool {
        let mut files = self.files.iter().filter(|file| file.is_changed);
        files.any(|file| file.path == test.path)
    }

    /// Makes the commit with these tests.
    async fn here(&self, tests: &[&PlantedTest]) -> Result<CommitId, GateError> {
        let changes = self.files.iter().filter_map(|file| {
            let text = planted::plant(&file.path, &file.text, &names_in(&file.path, tests))?;
            written(&file.path, text)
        });
        let changes: Vec<_> = changes.collect();
        altered(self.clone, self.commit, &changes).await
    }

    /// Makes the commit in which files of tests hold these tests and nothing else. What is no file of tests holds what they
    /// test: there, too, they stand beside that.
    async fn alone(&self, tests: &[&PlantedTest]) -> Result<CommitId, GateError> {
        let changes = self.files.iter().filter_map(|TestFile { path, text, .. }| {
            if planted::stands_in(path) {
                return RepoPath::parse(path).ok().map(clone::FileChange::Remove);
            }
            let names = names_in(path, tests);
            let text = if planted::is_for_tests(path) {
                Some(planted::alone(path, text, &names))
            } else {
                planted::plant(path, text, &names)
            };
            written(path, text?)
        });
        let changes: Vec<_> = changes.collect();
        altered(self.clone, self.commit, &changes).await
    }

    /// Makes the base with these tests; none where it has none of their files.
    async fn at_base(&self, tests: &[&PlantedTest]) -> Result<Option<CommitId>, GateError> {
        let paths: BTreeSet<&str> = tests.iter().map(|test| test.path.as_str()).collect();
        let paths: Vec<&str> = paths.into_iter().collect();
        let contents = self.clone.read_files(self.base, &paths).await?;
        let changes = paths.iter().zip(contents).filter_map(|(path, content)| {
            let text = String::from_utf8(content?).ok()?;
            written(path, planted::plant(path, &text, &names_in(path, tests))?)
        });
        let changes: Vec<_> = changes.collect();
        if changes.is_empty() {
            return Ok(None);
        }
        altered(self.clone, self.base, &changes).await.map(Some)
    }
}

fn names_in<'a>(path: &str, tests: &[&'a PlantedTest]) -> Vec<&'a str> {
    let ours = tests.iter().filter(|test| test.path == path);
    ours.map(|test| test.name.as_str()).collect()
}

/// Reads what may hold tests, is there for them, or stands in for their runner, at a commit: what is not as it was at the base
/// first, then what is named like tests.
async fn files(
    clone: &LocalClone,
    (commit, base): (&CommitId, &CommitId),
) -> Result<Vec<TestFile>, GateError> {
    let changed = clone.changed_files(base.as_str(), commit.as_str()).await?;
    let changed: BTreeSet<String> = changed.into_iter().map(|file| file.path).collect();
    let takes = |path: &str| {
        planted::may_take(path) || planted::is_for_tests(path) || planted::stands_in(path)
    };
    let files = clone.list_files(commit, "").await?.into_iter();
    let plain = files.filter(|file| file.kind == FileKind::Plain && takes(&file.path));
    let mut paths: Vec<String> = plain.map(|file| file.path).collect();
    paths.sort_by_key(|path| (!changed.contains(path), !is_test(path)));
    paths.truncate(LOOKED_AT);
    let names: Vec<&str> = paths.iter().map(String::as_str).collect();
    let contents = clone.read_files(commit, &names).await?;
    let texts = paths.into_iter().zip(contents);
    let texts = texts.filter_map(|(path, content)| {
        Some(TestFile {
            text: String::from_utf8(content?).ok()?,
            is_changed: changed.contains(&path),
            path,
        })
    });
    Ok(texts.collect())
}

fn written(path: &str, text: String) -> Option<clone::FileChange> {
    let path = RepoPath::parse(path).ok()?;
    let content = text.into_bytes();
    Some(clone::FileChange::Write { path, content })
}

/// Notes each check that passes whatever is planted into a file, though it tells of it where that file holds nothing else, or
/// at the base, and returns their names; nothing when it was ended from outside.
pub(crate) async fn can_fail(
    site: &mut Site<'_>,
    checks: &[Check<'_>],
    planted: &PlantedTests<'_>,
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<Option<Vec<String>>, GateError> {
    let mut blind = Vec::new();
    if planted.tests.is_empty() {
        return Ok(Some(blind));
    }
    for check in checks {
        let Some(hidden) = hidden_by(site, check, planted, cancel).await? else {
            return Ok(None);
        };
        if let Some((files, elsewhere)) = hidden {
            blind.push(check.name.to_owned());
            let line = format!(
                "`{}` (`{}`) passes whatever the tests in {} find: one that cannot pass was planted there, and it is not told to fail, as it is {elsewhere}",
                check.name,
                check.command,
                told(&files)
            );
            findings.add(FailureClass::Tampered, line);
        }
    }
    Ok(Some(blind))
}

/// Files whose planted tests a check does not tell of, and where it does.
type HiddenFiles<'a> = (Vec<&'a str>, &'static str);

/// Finds the files of tests in which a check finds nothing, whatever stands there; nothing when it was ended from outside.
async fn hidden_by<'a>(
    site: &mut Site<'_>,
    check: &Check<'_>,
    planted: &'a PlantedTests<'_>,
    cancel: &CancellationToken,
) -> Result<Option<Option<HiddenFiles<'a>>>, GateError> {
    let all: Vec<&PlantedTest> = planted.tests.iter().collect();
    let (suspects, skips) = match suspects(site, check, (planted, all), cancel).await? {
        None => return Ok(None),
        Some(found) if found.0.is_empty() => return Ok(Some(None)),
        Some(found) => found,
    };
    let tells_none = suspects.len() == planted.tests.len();
    let alone = planted.alone(&suspects).await?;
    let base = planted.at_base(&suspects).await?;
    let alone = (alone, "where that file holds nothing else");
    let told_at_base = base.clone().filter(|_| tells_none);
    let told_at_base = told_at_base.map(|base| (base, "at the build's base"));
    for (commit, elsewhere) in std::iter::once(alone).chain(told_at_base) {
        let Some(there) = run_at(site, check, &commit, cancel).await? else {
            return Ok(None);
        };
        // Where it is not told of there either, the check does not look there, or says nothing of single tests.
        let Some((run, _)) = there.filter(|(_, ruling)| ruling.ran_and_failed()) else {
            continue;
        };
        let hidden = suspects.iter().filter(|test| is_told(&run, &test.name));
        let hidden = hidden.filter(|test| tells_none || !(skips && test.may_skip));
        let mut hidden: Vec<&PlantedTest> = hidden.copied().collect();
        if !hidden.is_empty()
            && let Some(base) = &base
        {
            let Some(there) = run_at(site, check, base, cancel).await? else {
                return Ok(None);
            };
            // What was no file of this build, and was run before it and did not tell, is none of its doing.
            let is_excused = |test: &PlantedTest| {
                there
                    .as_ref()
                    .is_some_and(|(run, _)| !proof::stumbles(run) && !is_told(run, &test.name))
            };
            hidden.retain(|test| planted.is_changed(test) || !is_excused(test));
        }
        let files: BTreeSet<&str> = hidden.iter().map(|test| test.path.as_str()).collect();
        if !files.is_empty() {
            return Ok(Some(Some((files.into_iter().collect(), elsewhere))));
        }
    }
    Ok(Some(None))
}

/// Finds the tests of which a check tells nothing, and passes with them and no others; and whether it left tests out. None are
/// found where it can fail for another reason. Nothing when it was ended from outside.
async fn suspects<'a>(
    site: &mut Site<'_>,
    check: &Check<'_>,
    (planted, mut tests): (&PlantedTests<'_>, Vec<&'a PlantedTest>),
    cancel: &CancellationToken,
) -> Result<Option<(Vec<&'a PlantedTest>, bool)>, GateError> {
    for _ in 0..ROUNDS {
        let commit = planted.here(&tests).await?;
        let Some(here) = run_at(site, check, &commit, cancel).await? else {
            return Ok(None);
        };
        let Some((run, ruling)) = here else { break };
        let before = tests.len();
        tests.retain(|test| !is_told(&run, &test.name));
        if tests.is_empty() {
            break;
        }
        if tests.len() == before {
            // Whatever stands against it, it can fail.
            let passes = ruling == Ruling::Holds;
            let skips = run.tests.as_ref().is_none_or(|tests| tests.ignored > 0);
            return Ok(Some((if passes { tests } else { Vec::new() }, skips)));
        }
    }
    Ok(Some((Vec::new(), false)))
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

fn told(files: &[&str]) -> String {
    let named = files.iter().take(NAMED).map(|file| format!("`{file}`"));
    let mut named: Vec<String> = named.collect();
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
