//! Compares a tree with its index by file status alone, without a git process.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::index::{Index, Likeness};
use super::stamps::Stamps;

/// How a tree differs from its index.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Files of the index that are gone, or something of another kind.
    pub(super) missing: Vec<Vec<u8>>,
    /// Files of the index that are different for certain.
    pub(super) different: Vec<Vec<u8>>,
    /// Files of the index whose content has to be compared, with the blobs that they should be.
    pub(super) unsure: Vec<(Vec<u8>, String)>,
    /// What the index does not name: files, and directories with all that is in them.
    pub(super) extra: Vec<Vec<u8>>,
}

impl Survey {
    /// Compares `tree` with `index`; `None` when only git understands the index.
    pub(super) fn take(
        tree: &Path,
        index: &Path,
        id_bytes: usize,
        stamps: Stamps,
    ) -> io::Result<Option<Self>> {
        let metadata = index.metadata()?;
        let Some(parsed) = Index::parse(fs::read(index)?, id_bytes) else {
            return Ok(None);
        };
        let mut walk = Walk {
            seen: vec![false; parsed.entries().len()],
            // A file as young as the index may have been changed in the same tick, after its status was read.
            hides_from: match stamps {
                Stamps::EachChange => None,
                Stamps::Ticks => Some((metadata.mtime(), metadata.mtime_nsec())),
            },
            index: &parsed,
            survey: Self::default(),
        };
        walk.directory(tree, &mut Vec::new())?;
        let Walk {
            seen, mut survey, ..
        } = walk;
        let entries = parsed.entries().iter().zip(seen);
        let missing = entries.filter(|(_, seen)| !seen);
        survey.missing = missing
            .map(|(entry, _)| parsed.path(entry).to_vec())
            .collect();
        Ok(Some(survey))
    }

    /// Lists the files of the index that may not be as it says.
    pub(super) fn suspects(&self) -> impl Iterator<Item = &Vec<u8>> {
        let unsure = self.unsure.iter().map(|(path, _)| path);
        self.missing.iter().chain(&self.different).chain(unsure)
    }
}

struct Walk<'a> {
    index: &'a Index,
    seen: Vec<bool>,
    hides_from: Option<(i64, i64)>,
    survey: Survey,
}

impl Walk<'_> {
    fn directory(&mut self, directory: &Path, prefix: &mut Vec<u8>) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let length = prefix.len();
            prefix.extend_from_slice(&entry.file_name().into_vec());
            if entry.file_type()?.is_dir() {
                prefix.push(b'/');
                if self.index.has_below(prefix) {
                    self.directory(&entry.path(), prefix)?;
                } else {
                    prefix.pop();
                    self.survey.extra.push(prefix.clone());
                }
            } else {
                self.file(&entry, prefix)?;
            }
            prefix.truncate(length);
        }
        Ok(())
    }

    fn file(&mut self, found: &fs::DirEntry, path: &[u8]) -> io::Result<()> {
        let Some(place) = self.index.find(path) else {
            self.survey.extra.push(path.to_vec());
            return Ok(());
        };
        let entry = &self.index.entries()[place];
        let likeness = entry.compare(&found.metadata()?, self.hides_from);
        if likeness == Likeness::OtherKind {
            self.survey.extra.push(path.to_vec());
            return Ok(());
        }
        self.seen[place] = true;
        match likeness {
            Likeness::Unsure if entry.is_link() => self.survey.different.push(path.to_vec()),
            Likeness::Unsure => {
                let suspect = (path.to_vec(), self.index.blob(entry));
                self.survey.unsure.push(suspect);
            }
            Likeness::Different => self.survey.different.push(path.to_vec()),
            Likeness::Same | Likeness::OtherKind => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_file_as_young_as_its_index_is_doubted_where_changes_share_a_tick() -> anyhow::Result<()> {
        let directory = tempfile::tempdir()?;
        let tree = directory.path().join("tree");
        fs::create_dir(&tree)?;
        fs::write(tree.join("file"), "one\n")?;
        for arguments in [&["init", "-q", "../git"][..], &["add", "file"]] {
            let status = Command::new("git")
                .args(arguments)
                .current_dir(&tree)
                .env("GIT_DIR", directory.path().join("git/.git"))
                .env("GIT_WORK_TREE", &tree)
                .status()?;
            anyhow::ensure!(status.success());
        }
        let index = directory.path().join("git/.git/index");
        let written = fs::metadata(tree.join("file"))?.modified()?;
        fs::File::options()
            .write(true)
            .open(&index)?
            .set_modified(written)?;
        for (stamps, doubted) in [(Stamps::Ticks, 1), (Stamps::EachChange, 0)] {
            let survey = Survey::take(&tree, &index, 20, stamps)?.unwrap_or_default();
            assert_eq!(survey.unsure.len(), doubted, "{stamps:?}");
            assert_eq!(survey.suspects().count(), doubted, "{stamps:?}");
            assert_eq!(survey.extra, Vec::<Vec<u8>>::new());
        }
        Ok(())
    }
}
