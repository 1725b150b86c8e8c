//! Installs packages beside a commit, in the environment of the gate, and sees to it that nothing else comes of it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ropewalk_schemas::CommitId;
use ropewalk_schemas::attempt::{CheckRun, FailureClass};
use ropewalk_schemas::task::Task;
use ropewalk_workspace::{ChangeKind, ChangedFile};
use tokio_util::sync::CancellationToken;

use crate::checks::Gate;
use crate::difference::scope;
use crate::error::GateError;
use crate::judge::Ruling;
use crate::packages::{Install, installs, looked_at};
use crate::runner::{Check, Findings, GateRunner, Place, Turn};

/// So many files that an install changed are named.
const NAMED_FILES: usize = 5;

/// Lists what makes a checkout of `commit` ready for tasks: what the gate says, and the packages of those that missed some
/// before.
pub async fn for_tasks(
    runner: &GateRunner,
    gate: &Gate,
    commit: &CommitId,
    tasks: impl IntoIterator<Item = &Task>,
) -> Result<Vec<Install>, GateError> {
    let mut installs: Vec<Install> = gate.setup.clone().map(Install::Setup).into_iter().collect();
    let missed = tasks.into_iter().filter(|task| task.installs > 0);
    let missed: Vec<&Task> = missed.collect();
    if !missed.is_empty() {
        installs.extend(found_at(runner, commit, missed).await?);
    }
    Ok(installs)
}

/// Lists what can be installed for tasks at a commit.
pub async fn found_at(
    runner: &GateRunner,
    commit: &CommitId,
    tasks: impl IntoIterator<Item = &Task>,
) -> Result<Vec<Install>, GateError> {
    let files: Vec<_> = tasks
        .into_iter()
        .flat_map(|task| std::iter::once(&task.block.file).chain(&task.block.more_files))
        .collect();
    let managers = &runner.package_managers;
    let paths = looked_at(managers, &files);
    // What the commit holds is asked, and not the checkout: a link there could lead anywhere.
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let contents = runner.clone.read_files(commit, &paths).await?;
    let read = |path: &str| {
        let place = paths.binary_search(&path).ok()?;
        contents.get(place)?.as_deref()
    };
    Ok(installs(managers, &files, read))
}

/// Installs in the checkout of a turn; none when it was ended from outside.
pub async fn in_turn(
    runner: &GateRunner,
    turn: &mut Turn<'_>,
    installs: &[Install],
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<Option<Vec<CheckRun>>, GateError> {
    let clean = &turn.clean;
    let variables = clean.variables();
    let place = Place {
        directory: clean.root(),
        variables: &variables,
        target: clean.target_directory(),
    };
    let Some(runs) = run(runner, &place, installs, cancel, findings).await? else {
        return Ok(None);
    };
    turn.variables = variables;
    turn.variables
        .extend(python_path(turn.clean.root(), installs));
    if !installs.is_empty() && findings.is_clean() {
        note_strays(&turn.clean.changed_files().await?, installs, findings);
        if !findings.is_clean()
            && let Some(commit) = turn.clean.commit().cloned()
        {
            turn.clean.move_to(&commit).await?;
        }
    }
    Ok(Some(runs))
}

/// Runs the installs until one fails; none when they were ended from outside.
pub async fn run(
    runner: &GateRunner,
    place: &Place<'_>,
    installs: &[Install],
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<Option<Vec<CheckRun>>, GateError> {
    let mut runs = Vec::new();
    for install in installs {
        let name = install.name();
        let check = Check {
            name: &name,
            command: install.command(),
            level: None,
            kind: None,
            expected: None,
            counts: None,
            timeout: runner.validation_timeout,
            install: Some(install),
        };
        let Some((run, ruling)) = runner.run(place, &check, cancel).await? else {
            return Ok(None);
        };
        match ruling {
            Ruling::Holds | Ruling::Cancelled => {}
            Ruling::Held { finding } => findings.hold(finding),
            Ruling::Fails { class, finding } => {
                let line = format!("{finding}: {}", check.command);
                if install.is_of_packages() || is_passing(class) {
                    findings.fail(class_of(class), line, &run.output);
                } else {
                    findings.hold_with(line, &run.output);
                }
            }
        }
        runs.push(run);
        if !findings.is_clean() {
            break;
        }
    }
    Ok(Some(runs))
}

/// Says whether it keeps an install from its work for a while only.
const fn is_passing(found: FailureClass) -> bool {
    matches!(found, FailureClass::Network | FailureClass::Resource)
}

/// What keeps an install from its work for a while is waited out; all else is a package that cannot be had.
const fn class_of(found: FailureClass) -> FailureClass {
    if is_passing(found) {
        found
    } else {
        FailureClass::MissingDependency
    }
}

/// Tells of files that installs changed and that are no products of them.
pub fn note_strays(changed: &[ChangedFile], installs: &[Install], findings: &mut Findings) {
    let strays: Vec<String> = changed
        .iter()
        .filter(|file| !is_product(file))
        .map(|file| format!("`{}`", file.path))
        .collect();
    if strays.is_empty() {
        return;
    }
    let named = strays[..strays.len().min(NAMED_FILES)].join(", ");
    let are_packages = installs.iter().all(Install::is_of_packages);
    let who = if are_packages { "install" } else { "setup" };
    let line = format!(
        "the {who} changed {} files that belong to the project, which was undone: {named}",
        strays.len()
    );
    if are_packages {
        findings.fail(FailureClass::MissingDependency, line, "");
    } else {
        // No task can mend the line of the base commit.
        findings.hold(line);
    }
}

fn is_product(file: &ChangedFile) -> bool {
    let sorted = scope::sort(std::slice::from_ref(file), &[]);
    file.kind == ChangeKind::Added && !sorted.products.is_empty()
}

/// Returns the variable that tells Python where the packages are, if there are any.
pub fn python_path(root: &Path, installs: &[Install]) -> Option<(OsString, OsString)> {
    let places: Vec<PathBuf> = installs
        .iter()
        .filter_map(Install::python_path)
        .map(|place| root.join(place))
        .collect();
    // A root with a colon in its name cannot be told to Python at all.
    let joined = std::env::join_paths(places).ok()?;
    (!joined.is_empty()).then(|| ("PYTHONPATH".into(), joined))
}

/// Tells installs by what they run and where.
pub fn are_of(runs: &[CheckRun], installs: &[Install]) -> bool {
    runs.len() == installs.len()
        && runs
            .iter()
            .zip(installs)
            .all(|(run, install)| run.name == install.name() && run.command == install.command())
}
