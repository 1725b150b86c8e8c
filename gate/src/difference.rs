//! Looks at what a candidate changes, without running anything.

pub mod emptiness;
pub mod protected;
pub mod scope;
pub mod stubs;

use std::collections::BTreeMap;

use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::question::{Content, FileChange};
use ropewalk_schemas::task::Action;
use ropewalk_schemas::{CommitId, ContentHash};
use ropewalk_workspace::ChangedFile;
use ropewalk_workspace::clone::{FileEntry, FileKind};

use crate::candidate::{Candidate, checks};
use crate::checks::Gate;
use crate::control::{AllowedFiles, Join, TestFiles};
use crate::error::GateError;
use crate::runner::{Findings, GateRunner};

use protected::{Change, InlineTest, ProtectedChange, Rules};

/// What the difference alone shows, beside findings.
#[derive(Default)]
pub(crate) struct DifferenceReport {
    /// What a person would have to accept; it is no finding yet, for they are asked about what holds otherwise.
    pub(crate) protected: Vec<ProtectedChange>,
    /// The changed files, each with a hash of its content.
    pub(crate) changed: Vec<String>,
    /// What became of the files of tests.
    pub(crate) tests: TestFiles,
    /// What changed as a person allowed it, or is to be asked.
    pub(crate) allowed: AllowedFiles,
}

/// A changed file with its contents.
struct File {
    path: String,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

impl File {
    /// Returns the change as a yes to it names it.
    fn change(&self) -> FileChange {
        FileChange {
            path: self.path.clone(),
            before: self.before.as_deref().map(ContentHash::of),
            after: self.after.as_deref().map(ContentHash::of),
        }
    }
}

/// Looks at the difference alone.
pub(crate) async fn inspect(
    runner: &GateRunner,
    gate: &Gate,
    candidate: &Candidate<'_>,
    changed: &[ChangedFile],
    findings: &mut Findings,
) -> Result<DifferenceReport, GateError> {
    for path in candidate.withheld {
        let line = format!("`{path}` holds a key, token or password of the program that runs you");
        findings.add(FailureClass::SecretFound, line);
    }
    let verifies = candidate.task.block.action == Action::Verify;
    if candidate.withheld.is_empty() && changed.is_empty() != verifies {
        let line = if verifies {
            "the task only verifies, but files were changed"
        } else {
            "nothing was changed"
        };
        findings.add(FailureClass::EmptyChange, line.to_owned());
    }
    for file in scope::sort(changed, candidate.allowed).outside {
        let path = &file.path;
        let line = format!("`{path}` was changed, but is not a file of this task");
        findings.add(FailureClass::OutOfScope, line);
    }
    if changed.is_empty() {
        return Ok(DifferenceReport::default());
    }
    let files = read(runner, candidate, changed).await?;
    look_for_work(candidate, &files, findings);
    look_for_ways_out(runner, candidate, &files, findings).await?;
    let mut protected = protected_in(runner, gate, candidate, &files).await?;
    let mut settled = SettledChanges {
        consents: &candidate.precedents.consents,
        asked: Vec::new(),
    };
    protected.retain(|change| !settled.holds(&change.change()));
    settled.asked = protected.iter().map(ProtectedChange::change).collect();
    let changed = files.iter().map(|file| {
        let hash = ContentHash::of(file.after.as_deref().unwrap_or_default());
        format!("{} {hash}", file.path)
    });
    Ok(DifferenceReport {
        changed: changed.collect(),
        tests: tests_in(candidate, &settled, &files),
        allowed: allowed_in(&settled, &files),
        protected,
    })
}

/// The changes that are a person's to judge: who allowed one, or is asked about it, sees its difference.
struct SettledChanges<'a> {
    consents: &'a [Content],
    asked: Vec<FileChange>,
}

impl SettledChanges<'_> {
    fn holds(&self, change: &FileChange) -> bool {
        let mut consents = self.consents.iter();
        self.asked.contains(change) || consents.any(|yes| yes.allows(std::slice::from_ref(change)))
    }
}

fn allowed_in(settled: &SettledChanges<'_>, files: &[File]) -> AllowedFiles {
    let mut allowed = AllowedFiles::default();
    for file in files {
        let change = file.change();
        if settled.holds(&change) {
            let before = file.before.as_deref().unwrap_or_default();
            allowed
                .before
                .push(String::from_utf8_lossy(before).into_owned());
            allowed.changes.push(change);
        }
    }
    allowed
}

/// Sorts the files of tests into those that were there, less what is a person's to judge, and those that are new.
fn tests_in(candidate: &Candidate<'_>, settled: &SettledChanges<'_>, files: &[File]) -> TestFiles {
    let mut tests = TestFiles::default();
    for file in files {
        if file.before.is_none() {
            if settled.holds(&file.change()) {
                continue;
            }
            let text = String::from_utf8_lossy(file.after.as_deref().unwrap_or_default());
            if protected::supports_tests(&file.path, &text) {
                tests.supports.push(file.change());
            } else if protected::is_test(&file.path) {
                tests.added.push(file.change());
            }
            continue;
        }
        if !protected::is_run_with_tests(&file.path) {
            continue;
        }
        if settled.holds(&file.change()) {
            continue;
        }
        if is_in_conflict(candidate, file) {
            tests.joined.push(file.path.clone());
        }
        tests.changed.push(file.change());
    }
    tests
}

/// Says whether a file stood against another one where a task joins two branches.
fn is_in_conflict(candidate: &Candidate<'_>, file: &File) -> bool {
    let before = file.before.as_deref().unwrap_or_default();
    candidate.task.joins.is_some() && protected::is_in_conflict(&String::from_utf8_lossy(before))
}

/// Says whether a file may hold tests of which a line counts.
fn may_hold_tests(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending);
    protected::is_run_with_tests(path) || matches!(ending, Some("rs" | "py"))
}

/// Reads the files that may hold tests and stood against each other where a task joins two branches: all that either of them has, but for
/// what only one of them took out.
async fn joined_texts(
    runner: &GateRunner,
    candidate: &Candidate<'_>,
    files: &[File],
) -> Result<BTreeMap<String, String>, GateError> {
    let joined = files.iter().filter(|file| is_in_conflict(candidate, file));
    let paths = joined.map(|file| file.path.as_str());
    let paths: Vec<&str> = paths.filter(|path| may_hold_tests(path)).collect();
    if paths.is_empty() {
        return Ok(BTreeMap::new());
    }
    let Some(join) = Join::of(&runner.clone, candidate.parent).await? else {
        return Ok(BTreeMap::new());
    };
    let texts = join.read(&runner.clone, &paths).await?;
    let read = paths.iter().zip(texts);
    let read = read.filter_map(|(path, text)| Some(((*path).to_owned(), text?.of_both())));
    Ok(read.collect())
}

/// Reads the changed files before and after.
async fn read(
    runner: &GateRunner,
    candidate: &Candidate<'_>,
    changed: &[ChangedFile],
) -> Result<Vec<File>, GateError> {
    let paths: Vec<&str> = changed.iter().map(|file| file.path.as_str()).collect();
    let of = |commit| paths.iter().map(move |path| (commit, *path));
    let places: Vec<(&CommitId, &str)> = of(candidate.parent).chain(of(candidate.commit)).collect();
    let mut before = runner.clone.read_places(&places).await?;
    let after = before.split_off(paths.len());
    let contents = before.into_iter().zip(after);
    Ok(paths
        .iter()
        .zip(contents)
        .map(|(path, (before, after))| File {
            path: (*path).to_owned(),
            before,
            after,
        })
        .collect())
}

/// Looks for what only seems to be work: stubs, and files with nothing in them.
fn look_for_work(candidate: &Candidate<'_>, files: &[File], findings: &mut Findings) {
    let text = |bytes: &Option<Vec<u8>>| {
        String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
    };
    let mut only_blanks = !candidate.task.block.preserves;
    for file in files {
        let (before, after) = (text(&file.before), text(&file.after));
        if file.before.is_none() && emptiness::is_empty(&file.path, &after) {
            let line = format!("`{}` was made with nothing in it", file.path);
            findings.add(FailureClass::EmptyChange, line);
        }
        only_blanks &= is_text(file.before.as_deref())
            && is_text(file.after.as_deref())
            && before != after
            && emptiness::differs_in_blanks(&file.path, &before, &after);
        for stub in stubs::find_added(&file.path, &before, &after) {
            let line = format!(
                "`{}` line {} is a stub: {}",
                stub.file, stub.line, stub.text
            );
            findings.add(FailureClass::StubMarker, line);
        }
    }
    if only_blanks && !files.is_empty() {
        let line = "nothing but white space was changed";
        findings.add(FailureClass::EmptyChange, line.to_owned());
    }
}

/// Looks for links that lead out of the repository: whoever reads or writes through one reaches what is not of it.
async fn look_for_ways_out(
    runner: &GateRunner,
    candidate: &Candidate<'_>,
    files: &[File],
    findings: &mut Findings,
) -> Result<(), GateError> {
    for file in files {
        let Some(target) = file.after.as_deref().and_then(scope::as_link) else {
            continue;
        };
        if !scope::leads_out(&file.path, target) {
            continue;
        }
        let found = runner
            .clone
            .list_files(candidate.commit, &file.path)
            .await?;
        let is_link = |entry: &FileEntry| entry.path == file.path && entry.kind == FileKind::Link;
        if found.iter().any(is_link) {
            let line = format!(
                "`{}` is a link to `{target}`, which is not in this repository",
                file.path
            );
            findings.add(FailureClass::OutOfScope, line);
        }
    }
    Ok(())
}

fn is_text(bytes: Option<&[u8]>) -> bool {
    bytes.is_some_and(|bytes| std::str::from_utf8(bytes).is_ok())
}

/// Lists the changes that a person has to accept.
async fn protected_in(
    runner: &GateRunner,
    gate: &Gate,
    candidate: &Candidate<'_>,
    files: &[File],
) -> Result<Vec<ProtectedChange>, GateError> {
    let reach = reach_at(runner, gate, candidate.task, candidate.parent).await?;
    let text = |bytes: &Option<Vec<u8>>| {
        bytes
            .as_deref()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let joined = joined_texts(runner, candidate, files).await?;
    let texts: Vec<_> = files
        .iter()
        .map(|file| {
            let before = joined.get(&file.path).cloned();
            (before.or_else(|| text(&file.before)), text(&file.after))
        })
        .collect();
    let changes: Vec<Change<'_>> = files
        .iter()
        .zip(&texts)
        .map(|(file, (before, after))| Change {
            path: &file.path,
            before: before.as_deref(),
            after: after.as_deref(),
        })
        .collect();
    let gained: Vec<InlineTest> = changes.iter().flat_map(protected::gained).collect();
    let rules = Rules {
        reach: &reach,
        by_project: &gate.protected,
        task: candidate.task,
        gained: &gained,
    };
    let mut found: Vec<Option<String>> = changes.iter().map(|change| rules.why(change)).collect();
    if found.iter().any(Option::is_some) {
        let reach = reach_at(runner, gate, candidate.task, candidate.commit).await?;
        let afterwards = Rules {
            reach: &reach,
            ..rules
        };
        for (why, change) in found.iter_mut().zip(&changes) {
            *why = why.take().or_else(|| afterwards.why_afterwards(change));
        }
    }
    for (why, file) in found.iter_mut().zip(files) {
        if why.is_none() && file.before.is_none() {
            *why = shadowed(runner, candidate, &rules, file).await?;
        }
    }
    let protected = files.iter().zip(found);
    let protected =
        protected.filter_map(|(file, why)| Some(ProtectedChange::of(file.change(), why?)));
    Ok(protected.collect())
}

/// Says whether a new package of Python is imported in the place of what was there, `x/__init__.py` of `x.py`, and that is a
/// test, or what judges.
async fn shadowed(
    runner: &GateRunner,
    candidate: &Candidate<'_>,
    rules: &Rules<'_>,
    file: &File,
) -> Result<Option<String>, GateError> {
    let path = &file.path;
    let module = path.strip_suffix("/__init__.py");
    let module = module.map(|folder| format!("{folder}.py"));
    let Some(module) = module.filter(|module| rules.is_stood_in_for(module, path)) else {
        return Ok(None);
    };
    let there = runner.clone.read_file(candidate.parent, &module).await?;
    Ok(there.map(|_| {
        let what = if protected::is_test(&module) {
            "the test "
        } else {
            ""
        };
        format!("`{path}` is imported in the place of {what}`{module}`")
    }))
}

/// Finds what the checks of a task name and run, by what files hold at a commit.
async fn reach_at(
    runner: &GateRunner,
    gate: &Gate,
    task: &ropewalk_schemas::task::Task,
    commit: &CommitId,
) -> Result<protected::Reach, GateError> {
    let checks = checks(runner, gate, task);
    let mut contents = protected::Contents::default();
    loop {
        let reach = protected::reach(&checks, &contents);
        if contents.lacks_paths() {
            let files = runner.clone.list_files(commit, "").await?;
            contents.list(files.into_iter().map(|file| file.path).collect());
            continue;
        }
        let wanted = contents.wanted();
        if wanted.is_empty() {
            return Ok(reach);
        }
        let most = protected::MOST_BYTES;
        let found = runner.clone.read_small_files(commit, &wanted, most).await?;
        for (path, bytes) in wanted.iter().zip(found) {
            if let Some(bytes) = bytes {
                contents.add(path, &bytes);
            }
        }
    }
}

/// Lists the files of a commit that a task may not ask for: they judge it, or the project protects them.
pub async fn kept_files(
    runner: &GateRunner,
    base: Option<&CommitId>,
    task: &ropewalk_schemas::task::Task,
    commit: &CommitId,
) -> Result<Vec<String>, GateError> {
    let gate = runner.gate_at(base).await?;
    let reach = reach_at(runner, &gate, task, commit).await?;
    let rules = Rules {
        reach: &reach,
        by_project: &gate.protected,
        task,
        gained: &[],
    };
    let files = runner.clone.list_files(commit, "").await?;
    let paths = files.into_iter().map(|file| file.path);
    Ok(paths
        .filter(|path| protected::is_kept(path, &rules))
        .collect())
}
