//! Lays the folder of a rehearsal: `ropewalk.toml`, the scripts, a repository with one commit, an empty state.

use std::ffi::OsStr;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use ropewalk_config::rehearsal;
use ropewalk_schemas::advice::Advice;
use ropewalk_workspace::{Git, GitError, UserRepository};

/// The files of a rehearsal folder that ship with the program.
const SCRIPTS: [&str; 2] = ["model.yaml", "person.yaml"];

/// How long the model takes for each answer where somebody watches, in milliseconds.
const PACE: u64 = 1_500;

/// How the name of the folder begins in which the content is made; the process that makes it stands behind it.
const DRAFT: &str = ".laying-";
/// The name of the repository in it.
const REPOSITORY: &str = "repo";
/// The name of the settings in it.
const SETTINGS: &str = "ropewalk.toml";

/// Says why the folder cannot be laid.
#[derive(Debug, thiserror::Error)]
pub(super) enum LayError {
    /// Something else is there.
    #[error("`{0}` is not an empty directory")]
    NotEmpty(PathBuf),
    /// A file cannot be written.
    #[error("cannot write `{path}`: {source}")]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// git refused.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A script does not ship with this program, which is a mistake in it.
    #[error("the script `{0}` is missing from this program")]
    Script(&'static str),
}

impl Advice for LayError {
    fn next(&self) -> Option<String> {
        let next = match self {
            Self::NotEmpty(_) => "name a new one with `--dir`, or go on there with `ropewalk up`",
            Self::Write { .. } => "choose another place with `--dir`",
            Self::Git(error) => return error.next(),
            Self::Script(_) => return None,
        };
        Some(next.to_owned())
    }
}

/// Lays the folder; `bus` and `store` go into its configuration, so that `up` uses the same.
pub(super) async fn lay(
    directory: &Path,
    git: &Git,
    bus: &str,
    store: &str,
) -> Result<(), LayError> {
    clear_unfinished(directory).map_err(|source| LayError::Write {
        path: directory.to_owned(),
        source,
    })?;
    require_empty(directory)?;
    // Whoever ends this process meanwhile finds the folder laid, or without a `ropewalk.toml`.
    let directory = &resolved(directory);
    let draft = draft(directory);
    let laid = draw(&draft, git, bus, store).await.and_then(|()| {
        settle(&draft, directory).map_err(|source| LayError::Write {
            path: directory.clone(),
            source,
        })
    });
    if laid.is_err() {
        // The first error is the one to tell.
        drop(std::fs::remove_dir_all(&draft));
    }
    laid
}

/// Lets each answer of the model in a laid folder take so long that people can follow.
pub(super) fn slow(directory: &Path) -> Result<(), LayError> {
    let path = directory.join(SCRIPTS[0]);
    let failed = |source| LayError::Write {
        path: path.clone(),
        source,
    };
    let script = std::fs::read_to_string(&path).map_err(failed)?;
    let slow = script.replace(
        "\n  reply:\n",
        &format!("\n  reply:\n    delay_ms: {PACE}\n"),
    );
    std::fs::write(&path, slow).map_err(failed)
}

/// Returns `directory` without links, and without a slash at its end.
fn resolved(directory: &Path) -> PathBuf {
    std::fs::canonicalize(directory).unwrap_or_else(|_| directory.components().collect())
}

/// Returns the folder in which the content of `directory` is made: beside it, or inside when it is there already,
/// since somebody may stand in it, and what is beside it may not be theirs to write.
fn draft(directory: &Path) -> PathBuf {
    let suffix = format!("{DRAFT}{}", std::process::id());
    if directory.is_dir() {
        return directory.join(suffix);
    }
    let mut name = directory.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Puts what was made in `draft` in its place; the settings last, since they make a project of it.
fn settle(draft: &Path, directory: &Path) -> std::io::Result<()> {
    if !draft.starts_with(directory) {
        return std::fs::rename(draft, directory);
    }
    for name in SCRIPTS.into_iter().chain([REPOSITORY, SETTINGS]) {
        std::fs::rename(draft.join(name), directory.join(name))?;
    }
    std::fs::remove_dir(draft)
}

async fn draw(directory: &Path, git: &Git, bus: &str, store: &str) -> Result<(), LayError> {
    let repository = directory.join(REPOSITORY);
    write(&directory.join(SETTINGS), &settings(bus, store))?;
    for name in SCRIPTS {
        write(
            &directory.join(name),
            rehearsal::file(name).ok_or(LayError::Script(name))?,
        )?;
    }
    write(
        &repository.join("README.md"),
        "# Rehearsal\n\nA repository for `ropewalk rehearse`: each idea is built on a branch of its own.\n",
    )?;
    UserRepository::create(git, &repository, "main", "Begin the rehearsal").await?;
    Ok(())
}

/// Takes away what a process that was killed while it laid the folder has left there; all else stays.
fn clear_unfinished(directory: &Path) -> std::io::Result<()> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Ok(());
    };
    let entries: Vec<DirEntry> = entries.collect::<std::io::Result<_>>()?;
    let is_draft = |entry: &&DirEntry| entry.file_name().to_string_lossy().starts_with(DRAFT);
    let (drafts, rest): (Vec<&DirEntry>, Vec<&DirEntry>) = entries.iter().partition(is_draft);
    let is_settled = |entry: &&DirEntry| {
        let name = entry.file_name();
        name == REPOSITORY || SCRIPTS.iter().any(|script| name == *script)
    };
    let abandoned = drafts.iter().all(|draft| is_abandoned(&draft.file_name()));
    if drafts.is_empty() || !abandoned || !rest.iter().all(is_settled) {
        return Ok(());
    }
    // The drafts last: they say whose the rest is.
    for entry in rest.iter().chain(&drafts) {
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Says that the process that a draft is named after is gone.
fn is_abandoned(draft: &OsStr) -> bool {
    let process = draft.to_str().and_then(|name| name.strip_prefix(DRAFT));
    let process = process.and_then(|number| number.parse::<i32>().ok());
    process.is_some_and(|number| kill(Pid::from_raw(number), None) == Err(Errno::ESRCH))
}

fn require_empty(directory: &Path) -> Result<(), LayError> {
    match std::fs::read_dir(directory).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) if source.kind() != std::io::ErrorKind::NotADirectory => Err(LayError::Write {
            path: directory.to_owned(),
            source,
        }),
        _ => Err(LayError::NotEmpty(directory.to_owned())),
    }
}

fn write(path: &Path, text: &str) -> Result<(), LayError> {
    let failed = |source| LayError::Write {
        path: path.to_owned(),
        source,
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)
}

fn settings(bus: &str, store: &str) -> String {
    format!(
        r#"# A rehearsal: everything here is scripted but the code that is built, and its tests.

[project]
name = "rehearsal"
repo = "repo"
state = "state"

[person]
name = "pat"

[bus]
transport = "{bus}"

[store]
location = {store:?}

[models]
chat = "script/rehearsal"
spec = "script/rehearsal"
build = "script/rehearsal"
small = "script/rehearsal"

[providers.script]
kind = "scripted"
script = "model.yaml"

[knowledge]
hold_out = false

[rehearsal]
person = "person.yaml"

[[gate.commands]]
name = "no-conflict-markers"
command = "! grep --recursive --line-number --extended-regexp '^(<<<<<<<|>>>>>>>) ' --include='*.rs' ."
"#
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    async fn git() -> Git {
        let environment = ropewalk_config::Environment::from_process();
        crate::wiring::git(&environment).await.unwrap()
    }

    #[tokio::test]
    async fn a_folder_is_laid_as_a_whole_and_leaves_nothing_beside_it() {
        let above = tempfile::tempdir().unwrap();
        for name in ["new", "empty/"] {
            let directory = above.path().join(name);
            if name.ends_with('/') {
                std::fs::create_dir(&directory).unwrap();
            }
            lay(&directory, &git().await, "embedded", "sqlite")
                .await
                .unwrap();
            assert!(directory.join("ropewalk.toml").is_file(), "{name}");
            assert!(directory.join("repo/.git").exists(), "{name}");
        }
        assert_eq!(std::fs::read_dir(above.path()).unwrap().count(), 2);
    }

    #[tokio::test]
    async fn every_answer_takes_its_time_where_somebody_watches() {
        let directory = tempfile::tempdir().unwrap();
        lay(directory.path(), &git().await, "embedded", "sqlite")
            .await
            .unwrap();
        slow(directory.path()).unwrap();
        let script = std::fs::read_to_string(directory.path().join(SCRIPTS[0])).unwrap();
        let answers = script.matches("\n  reply:").count();
        assert!(answers > 0);
        let delay = format!("\n  reply:\n    delay_ms: {PACE}\n");
        assert_eq!(script.matches(&delay).count(), answers);
    }

    #[tokio::test]
    async fn a_folder_that_is_there_stays_the_one_that_somebody_stands_in() {
        let above = tempfile::tempdir().unwrap();
        let directory = above.path().join("here");
        std::fs::create_dir(&directory).unwrap();
        let before = std::fs::metadata(&directory).unwrap().ino();
        lay(&directory, &git().await, "embedded", "sqlite")
            .await
            .unwrap();
        assert_eq!(std::fs::metadata(&directory).unwrap().ino(), before);
        let mut names: Vec<_> = std::fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["model.yaml", "person.yaml", "repo", "ropewalk.toml"]
        );
    }

    /// A folder that stopped being laid when the scripts and the repository were in their places.
    fn half_laid(directory: &Path, process: i32) {
        std::fs::create_dir_all(directory.join("repo/.git")).unwrap();
        std::fs::write(directory.join("model.yaml"), "half").unwrap();
        let draft = directory.join(format!("{DRAFT}{process}"));
        std::fs::create_dir(&draft).unwrap();
        std::fs::write(draft.join(SETTINGS), "the rest").unwrap();
    }

    /// Returns the number of a process that has ended.
    fn ended() -> i32 {
        let mut process = std::process::Command::new("true").spawn().unwrap();
        process.wait().unwrap();
        i32::try_from(process.id()).unwrap()
    }

    #[tokio::test]
    async fn a_folder_that_a_killed_process_half_laid_is_laid_again() {
        let above = tempfile::tempdir().unwrap();
        let directory = above.path().join("here");
        half_laid(&directory, ended());
        lay(&directory, &git().await, "embedded", "sqlite")
            .await
            .unwrap();
        let model = std::fs::read_to_string(directory.join("model.yaml")).unwrap();
        assert_ne!(model, "half");
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 4);
    }

    #[tokio::test]
    async fn a_folder_that_is_being_laid_or_holds_something_else_is_refused_and_stays() {
        for (process, more) in [
            (1, None),
            (ended(), Some("mine.txt")),
            (ended(), Some(SETTINGS)),
        ] {
            let above = tempfile::tempdir().unwrap();
            half_laid(above.path(), process);
            if let Some(name) = more {
                std::fs::write(above.path().join(name), "mine").unwrap();
            }
            let refused = lay(above.path(), &git().await, "embedded", "sqlite").await;
            assert!(matches!(refused, Err(LayError::NotEmpty(_))), "{refused:?}");
            let model = std::fs::read_to_string(above.path().join("model.yaml")).unwrap();
            assert_eq!(model, "half", "{process} {more:?}");
        }
    }

    #[tokio::test]
    async fn a_folder_is_untouched_until_all_of_it_is_there() {
        let above = tempfile::tempdir().unwrap();
        let directory = above.path().join("new");
        // Where the content is made something stands in the way.
        std::fs::write(draft(&directory), "a file").unwrap();
        let refused = lay(&directory, &git().await, "embedded", "sqlite").await;
        assert!(
            matches!(refused, Err(LayError::Write { .. })),
            "{refused:?}"
        );
        assert!(!directory.exists());
    }
}
