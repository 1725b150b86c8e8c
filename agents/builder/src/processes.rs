//! Lets several processes build on one state directory: what bears whose name, and what one of them does for all.

use std::fs;
use std::path::{Path, PathBuf};

use ropewalk_schemas::agent::LOOP_PREFIX;
use ropewalk_schemas::{BuildId, ComponentName, InvalidId};
use ropewalk_workspace::FileLock;

use super::error::BuilderError;

/// So many builds may have long work done on them at once, over all processes.
const DUTIES: u128 = 64;
/// Checkouts beside those of the own loops, for the loops of other processes on the same state and for checks of whole
/// builds. One is made when it is first needed, so that a generous bound costs nothing.
pub(crate) const SPARE_CHECKOUTS: usize = 56;

/// The processes on a state directory, as one of them sees them.
#[derive(Debug)]
pub(crate) struct Processes {
    /// The number of this process; `None` when it is the only one.
    process: Option<u32>,
    duties: PathBuf,
}

/// The right to do long work on a build.
pub(crate) enum Duty {
    /// It is this process's until this is dropped.
    Ours(Option<FileLock>),
    /// Another process is at it.
    Theirs,
}

impl Processes {
    /// Sees the processes on `state`, this one under the number that it was given.
    pub(crate) fn new(process: Option<u32>, state: &Path) -> Self {
        Self {
            process,
            duties: state.join("duties"),
        }
    }

    /// Names a loop of this process.
    pub(crate) fn loop_name(&self, number: usize) -> Result<ComponentName, InvalidId> {
        ComponentName::parse(&match self.process {
            None => format!("{LOOP_PREFIX}{number}"),
            Some(process) => format!("{LOOP_PREFIX}{process}-{number}"),
        })
    }

    /// Names the scheduler of this process.
    pub(crate) fn scheduler(&self) -> Result<ComponentName, InvalidId> {
        ComponentName::parse(&match self.process {
            None => "build-scheduler".to_owned(),
            Some(process) => format!("build-scheduler-{process}"),
        })
    }

    /// Returns whether no other process builds.
    pub(crate) const fn is_alone(&self) -> bool {
        self.process.is_none()
    }

    /// Returns whether a loop was one of an earlier process in the place of this one, which is gone.
    pub(crate) fn was_ours(&self, loop_name: &ComponentName) -> bool {
        self.process.is_none_or(|process| {
            let ours = format!("{LOOP_PREFIX}{process}-");
            loop_name.as_str().starts_with(&ours)
        })
    }

    /// Asks for the long work on a build, which one process at a time does.
    pub(crate) fn duty(&self, build: BuildId) -> Result<Duty, BuilderError> {
        if self.is_alone() {
            return Ok(Duty::Ours(None));
        }
        fs::create_dir_all(&self.duties)
            .map_err(|source| BuilderError::of_file(&self.duties, source))?;
        let number = build.0.as_u128() % DUTIES;
        let lock = FileLock::take(&self.duties.join(format!("{number}.lock")))?;
        Ok(lock.map_or(Duty::Theirs, |lock| Duty::Ours(Some(lock))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_what_was_its_own_by_its_number() {
        let name = |text: &str| ComponentName::parse(text).unwrap();
        let alone = Processes::new(None, Path::new("state"));
        let second = Processes::new(Some(2), Path::new("state"));
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
