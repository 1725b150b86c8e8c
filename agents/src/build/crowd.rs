//! Lets several processes build on one state directory: what bears whose name, and what one of them does for all.

use std::path::{Path, PathBuf};

use ropewalk_schemas::{BuildId, ComponentName, InvalidId};
use ropewalk_workspace::{FileLock, GitError};

use super::trouble::Trouble;

/// How the names of build loops begin.
const LOOP: &str = "loop";
/// So many builds may have long work done on them at once, over all processes.
const TURNS: u128 = 64;

/// The processes on a state directory, as one of them sees them.
#[derive(Debug)]
pub(crate) struct Crowd {
    /// The number of this process; `None` when it is the only one.
    process: Option<u32>,
    directory: PathBuf,
}

/// The right to do long work on a build.
pub(crate) enum Turn {
    /// It is this process's until this is dropped.
    Ours(Option<FileLock>),
    /// Another process is at it.
    Theirs,
}

impl Crowd {
    /// Sees the processes on `state`, this one under the number that it was given.
    pub(crate) fn new(process: Option<u32>, state: &Path) -> Self {
        Self {
            process,
            directory: state.join("processes"),
        }
    }

    /// Names a loop of this process.
    pub(crate) fn loop_name(&self, number: usize) -> Result<ComponentName, InvalidId> {
        ComponentName::parse(&match self.process {
            None => format!("{LOOP}-{number}"),
            Some(process) => format!("{LOOP}-{process}-{number}"),
        })
    }

    /// Names the steward of this process.
    pub(crate) fn steward(&self) -> Result<ComponentName, InvalidId> {
        ComponentName::parse(&match self.process {
            None => "build-steward".to_owned(),
            Some(process) => format!("build-steward-{process}"),
        })
    }

    /// Returns whether no other process builds.
    pub(crate) const fn is_alone(&self) -> bool {
        self.process.is_none()
    }

    /// Returns whether a loop was one of an earlier process in the place of this one, which is gone.
    pub(crate) fn was_ours(&self, loop_name: &ComponentName) -> bool {
        self.process.is_none_or(|process| {
            let ours = format!("{LOOP}-{process}-");
            loop_name.as_str().starts_with(&ours)
        })
    }

    /// Asks for the long work on a build, which one process at a time does.
    pub(crate) fn turn(&self, build: BuildId) -> Result<Turn, Trouble> {
        if self.is_alone() {
            return Ok(Turn::Ours(None));
        }
        let number = build.0.as_u128() % TURNS;
        let lock = self.lock(&format!("turn-{number}.lock"))?;
        Ok(lock.map_or(Turn::Theirs, |lock| Turn::Ours(Some(lock))))
    }

    fn lock(&self, name: &str) -> Result<Option<FileLock>, GitError> {
        FileLock::take(&self.directory.join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_what_was_its_own_by_its_number() {
        let name = |text: &str| ComponentName::parse(text).unwrap();
        let alone = Crowd::new(None, Path::new("state"));
        let second = Crowd::new(Some(2), Path::new("state"));
        assert_eq!(alone.loop_name(1).unwrap(), name("loop-1"));
        assert_eq!(second.loop_name(1).unwrap(), name("loop-2-1"));
        let rows = [
            ("loop-2-1", true, true),
            ("loop-2-13", true, true),
            ("loop-1-2", true, false),
            ("loop-22-1", true, false),
            ("loop-2", true, false),
        ];
        for (of, was_alones, was_seconds) in rows {
            assert_eq!(alone.was_ours(&name(of)), was_alones, "{of}");
            assert_eq!(second.was_ours(&name(of)), was_seconds, "{of}");
        }
    }
}
