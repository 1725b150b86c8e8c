//! Lays what a replay stands on: an empty directory, a repository of one commit, the folder of the idea.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ropewalk_desk::builds::again::Again as Plan;
use ropewalk_schemas::CommitId;
use ropewalk_schemas::build::Build;
use ropewalk_workspace::{Git, Identity, LocalClone, LocalCloneOptions};

use crate::error::CliError;
use crate::project::Project;

/// The name of the repository in the directory.
pub(super) const REPOSITORY: &str = "repo";
/// The name of the state in it.
pub(super) const STATE: &str = "state";
/// Names the task of a commit.
const TASK: &str = "Ropewalk-Task";
/// Names the build that made a commit.
const EXECUTION: &str = "Ropewalk-Execution";

/// Takes a directory that is not there yet, or is empty.
pub(super) fn fresh(directory: &Path) -> Result<PathBuf, CliError> {
    let absolute = std::path::absolute(directory).map_err(CliError::failed)?;
    let refused = |error: &std::io::Error| CliError::file(&absolute, error);
    match std::fs::read_dir(&absolute).map(|mut entries| entries.next().is_none()) {
        Ok(true) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::create_dir_all(&absolute).map_err(|error| refused(&error))?;
        }
        Ok(false) => {
            let text = (
                format!("`{}` is not empty", absolute.display()),
                "name a new directory with `--into`",
            );
            return Err(CliError::refused("file", text));
        }
        Err(error) => return Err(refused(&error)),
    }
    absolute.canonicalize().map_err(|error| refused(&error))
}

/// Makes the repository with the base of the build, what it goes on from, what it joined, and the folder of its idea as the
/// build took it along.
pub(super) async fn lay(
    before: &LocalClone,
    build: &Build,
    plan: &mut Plan,
    project: &Project,
) -> Result<(), CliError> {
    let (Some(base), Some(head)) = (&build.base, &build.head) else {
        return Ok(());
    };
    let repository = &project.locations.repository;
    before.copy_to(repository, &build.target, base).await?;
    let ground = plan.ground().and_then(|ground| ground.head.clone());
    if let Some(head) = &ground {
        before.add_to(repository, &build.branch, head).await?;
    }
    for joined in plan.joined() {
        if let Some(head) = &joined.head {
            before.add_to(repository, &joined.branch, head).await?;
        }
    }
    bring_kept(before, plan, repository).await?;
    crate::wiring::make_state(project.state())?;
    let since = ground.as_ref().unwrap_or(base);
    let first = folder_commit(before, build, (since, head)).await?;
    // Who goes on with the folder as it was takes none along.
    let Some(first) = first.or(ground) else {
        return Ok(());
    };
    let from = format!("ideas/{}", build.idea);
    let ideas = project.state().join("users").join(build.user.as_str());
    for file in before.list_files(&first, &from).await? {
        let Some(content) = before.read_file(&first, &file.path).await? else {
            continue;
        };
        let path = ideas.join(&file.path);
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        written
            .and_then(|()| std::fs::write(&path, content))
            .map_err(|error| CliError::file(&path, &error))?;
    }
    Ok(())
}

/// Brings along what was begun in builds before, which the next attempt at the same task finds: each as a branch of its
/// own, by which the clone of the replay gets it.
async fn bring_kept(
    before: &LocalClone,
    plan: &mut Plan,
    repository: &Path,
) -> Result<(), CliError> {
    for attempt in plan.kept() {
        let kept = match attempt.preserve_ref.take() {
            Some(reference) => before.resolve(&reference).await?,
            None => None,
        };
        attempt.candidate = kept.or(attempt.candidate.take());
        if let Some(commit) = &attempt.candidate {
            let branch = format!("kept/{}", attempt.id);
            before.add_to(repository, &branch, commit).await?;
        }
    }
    Ok(())
}

/// Finds the commit that added the folder of the idea: the first that the build made, where that is of no task and joins
/// nothing; none where the folder did not travel with the code.
async fn folder_commit(
    clone: &LocalClone,
    build: &Build,
    (since, head): (&CommitId, &CommitId),
) -> Result<Option<CommitId>, CliError> {
    let execution = (EXECUTION.to_owned(), build.id.to_string());
    let log = clone.log(Some(since), head).await?;
    let mut own = log
        .into_iter()
        .filter(|commit| commit.trailers.contains(&execution));
    let is_of_task = |trailers: &[(String, String)]| trailers.iter().any(|(name, _)| name == TASK);
    Ok(own
        .next()
        .filter(|commit| commit.parents.len() == 1 && !is_of_task(&commit.trailers))
        .map(|commit| commit.id))
}

/// Where a project lies.
pub(super) struct Place {
    repository: PathBuf,
    state: PathBuf,
}

impl Place {
    /// Takes the place of a project.
    pub(super) fn of(project: &Project) -> Self {
        Self {
            repository: project.locations.repository.clone(),
            state: project.state().to_owned(),
        }
    }

    /// Opens its local clone.
    pub(super) async fn open(self, git: Git) -> Result<LocalClone, CliError> {
        let options = LocalCloneOptions {
            user_repository: self.repository,
            state: self.state,
            identity: Identity::default(),
        };
        Ok(LocalClone::open_or_create(git, options).await?)
    }
}
