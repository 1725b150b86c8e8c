//! Finds where an archive goes: into a project that is configured and has no state yet, a repository, or a new folder.

use std::path::{Path, PathBuf};

use ropewalk_config::{Config, Locations, PROJECT_FILE};
use ropewalk_schemas::ProjectName;
use ropewalk_store::Location;

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
    /// Finds out what comes to stand where, and refuses what is there already; returns the project, too.
    pub(super) fn of(
        app: &App,
        directory: &Path,
        name: &ProjectName,
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
        if found != Occupancy::Project {
            settings.push(format!("project.name={name}"));
        }
        settings.extend(app.global.set.iter().cloned());
        // Nobody has trusted it yet; what is read of it is where the project lies.
        let loaded = Config::load_whoever_wrote_it(below, &app.environment, &settings)?;
        let mut project = Project::of(loaded, &app.environment)?;
        if found != Occupancy::Project {
            project.locations.repository.clone_from(&directory);
        }
        let state = project.state();
        if state.symlink_metadata().is_ok() {
            let message = format!(
                "a project named `{}` has its state in `{}`",
                project.locations.name,
                state.display()
            );
            let next = "choose another name with `--name`, or another `project.state`";
            return Err(CliError::refused("exists", (message, next)));
        }
        let usual = Location::Sqlite(state.join("ropewalk.db"));
        if wiring::location(&project)? != usual {
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
}
