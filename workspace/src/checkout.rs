//! Keeps a directory that is moved from commit to commit by difference and is exactly that commit afterwards.
//!
//! It is no `git worktree`: the index lies beside the tree, and the repository is named with every call. So nothing in
//! the tree can say where objects, refs, hooks or filters are, a removed tree leaves nothing to prune, and a command in
//! the tree has no repository to damage: the `.git` that it may be shown there is thrown away with each move.

mod changes;
mod hold;
mod index;
mod secrets;
mod shown;
mod stamps;
mod step;
mod survey;
mod sweep;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ropewalk_schemas::CommitId;

use crate::{GitError, History, LocalClone};
use ropewalk_schemas::advice::Words;

pub(crate) use changes::Change;
use hold::Hold;
pub(crate) use index::copy_with_its_time;
use stamps::Stamps;
use survey::Pace;
pub(crate) use survey::Survey;
use sweep::TrackedPaths;
pub use sweep::remove_tree;

/// With more files to restore than this, git makes the whole tree anew in one go.
const MOST_RESTORED: usize = 1_000;

/// A directory with its private index, held by this process alone.
#[derive(Debug)]
pub(crate) struct Checkout {
    clone: LocalClone,
    home: PathBuf,
    tree: PathBuf,
    index: PathBuf,
    base: Option<CommitId>,
    /// What commands are shown of what was before.
    history: Option<History>,
    stamps: Stamps,
    pace: Pace,
    _hold: Hold,
}

impl Checkout {
    /// Takes the checkout in `home`; `None` when somebody has it.
    pub(crate) async fn take(clone: &LocalClone, home: &Path) -> Result<Option<Self>, GitError> {
        fs::create_dir_all(home).map_err(GitError::files(home))?;
        let Some(hold) = Hold::take(home).await? else {
            return Ok(None);
        };
        clear_scratch(home);
        let base = fs::read_to_string(home.join("base"))
            .ok()
            .and_then(|text| text.trim().parse().ok());
        Ok(Some(Self {
            clone: clone.clone(),
            home: home.to_owned(),
            tree: home.join("tree"),
            index: home.join("index"),
            base,
            history: None,
            stamps: Stamps::probe(home),
            pace: Pace::Waited,
            _hold: hold,
        }))
    }

    /// Says that nobody waits for this checkout any more: looks at its tree give way to others.
    pub(crate) const fn give_way(&mut self) {
        self.pace = Pace::Aside;
    }

    /// Makes the tree exactly `commit`, from whatever state it is in.
    pub(crate) async fn move_to(&mut self, commit: &CommitId) -> Result<(), GitError> {
        self.move_seen(commit, None).await
    }

    /// Makes the tree exactly `commit`; `seen` is what it looks like now, where that is known.
    pub(crate) async fn move_seen(
        &mut self,
        commit: &CommitId,
        seen: Option<Survey>,
    ) -> Result<(), GitError> {
        let before = self.base.clone();
        self.set_base(None)?;
        if let Err(error) = self.move_existing(before.as_ref(), commit, seen).await {
            if self.clone.resolve(commit.as_str()).await?.is_none() {
                self.set_base(before.as_ref())?;
                return Err(GitError::UnknownCommit(commit.to_string()));
            }
            // The first time there is nothing to tell.
            if before.is_some() {
                tracing::info!("made `{}` anew: {}", self.tree.display(), Words::of(&error));
            }
            self.clear().await?;
            self.read_tree(commit).await?;
        }
        self.set_base(Some(commit))?;
        self.lay().await
    }

    /// Returns the commit that the tree was made from; `None` when a move was cut short.
    pub(crate) fn base(&self) -> Option<&CommitId> {
        self.base.as_ref()
    }

    /// Returns the directory that holds the tree, the index and what belongs to them.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the tree.
    pub(crate) fn tree(&self) -> &Path {
        &self.tree
    }

    /// Returns the clone that the tree comes from.
    pub(crate) fn clone_handle(&self) -> &LocalClone {
        &self.clone
    }

    /// Says that the tree is there as a directory of its own.
    pub(crate) fn is_present(&self) -> bool {
        self.tree
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_dir())
            && self.index.is_file()
    }

    async fn move_existing(
        &self,
        before: Option<&CommitId>,
        commit: &CommitId,
        seen: Option<Survey>,
    ) -> Result<(), GitError> {
        // The lock of the checkout is ours, so a lock of its index belongs to a git that was killed.
        remove_if_there(&self.home.join("index.lock"))?;
        self.hide().await?;
        if !self.is_present() {
            return Err(GitError::files(&self.tree)(ErrorKind::NotFound.into()));
        }
        let seen = match seen {
            Some(seen) => Some(seen),
            None => self.survey().await,
        };
        // Where the last move was cut short, the index says nothing about the commit.
        if let Some(before) = before
            && let Some(survey) = seen
            && survey.suspects().count() <= MOST_RESTORED
        {
            self.restore(survey).await?;
            if before != commit {
                self.step(before, commit).await?;
            }
            return Ok(());
        }
        let listed = self
            .clone
            .call(["ls-files", "-z", "--stage"])
            .work_tree(&self.tree, &self.index);
        let listed = self.clone.git().run(listed).await?;
        let tracked = TrackedPaths::parse(&listed.stdout)
            .ok_or_else(|| GitError::unreadable("ls-files", &listed.stdout))?;
        let tree = self.tree.clone();
        blocking(move || sweep::sweep(&tree, &tracked))
            .await
            .map_err(GitError::files(&self.tree))?;
        self.read_tree(commit).await
    }

    /// Compares the tree with its index; `None` when it has to be left to git.
    async fn survey(&self) -> Option<Survey> {
        let (tree, index) = (self.tree.clone(), self.index.clone());
        let id_bytes = self.clone.object_id_bytes();
        let (stamps, pace) = (self.stamps, self.pace);
        let clone = self.clone.clone();
        let taken = blocking(move || {
            let way = clone.right_of_way();
            Survey::take(&tree, &index, id_bytes, stamps, pace, way)
        })
        .await;
        taken.ok().flatten()
    }

    /// Makes the tree what its index says: removes what is too much, writes anew what was touched.
    async fn restore(&self, survey: Survey) -> Result<(), GitError> {
        let mut names = Vec::new();
        for path in survey.suspects() {
            names.extend_from_slice(path);
            names.push(0);
        }
        let tree = self.tree.clone();
        let removed = blocking(move || {
            for path in survey.extra.iter().chain(survey.suspects()) {
                remove_tree(&tree.join(OsStr::from_bytes(path)))?;
            }
            Ok(())
        });
        removed.await.map_err(GitError::files(&self.tree))?;
        if names.is_empty() {
            return Ok(());
        }
        let call = self
            .clone
            .call(["checkout-index", "-z", "-f", "-u", "--stdin"]);
        let call = call
            .work_tree(&self.tree, &self.index)
            .directory(&self.tree)
            .stdin(names);
        self.clone.git().run(call).await?;
        Ok(())
    }

    async fn read_tree(&self, commit: &CommitId) -> Result<(), GitError> {
        let call = self
            .clone
            .call(["read-tree", "--reset", "-u", "--no-recurse-submodules"]);
        let call = call
            .argument(commit.as_str())
            .work_tree(&self.tree, &self.index)
            .directory(&self.tree);
        self.clone
            .git()
            .run(call.timeout(crate::clone::TRANSFER_TIMEOUT))
            .await?;
        Ok(())
    }

    async fn clear(&self) -> Result<(), GitError> {
        self.hide().await.ok();
        for file in ["index", "index.lock"] {
            remove_if_there(&self.home.join(file))?;
        }
        let tree = self.tree.clone();
        let cleared = blocking(move || {
            remove_tree(&tree)?;
            fs::create_dir_all(&tree)
        });
        cleared.await.map_err(GitError::files(&self.tree))
    }

    /// Moves all of the checkout out of the way, for good, and says where it lies now.
    pub(crate) fn retire(self) -> Result<PathBuf, GitError> {
        let name = self.home.file_name().unwrap_or_default().to_string_lossy();
        let free = (1..10_000)
            .map(|number| self.home.with_file_name(format!("retired-{name}-{number}")))
            .find(|place| !place.exists());
        let place = free.unwrap_or_else(|| self.home.with_file_name(format!("retired-{name}")));
        fs::rename(&self.home, &place).map_err(GitError::files(&self.home))?;
        Ok(place)
    }

    /// Moves the tree aside, when it can be neither read nor thrown away.
    pub(crate) fn set_aside(&mut self) -> Result<PathBuf, GitError> {
        let free = (1..10_000)
            .map(|number| self.home.join(format!("lost-{number}")))
            .find(|path| !path.exists());
        let aside = free.unwrap_or_else(|| self.home.join("lost"));
        fs::rename(&self.tree, &aside).map_err(GitError::files(&self.tree))?;
        self.set_base(None)?;
        Ok(aside)
    }

    fn set_base(&mut self, commit: Option<&CommitId>) -> Result<(), GitError> {
        let path = self.home.join("base");
        match commit {
            Some(commit) => fs::write(&path, commit.as_str()).map_err(GitError::files(path))?,
            None => remove_if_there(&path)?,
        }
        self.base = commit.cloned();
        Ok(())
    }
}

/// Removes the scratch directories that a process which was killed left in a checkout that is ours now.
fn clear_scratch(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(".tmp") {
            // One that stays is in nobody's way.
            remove_tree(&entry.path()).ok();
        }
    }
}

/// Removes a file that need not be there.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), GitError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(GitError::files(path)(error)),
        _ => Ok(()),
    }
}

/// Runs work on the file system beside the async threads.
async fn blocking<Value: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<Value> + Send + 'static,
) -> std::io::Result<Value> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

/// Tells the ancestors of a path in a tree, nearest to the root first, without the path itself.
fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(end, _)| &path[..end])
}

/// A set of paths.
type Paths = HashSet<Vec<u8>>;
