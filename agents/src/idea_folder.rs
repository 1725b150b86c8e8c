//! Reads and writes the folder of an idea: Markdown documents that people may edit beside the agents.

mod placeholder;

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use ropewalk_runtime::secrets;

pub use placeholder::{is_blank, is_placeholder_line};
pub use ropewalk_schemas::specification::BRIEF;

/// The document that says what the idea is.
pub const README: &str = "README.md";

/// The specification, for people.
pub const SPEC: &str = "build/spec.md";

/// The task graph, for people.
pub const TASKS: &str = "build/tasks.md";

/// The most that is read of one document.
const LIMIT_BYTES: u64 = 256 * 1024;

/// Says why the folder of an idea cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The system refused.
    #[error("cannot use `{}`: {source}", path.display())]
    Files {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The document is too long to be read.
    #[error("`{}` has {size_bytes} bytes; {LIMIT_BYTES} is the most", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its size.
        size_bytes: u64,
    },
    /// The document is a link or no file.
    #[error("`{}` is no regular file; put the document itself there", path.display())]
    NotAFile {
        /// What stands in its place.
        path: PathBuf,
    },
}

/// The folder of one idea.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdeaFolder {
    root: PathBuf,
}

impl IdeaFolder {
    /// Names the folder that lies at `root`; it need not exist.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns where it lies.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads a document; `None` when there is none. Bytes that are no UTF-8 are replaced.
    pub fn read(&self, document: &str) -> Result<Option<String>, FolderError> {
        let path = self.root.join(document);
        let status = match std::fs::symlink_metadata(&path) {
            Ok(status) => status,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(source) => return Err(FolderError::Files { path, source }),
        };
        if !status.is_file() {
            return Err(FolderError::NotAFile { path });
        }
        if status.len() > LIMIT_BYTES {
            return Err(FolderError::TooLong {
                path,
                size_bytes: status.len(),
            });
        }
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(text_of(&bytes))),
            Err(error) if is_absence(&error) => Ok(None),
            Err(source) => Err(FolderError::Files { path, source }),
        }
    }

    /// Writes a whole document in one step, without secrets, making the folders above it; the same text again changes
    /// nothing.
    pub fn write(&self, document: &str, text: &str) -> Result<(), FolderError> {
        let text = &*secrets::strike(text);
        let path = self.root.join(document);
        if std::fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
            return Ok(());
        }
        let refused = |source| FolderError::Files {
            path: path.clone(),
            source,
        };
        let folder = path.parent().unwrap_or(&self.root);
        std::fs::create_dir_all(folder).map_err(refused)?;
        let mut unfinished = tempfile::Builder::new()
            .prefix(".ropewalk-")
            .tempfile_in(folder)
            .map_err(refused)?;
        unfinished.write_all(text.as_bytes()).map_err(refused)?;
        unfinished.as_file().sync_all().map_err(refused)?;
        unfinished
            .persist(&path)
            .map_err(|error| refused(error.error))?;
        Ok(())
    }
}

fn is_absence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn text_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.strip_prefix('\u{feff}')
        .unwrap_or(&text)
        .replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_written_whole_and_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let folder = IdeaFolder::new(directory.path().join("users/ann/ideas/x"));
        assert_eq!(folder.read(README).unwrap(), None);
        folder.write(BRIEF, "# Brief\n").unwrap();
        folder.write(BRIEF, "# Brief 2\n").unwrap();
        assert_eq!(folder.read(BRIEF).unwrap().as_deref(), Some("# Brief 2\n"));
        let left = std::fs::read_dir(folder.root().join("planning"))
            .unwrap()
            .count();
        assert_eq!(left, 1, "no unfinished file stays behind");
        assert_eq!(folder.read("planning/brief.md/deeper").unwrap(), None);
    }

    #[test]
    fn what_is_no_document_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let folder = IdeaFolder::new(directory.path().to_owned());
        std::fs::create_dir(directory.path().join("README.md")).unwrap();
        assert!(
            folder
                .read(README)
                .unwrap_err()
                .to_string()
                .contains("README.md")
        );
        std::fs::write(directory.path().join("long.md"), vec![b'x'; 300_000]).unwrap();
        assert!(
            folder
                .read("long.md")
                .unwrap_err()
                .to_string()
                .contains("300000 bytes")
        );
    }
}
