//! Finds where an archive goes: into a project that is configured and has no state yet, a repository, or a new folder.

use std::path::{Path, PathBuf};

use ropewalk_config::{Config, Locations, PROJECT_FILE, ProjectFile};
use ropewalk_schemas::ProjectName;
use ropewalk_store::Location;

use super::refusal;
use crate::app::App;
use crate::error::CliError;
use crate::project::Project;
use crate::wiring;

/// Where an archive goes.
pub(super) struct Place {
    /// The folder that was named.
    pub(super) directory: PathBuf,
    /// What is there.
    pub(super) found: Occupancy,
    /// Where the project lies that comes of it.
    pub(super) locations: Locations,
}

/// What is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occupancy {
    /// Nothing, and a repository is made.
    Nothing,
    /// A repository, or what should be one.
    Folder,
    /// The configuration of a project.
    Project,
}

impl Place {
    /// Finds out what comes to stand where, and refuses what is there already; returns the project, too. A project that is
    /// configured there keeps its name, unless another is `wanted`; any other has that of the archive.
    pub(super) fn of(
        app: &App,
        directory: &Path,
        (wanted, archived): (Option<&ProjectName>, &ProjectName),
    ) -> Result<(Self, Project), CliError> {
        let directory = directory.to_owned();
        let found = match directory.symlink_metadata() {
            Err(_) => Occupancy::Nothing,
            Ok(_) if directory.join(PROJECT_FILE).symlink_metadata().is_ok() => Occupancy::Project,
            Ok(_) => Occupancy::Folder,
        };
        let (below, mut settings) = match found {
            Occupancy::Nothing => (directory.parent(), vec!["project.repo=.".to_owned()]),
            Occupancy::Folder => (Some(&*directory), vec!["project.repo=.".to_owned()]),
            Occupancy::Project => (Some(&*directory), Vec::new()),
        };
        let below = below.unwrap_or(Path::new("/"));
        let archived = (found != Occupancy::Project).then_some(archived);
        if let Some(name) = wanted.or(archived) {
            settings.push(format!("project.name={name}"));
        }
        settings.extend(app.global.set.iter().cloned());
        // Nobody has trusted it yet; what is read of it is where the project lies.
        let loaded = Config::load_whoever_wrote_it(below, &app.environment, &settings)?;
        let mut project = Project::of(loaded, &app.environment)?;
        if found != Occupancy::Project {
            project.locations.repository.clone_from(&directory);
        }
        if found == Occupancy::Project
            && let Some(here) = in_use(app, &directory)?
        {
            // Under another name its own state would be nobody's.
            demand_vacant(&here, "import it into a folder that is not there yet")?;
        }
        let next = "choose another name with `--name`, or another `project.state`";
        demand_vacant(&project, next)?;
        if !has_usual_database(&project)? {
            let message = "`store.location` names a place of its own for the database";
            let next = "leave it out, and the archive brings its database along";
            return Err(CliError::refused("config", (message, next)));
        }
        let locations = project.locations.clone();
        let place = Self {
            directory,
            found,
            locations,
        };
        Ok((place, project))
    }

    /// Makes the configuration in `directory`, which was there or came with the repository, one of the project that comes to
    /// stand here; returns the keys that said something else.
    pub(super) fn adapt(&self, app: &App, directory: &Path) -> Result<Vec<&'static str>, CliError> {
        let (wanted, there) = (&self.locations, configured(app, directory)?);
        let mut file = ProjectFile::open(&directory.join(PROJECT_FILE))?;
        let mut changed = Vec::new();
        if there.locations.name != wanted.name {
            file.set("project.name", wanted.name.as_str())?;
            changed.push("project.name");
        }
        if self.found == Occupancy::Nothing {
            if there.locations.repository.canonicalize().ok() != directory.canonicalize().ok() {
                file.set("project.repo", ".")?;
                changed.push("project.repo");
            }
            let is_elsewhere = there.state() != wanted.state && file.remove("project.state");
            changed.extend(is_elsewhere.then_some("project.state"));
            let is_elsewhere = !has_usual_database(&there)? && file.remove("store.location");
            changed.extend(is_elsewhere.then_some("store.location"));
        }
        if changed.is_empty() {
            return Ok(changed);
        }
        file.save()?;
        let now = configured(app, directory)?;
        if now.state() == wanted.state && has_usual_database(&now)? {
            return Ok(changed);
        }
        let message = format!(
            "the `{PROJECT_FILE}` that came with the repository has its state in `{}`",
            now.state().display()
        );
        Err(refusal(
            message,
            "import it into a clone, and change that there",
        ))
    }
}

/// Returns the project that is configured in `directory`, unless nobody ever trusted what it loosens there: a clone brings the
/// configuration of another folder along, whose state is not its own.
fn in_use(app: &App, directory: &Path) -> Result<Option<Project>, CliError> {
    let loaded = Config::load_whoever_wrote_it(directory, &app.environment, &[])?;
    if let Some(request) = &loaded.trust
        && request.last_word(&app.environment)?.is_none()
    {
        return Ok(None);
    }
    Project::of(loaded, &app.environment).map(Some)
}

/// Refuses a project that has its state already, with what to do instead.
fn demand_vacant(project: &Project, next: &'static str) -> Result<(), CliError> {
    let state = project.state();
    if state.symlink_metadata().is_err() {
        return Ok(());
    }
    let message = format!(
        "a project named `{}` has its state in `{}`",
        project.locations.name,
        state.display()
    );
    Err(CliError::refused("exists", (message, next)))
}

/// Loads what is configured in `directory`, whoever wrote it: what is read of it is where the project lies.
fn configured(app: &App, directory: &Path) -> Result<Project, CliError> {
    let loaded = Config::load_whoever_wrote_it(directory, &app.environment, &app.global.set)?;
    Project::of(loaded, &app.environment)
}

/// Returns whether the database lies in the state directory.
fn has_usual_database(project: &Project) -> Result<bool, CliError> {
    let usual = Location::Sqlite(project.state().join("ropewalk.db"));
    Ok(wiring::location(project)? == usual)
}
