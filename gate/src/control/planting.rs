//! Plants tests that cannot pass, and looks whether the checks tell of them.

use std::collections::BTreeSet;

use ropewalk_schemas::CommitId;
use ropewalk_schemas::amount::and_more;
use ropewalk_schemas::attempt::{CheckRun, FailureClass};
use ropewalk_workspace::LocalClone;
use ropewalk_workspace::clone::FileKind;
use tokio_util::sync::CancellationToken;

use super::{altered, planted, removed, written};
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
/// How often a check runs with parts of what is planted, where it tells of more than it counts.
const PARTS: usize = 12;
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
                return removed(path);
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

/// Notes each check of which nobody has seen that it can fail, and returns their names; nothing when it was ended from outside.
/// Where one does not hold any more without anything planted, the machine is at fault, and nothing is known of any.
pub(crate) async fn can_fail(
    site: &mut Site<'_>,
    checks: &[Check<'_>],
    planted: &PlantedTests<'_>,
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<Option<Vec<String>>, GateError> {
    let mut told_of = Vec::new();
    if planted.tests.is_empty() {
        return Ok(Some(Vec::new()));
    }
    for check in checks {
        let Some(found) = blindness(site, check, planted, cancel).await? else {
            return Ok(None);
        };
        let Some(found) = found else { continue };
        let (name, command) = (check.name, check.command);
        let seen = match found {
            Blindness::Hides { files, elsewhere } => {
                let files = told(&files);
                let line = format!(
                    "`{name}` (`{command}`) passes whatever the tests in {files} find: one that cannot pass was planted there, and it is not told to fail, as it is {elsewhere}"
                );
                (FailureClass::Tampered, line)
            }
            Blindness::Unseen { files } => {
                let files = told(&files);
                let line = format!(
                    "`{name}` (`{command}`) did not run to its end where tests that cannot pass were planted in {files}, as it does without them: nobody has seen what it tells of a test that fails"
                );
                (FailureClass::Unknown, line)
            }
            Blindness::Gone => {
                findings.hold(format!(
                    "`{name}` (`{command}`) held, and does not any more on the same commit: nobody has seen whether its tests can fail"
                ));
                return Ok(Some(Vec::new()));
            }
        };
        told_of.push((name, seen));
    }
    // Only here: where the machine is at fault, what was seen of the checks before accuses nobody.
    let blind = told_of.into_iter().map(|(name, (class, line))| {
        findings.add(class, line);
        name.to_owned()
    });
    Ok(Some(blind.collect()))
}

/// Why nobody has seen that a check can fail.
enum Blindness<'a> {
    /// It holds with what is planted into these files, and tells of that elsewhere.
    Hides {
        files: BTreeSet<&'a str>,
        elsewhere: &'static str,
    },
    /// It does not run to its end with what is planted into these files, and holds without it.
    Unseen { files: BTreeSet<&'a str> },
    /// It does not hold any more, whatever is planted.
    Gone,
}

/// Tests of which a check tells nothing.
struct Untold<'a> {
    tests: Vec<&'a PlantedTest>,
    /// Whether it left tests out.
    skips: bool,
    /// Whether it ran to its end beside them.
    ran: bool,
}

fn files_of<'a>(tests: &[&'a PlantedTest]) -> BTreeSet<&'a str> {
    tests.iter().map(|test| test.path.as_str()).collect()
}

/// Finds out why a check tells nothing of what is planted; none where it can fail, or does not look there, and nothing when it was
/// ended from outside.
async fn blindness<'a>(
    site: &mut Site<'_>,
    check: &Check<'_>,
    planted: &'a PlantedTests<'_>,
    cancel: &CancellationToken,
) -> Result<Option<Option<Blindness<'a>>>, GateError> {
    let all: Vec<&PlantedTest> = planted.tests.iter().collect();
    let untold = match untold(site, check, (planted, all), cancel).await? {
        None => return Ok(None),
        Some(None) => return Ok(Some(None)),
        Some(Some(untold)) => untold,
    };
    if untold.ran {
        return hidden(site, check, (planted, &untold), cancel).await;
    }
    let Some(plain) = run_at(site, check, planted.commit, cancel).await? else {
        return Ok(None);
    };
    let holds = plain.is_some_and(|(_, ruling)| ruling == Ruling::Holds);
    let files = files_of(&untold.tests);
    Ok(Some(Some(if holds {
        Blindness::Unseen { files }
    } else {
        Blindness::Gone
    })))
}

/// Finds the files of tests in which a check finds nothing, whatever stands there; nothing when it was ended from outside.
async fn hidden<'a>(
    site: &mut Site<'_>,
    check: &Check<'_>,
    (planted, untold): (&PlantedTests<'_>, &Untold<'a>),
    cancel: &CancellationToken,
) -> Result<Option<Option<Blindness<'a>>>, GateError> {
    let Untold {
        tests: suspects,
        skips,
        ..
    } = untold;
    let tells_none = suspects.len() == planted.tests.len();
    let alone = planted.alone(suspects).await?;
    let base = planted.at_base(suspects).await?;
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
        let hidden = hidden.filter(|test| tells_none || !(*skips && test.may_skip));
        let mut hidden: Vec<&PlantedTest> = hidden.copied().collect();
        if !hidden.is_empty()
            && let Some(base) = &base
        {
            let Some(there) = run_at(site, check, base, cancel).await? else {
                return Ok(None);
            };
            // What was no file of this build, and was run before it and did not tell, is none of its doing.
            let is_excused = |test: &PlantedTest| {
                there.as_ref().is_some_and(|there| {
                    there.1.ran() && !proof::stumbles(&there.0) && !tells(there, &test.name)
                })
            };
            hidden.retain(|test| planted.is_changed(test) || !is_excused(test));
        }
        if !hidden.is_empty() {
            let files = files_of(&hidden);
            return Ok(Some(Some(Blindness::Hides { files, elsewhere })));
        }
    }
    Ok(Some(None))
}

/// Finds the tests of which a check tells nothing, and holds with them and no others, or does not run to its end. None are found
/// where it can fail for another reason. Nothing when it was ended from outside.
async fn untold<'a>(
    site: &mut Site<'_>,
    check: &Check<'_>,
    (planted, mut tests): (&PlantedTests<'_>, Vec<&'a PlantedTest>),
    cancel: &CancellationToken,
) -> Result<Option<Option<Untold<'a>>>, GateError> {
    for _ in 0..ROUNDS {
        let commit = planted.here(&tests).await?;
        let Some(here) = run_to_its_end(site, check, &commit, cancel).await? else {
            return Ok(None);
        };
        let Some(here) = here else {
            let (skips, ran) = (true, false);
            return Ok(Some(Some(Untold { tests, skips, ran })));
        };
        let all = tests.iter().copied();
        let (told, rest): (Vec<&PlantedTest>, Vec<&PlantedTest>) =
            all.partition(|test| tells(&here, &test.name));
        if is_overtold(&here, told.len()) {
            return in_parts(site, check, (planted, tests), cancel).await;
        }
        if rest.is_empty() {
            break;
        }
        tests = rest;
        if told.is_empty() {
            let (skips, ran) = (leaves_out(&here.0), here.1.ran());
            // Whatever stands against it, it can fail.
            let can_fail = here.1.ran_and_failed();
            return Ok(Some((!can_fail).then_some(Untold { tests, skips, ran })));
        }
    }
    Ok(Some(None))
}

/// As [`untold`], where a check tells of more tests than its runner counts: they are planted in ever smaller parts, and what it
/// holds with is not told of, whatever it prints.
async fn in_parts<'a>(
    site: &mut Site<'_>,
    check: &Check<'_>,
    (planted, mut tests): (&PlantedTests<'_>, Vec<&'a PlantedTest>),
    cancel: &CancellationToken,
) -> Result<Option<Option<Untold<'a>>>, GateError> {
    // Those that fail in a part of themselves are counted where others are swallowed.
    tests.sort_by_key(|test| planted::is_part(&test.name));
    let mut parts = halves(&tests);
    let mut untold = Untold {
        tests: Vec::new(),
        skips: false,
        ran: true,
    };
    for _ in 0..PARTS {
        let Some(part) = parts.pop() else { break };
        let commit = planted.here(&part).await?;
        let Some(here) = run_to_its_end(site, check, &commit, cancel).await? else {
            return Ok(None);
        };
        let Some(here) = here.filter(|(_, ruling)| ruling.ran()) else {
            let (skips, ran) = (true, false);
            let tests = part;
            return Ok(Some(Some(Untold { tests, skips, ran })));
        };
        if here.1 == Ruling::Holds {
            untold.skips |= leaves_out(&here.0);
            untold.tests.extend(part);
            continue;
        }
        parts.extend(next_parts(&here, &part));
    }
    Ok(Some((!untold.tests.is_empty()).then_some(untold)))
}

/// Lists what is planted next where a check failed with a part: its halves, where it tells of more than its runner counts, and else
/// those of which it does not tell. Where it tells of none, it can fail, whatever stands against it.
fn next_parts<'a>(
    here: &(CheckRun, Ruling),
    part: &[&'a PlantedTest],
) -> Vec<Vec<&'a PlantedTest>> {
    let all = part.iter().copied();
    let (told, rest): (Vec<&'a PlantedTest>, Vec<&'a PlantedTest>) =
        all.partition(|test| tells(here, &test.name));
    if told.is_empty() || told.len() == 1 && part.len() == 1 {
        Vec::new()
    } else if is_overtold(here, told.len()) {
        halves(part)
    } else {
        let rest = Some(rest).filter(|rest| !rest.is_empty());
        rest.into_iter().collect()
    }
}

fn halves<'a>(tests: &[&'a PlantedTest]) -> Vec<Vec<&'a PlantedTest>> {
    let (one, other) = tests.split_at(tests.len() / 2);
    let halves = [one, other].into_iter().filter(|half| !half.is_empty());
    halves.map(<[_]>::to_vec).collect()
}

/// Says whether more planted tests are told to have failed than a runner counts: what it runs may print what it would.
fn is_overtold((run, _): &(CheckRun, Ruling), told: usize) -> bool {
    let failed = run
        .tests
        .as_ref()
        .map(|tests| usize::try_from(tests.failed));
    failed.is_some_and(|failed| failed.is_ok_and(|failed| failed < told))
}

fn leaves_out(run: &CheckRun) -> bool {
    run.tests.as_ref().is_none_or(|tests| tests.ignored > 0)
}

/// As [`run_at`], and once more where it does not come to its end, since what a machine lacks by chance it may have then.
async fn run_to_its_end(
    site: &mut Site<'_>,
    check: &Check<'_>,
    commit: &CommitId,
    cancel: &CancellationToken,
) -> Result<Option<Option<(CheckRun, Ruling)>>, GateError> {
    let first = run_at(site, check, commit, cancel).await?;
    let ran = |there: &(CheckRun, Ruling)| there.1.ran();
    let is_over = first
        .as_ref()
        .is_none_or(|there| there.as_ref().is_some_and(ran));
    if is_over {
        return Ok(first);
    }
    run_at(site, check, commit, cancel).await
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

/// Says whether a check tells that a test failed. Where it holds it tells of none, whatever was printed.
fn tells((run, ruling): &(CheckRun, Ruling), name: &str) -> bool {
    *ruling != Ruling::Holds && is_told(run, name)
}

/// Says whether a run tells that a test failed, by the names of those that did or by a line about it.
fn is_told(run: &CheckRun, name: &str) -> bool {
    let mut failed = run.tests.iter().flat_map(|tests| &tests.failed_names);
    let mut lines = run.output.lines();
    failed.any(|test| test.contains(name))
        || lines.any(|line| line.contains(name) && TOLD.iter().any(|told| line.contains(told)))
}

fn told(files: &BTreeSet<&str>) -> String {
    let named = files.iter().take(NAMED).map(|file| format!("`{file}`"));
    let named: Vec<String> = named.chain(and_more(files.len(), NAMED)).collect();
    named.join(", ")
}

#[cfg(test)]
mod tests;
