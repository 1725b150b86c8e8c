//! Shows the server and the bot what a build changed and what landing it comes to, as its commits have it.

use std::sync::Arc;

use ropewalk_builder::Shape;
use ropewalk_builder::land::{self, LandError, LandRequest, LandingPreview};
use ropewalk_config::Environment;
use ropewalk_desk::builds::landing::{LandingView, Landings};
use ropewalk_desk::views::lines::FileLines;
use ropewalk_desk::views::review::{self, ObjectionView};
use ropewalk_orchestrator::{Context, Services};
use ropewalk_schemas::ComponentName;
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

/// The local clone of a project, opened when somebody first asks.
#[derive(Clone)]
pub(super) struct LazyClone {
    git: Git,
    options: LocalCloneOptions,
    clone: Arc<OnceCell<LocalClone>>,
}

impl LazyClone {
    pub(super) fn of(git: Git, project: &Project) -> Self {
        Self {
            git,
            options: LocalCloneOptions {
                user_repository: project.locations.repository.clone(),
                state: project.state().to_owned(),
                identity: Identity::default(),
            },
            clone: Arc::default(),
        }
    }

    /// Returns the clone.
    pub(super) async fn get(&self) -> Result<&LocalClone, GitError> {
        let open = || LocalClone::open_or_create(self.git.clone(), self.options.clone());
        self.clone.get_or_try_init(open).await
    }
}

/// Returns what tells the lines that a build changed.
pub(super) fn changes(clone: LazyClone) -> Changes {
    Arc::new(move |build| {
        let clone = clone.clone();
        Box::pin(async move {
            let read = async { lines(clone.get().await?, &build).await };
            read.await
                .map_err(|error: GitError| Words::of(&error).to_string())
        })
    })
}

/// Returns what tells what landing a build would come to.
pub(super) fn landings(clone: LazyClone, project: &Project, services: &Services) -> Landings {
    let shape = Shape::configured(&project.config().build);
    let services = services.clone();
    Arc::new(move |build| {
        let (clone, services) = (clone.clone(), services.clone());
        Box::pin(async move {
            let clone = clone.get().await;
            let clone = clone.map_err(|error| Words::of(&error).to_string())?;
            let source = ComponentName::parse("landing").map_err(|error| error.to_string())?;
            let context = Context::new(&services, source);
            let request = LandRequest {
                build: build.id,
                into: None,
                push: None,
                shape,
                by: String::new(),
            };
            let preview = land::preview(clone, &context, &request).await;
            let objections = review::objections(&services.store, &build).await;
            let objections = objections.map_err(|error| Words::of(&error).to_string())?;
            Ok(landing(&build, preview, objections))
        })
    })
}

fn landing(
    build: &Build,
    preview: Result<LandingPreview, LandError>,
    objections: Vec<ObjectionView>,
) -> LandingView {
    let refused = preview.as_ref().err();
    LandingView {
        build: build.id,
        into: build.target.clone(),
        from: build.head.clone(),
        onto: preview.as_ref().ok().map(|preview| preview.onto.clone()),
        refusal: refused.map(|refusal| Words::of(refusal).to_string()),
        conflicts: refused.and_then(LandError::sides),
        comes_to: preview
            .as_ref()
            .ok()
            .map(|preview| preview.way.before().to_owned()),
        gate: preview.as_ref().is_ok_and(|preview| preview.gate),
        documents: preview.ok().and_then(|preview| preview.documents),
        objections,
    }
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
