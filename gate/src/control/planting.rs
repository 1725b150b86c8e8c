//! Plants a test that cannot pass, and looks whether the checks tell of it.

use ropewalk_schemas::attempt::{CheckRun, FailureClass};
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_workspace::LocalClone;
use ropewalk_workspace::clone::{self, FileKind};
use tokio_util::sync::CancellationToken;

use super::{altered, planted};
use crate::difference::protected::is_test;
use crate::error::GateError;
use crate::judge::Ruling;
use crate::runner::{Check, Findings};
use crate::site::Site;

/// The most files into which a test is planted, and that are looked at for it.
const PLANTED: usize = 40;
const LOOKED_AT: usize = 1_000;

/// A commit with a planted test, and another one at which a check that looks there tells of it.
pub(crate) struct PlantedTest {
    name: String,
    here: CommitId,
    there: CommitId,
    /// What the other one is, in words.
    where_told: &'static str,
}

/// Notes each check that passes whatever is planted, though it tells of it elsewhere; false when it was ended from outside.
pub(crate) async fn can_fail(
    site: &mut Site<'_>,
    checks: &[Check<'_>],
    planted: &PlantedTest,
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<bool, GateError> {
    for check in checks {
        site.turn_to(&planted.here);
        let Some((_, ruling)) = site.run(check, cancel).await? else {
            return Ok(false);
        };
        // Whatever stands against it, it can fail.
        if ruling != Ruling::Holds {
            continue;
        }
        site.turn_to(&planted.there);
        let before = match site.run(check, cancel).await {
            // What cannot be made ready there any more says nothing.
            Err(GateError::NotReady(_)) => continue,
            ran => ran?,
        };
        let Some((run, ruling)) = before else {
            return Ok(false);
        };
        // Where it was not told of there either, the check does not look there, or says nothing of single tests.
        if ruling.ran_and_failed() && is_told(&run, &planted.name) {
            let line = format!(
                "`{}` passes whatever its tests find: a test that cannot pass was planted, and it is not told to fail, as it is {}",
                check.name, planted.where_told
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

/// Plants a test that cannot pass beside those of `commit` and of `base`; none where no file of tests can take it at both.
pub(crate) async fn plant_beside(
    clone: &LocalClone,
    (commit, base): (&CommitId, &CommitId),
) -> Result<Option<PlantedTest>, GateError> {
    let name = planted::name(commit);
    let paths = paths_of_tests(clone, base, planted::may_take).await?;
    let there = plant(clone, base, &paths, &name).await?;
    let here = plant(clone, commit, &paths, &name).await?;
    Ok(here.zip(there).map(|(here, there)| PlantedTest {
        name,
        here,
        there,
        where_told: "at the build's base",
    }))
}

/// Plants a test that cannot pass beside those of `commit`, and in files like theirs that hold nothing else; none where no file
/// of tests can take it. For tests that were not there before: what they bring along, the product too, is not run there.
pub(crate) async fn plant_alone(
    clone: &LocalClone,
    commit: &CommitId,
) -> Result<Option<PlantedTest>, GateError> {
    let name = planted::name(commit);
    let paths = paths_of_tests(clone, commit, planted::may_be_cleared).await?;
    let Some(here) = plant(clone, commit, &paths, &name).await? else {
        return Ok(None);
    };
    let alone = |path: &str, text: &str| Some(planted::alone(path, text, &name));
    let changes = rewritten(clone, commit, &paths, alone).await?;
    let there = altered(clone, commit, &changes).await?;
    Ok(Some(PlantedTest {
        name,
        here,
        there,
        where_told: "where those files hold nothing else",
    }))
}

/// Lists what `takes` picks of the plain files of a commit, those that are named like tests first.
async fn paths_of_tests(
    clone: &LocalClone,
    commit: &CommitId,
    takes: fn(&str) -> bool,
) -> Result<Vec<String>, GateError> {
    let files = clone.list_files(commit, "").await?.into_iter();
    let plain = files.filter(|file| file.kind == FileKind::Plain && takes(&file.path));
    let mut paths: Vec<String> = plain.map(|file| file.path).collect();
    paths.sort_by_key(|path| !is_test(path));
    paths.truncate(LOOKED_AT);
    Ok(paths)
}

/// Makes `commit` with the planted test in these files; none where none can take it.
async fn plant(
    clone: &LocalClone,
    commit: &CommitId,
    paths: &[String],
    name: &str,
) -> Result<Option<CommitId>, GateError> {
    let takes = |path: &str, text: &str| {
        planted::may_take(path)
            .then(|| planted::plant(path, text, name))
            .flatten()
    };
    let mut changes = rewritten(clone, commit, paths, takes).await?;
    changes.truncate(PLANTED);
    if changes.is_empty() {
        return Ok(None);
    }
    altered(clone, commit, &changes).await.map(Some)
}

/// Returns what `rewrite` makes of files of `commit`; what is no text stays as it is.
async fn rewritten(
    clone: &LocalClone,
    commit: &CommitId,
    paths: &[String],
    rewrite: impl Fn(&str, &str) -> Option<String>,
) -> Result<Vec<clone::FileChange>, GateError> {
    let names: Vec<&str> = paths.iter().map(String::as_str).collect();
    let contents = clone.read_files(commit, &names).await?;
    let changes = names.iter().zip(contents).filter_map(|(path, content)| {
        let content = String::from_utf8(content?).ok()?;
        let content = rewrite(path, &content)?.into_bytes();
        let path = RepoPath::parse(path).ok()?;
        Some(clone::FileChange::Write { path, content })
    });
    Ok(changes.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tests::run;

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
}
