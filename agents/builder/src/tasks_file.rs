//! Lets the tasks.md in the idea folder follow what SQL says about its tasks.

use std::path::Path;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::BuildId;
use ropewalk_schemas::document::tasks_md::{self, Progress};
use ropewalk_workspace::FileLock;
use tracing::warn;

use super::Shared;
use super::context::Plan;
use super::error::BuilderError;
use super::prime::idea_folder;

/// Writes states and times into tasks.md; a folder without one, or with one that cannot be read, is left alone.
pub(crate) async fn write(
    shared: &Shared,
    context: &Context,
    build: BuildId,
) -> Result<(), BuilderError> {
    // Two that write at once could leave what is older.
    let _alone = FileLock::wait(&shared.state.join("tasks.lock")).await?;
    let Some(plan) = Plan::load(&context.store, build).await? else {
        return Ok(());
    };
    let path = idea_folder(shared, &plan.build)
        .join("build")
        .join("tasks.md");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(unusable(&path, source)),
    };
    let mut document = match tasks_md::parse(&text) {
        Ok(document) => document,
        Err(error) => {
            warn!("`{}` is left as it is: {error}", path.display());
            return Ok(());
        }
    };
    for task in &plan.tasks {
        let progress = Progress {
            status: task.state,
            assigned_to: task.assigned_to.clone(),
            started_at: task.claimed_at,
            completed_at: task.completed_at,
        };
        if let Err(error) = document.set_status(&task.id, &progress) {
            warn!(
                "`{}` does not hold task `{}`: {error}",
                path.display(),
                task.id
            );
        }
    }
    let updated = document.to_string();
    if updated == text {
        return Ok(());
    }
    // A reader sees the old file or the new one, never half of it.
    let fresh = path.with_extension("md.new");
    std::fs::write(&fresh, updated).map_err(|source| unusable(&fresh, source))?;
    std::fs::rename(&fresh, &path).map_err(|source| unusable(&path, source))
}

fn unusable(path: &Path, source: std::io::Error) -> BuilderError {
    BuilderError::File {
        path: path.display().to_string(),
        source,
    }
}
