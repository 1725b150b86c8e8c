//! Keeps the state of one repository from every other: a clone brings the name of its project along, by which the state
//! is found.
//!
//! A repository is known by a mark in its git directory, which worktrees share, which goes along when the folder is moved,
//! and which no clone gets. The state remembers it, and where the repository lay. Of a folder that was copied with its
//! git directory the one that the state knows goes on. Where no mark can be written, nothing is remembered.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ropewalk_config::Locations;
use ropewalk_runtime::token;
use ropewalk_workspace::source;
use serde::{Deserialize, Serialize};

use crate::error::CliError;

/// What the mark of a repository is called, in its git directory.
const MARK: &str = "ropewalk-id";
/// What remembers in the state directory whose it is.
const OWNER: &str = "repository.json";

/// The repository that a state is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    /// Its mark.
    id: String,
    /// Its git directory, when it was last used.
    git_directory: PathBuf,
}

/// How a repository and a state belong together.
#[derive(Debug, PartialEq, Eq)]
enum Tenure {
    /// The state is of this repository, or nobody can tell.
    Same,
    /// The state is of nobody yet.
    Free,
    /// The repository was moved.
    Moved(Owner),
    /// The state is of another repository.
    Other(Owner),
}

/// Makes the state of a project, which is there, its repository's own; refused where it is of another repository.
pub(crate) fn claim(locations: &Locations) -> Result<(), CliError> {
    let here = source::shared_directory(&locations.repository);
    match look(locations, here.as_deref())? {
        Tenure::Same => {}
        Tenure::Free => {
            if let Some(here) = here {
                take(locations, here);
            }
        }
        Tenure::Moved(owner) => remember(&locations.state, &owner),
        Tenure::Other(owner) => return Err(refusal(locations, &owner)),
    }
    Ok(())
}

/// Refuses a state that is of another repository; remembers nothing.
pub(crate) fn check(locations: &Locations) -> Result<(), CliError> {
    let here = source::shared_directory(&locations.repository);
    match look(locations, here.as_deref())? {
        Tenure::Same | Tenure::Free | Tenure::Moved(_) => Ok(()),
        Tenure::Other(owner) => Err(refusal(locations, &owner)),
    }
}

/// Says whether a state that is there is of this repository, and not of nobody yet.
pub(crate) fn is_own(locations: &Locations) -> bool {
    let here = source::shared_directory(&locations.repository);
    here.is_some()
        && matches!(
            look(locations, here.as_deref()),
            Ok(Tenure::Same | Tenure::Moved(_))
        )
}

fn look(locations: &Locations, here: Option<&Path>) -> Result<Tenure, CliError> {
    let path = locations.state.join(OWNER);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Tenure::Free),
        Err(error) => return Err(CliError::file(&path, &error)),
    };
    let owner: Owner = serde_json::from_str(&text).map_err(|_| {
        let message = format!("`{}` does not say whose the state is", path.display());
        let next = "remove it, then run a verb in the repository that the state is of";
        CliError::refused("state", (message, next))
    })?;
    let there = mark_of(&owner.git_directory);
    let is_there = there.as_ref() == Some(&owner.id);
    let Some(here) = here else {
        // Of a repository that is away for now nobody can be in the place.
        return Ok(if is_there {
            Tenure::Other(owner)
        } else {
            Tenure::Same
        });
    };
    if mark_of(here).as_ref() != Some(&owner.id) {
        return Ok(Tenure::Other(owner));
    }
    if is_one(here, &owner.git_directory) {
        return Ok(Tenure::Same);
    }
    if is_there {
        return Ok(Tenure::Other(owner));
    }
    Ok(Tenure::Moved(Owner {
        id: owner.id,
        git_directory: here.to_owned(),
    }))
}

/// Gives the state to the repository with this git directory.
fn take(locations: &Locations, git_directory: PathBuf) {
    // Two processes may be the first: the mark is that of the faster one.
    if mark_of(&git_directory).is_none() {
        place(&git_directory, MARK, &token::fresh()).ok();
    }
    if let Some(id) = mark_of(&git_directory) {
        let owner = Owner { id, git_directory };
        // Where it cannot be written it is tried again with the next verb.
        place(&locations.state, OWNER, &told(&owner)).ok();
    }
}

/// Writes down where the repository lies now.
fn remember(state: &Path, owner: &Owner) {
    if let Ok(file) = written(state, &told(owner)) {
        file.persist(state.join(OWNER)).ok();
    }
}

fn told(owner: &Owner) -> String {
    serde_json::json!(owner).to_string()
}

/// Writes a file that is not there yet.
fn place(directory: &Path, name: &str, text: &str) -> std::io::Result<()> {
    let placed = written(directory, text)?.persist_noclobber(directory.join(name));
    placed.map(drop).map_err(|error| error.error)
}

/// Writes a file on the way to its name, that whoever shares the folder may read.
fn written(directory: &Path, text: &str) -> std::io::Result<tempfile::NamedTempFile> {
    let mut options = tempfile::Builder::new();
    let options = options.permissions(Permissions::from_mode(0o644));
    let mut file = options.tempfile_in(directory)?;
    writeln!(file, "{text}")?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn mark_of(git_directory: &Path) -> Option<String> {
    let text = fs::read_to_string(git_directory.join(MARK)).ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Returns whether both paths lead to one directory.
fn is_one(one: &Path, other: &Path) -> bool {
    let identity = |path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

/// Names both repositories, and what can be done.
fn refusal(locations: &Locations, owner: &Owner) -> CliError {
    let state = &locations.state;
    let (here, theirs) = (&locations.repository, folder(&owner.git_directory));
    let message = format!(
        "the state in `{}` is of the repository that was last in `{}`, and `{}` is another one",
        state.display(),
        theirs.display(),
        here.display()
    );
    let next = format!(
        "give this one a name of its own under `[project]`, with what `ropewalk export` and `import` bring along; if it takes the place of the other, remove `{}`",
        state.join(OWNER).display()
    );
    CliError::refused("other-repository", (message, next))
}

/// Returns the folder that people know a repository by.
fn folder(git_directory: &Path) -> &Path {
    let above = git_directory.parent();
    let above = above.filter(|_| git_directory.file_name().is_some_and(|name| name == ".git"));
    above.unwrap_or(git_directory)
}
