//! Puts a project into one file, and takes it out again elsewhere.
//!
//! The file is a compressed tar: what it is, the configuration without its secrets, the local clone as a git bundle, and
//! of the state the database, the data of its large events, transcripts and documents. What lets somebody in or holds
//! what runs elsewhere stays behind, when the file is written and again when it is read. Nothing of a file that was cut
//! off, changed or made by a newer program comes to stand: all is built aside, then renamed.

mod export;
mod import;
mod pack;
mod place;
mod staging;
mod unpack;

use chrono::{DateTime, Utc};
use ropewalk_schemas::ProjectName;
use serde::{Deserialize, Serialize};

use crate::error::CliError;

pub use export::Export;
pub use import::Import;

/// The form of archives that this program writes; it reads this one and the older ones.
const FORM: u32 = 1;

/// What the archive is; the first entry.
const MANIFEST: &str = "manifest.json";
/// The configuration of the project.
const SETTINGS: &str = "ropewalk.toml";
/// Every commit that there is a name for.
const BUNDLE: &str = "repository.bundle";
/// The folder with what belongs into the state directory.
const STATE: &str = "state";
/// The database in there.
const DATABASE: &str = "state/ropewalk.db";
/// Folders of the state directory that go along: the data of large events, documents of ideas, and what models said.
const FOLDERS: [&str; 3] = ["blobs", "users", "transcripts"];
/// The last entry: where it is missing, the archive was cut off.
const END: &str = "end";

/// What an archive is.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Manifest {
    /// The form; a larger number than [`FORM`] is of a newer program.
    form: u32,
    /// The version of the program that wrote it.
    program: String,
    /// What the project is called.
    project: ProjectName,
    /// The branch that was checked out in its repository.
    branch: Option<String>,
    /// When it was written.
    at: DateTime<Utc>,
    /// How many bytes the files that follow have together.
    size_bytes: u64,
}

/// Refuses an archive: what is wrong with it, and what to do.
fn refusal(message: impl Into<String>, next: &str) -> CliError {
    CliError::refused("archive", (message.into(), next.to_owned()))
}
