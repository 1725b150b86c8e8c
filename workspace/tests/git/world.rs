//! A user's repository and a state directory beside it, both thrown away at the end.

use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeZone, Utc};
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_tests::repository;
use ropewalk_workspace::clone::FileChange;
use ropewalk_workspace::commit::NewCommit;
use ropewalk_workspace::{
    CommitMessage, Environment, Git, GitError, Identity, LocalClone, LocalCloneOptions, PreserveKey,
};

pub(crate) struct World {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) user: PathBuf,
    pub(crate) state: PathBuf,
}

impl World {
    /// Makes a repository with two files in one commit on `main`.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let world = Self::empty()?;
        world.write("README.md", "one\ntwo\nthree\n")?;
        world.write("src/main.rs", "fn main() {}\n")?;
        world.git(&["add", "-A"])?;
        world.git(&["commit", "-q", "-m", "start"])?;
        Ok(world)
    }

    /// Makes a repository without a commit.
    pub(crate) fn empty() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let user = directory.path().join("user repo");
        fs::create_dir(&user)?;
        let world = Self {
            state: directory.path().join("state"),
            user,
            directory,
        };
        world.git(&["init", "-q", "-b", "main"])?;
        Ok(world)
    }

    pub(crate) fn write(&self, path: &str, content: &str) -> anyhow::Result<()> {
        write(&self.user, path, content)
    }

    /// Runs git as the user does.
    pub(crate) fn git(&self, arguments: &[&str]) -> anyhow::Result<String> {
        git(&self.user, arguments)
    }

    pub(crate) async fn clone(&self) -> anyhow::Result<LocalClone> {
        Ok(self.try_clone().await?)
    }

    pub(crate) async fn try_clone(&self) -> Result<LocalClone, GitError> {
        let git = Git::open(&environment()).await?;
        let options = LocalCloneOptions {
            user_repository: self.user.clone(),
            state: self.state.clone(),
            identity: Identity::default(),
        };
        LocalClone::open_or_create(git, options).await
    }
}

pub(crate) fn environment() -> Environment {
    Environment::from_pairs(std::env::vars_os())
}

pub(crate) fn git(directory: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    Ok(repository::git(directory, arguments)?)
}

pub(crate) fn write(root: &Path, path: &str, content: &str) -> anyhow::Result<()> {
    Ok(repository::write(&root.join(path), content)?)
}

pub(crate) fn now() -> DateTime<Utc> {
    Utc.timestamp_opt(1_800_000_000, 0)
        .single()
        .unwrap_or_default()
}

pub(crate) fn key(attempt: u32) -> anyhow::Result<PreserveKey> {
    Ok(PreserveKey {
        build: "01890a5d-ac96-774b-bcce-b302099a8057".parse()?,
        task: "T-001".parse()?,
        attempt,
    })
}

/// Commits one file on top of `parent` in the clone.
pub(crate) async fn commit(
    clone: &LocalClone,
    parent: &CommitId,
    path: &str,
    content: &str,
) -> anyhow::Result<CommitId> {
    let change = FileChange::Write {
        path: RepoPath::parse(path)?,
        content: content.into(),
    };
    let tree = clone.create_tree(parent, &[change]).await?;
    let message =
        CommitMessage::new(format!("change {path}")).with_trailer("Ropewalk-Task", "T-001");
    let parents = std::slice::from_ref(parent);
    Ok(clone
        .create_commit(NewCommit {
            tree: &tree,
            parents,
            message: &message,
            when: now(),
        })
        .await?)
}

/// Lists everything below `root` with kind and content, to compare whole trees.
pub(crate) fn picture(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let content = if kind.is_dir() {
                open.push(entry.path());
                "directory".to_owned()
            } else if kind.is_file() {
                String::from_utf8_lossy(&fs::read(entry.path())?).into_owned()
            } else {
                format!("{kind:?}")
            };
            found.push((
                entry.path().strip_prefix(root)?.display().to_string(),
                content,
            ));
        }
    }
    found.sort();
    Ok(found)
}

/// Fills the user's configuration with everything that makes git run a program, each leaving a marker.
pub(crate) fn poison(world: &World) -> anyhow::Result<PathBuf> {
    let markers = world.directory.path().join("markers");
    fs::create_dir(&markers)?;
    let script = world.directory.path().join("trap.sh");
    fs::write(
        &script,
        format!(
            "#!/bin/sh\necho \"$0 $*\" >> '{}/fired'\ncat 2>/dev/null\n",
            markers.display()
        ),
    )?;
    let hooks = world.directory.path().join("hooks");
    fs::create_dir(&hooks)?;
    make_executable(&script)?;
    for hook in [
        "pre-receive",
        "update",
        "post-receive",
        "post-update",
        "reference-transaction",
        "pre-push",
        "post-checkout",
        "pre-commit",
        "post-index-change",
        "push-to-checkout",
        "proc-receive",
        "pre-auto-gc",
    ] {
        for place in [hooks.join(hook), world.user.join(".git/hooks").join(hook)] {
            fs::create_dir_all(place.parent().unwrap_or(&hooks))?;
            fs::copy(&script, &place)?;
        }
    }
    let script = script.display().to_string();
    let hooks = hooks.display().to_string();
    for (name, value) in [
        ("core.hooksPath", hooks.as_str()),
        ("core.fsmonitor", &script),
        ("core.sshCommand", &script),
        ("core.pager", &script),
        ("core.editor", &script),
        ("core.alternateRefsCommand", &script),
        ("filter.trap.clean", &script),
        ("filter.trap.smudge", &script),
        ("filter.trap.process", &script),
        ("diff.trap.textconv", &script),
        ("diff.trap.command", &script),
        ("diff.external", &script),
        ("merge.trap.driver", &script),
        ("gpg.program", &script),
        ("commit.gpgSign", "true"),
        ("uploadpack.packObjectsHook", &script),
        ("receive.denyCurrentBranch", "updateInstead"),
        ("credential.helper", &script),
    ] {
        world.git(&["config", name, value])?;
    }
    fs::write(
        world.user.join(".git/info/attributes"),
        "* filter=trap diff=trap merge=trap\n",
    )?;
    Ok(markers.join("fired"))
}

pub(crate) fn make_executable(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(
        path,
        fs::Permissions::from_mode(0o755),
    )?)
}
