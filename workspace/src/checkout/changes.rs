//! Finds what differs from the commit of a checkout, and stores it as a tree.
//!
//! `git status` and `git add` are not used: both start a git inside nested repositories, which obeys the
//! configuration that it finds there.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::index::copy_with_its_time;
use super::survey::Survey;
use super::{Checkout, ancestors};
use crate::commit::{ChangeKind, ChangedFile};
use crate::{GitError, LocalClone};

/// More names than this are not told to git one by one.
const MOST_NAMED: usize = 500;
/// No source file is longer, and hashing more would hold up the loop.
const FILE_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// A difference between the tree and its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(super) path: Vec<u8>,
    kind: ChangeKind,
    /// Tells one content of the file from the next without reading it.
    fingerprint: Option<(u64, u64, i64, i64)>,
    /// Says that git can hold it: no nested repository, no unreadable name, not too long.
    storable: bool,
}

impl Change {
    /// Returns the change as it is told to others.
    pub(crate) fn public(&self) -> ChangedFile {
        ChangedFile {
            path: String::from_utf8_lossy(&self.path).into_owned(),
            kind: self.kind,
        }
    }

    /// Says that git can hold the changed file.
    pub(crate) fn storable(&self) -> bool {
        self.storable
    }
}

impl Checkout {
    /// Lists what is not ignored and differs from the commit of the checkout, in path order, and tells by what look
    /// at the file status that was found. What is still as in `known` is not asked about again.
    pub(crate) async fn look(
        &self,
        known: &[Change],
    ) -> Result<(Vec<Change>, Option<Survey>), GitError> {
        match self.survey().await {
            Some(survey) if survey.extra.len() <= MOST_NAMED => {
                let changes = self.surveyed(&survey, known).await?;
                Ok((changes, Some(survey)))
            }
            survey => Ok((self.listed().await?, survey)),
        }
    }

    /// Lists the changes that a look at the file status has found; git says only what is ignored.
    async fn surveyed(&self, survey: &Survey, known: &[Change]) -> Result<Vec<Change>, GitError> {
        let touched = self.touched(&survey.unsure).await?;
        let (mut added, asked): (Vec<Vec<u8>>, Vec<Vec<u8>>) =
            survey.extra.iter().cloned().partition(|path| {
                let now = self.change(path.clone(), ChangeKind::Added);
                known.contains(&now)
            });
        added.extend(self.not_ignored(&asked).await?);
        let of = |paths: &[Vec<u8>], kind| {
            let changes = paths.iter().map(|path| self.change(path.clone(), kind));
            changes.collect::<Vec<Change>>()
        };
        let mut changes: Vec<Change> = of(&survey.missing, ChangeKind::Deleted)
            .into_iter()
            .chain(of(&survey.different, ChangeKind::Modified))
            .chain(of(&touched, ChangeKind::Modified))
            .chain(of(&added, ChangeKind::Added))
            .collect();
        changes.sort_by(|left, right| (&left.path, right.kind).cmp(&(&right.path, left.kind)));
        changes.dedup_by(|next, kept| next.path == kept.path);
        Ok(changes)
    }

    /// Returns those of the files whose content is not the blob beside them.
    async fn touched(&self, unsure: &[(Vec<u8>, String)]) -> Result<Vec<Vec<u8>>, GitError> {
        // A name that the list of git cannot hold is taken for changed; staging it looks again.
        let (plain, odd): (Vec<_>, Vec<_>) = unsure
            .iter()
            .partition(|(path, _)| !path.contains(&b'\n') && !path.starts_with(b"\""));
        let mut touched: Vec<Vec<u8>> = odd.into_iter().map(|(path, _)| path.clone()).collect();
        if plain.is_empty() {
            return Ok(touched);
        }
        let mut names = Vec::new();
        for (path, _) in &plain {
            names.extend_from_slice(path);
            names.push(b'\n');
        }
        let call = self
            .clone
            .call(["hash-object", "--stdin-paths"])
            .work_tree(&self.tree, &self.index)
            .directory(&self.tree)
            .stdin(names);
        let output = self.clone.git().run(call).await?;
        let line = output.line();
        let blobs: Vec<&str> = line.lines().collect();
        if blobs.len() != plain.len() {
            return Err(GitError::unreadable("hash-object", &output.stdout));
        }
        let differs = |((_, blob), found): &(&(Vec<u8>, String), &str)| blob != found;
        let pairs = plain.into_iter().zip(blobs).filter(differs);
        touched.extend(pairs.map(|((path, _), _)| path.clone()));
        Ok(touched)
    }

    /// Lists the files in `extra` that no rule ignores; directories are opened.
    async fn not_ignored(&self, extra: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, GitError> {
        if extra.is_empty() {
            return Ok(Vec::new());
        }
        let mut call = self
            .clone
            .call(["ls-files", "-z", "--others", "--exclude-standard", "--"])
            .work_tree(&self.tree, &self.index)
            .directory(&self.tree);
        for path in extra {
            call = call.argument(OsStr::from_bytes(path));
        }
        let output = self.clone.git().run(call).await?;
        Ok(output.fields().map(<[u8]>::to_vec).collect())
    }

    /// Returns those of the files that are there and that a rule ignores, so that no commit takes them.
    pub(crate) async fn ignored(&self, paths: &[&str]) -> Result<Vec<String>, GitError> {
        let there = paths
            .iter()
            .filter(|path| self.place(path.as_bytes()).is_file());
        let there: Vec<&&str> = there.collect();
        if there.is_empty() {
            return Ok(Vec::new());
        }
        let mut call = self
            .clone
            .call([
                "ls-files",
                "-z",
                "--others",
                "--ignored",
                "--exclude-standard",
                "--",
            ])
            .work_tree(&self.tree, &self.index)
            .directory(&self.tree);
        for path in there {
            call = call.argument(path);
        }
        let output = self.clone.git().run(call).await?;
        let names = output.fields().map(String::from_utf8_lossy);
        Ok(names.map(std::borrow::Cow::into_owned).collect())
    }

    /// Lists the changes by git alone.
    async fn listed(&self) -> Result<Vec<Change>, GitError> {
        let call = self
            .clone
            .call([
                "ls-files",
                "-z",
                "-t",
                "--modified",
                "--deleted",
                "--others",
                "--exclude-standard",
            ])
            .work_tree(&self.tree, &self.index)
            .directory(&self.tree);
        let output = self.clone.git().run(call).await?;
        let mut changes = Vec::new();
        for field in output.fields() {
            let kind = match field.get(..2) {
                Some(b"? ") => ChangeKind::Added,
                Some(b"R ") => ChangeKind::Deleted,
                Some(b"C ") => ChangeKind::Modified,
                _ => return Err(GitError::unreadable("ls-files", field)),
            };
            changes.push(self.change(field[2..].to_vec(), kind));
        }
        // A deleted file is listed as modified too; `Deleted` is sorted before it and is kept.
        changes.sort_by(|left, right| (&left.path, right.kind).cmp(&(&right.path, left.kind)));
        changes.dedup_by(|next, kept| next.path == kept.path);
        Ok(changes)
    }

    /// Stores the tree of the commit with `changes` applied by `clone`, that of the checkout or one in quarantine, and
    /// returns its id; the index of the checkout stays as it is.
    pub(crate) async fn stage(
        &self,
        clone: &LocalClone,
        changes: &[Change],
    ) -> Result<String, GitError> {
        let scratch = tempfile::tempdir_in(&self.home).map_err(GitError::files(&self.home))?;
        let index = scratch.path().join("index");
        self.copy_index(&index, changes)
            .map_err(GitError::files(&self.index))?;
        let mut names = Vec::new();
        for change in changes
            .iter()
            .filter(|change| !self.beyond_a_link(&change.path))
        {
            names.extend_from_slice(&change.path);
            names.push(0);
        }
        if !names.is_empty() {
            let call = clone
                .call([
                    "update-index",
                    "-z",
                    "--add",
                    "--remove",
                    "--replace",
                    "--stdin",
                ])
                .work_tree(&self.tree, &index)
                .directory(&self.tree)
                .stdin(names);
            clone.git().run(call).await?;
        }
        clone.write_tree(&index).await
    }

    /// Copies the index so that git sees each of the changes, though it compares whole seconds.
    ///
    /// It reads again what is as young as the index, of all files: so the copy has the age of the index only where a
    /// change may have happened in the same second.
    fn copy_index(&self, to: &Path, changes: &[Change]) -> io::Result<()> {
        let second = fs::metadata(&self.index)?.mtime();
        let is_young = |change: &Change| {
            let fingerprint = change.fingerprint;
            fingerprint.is_some_and(|(_, _, changed, _)| changed <= second)
        };
        if changes.iter().any(is_young) {
            return copy_with_its_time(&self.index, to);
        }
        fs::copy(&self.index, to).map(drop)
    }

    fn change(&self, path: Vec<u8>, kind: ChangeKind) -> Change {
        let metadata = self.place(&path).symlink_metadata().ok();
        // Git lists a nested repository as one name with a slash at its end.
        let storable = !path.ends_with(b"/")
            && str::from_utf8(&path).is_ok()
            && metadata
                .as_ref()
                .is_none_or(|found| found.len() <= FILE_LIMIT_BYTES);
        let fingerprint =
            metadata.map(|found| (found.ino(), found.size(), found.ctime(), found.ctime_nsec()));
        Change {
            path,
            kind,
            fingerprint,
            storable,
        }
    }

    /// Says that a directory of `path` became a link; staging the link removes what was below it.
    fn beyond_a_link(&self, path: &[u8]) -> bool {
        ancestors(path).any(|ancestor| self.place(ancestor).is_symlink())
    }

    pub(super) fn place(&self, path: &[u8]) -> PathBuf {
        self.tree.join(Path::new(OsStr::from_bytes(path)))
    }
}
