//! Says why a server for a test is not there.

use std::io;
use std::path::PathBuf;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Its program lies nowhere.
    #[error("`{name}` is not installed: run ./check, or name its program in `{variable}`")]
    Missing {
        /// The server's name.
        name: &'static str,
        /// The environment variable that overrides where its program lies.
        variable: &'static str,
    },
    /// The operating system refused to start it.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// The program.
        program: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It started and never said that it listens.
    #[error("`{program}` {problem}; it printed:\n{output}")]
    NotReady {
        /// The program.
        program: PathBuf,
        /// Whether it ended or was silent.
        problem: &'static str,
        /// All it printed.
        output: String,
    },
    /// There is no temporary directory for its data.
    #[error("cannot make a temporary directory for a server's data")]
    Directory(#[source] io::Error),
    /// A cluster of databases cannot be made.
    #[error("`{program}` made no database; it printed:\n{output}")]
    Unmade {
        /// The program.
        program: PathBuf,
        /// All it printed.
        output: String,
    },
}
