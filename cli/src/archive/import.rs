//! Verb `import`: takes a project out of a file that `export` wrote; it arrives stopped.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;
use ropewalk_config::{PROJECT_FILE, ProjectFile};
use ropewalk_desk::halt::{self, HaltError};
use ropewalk_runtime::failpoint;
use ropewalk_schemas::ProjectName;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::person::Right;
use ropewalk_store::{Query, Versioned, leave_behind};
use ropewalk_workspace::{
    Git, GitError, Identity, LocalClone, LocalCloneOptions, PublishError, UserRepository,
};
use serde::Serialize;

use super::place::{Occupancy, Place};
use super::staging::StagingFolder;
use super::{BUNDLE, Manifest, SETTINGS, STATE, refusal, unpack};
use crate::app::App;
use crate::error::CliError;
use crate::project::Project;
use crate::wiring::{self, OpenProject};

/// Why it arrives stopped.
const REASON: &str = "imported from an archive";

/// What is imported, and where to.
#[derive(Debug, Args)]
pub struct Import {
    /// A file that `export` wrote.
    file: PathBuf,
    /// A clone of the repository, or a folder that is not there yet and becomes one; by default this directory.
    #[arg(value_name = "DIRECTORY")]
    to: Option<PathBuf>,
    /// Names the project, where the name of the archive is taken.
    #[arg(long)]
    name: Option<ProjectName>,
    /// Says what would come to stand where, and imports nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    project: ProjectName,
    repository: PathBuf,
    state: PathBuf,
    builds: usize,
    /// The keys of the configuration that came with the repository, or was there, which had to say something else.
    changed: Vec<&'static str>,
}

/// What would come to stand where.
#[derive(Debug, Serialize)]
struct Preview {
    project: ProjectName,
    repository: PathBuf,
    /// Whether the repository is made.
    new_repository: bool,
    state: PathBuf,
    size_bytes: u64,
}

impl Preview {
    fn of(place: &Place, manifest: &Manifest) -> Self {
        Self {
            project: place.locations.name.clone(),
            repository: place.locations.repository.clone(),
            new_repository: place.found == Occupancy::Nothing,
            state: place.locations.state.clone(),
            size_bytes: manifest.size_bytes,
        }
    }

    fn told(&self) -> String {
        let new = if self.new_repository { " (new)" } else { "" };
        format!(
            "project     {}\nrepository  {}{new}\nstate       {} ({} MiB)\nnext        nothing was imported; leave out `--dry-run`",
            self.project,
            self.repository.display(),
            self.state.display(),
            self.size_bytes.div_ceil(1 << 20)
        )
    }
}

impl Import {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let here = app.directory()?;
        let file = here.join(&self.file);
        let directory = self
            .to
            .map_or(Ok(here.clone()), |to| real(&here.join(to)))?;
        // Whatever can be refused is refused before anything is written.
        let manifest = unpack::manifest(&file)?;
        let names = (self.name.as_ref(), &manifest.project);
        let (place, project) = Place::of(app, &directory, names)?;
        project.person()?.demand(Right::Stop)?;
        if self.dry_run {
            let preview = Preview::of(&place, &manifest);
            return app.output.show(&preview, Preview::told);
        }
        let git = wiring::git(&app.environment).await?;
        let staged = StagingArea::of(&place, &manifest)?;
        let (path, folder) = (file.clone(), staged.folder.path().to_owned());
        let unpacking = tokio::task::spawn_blocking(move || unpack::unpack(&path, &folder));
        unpacking.await.map_err(CliError::failed)??;
        let builds = Box::pin(staged.build(&git, &manifest, project)).await?;
        let changed = staged.settle(app)?;
        let locations = place.locations;
        let imported = Report {
            project: locations.name,
            repository: locations.repository,
            state: locations.state,
            builds,
            changed,
        };
        app.output.show(&imported, |done| {
            let changed = match done.changed.join("`, `") {
                keys if keys.is_empty() => String::new(),
                keys => format!("\nchanged     `{keys}` in `{PROJECT_FILE}`"),
            };
            format!(
                "project     {}\nrepository  {}\nstate       {}{changed}\nnext        everything is stopped: read `ropewalk trust`, then `ropewalk resume` and `ropewalk up`",
                done.project,
                done.repository.display(),
                done.state.display(),
            )
        })
    }
}

/// Returns a path without links and steps back, whose last part need not be there.
fn real(path: &Path) -> Result<PathBuf, CliError> {
    if let Ok(real) = path.canonicalize() {
        return Ok(real);
    }
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(path.to_owned());
    };
    let above = above.canonicalize();
    let above = above.map_err(|error| CliError::file(path, &error))?;
    Ok(above.join(name))
}

/// Folders beside the places of what comes to stand, so that all of it comes there by renaming; they go away again
/// unless it does.
struct StagingArea<'a> {
    place: &'a Place,
    /// What is unpacked, on the disk of the state.
    folder: StagingFolder,
    /// The repository that is made, on the disk of its place.
    repository: Option<StagingFolder>,
}

impl<'a> StagingArea<'a> {
    fn of(place: &'a Place, manifest: &Manifest) -> Result<Self, CliError> {
        let repository = match (place.found, &manifest.branch) {
            (Occupancy::Folder | Occupancy::Project, _) => None,
            (Occupancy::Nothing, Some(_)) => {
                let made = StagingFolder::beside(&place.directory);
                Some(made.map_err(|error| CliError::file(&place.directory, &error))?)
            }
            (Occupancy::Nothing, None) => {
                let message = "no branch was checked out where the archive was written";
                return Err(refusal(message, "import it into a clone of the repository"));
            }
        };
        Ok(Self {
            place,
            folder: aside(&place.locations.state, manifest)?,
            repository,
        })
    }

    /// Makes of what was unpacked what comes to stand: a repository where there is none, the clone, a database that is
    /// stopped; returns how many builds there are.
    async fn build(
        &self,
        git: &Git,
        manifest: &Manifest,
        project: Project,
    ) -> Result<usize, CliError> {
        let folder = self.folder.path();
        let (state, bundle) = (folder.join(STATE), folder.join(BUNDLE));
        let repository = match (&self.repository, &manifest.branch) {
            (Some(made), Some(branch)) => {
                UserRepository::from_bundle(git, &bundle, made.path(), branch).await?;
                made.path()
            }
            _ => &self.place.locations.repository,
        };
        let options = LocalCloneOptions {
            user_repository: repository.to_owned(),
            state: state.clone(),
            identity: Identity::default(),
        };
        let clone = LocalClone::open_or_create(git.clone(), options).await?;
        clone.take_bundle(&bundle).await?;
        if !clone.shares_history().await? {
            let message = format!("`{}` is another repository", repository.display());
            return Err(refusal(message, "import it into a clone of its own one"));
        }
        let builds = Box::pin(stop(project, &state)).await?;
        let many = builds.len();
        for build in builds {
            follow(&clone, &build).await?;
        }
        std::fs::remove_file(bundle).map_err(|error| CliError::file(folder, &error))?;
        Ok(many)
    }

    /// Moves all of it to its place, the state last: until then a project without one stands there, to which the archive
    /// can be imported again. What cannot be finished is taken away.
    /// Returns the keys of a configuration that was there which had to say something else.
    fn settle(&self, app: &App) -> Result<Vec<&'static str>, CliError> {
        let (folder, place) = (self.folder.path(), self.place);
        let in_folder = |error| CliError::file(folder, &error);
        let root = File::open(folder).map_err(in_folder)?;
        nix::unistd::syncfs(&root).map_err(|error| in_folder(error.into()))?;
        let settings = settings(&folder.join(SETTINGS), &place.locations.name)?;
        let file = place.directory.join(PROJECT_FILE);
        let before = std::fs::read(&file);
        let changed = match (place.found, &self.repository) {
            (Occupancy::Project, _) => place.adapt(app, &place.directory)?,
            (_, Some(made)) => {
                let path = made.path().join(PROJECT_FILE);
                // One that came with the repository stays, but for where the project lies.
                let changed = if path.symlink_metadata().is_ok() {
                    place.adapt(app, made.path())?
                } else {
                    write_new(&path, &settings)?;
                    Vec::new()
                };
                open_to_others(made.path())?;
                rename(made.path(), &place.directory)?;
                changed
            }
            (_, None) => {
                write_new(&file, &settings)?;
                Vec::new()
            }
        };
        failpoint!("import.between");
        let settled = rename(&folder.join(STATE), &place.locations.state);
        if settled.is_err() {
            // What was not there before holds nothing of anybody else.
            match (place.found, &self.repository) {
                (Occupancy::Project, _) => drop(before.map(|text| std::fs::write(&file, text))),
                (_, Some(_)) => drop(std::fs::remove_dir_all(&place.directory)),
                (_, None) => drop(std::fs::remove_file(file)),
            }
        }
        settled.map(|()| changed)
    }
}

/// Makes the folder to unpack to beside the state, where there has to be room for all of it.
fn aside(state: &Path, manifest: &Manifest) -> Result<StagingFolder, CliError> {
    let above = state.parent().unwrap_or(Path::new("/"));
    wiring::make_state(above)?;
    let in_above = |error| CliError::file(above, &error);
    let disk = nix::sys::statvfs::statvfs(above).map_err(|error| in_above(error.into()))?;
    let free = disk.blocks_available().saturating_mul(disk.fragment_size());
    if free < manifest.size_bytes {
        let message = format!(
            "`{}` has {} MiB free, and the archive takes {}",
            above.display(),
            free >> 20,
            manifest.size_bytes.div_ceil(1 << 20)
        );
        return Err(CliError::refused("file", (message, "make room")));
    }
    StagingFolder::beside(state).map_err(in_above)
}

/// Opens the database in `state`, which brings it up to date, takes out what stays behind, and stops everything; returns
/// the builds.
async fn stop(mut project: Project, state: &Path) -> Result<Vec<Build>, CliError> {
    state.clone_into(&mut project.locations.state);
    let opened = OpenProject::open(project).await?;
    leave_behind(&state.join("ropewalk.db")).await?;
    let stopped = halt::stop(&opened.context(), opened.person()?, Some(REASON.to_owned())).await;
    let builds = opened.store.list::<Build>(Query::new()).await?;
    opened.close().await?;
    match stopped {
        Ok(_) | Err(HaltError::Already(_)) => {
            Ok(builds.into_iter().map(Versioned::into_inner).collect())
        }
        Err(error) => Err(error.into()),
    }
}

/// Gives the repository the branch of a build, where it had it and can follow; where it cannot, the build asks later on.
async fn follow(clone: &LocalClone, build: &Build) -> Result<(), GitError> {
    let had = clone.bundled_branch(&build.branch).await?;
    let (Some(published), Some(_)) = (&build.published, had) else {
        return Ok(());
    };
    let actual = clone.user_branch(&build.branch).await?;
    match clone
        .publish(&build.branch, published, actual.as_ref())
        .await
    {
        Err(PublishError::Git(error)) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Returns the configuration with the name that the project has here.
fn settings(path: &Path, name: &ProjectName) -> Result<String, CliError> {
    let mut file = ProjectFile::open(path)?;
    file.set("project.name", name.as_str())?;
    file.set("project.repo", ".")?;
    Ok(file.text())
}

/// Writes a file where none is.
fn write_new(path: &Path, text: &str) -> Result<(), CliError> {
    let written = File::create_new(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    written.map_err(|error| CliError::file(path, &error))
}

/// A temporary folder is private; a repository has the rights of any new folder.
fn open_to_others(folder: &Path) -> Result<(), CliError> {
    use std::os::unix::fs::PermissionsExt;
    let rights = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder, rights).map_err(|error| CliError::file(folder, &error))
}

fn rename(from: &Path, to: &Path) -> Result<(), CliError> {
    std::fs::rename(from, to).map_err(|error| CliError::file(to, &error))
}
