//! Keeps every piece of work under a ref of its own, so that nothing a loop made is ever lost.

use std::fmt;

use ropewalk_schemas::{BuildId, CommitId, TaskId};

use crate::{GitError, LocalClone};

/// Where all preserve refs lie in the local clone.
const PREFIX: &str = "refs/ropewalk/preserve";
/// One attempt is preserved far less often than this; the bound ends a loop that would not.
const MOST_PER_ATTEMPT: u32 = 10_000;

/// Names whose work is preserved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PreserveKey {
    /// The build.
    pub build: BuildId,
    /// The task.
    pub task: TaskId,
    /// The number of the attempt at the task.
    pub attempt: u32,
}

impl fmt::Display for PreserveKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.build, self.task, self.attempt)
    }
}

impl PreserveKey {
    /// Reads what [`fmt::Display`] wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('/');
        let key = Self {
            build: parts.next()?.parse().ok()?,
            task: parts.next()?.parse().ok()?,
            attempt: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(key)
    }

    fn reference(&self, number: u32) -> String {
        match number {
            1 => format!("{PREFIX}/{self}"),
            _ => format!("{PREFIX}/{self}-{number}"),
        }
    }
}

/// A ref that keeps a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreserveRef {
    /// The full name of the ref.
    pub reference: String,
    /// What it keeps.
    pub commit: CommitId,
}

impl LocalClone {
    /// Keeps `commit` under a ref of the attempt; an earlier ref of the attempt is never overwritten.
    pub async fn preserve(
        &self,
        key: &PreserveKey,
        commit: &CommitId,
    ) -> Result<PreserveRef, GitError> {
        for number in 1..MOST_PER_ATTEMPT {
            let reference = key.reference(number);
            match self.update_ref_cas(&reference, commit, None).await {
                Err(GitError::RefMoved {
                    actual: Some(actual),
                    ..
                }) if actual != commit.as_str() => {}
                Ok(())
                | Err(GitError::RefMoved {
                    actual: Some(_), ..
                }) => {
                    return Ok(PreserveRef {
                        reference,
                        commit: commit.clone(),
                    });
                }
                // A killed git left the lock of this ref; the next name is free of it.
                Err(GitError::Failed { .. }) if self.is_locked(&reference) => {}
                Err(error) => return Err(error),
            }
        }
        Err(GitError::BadRef(key.reference(MOST_PER_ATTEMPT)))
    }

    fn is_locked(&self, reference: &str) -> bool {
        let lock = format!("{reference}.lock");
        self.directory().join(lock).exists()
    }

    /// Returns where the newest work of an attempt is kept.
    pub async fn kept(&self, key: &PreserveKey) -> Result<Option<PreserveRef>, GitError> {
        let first = key.reference(1);
        // A name that is a whole ref selects that one alone, so the folder of the task is listed.
        let folder = format!("{PREFIX}/{}/{}", key.build, key.task);
        let number = |reference: &str| match reference.strip_prefix(&first)? {
            "" => Some(1),
            later => later.strip_prefix('-')?.parse::<u32>().ok(),
        };
        let refs = self.references(&folder).await?;
        let newest = refs
            .into_iter()
            .filter_map(|(reference, commit)| Some((number(&reference)?, reference, commit)))
            .max_by_key(|(number, ..)| *number);
        Ok(newest.map(|(_, reference, commit)| PreserveRef { reference, commit }))
    }

    /// Lists what is kept for a build, or for everything.
    pub async fn preserved(&self, build: Option<BuildId>) -> Result<Vec<PreserveRef>, GitError> {
        let prefix = build.map_or_else(|| PREFIX.to_owned(), |build| format!("{PREFIX}/{build}"));
        let refs = self.references(&prefix).await?;
        Ok(refs
            .into_iter()
            .map(|(reference, commit)| PreserveRef { reference, commit })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_being_written_down() {
        let text = "01890a5d-ac96-774b-bcce-b302099a8057/T-001/3";
        let key = PreserveKey::parse(text).unwrap();
        assert_eq!((key.task.as_str(), key.attempt), ("T-001", 3));
        assert_eq!(key.to_string(), text);
        assert_eq!(PreserveKey::parse("x/../y"), None);
    }
}
