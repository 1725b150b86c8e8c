//! Compares a tree with its index by file status alone, without a git process.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::index::{Index, Likeness};
use super::shown::REPOSITORY;
use super::stamps::Stamps;
use crate::right_of_way::RightOfWay;

/// How a tree differs from its index.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Files of the index that are gone, or something of another kind.
    pub(super) missing: Vec<Vec<u8>>,
    /// Files of the index that are different for certain.
    pub(super) different: Vec<Vec<u8>>,
    /// Files of the index whose content has to be compared, with the blobs that they should be.
    pub(super) unsure: Vec<(Vec<u8>, String)>,
    /// What the index does not name: files, and directories with all that is in them; not the repository that commands
    /// are shown, which is part of no commit.
    pub(super) extra: Vec<Vec<u8>>,
}

impl Survey {
    /// Compares `tree` with `index`; `None` when only git understands the index.
    pub(super) fn take(
        tree: &Path,
        index: &Path,
        id_bytes: usize,
        stamps: Stamps,
        pace: Pace,
        way: &RightOfWay,
    ) -> io::Result<Option<Self>> {
        let metadata = index.metadata()?;
        let Some(parsed) = Index::parse(&fs::read(index)?, id_bytes) else {
            return Ok(None);
        };
        let (threads, give_way, _taken) = match pace {
            Pace::Waited => (THREADS, None, Some(way.take())),
            Pace::Aside => (1, Some((way, Instant::now() + PATIENCE)), None),
        };
        let walk = Walk {
            tree,
            // A file as young as the index may have been changed in the same tick, after its status was read.
            hides_from: match stamps {
                Stamps::EachChange => None,
                Stamps::Ticks => Some((metadata.mtime(), metadata.mtime_nsec())),
            },
            index: &parsed,
            threads,
            give_way,
        };
        let (mut survey, there) = walk.run()?;
        let mut seen = vec![false; parsed.len()];
        for place in there {
            seen[place] = true;
        }
        let missing = (0..parsed.len()).filter(|place| !seen[*place]);
        survey.missing = missing.map(|place| parsed.path(place).to_vec()).collect();
        Ok(Some(survey))
    }

    /// Lists the files of the index that may not be as it says.
    pub(super) fn suspects(&self) -> impl Iterator<Item = &Vec<u8>> {
        let unsure = self.unsure.iter().map(|(path, _)| path);
        self.missing.iter().chain(&self.different).chain(unsure)
    }
}

/// Who waits for a survey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// A task waits for it.
    Waited,
    /// Nobody does: it is taken with one thread, which gives way to the others.
    Aside,
}

/// So many threads look at files at once; more would wait for the same locks of the file system.
const THREADS: usize = 2;
/// So long a survey gives way in all.
const PATIENCE: Duration = Duration::from_millis(250);

/// A walk through a tree, level by level.
struct Walk<'a> {
    tree: &'a Path,
    index: &'a Index,
    hides_from: Option<(i64, i64)>,
    threads: usize,
    /// To whom it gives way, and until when.
    give_way: Option<(&'a RightOfWay, Instant)>,
}

/// What lies in some directories of a level.
#[derive(Debug, Default)]
struct LevelScan {
    /// The places of files of the index that are there.
    seen: Vec<usize>,
    survey: Survey,
    /// The directories of the next level.
    below: Vec<Vec<u8>>,
}

impl Walk<'_> {
    /// Compares all files, and lists the places of those that are there.
    fn run(&self) -> io::Result<(Survey, Vec<usize>)> {
        let mut whole = LevelScan {
            below: vec![Vec::new()],
            ..LevelScan::default()
        };
        while !whole.below.is_empty() {
            for part in self.level(&std::mem::take(&mut whole.below))? {
                whole.seen.extend(part.seen);
                whole.below.extend(part.below);
                whole.survey.different.extend(part.survey.different);
                whole.survey.unsure.extend(part.survey.unsure);
                whole.survey.extra.extend(part.survey.extra);
            }
        }
        Ok((whole.survey, whole.seen))
    }

    /// Looks at the directories of one level, each thread at its share of them.
    fn level(&self, directories: &[Vec<u8>]) -> io::Result<Vec<LevelScan>> {
        let mut shares = directories.chunks(directories.len().div_ceil(self.threads));
        let own = shares.next().unwrap_or_default();
        thread::scope(|scope| {
            let others: Vec<_> = shares
                .map(|share| scope.spawn(|| self.directories(share)))
                .collect();
            let mut parts = vec![self.directories(own)?];
            for other in others {
                let part = other.join();
                parts.push(part.unwrap_or_else(|_| Err(io::Error::other("a survey broke off")))?);
            }
            Ok(parts)
        })
    }

    fn directories(&self, share: &[Vec<u8>]) -> io::Result<LevelScan> {
        let mut found = LevelScan::default();
        for directory in share {
            self.directory(directory.clone(), &mut found)?;
        }
        Ok(found)
    }

    /// Looks at what lies in a directory, named from the root of the tree and with a slash behind.
    fn directory(&self, mut path: Vec<u8>, found: &mut LevelScan) -> io::Result<()> {
        if let Some((way, until)) = self.give_way {
            way.give(until);
        }
        let length = path.len();
        for entry in fs::read_dir(self.tree.join(OsStr::from_bytes(&path)))? {
            let entry = entry?;
            if length == 0 && entry.file_name() == REPOSITORY {
                continue;
            }
            path.truncate(length);
            path.extend_from_slice(entry.file_name().as_bytes());
            if !entry.file_type()?.is_dir() {
                self.file(&entry, &path, found)?;
                continue;
            }
            path.push(b'/');
            if self.index.has_below(&path) {
                found.below.push(path.clone());
            } else {
                path.pop();
                found.survey.extra.push(path.clone());
            }
        }
        Ok(())
    }

    fn file(&self, entry: &fs::DirEntry, path: &[u8], found: &mut LevelScan) -> io::Result<()> {
        let survey = &mut found.survey;
        let Some(place) = self.index.find(path) else {
            survey.extra.push(path.to_vec());
            return Ok(());
        };
        let likeness = self
            .index
            .compare(place, &entry.metadata()?, self.hides_from);
        if likeness == Likeness::OtherKind {
            survey.extra.push(path.to_vec());
            return Ok(());
        }
        found.seen.push(place);
        match likeness {
            Likeness::Unsure if self.index.is_link(place) => survey.different.push(path.to_vec()),
            Likeness::Unsure => {
                let suspect = (path.to_vec(), self.index.blob(place));
                survey.unsure.push(suspect);
            }
            Likeness::Different => survey.different.push(path.to_vec()),
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
        for (stamps, pace, doubted) in [
            (Stamps::Ticks, Pace::Waited, 1),
            (Stamps::Ticks, Pace::Aside, 1),
            (Stamps::EachChange, Pace::Waited, 0),
        ] {
            let way = RightOfWay::default();
            let survey = Survey::take(&tree, &index, 20, stamps, pace, &way)?;
            let survey = survey.unwrap_or_default();
            assert_eq!(survey.unsure.len(), doubted, "{stamps:?}");
            assert_eq!(survey.suspects().count(), doubted, "{stamps:?}");
            assert_eq!(survey.extra, Vec::<Vec<u8>>::new());
        }
        Ok(())
    }
}
