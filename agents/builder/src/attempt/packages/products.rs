//! Keeps what tools build in attempts, for cargo above all: a directory for each loop and build, so that no build finds what
//! the commands of another one left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::{BuildId, ComponentName};
use ropewalk_workspace::remove_tree;
use tracing::warn;

use crate::attempt::work::Work;
use crate::context::builds_in;
use crate::error::BuilderError;

/// The states of builds that no attempt works on any more.
const OVER: [BuildState; 3] = [
    BuildState::Succeeded,
    BuildState::Failed,
    BuildState::Stopped,
];

/// Returns the directory of an attempt.
pub(in crate::attempt) fn directory(work: &Work<'_>) -> PathBuf {
    let attempt = &work.claim.attempt;
    of_loop(&work.shared.state, &attempt.loop_name).join(attempt.build.to_string())
}

fn of_loop(state: &Path, name: &ComponentName) -> PathBuf {
    state.join("work").join(name.as_str()).join("target")
}

/// Removes what the loop of an attempt built for builds that have ended, beside the attempt.
pub(in crate::attempt) async fn clear_others(work: &Work<'_>) -> Result<(), BuilderError> {
    let attempt = &work.claim.attempt;
    let place = of_loop(&work.shared.state, &attempt.loop_name);
    let others = others(&place, attempt.build);
    if others.is_empty() {
        return Ok(());
    }
    let alive = builds_in(&work.context.store, BuildState::ALL).await?;
    let alive = alive.iter().filter(|build| !OVER.contains(&build.state));
    let alive: BTreeSet<String> = alive.map(|build| build.id.to_string()).collect();
    let over = others.into_iter().filter(|name| !alive.contains(name));
    let over: Vec<PathBuf> = over.map(|name| place.join(name)).collect();
    tokio::task::spawn_blocking(move || remove(&over));
    Ok(())
}

fn remove(directories: &[PathBuf]) {
    for directory in directories {
        if let Err(error) = remove_tree(directory) {
            warn!("cannot remove `{}`: {error}", directory.display());
        }
    }
}

/// Lists what lies beside the directory of a build; nothing where that cannot be read.
fn others(place: &Path, build: BuildId) -> Vec<String> {
    let own = build.to_string();
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| *name != own)
        .collect()
}
