//! Finds where a project's repository and state lie (design §8).

use std::path::{Path, PathBuf};

use ropewalk_schemas::{ProjectName, Slug, UserSlug};

use crate::environment::Environment;
use crate::error::ConfigError;
use crate::load::LoadedConfig;
use crate::origin::Origin;

/// Where a project lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locations {
    /// The project's name.
    pub name: ProjectName,
    /// The repository that builds are made for.
    pub repository: PathBuf,
    /// The state directory; not yet made.
    pub state: PathBuf,
}

impl LoadedConfig {
    /// Returns where the project lies; a state directory inside a working tree is refused.
    pub fn locations(&self, environment: &Environment) -> Result<Locations, ConfigError> {
        let project = &self.config.project;
        let repository = match &project.repo {
            Some(path) => self.resolve("project.repo", path)?,
            None => self.base(&self.project_origin())?,
        };
        let name = match &project.name {
            Some(name) => name.clone(),
            None => name_of(&repository)?,
        };
        let state = match &project.state {
            Some(path) => self.resolve("project.state", path)?,
            None => environment
                .state_home()
                .map(|home| home.join("ropewalk").join(name.as_str()))
                .ok_or(ConfigError::NoStateHome)?,
        };
        refuse_working_tree(&state)?;
        Ok(Locations {
            name,
            repository,
            state,
        })
    }

    /// Returns `path`, the value of `key`, made absolute: a file's paths are relative to the file, all others to the directory.
    pub fn resolve(&self, key: &str, path: &Path) -> Result<PathBuf, ConfigError> {
        let joined = self.base(&self.origin(key))?.join(path);
        Ok(lexical(&joined))
    }

    /// Returns whose ideas new sessions are: `person.name`, else the login name, else `user`.
    pub fn person(&self, environment: &Environment) -> Result<UserSlug, ConfigError> {
        if let Some(name) = &self.config.person.name {
            return Ok(name.clone());
        }
        let login = environment.get("USER").and_then(Slug::from_text);
        let name = login.as_ref().map_or("user", Slug::as_str);
        UserSlug::parse(name).map_err(|error| ConfigError::Invalid {
            origin: Origin::Environment("USER".to_owned()),
            key: "person.name".to_owned(),
            reason: error.to_string().into(),
        })
    }

    fn project_origin(&self) -> Origin {
        self.project_file
            .clone()
            .map_or(Origin::Flag, |path| Origin::Project { path, line: None })
    }

    fn base(&self, origin: &Origin) -> Result<PathBuf, ConfigError> {
        let directory = match origin {
            Origin::User { path, .. }
            | Origin::Project { path, .. }
            | Origin::Managed { path, .. } => path.parent().unwrap_or(path),
            Origin::Default | Origin::Environment(_) | Origin::Flag => &self.directory,
        };
        std::path::absolute(directory).map_err(|error| ConfigError::Unreadable {
            path: directory.to_owned(),
            reason: error.to_string().into(),
        })
    }
}

fn name_of(repository: &Path) -> Result<ProjectName, ConfigError> {
    let folder = repository
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let stem = folder.strip_suffix(".git").unwrap_or(&folder);
    Slug::from_text(stem)
        .and_then(|slug| ProjectName::parse(slug.as_str()).ok())
        .ok_or_else(|| ConfigError::NoProjectName(folder.clone()))
}

/// Drops `.` and `..` without asking the file system, since the path need not exist yet.
fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

fn refuse_working_tree(state: &Path) -> Result<(), ConfigError> {
    let real = without_links(state);
    let is_tree = |above: &&Path| above.join(".git").exists();
    let tree = state.ancestors().chain(real.ancestors()).find(is_tree);
    match tree {
        Some(tree) => Err(ConfigError::StateInWorkingTree {
            state: state.to_owned(),
            tree: tree.to_owned(),
        }),
        None => Ok(()),
    }
}

/// Returns where `path` really leads; as much of it as is not there yet stays as it is written.
fn without_links(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for above in path.ancestors() {
        if let Ok(real) = above.canonicalize() {
            return missing
                .iter()
                .rev()
                .fold(real, |real, name| real.join(name));
        }
        missing.extend(above.file_name());
    }
    path.to_owned()
}
