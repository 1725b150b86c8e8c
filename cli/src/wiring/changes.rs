//! Shows the server what a build changed, as its commits have it.

use std::sync::Arc;

use ropewalk_config::Environment;
use ropewalk_desk::views::lines::FileLines;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::build::Build;
use ropewalk_server::Changes;
use ropewalk_workspace::{Git, GitError, Identity, LocalClone, LocalCloneOptions};
use tokio::sync::OnceCell;

use crate::error::CliError;
use crate::project::Project;

/// The most files that are shown.
const MOST_FILES: usize = 300;

/// Reads the lines that a build changed.
pub(crate) async fn changed_lines(
    project: &Project,
    environment: &Environment,
    build: &Build,
) -> Result<Vec<FileLines>, CliError> {
    let git = super::git(environment).await?;
    let clone = super::open_clone(project, git).await?;
    Ok(lines(&clone, build).await?)
}

/// Returns what tells the lines that a build changed; the clone is opened when somebody first asks.
pub(super) fn changes(git: Git, project: &Project) -> Changes {
    let options = LocalCloneOptions {
        user_repository: project.locations.repository.clone(),
        state: project.state().to_owned(),
        identity: Identity::default(),
    };
    let clone: Arc<OnceCell<LocalClone>> = Arc::default();
    Arc::new(move |build| {
        let (git, options, clone) = (git.clone(), options.clone(), Arc::clone(&clone));
        Box::pin(async move {
            let open = || LocalClone::open_or_create(git, options);
            let clone = clone.get_or_try_init(open).await;
            let clone = clone.map_err(|error| Words::of(&error).to_string())?;
            let lines = lines(clone, &build).await;
            lines.map_err(|error| Words::of(&error).to_string())
        })
    })
}

/// Reads the lines between the base of a build and its head; the folder of its idea goes along with it and is no work.
async fn lines(clone: &LocalClone, build: &Build) -> Result<Vec<FileLines>, GitError> {
    let (Some(base), Some(head)) = (&build.base, &build.head) else {
        return Ok(Vec::new());
    };
    let (base, head) = (base.as_str(), head.as_str());
    let folder = format!("ideas/{}/", build.idea);
    let mut files = Vec::new();
    let changed = clone.changed_files(base, head).await?;
    let changed = changed.into_iter().map(|changed| changed.path);
    let work = changed.filter(|path| !path.starts_with(&folder));
    for path in work.take(MOST_FILES) {
        let found = clone.diff_of(base, head, &[&path]).await?;
        let mut file = FileLines::of_difference(&found.text);
        if found.truncated {
            for file in &mut file {
                // Numbers after a gap would be wrong.
                file.lines.clear();
                file.cut = true;
            }
        }
        files.extend(file);
    }
    Ok(files)
}
