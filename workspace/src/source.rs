//! Looks at the user's repository without touching it or running anything that it configures.

use std::path::{Path, PathBuf};

use ropewalk_schemas::{CommitId, RepoPath};

use crate::clone::read::{CAT_FILES, CHECK_FILES, read_small_blobs};
use crate::git::Call;
use crate::{Git, GitError};

/// The user's repository, which is only read and given branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRepository {
    /// The directory as the user named it, absolute.
    pub path: PathBuf,
    /// Where its objects and refs are.
    pub git_directory: PathBuf,
    /// Says that it has no checkout.
    pub bare: bool,
    pub(crate) object_format: String,
}

/// Where the user's `HEAD` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserHead {
    /// The branch, for example `main`; `None` when `HEAD` is detached.
    pub branch: Option<String>,
    /// The commit.
    pub commit: CommitId,
}

impl UserRepository {
    /// Refuses a repository that has no commit to build on.
    pub async fn require_commit(&self, git: &Git) -> Result<(), GitError> {
        let call = self.call(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
        match git.try_run(call).await?.code {
            0 => Ok(()),
            _ => Err(GitError::NoCommit(self.path.clone())),
        }
    }

    /// Lists the paths of the submodules that `.gitmodules` names in its last commit.
    pub async fn submodules(&self, git: &Git) -> Result<Vec<String>, GitError> {
        let call = self.call([
            "config",
            "--null",
            "--blob=HEAD:.gitmodules",
            "--get-regexp",
            r"^submodule\..*\.path$",
        ]);
        // It fails where there is no such file, or no such key in it.
        let output = git.try_run(call).await?;
        let entries = output.fields().filter(|_| output.code == 0);
        let paths = entries.filter_map(|entry| {
            let (_, path) = std::str::from_utf8(entry).ok()?.split_once('\n')?;
            Some(path.to_owned())
        });
        Ok(paths.collect())
    }

    /// Lists the files of its last commit that have one of these names, in whatever directory.
    pub async fn files_named(&self, git: &Git, names: &[&str]) -> Result<Vec<String>, GitError> {
        let call = self.call(["ls-tree", "-r", "-z", "--full-tree", "--name-only", "HEAD"]);
        let output = git.run(call).await?;
        let paths = output
            .fields()
            .filter_map(|path| std::str::from_utf8(path).ok());
        let wanted = paths.filter(|path| {
            path.rsplit('/')
                .next()
                .is_some_and(|name| names.contains(&name))
        });
        Ok(wanted.map(str::to_owned).collect())
    }

    /// Reads files of its last commit, in the order of `paths`; what is larger than `most_bytes` is none, as what is not there.
    pub async fn read_small_files(
        &self,
        git: &Git,
        paths: &[RepoPath],
        most_bytes: usize,
    ) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        let calls = (self.call(CHECK_FILES), self.call(CAT_FILES));
        read_small_blobs(git, calls, ("HEAD", paths), most_bytes).await
    }

    fn call<'a, const N: usize>(&'a self, arguments: [&'a str; N]) -> Call<'a> {
        Call::new(arguments)
            .settings(&["safe.bareRepository=all", "safe.directory=*"])
            .git_directory(&self.git_directory)
    }

    /// Finds the repository at `path` itself, not in a directory above it.
    pub async fn inspect(git: &Git, path: &Path) -> Result<Self, GitError> {
        let path = path.canonicalize().map_err(GitError::files(path))?;
        if !path.is_dir() {
            return Err(GitError::no_repository(path));
        }
        let call = Call::new([
            "rev-parse",
            "--path-format=absolute",
            "--git-dir",
            "--is-bare-repository",
            "--show-object-format",
        ])
        .settings(&["safe.bareRepository=all", "safe.directory=*"])
        .directory(&path)
        .variable("GIT_CEILING_DIRECTORIES", path.parent().unwrap_or(&path));
        let output = git.try_run(call).await?;
        if output.stderr.contains("not a git repository") {
            return Err(GitError::no_repository(path));
        }
        if output.code != 0 {
            return Err(output.failure("rev-parse".to_owned()));
        }
        let text = output.line();
        let [git_directory, bare, object_format] = text.lines().collect::<Vec<_>>()[..] else {
            return Err(GitError::unreadable("rev-parse", &output.stdout));
        };
        Ok(Self {
            path: path.clone(),
            git_directory: git_directory.into(),
            bare: bare == "true",
            object_format: object_format.to_owned(),
        })
    }
}

/// Returns the git directory of the repository at `path` itself, which its worktrees share; none where no repository is.
pub fn shared_directory(path: &Path) -> Option<PathBuf> {
    shared_by(&own_directory(path)?)
}

/// Lists the git directories of the checkout at `path` itself: the one that it shares with its worktrees, and its own, where
/// that is another one; none where no repository is.
pub fn git_directories(path: &Path) -> Vec<PathBuf> {
    let own = own_directory(path);
    let shared = own.as_deref().and_then(shared_by);
    let own = own.and_then(|own| own.canonicalize().ok());
    let mut directories: Vec<PathBuf> = shared.into_iter().chain(own).collect();
    directories.dedup();
    directories
}

/// Returns the git directory of the checkout at `path`.
fn own_directory(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let inside = path.join(".git");
    if inside.is_dir() {
        return Some(inside);
    }
    if let Ok(text) = std::fs::read_to_string(&inside) {
        return Some(path.join(text.strip_prefix("gitdir:")?.trim()));
    }
    let is_bare = path.join("HEAD").is_file() && path.join("objects").is_dir();
    is_bare.then_some(path)
}

/// Returns the git directory that the one at `own` belongs to, or itself.
fn shared_by(own: &Path) -> Option<PathBuf> {
    let shared = std::fs::read_to_string(own.join("commondir"));
    let directory = shared.map_or_else(|_| own.to_owned(), |shared| own.join(shared.trim()));
    directory.canonicalize().ok()
}

impl UserRepository {
    /// Makes a repository in the directory `path` whose first commit on `branch` holds the files that are there.
    pub async fn create(
        git: &Git,
        path: &Path,
        branch: &str,
        message: &str,
    ) -> Result<Self, GitError> {
        let initial = format!("--initial-branch={branch}");
        let call = |arguments: &[&str]| {
            Call::new(arguments.iter().copied())
                .settings(&["user.name=Ropewalk", "user.email=ropewalk@localhost"])
                .directory(path)
        };
        git.run(call(&["init", "--quiet", &initial])).await?;
        git.run(call(&["add", "--all"])).await?;
        git.run(call(&["commit", "--quiet", "--message", message]))
            .await?;
        Self::inspect(git, path).await
    }
}
