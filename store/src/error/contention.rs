//! Looks, decides and commits again where somebody else was faster, and gives up after a bound.

use std::fmt::Display;

use super::CommitError;

/// How often a change is decided anew because somebody else changed what it rests on.
pub const CONFLICTS: u32 = 64;

/// An error of whoever looks, decides and commits.
pub trait CommitFailure: From<CommitError> {
    /// Returns why the store did not take a change set, where that is what went wrong.
    fn commit_error(&self) -> Option<&CommitError>;
}

impl CommitFailure for CommitError {
    fn commit_error(&self) -> Option<&CommitError> {
        Some(self)
    }
}

/// Looks, decides and commits, anew whenever somebody else has changed what was looked at: the block says so by `None`,
/// or by the conflict of its commit. What keeps changing `$of` for ever is an `$error`.
///
/// It is no function, since a closure that borrows what it looks at cannot be sent between threads yet.
#[macro_export]
macro_rules! retry_on_conflict {
    ($error:ty, $of:expr, $look:block) => {{
        let mut looks = 0;
        loop {
            let looked: Result<Option<_>, $error> = async { $look }.await;
            looks += 1;
            if let Some(done) = $crate::unless_conflict(looked, looks, &$of).transpose() {
                break done;
            }
        }
    }};
}

/// Takes what a look came to; none when it is to be repeated.
pub fn unless_conflict<T, E: CommitFailure>(
    looked: Result<Option<T>, E>,
    looks: u32,
    of: &impl Display,
) -> Result<Option<T>, E> {
    let is_overtaken = match &looked {
        Ok(done) => done.is_none(),
        Err(error) => error.commit_error().is_some_and(CommitError::is_conflict),
    };
    if is_overtaken && looks < CONFLICTS {
        Ok(None)
    } else if is_overtaken {
        Err(CommitError::Contended(of.to_string()).into())
    } else {
        looked
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::advice::Words;

    use super::*;

    fn conflict() -> CommitError {
        CommitError::Conflict {
            table: "tasks",
            key: "T-001".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_look_that_is_overtaken_twice_succeeds() {
        let mut times = 0;
        let done = retry_on_conflict!(CommitError, "T-001", {
            times += 1;
            match times {
                1 => Err(conflict()),
                2 => Ok(None),
                _ => Ok(Some("landed")),
            }
        });
        assert_eq!((done.unwrap(), times), ("landed", 3));
    }

    #[tokio::test]
    async fn a_look_that_is_overtaken_for_ever_ends() {
        for by_itself in [true, false] {
            let mut times = 0;
            let refused: Result<(), _> = retry_on_conflict!(CommitError, "T-001", {
                times += 1;
                if by_itself { Ok(None) } else { Err(conflict()) }
            });
            let words = ("the records of `T-001` keep changing", "try again");
            assert_eq!(Words::of(&refused.unwrap_err()), words.into());
            assert_eq!(times, CONFLICTS);
        }
    }

    #[tokio::test]
    async fn what_no_further_look_would_change_is_said_at_once() {
        let mut times = 0;
        let refused: Result<(), _> = retry_on_conflict!(CommitError, "T-001", {
            times += 1;
            Err(CommitError::NoSpace)
        });
        assert!(matches!(refused, Err(CommitError::NoSpace)), "{refused:?}");
        assert_eq!(times, 1);
    }
}
