//! Takes pictures of repositories and stores, so that two runs can be compared.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use ropewalk_runtime::Clock;
use ropewalk_schemas::EventPattern;
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_schemas::wait::Wait;
use ropewalk_store::{EventFilter, Location, Query, Store, StoredEvent};

/// The type of the event of a timer.
pub(crate) use ropewalk_world::likeness::TIMER;
use serde_json::Value;

/// How long a whole rehearsal may take on a busy machine.
pub(crate) const REHEARSAL: Duration = Duration::from_mins(5);

/// One commit of a build branch, without what differs from run to run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LandedCommit {
    pub(crate) task: String,
    pub(crate) subject: String,
    pub(crate) requirements: Vec<String>,
    pub(crate) files: Vec<String>,
}

/// Returns the events of one type, in the order of their commits.
pub(crate) async fn events_of(store: &Store, event_type: &str) -> anyhow::Result<Vec<StoredEvent>> {
    let filter = EventFilter {
        pattern: Some(EventPattern::of(event_type)),
        limit: Some(1_000_000),
        ..EventFilter::default()
    };
    Ok(store.events(&filter).await?)
}

/// Runs git in `repository` and returns what it says.
pub(crate) fn git(repository: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    Ok(ropewalk_tests::repository::git(repository, arguments)?)
}

/// Returns the commits of `branch` that brought a task and that `main` has not, sorted by task. The first brings the idea
/// folder, and the last of a build that came to its end what became of the tasks.
pub(crate) fn landed(repository: &Path, branch: &str) -> anyhow::Result<Vec<LandedCommit>> {
    let range = format!("main..{branch}");
    let shas = git(
        repository,
        &["log", "--reverse", "--first-parent", "--format=%H", &range],
    )?;
    let mut commits = Vec::new();
    for sha in shas.lines().skip(1) {
        commits.push(commit(repository, sha)?);
    }
    if commits.last().is_some_and(|last| last.task.is_empty()) {
        commits.pop();
    }
    commits.sort();
    Ok(commits)
}

fn commit(repository: &Path, sha: &str) -> anyhow::Result<LandedCommit> {
    let trailer = |name: &str| {
        let format = format!("--format=%(trailers:key={name},valueonly)");
        git(repository, &["log", "-1", &format, sha])
    };
    let execution = trailer("Ropewalk-Execution")?;
    ensure!(
        !execution.trim().is_empty(),
        "commit `{sha}` names no execution"
    );
    let lines = |text: String| -> Vec<String> {
        text.lines()
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()
    };
    Ok(LandedCommit {
        task: trailer("Ropewalk-Task")?.trim().to_owned(),
        subject: git(repository, &["log", "-1", "--format=%s", sha])?,
        requirements: lines(trailer("Ropewalk-Requirement")?),
        files: lines(git(repository, &["show", "--format=", "--name-only", sha])?),
    })
}

/// Returns the tree of `folder` on `branch`.
pub(crate) fn tree(repository: &Path, branch: &str, folder: &str) -> anyhow::Result<String> {
    git(repository, &["rev-parse", &format!("{branch}:{folder}")])
}

/// Clones `branch` afresh and runs the tests of the package in `folder`; returns how many passed.
pub(crate) fn tests_pass(repository: &Path, branch: &str, folder: &str) -> anyhow::Result<usize> {
    let clone = tempfile::tempdir()?;
    let at = clone.path().join("clone");
    let (from, to) = (repository.display().to_string(), at.display().to_string());
    git(
        clone.path(),
        &["clone", "--quiet", "--branch", branch, &from, &to],
    )?;
    let output = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--quiet"])
        .current_dir(at.join(folder))
        .env("CARGO_TARGET_DIR", clone.path().join("target"))
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success(),
        "the tests of `{folder}` fail: {said}"
    );
    let passed = said.lines().filter_map(|line| {
        let rest = line.strip_prefix("test result: ok. ")?;
        rest.split(' ').next()?.parse::<usize>().ok()
    });
    Ok(passed.sum())
}

/// Opens the store of the project in `directory`, beside whatever runs there.
pub(crate) async fn store(directory: &Path) -> anyhow::Result<Store> {
    let file = database(&directory.join("state")).context("no database in the state directory")?;
    Ok(Store::open(&Location::Sqlite(file), Clock::system()).await?)
}

/// Checks that nothing is left open: no delivery, no lease, no wait. A timer may fire in the moment of the stop.
pub(crate) async fn check_at_rest(store: &Store) -> anyhow::Result<()> {
    let mut open = store.open_deliveries(None, 0, 100).await?;
    open.retain(|row| row.event.event_type != TIMER);
    assert!(open.is_empty(), "{open:?}");
    let leases = store.list::<Lease>(Query::new()).await?;
    assert!(
        leases
            .iter()
            .all(|lease| lease.state != LeaseState::Granted),
        "{leases:?}"
    );
    let waits = store.list::<Wait>(Query::new()).await?;
    let people_only = waits.iter().all(|wait| wait.resource.is_sink());
    assert!(people_only, "{waits:?}");
    Ok(())
}

fn database(state: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(state).ok()?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "db"))
}

/// Returns the member at `pointer`, or says that it is missing.
pub(crate) fn at<'value>(value: &'value Value, pointer: &str) -> anyhow::Result<&'value Value> {
    value
        .pointer(pointer)
        .with_context(|| format!("no `{pointer}` in {value}"))
}
