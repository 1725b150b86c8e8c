//! Keeps the bare local clone in the state directory: every object and ref that Ropewalk works with.

mod bundle;
mod copy;
mod history;
mod known;
mod quarantine;
pub(crate) mod read;
mod refs;
mod shown;
mod user;
mod write;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::git::Call;
use crate::right_of_way::RightOfWay;
use crate::{FileLock, Git, GitError, Identity, Retirement, UserHead, UserRepository};

pub use history::HistoryPart;
pub(crate) use quarantine::Quarantine;
pub use read::{Blob, Diff, FileEntry, FileKind};
pub use shown::History;
pub use write::FileChange;

/// Moving a whole repository takes its time.
pub(crate) const TRANSFER_TIMEOUT: Duration = Duration::from_mins(30);
/// The only protocol, and only for the calls that need it.
pub(crate) const LOCAL_TRANSFER: [&str; 1] = ["protocol.file.allow=always"];

/// What a local clone is made with.
#[derive(Debug, Clone)]
pub struct LocalCloneOptions {
    /// The user's repository.
    pub user_repository: PathBuf,
    /// The state directory; the clone is `repository.git` in it.
    pub state: PathBuf,
    /// Who commits.
    pub identity: Identity,
}

/// The bare clone; cheap to clone as a handle.
#[derive(Debug, Clone)]
pub struct LocalClone {
    inner: Arc<Inner>,
    /// Where new objects go, unless to their place.
    aside: Option<quarantine::Objects>,
}

#[derive(Debug)]
struct Inner {
    git: Git,
    user: UserRepository,
    state: PathBuf,
    directory: PathBuf,
    identity: Identity,
    known: known::ObjectCache,
    way: RightOfWay,
    retirements: Mutex<Vec<Retirement>>,
}

impl LocalClone {
    /// Returns where the clone lies whose state directory is `state`.
    pub fn directory_below(state: &Path) -> PathBuf {
        state.join("repository.git")
    }

    /// Opens the clone of the user's repository, makes it when it is not there, and fetches.
    pub async fn open_or_create(git: Git, options: LocalCloneOptions) -> Result<Self, GitError> {
        let user = UserRepository::inspect(&git, &options.user_repository).await?;
        std::fs::create_dir_all(&options.state).map_err(GitError::files(&options.state))?;
        let state = options
            .state
            .canonicalize()
            .map_err(GitError::files(&options.state))?;
        let inner = Inner {
            directory: Self::directory_below(&state),
            git,
            user,
            state,
            identity: options.identity,
            known: known::ObjectCache::default(),
            way: RightOfWay::default(),
            retirements: Mutex::default(),
        };
        let clone = Self {
            inner: Arc::new(inner),
            aside: None,
        };
        // Asked first, so that a repository without a commit leaves nothing behind.
        clone.user_head().await?;
        clone.ensure().await?;
        clone.fetch().await?;
        Ok(clone)
    }

    /// Brings the commits of the user's branches in and returns where the user's `HEAD` is.
    pub async fn fetch(&self) -> Result<UserHead, GitError> {
        let _alone = self.alone().await?;
        // Every ref of the clone is ours, and a killed git leaves its locks behind.
        crate::stale::clear_below(&self.inner.directory.join("refs"));
        quarantine::clear(&self.inner.directory.join("objects"));
        for name in ["packed-refs.lock", "shallow.lock"] {
            crate::stale::clear(&self.inner.directory.join(name));
        }
        let head = self.user_head().await?;
        let server = format!("--upload-pack={}", Git::server("upload-pack"));
        let call = self
            .call([
                "fetch",
                "--quiet",
                "--no-tags",
                "--prune",
                "--update-shallow",
            ])
            .argument("--no-write-fetch-head")
            .argument("--no-recurse-submodules")
            .argument(server)
            .argument("--")
            .argument(&self.inner.user.path)
            .argument("+refs/heads/*:refs/ropewalk/user/heads/*")
            .argument("+refs/tags/*:refs/ropewalk/user/tags/*")
            .argument("+HEAD:refs/ropewalk/user/HEAD")
            .settings(&LOCAL_TRANSFER)
            .timeout(TRANSFER_TIMEOUT);
        if let Err(error) = self.inner.git.run(call).await {
            return Err(match self.promisor().await? {
                Some(remote) => GitError::PartialClone {
                    path: self.inner.user.path.clone(),
                    remote,
                },
                None => error,
            });
        }
        // What is below a commit never changes, but what its tags are does.
        self.known().forget_grounds();
        Ok(head)
    }

    /// Returns where the user's `HEAD` is now, with its commit present in the clone.
    pub async fn default_branch_head(&self) -> Result<UserHead, GitError> {
        let head = self.user_head().await?;
        if self.resolve(head.commit.as_str()).await?.is_some() {
            return Ok(head);
        }
        self.fetch().await
    }

    /// Returns the user's repository.
    pub fn user(&self) -> &UserRepository {
        &self.inner.user
    }

    /// Returns where the clone lies.
    pub fn directory(&self) -> &Path {
        &self.inner.directory
    }

    /// Returns the state directory that the clone lies in.
    pub fn state(&self) -> &Path {
        &self.inner.state
    }

    /// Takes what was retired since the last time, for somebody to be told.
    pub fn take_retirements(&self) -> Vec<Retirement> {
        let noted = self.inner.retirements.lock();
        std::mem::take(&mut noted.unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn note_retirement(&self, retirement: Retirement) {
        let noted = self.inner.retirements.lock();
        noted
            .unwrap_or_else(PoisonError::into_inner)
            .push(retirement);
    }

    /// Returns the length of an object id.
    pub(crate) fn object_id_bytes(&self) -> usize {
        match self.inner.user.object_format.as_str() {
            "sha256" => 32,
            _ => 20,
        }
    }

    /// Returns whose turn it is to look at a tree.
    pub(crate) fn right_of_way(&self) -> &RightOfWay {
        &self.inner.way
    }

    fn known(&self) -> &known::ObjectCache {
        &self.inner.known
    }

    pub(crate) fn git(&self) -> &Git {
        &self.inner.git
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.inner.identity
    }

    /// Begins a call of git on the clone.
    pub(crate) fn call<Argument: Into<OsString>>(
        &self,
        arguments: impl IntoIterator<Item = Argument>,
    ) -> Call<'_> {
        let call = Call::new(arguments)
            .git_directory(&self.inner.directory)
            .directory(&self.inner.state);
        match &self.aside {
            Some(objects) => objects.for_call(call),
            None => call,
        }
    }

    /// Keeps others, in this process or another, from making the clone or from fetching: two fetches at once would
    /// fight for the same refs.
    async fn alone(&self) -> Result<FileLock, GitError> {
        FileLock::wait(&self.inner.state.join("repository.lock")).await
    }

    async fn user_head(&self) -> Result<UserHead, GitError> {
        let user = &self.inner.user;
        let server = format!("--upload-pack={}", Git::server("upload-pack"));
        let call = self
            .call(["ls-remote", "--symref"])
            .argument(server)
            .argument("--")
            .argument(&user.path)
            .argument("HEAD")
            .settings(&LOCAL_TRANSFER);
        let output = self.inner.git.run(call).await?;
        let mut branch = None;
        for line in output.line().lines() {
            match line.split_once('\t') {
                Some((target, "HEAD")) if target.starts_with("ref: ") => {
                    branch = target.strip_prefix("ref: refs/heads/").map(str::to_owned);
                }
                Some((commit, "HEAD")) => {
                    let commit = commit.parse();
                    let commit =
                        commit.map_err(|_| GitError::unreadable("ls-remote", line.as_bytes()))?;
                    return Ok(UserHead { branch, commit });
                }
                _ => {}
            }
        }
        Err(GitError::NoCommit(user.path.clone()))
    }

    /// Makes the empty clone beside its place and moves it there, so that a crash leaves no half of one.
    async fn ensure(&self) -> Result<(), GitError> {
        let _alone = self.alone().await?;
        let directory = &self.inner.directory;
        if directory.exists() {
            let call = self.call(["rev-parse", "--is-bare-repository"]);
            let output = self.inner.git.try_run(call).await?;
            return match output.code {
                0 => Ok(()),
                _ => Err(GitError::DamagedClone {
                    path: directory.clone(),
                    reason: output.stderr,
                }),
            };
        }
        let scratch =
            tempfile::tempdir_in(&self.inner.state).map_err(GitError::files(&self.inner.state))?;
        let fresh = scratch.path().join("repository.git");
        let call = Call::new([
            "init",
            "--quiet",
            "--bare",
            "--template=",
            "--initial-branch=ropewalk",
        ])
        .argument(format!("--object-format={}", self.inner.user.object_format))
        .argument(&fresh);
        self.inner.git.run(call).await?;
        std::fs::rename(&fresh, directory).map_err(GitError::files(directory))
    }
}
