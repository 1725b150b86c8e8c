//! Forgets what lies beside the store of attempts that ended long ago: their transcripts, and outputs that were cut.
//!
//! What their models answered stays in the model calls, which tell an attempt again without its transcript.

use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use ropewalk_schemas::AttemptId;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_store::{ReadError, Store, attempt_key};

/// Says why old transcripts could not be forgotten.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The store could not be read.
    #[error("{}", Words::of(.0))]
    Store(#[from] ReadError),
    /// A directory could not be read, or what is in it not removed.
    #[error("`{}`: {source}", path.display())]
    Files {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Removes what was kept of attempts that ended before `before`, of builds that are over; returns how many files and
/// directories that were.
pub(super) async fn forget(
    store: &Store,
    state: &Path,
    before: DateTime<Utc>,
) -> Result<u64, Error> {
    let mut forgotten = 0;
    for folder in ["transcripts", "spill"] {
        for (path, attempt) in kept(&state.join(folder))? {
            if is_over(store, attempt, before).await? {
                remove(&path).map_err(|source| Error::Files {
                    path: path.clone(),
                    source,
                })?;
                forgotten += 1;
            }
        }
    }
    Ok(forgotten)
}

/// Lists what bears the name of an attempt in a folder, which need not be there.
fn kept(folder: &Path) -> Result<Vec<(PathBuf, AttemptId)>, Error> {
    let unreadable = |source| Error::Files {
        path: folder.to_owned(),
        source,
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        if let Some(attempt) = name.and_then(|name| name.parse().ok()) {
            found.push((path, attempt));
        }
    }
    Ok(found)
}

/// Says whether an attempt ended before `before`, and its build is over.
async fn is_over(
    store: &Store,
    attempt: AttemptId,
    before: DateTime<Utc>,
) -> Result<bool, ReadError> {
    let Some(attempt) = store.get::<Attempt>(&attempt_key(attempt)).await? else {
        return Ok(false);
    };
    if attempt.ended_at.is_none_or(|ended| ended >= before) {
        return Ok(false);
    }
    let build = store.get::<Build>(&attempt.build.to_string()).await?;
    // One that is stopped goes on as if nothing had been, like one that pauses.
    let is_over = |build: &Build| matches!(build.state, BuildState::Succeeded | BuildState::Failed);
    Ok(build.is_some_and(|build| is_over(&build)))
}

fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_runtime::Clock;
    use ropewalk_store::{ChangeSet, Location};
    use serde_json::json;

    use super::*;

    const OLD: &str = "2020-01-01T00:00:00Z";
    const LATE: &str = "2020-03-01T00:00:00Z";

    fn id(number: u32) -> String {
        format!("00000000-0000-7000-8000-{number:012}")
    }

    fn build(number: u32, state: BuildState) -> Build {
        let build = json!({
            "id": id(number), "spec": id(number), "revision": 1, "hash": "0".repeat(64), "idea": "habits",
            "user": "ada", "state": state, "pause_requested": false, "branch": "build/habits", "target": "main",
            "priority": 5, "working_ms": 0, "correlation_id": id(9), "created_at": OLD,
        });
        serde_json::from_value(build).unwrap()
    }

    fn attempt(number: u32, of: u32, ended: Option<&str>) -> Attempt {
        let attempt = json!({
            "id": id(number), "build": id(of), "task": "T-1", "number": number, "round": 1,
            "loop_name": "loop-1", "state": "failed", "token": 1, "base": "0".repeat(40), "tokens": 0,
            "started_at": OLD, "ended_at": ended, "granted": [], "gotchas": [],
        });
        serde_json::from_value(attempt).unwrap()
    }

    #[tokio::test]
    async fn what_lies_beside_the_store_of_old_and_finished_attempts_goes() {
        let state = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(state.path().join("ropewalk.db"));
        let store = Store::open(&location, Clock::system()).await.unwrap();
        let before = "2020-02-01T00:00:00Z".parse().unwrap();
        assert_eq!(forget(&store, state.path(), before).await.unwrap(), 0);
        let mut changes = ChangeSet::new();
        changes.insert(&build(1, BuildState::Succeeded));
        changes.insert(&build(2, BuildState::Running));
        for (number, of, ended) in [
            (11, 1, Some(OLD)),
            (12, 1, Some(LATE)),
            (13, 2, Some(OLD)),
            (14, 1, None),
        ] {
            changes.insert(&attempt(number, of, ended));
        }
        store.commit(changes).await.unwrap();
        for number in 11..=15 {
            let transcript = state
                .path()
                .join(format!("transcripts/{}.jsonl", id(number)));
            std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
            std::fs::write(transcript, "{}\n").unwrap();
            let spill = state.path().join("spill").join(id(number));
            std::fs::create_dir_all(&spill).unwrap();
            std::fs::write(spill.join("output-1.txt"), "long").unwrap();
        }
        std::fs::write(state.path().join("transcripts/note.txt"), "").unwrap();
        assert_eq!(forget(&store, state.path(), before).await.unwrap(), 2);
        let left = |folder: &str| {
            let entries = std::fs::read_dir(state.path().join(folder)).unwrap();
            entries.count()
        };
        assert_eq!((left("transcripts"), left("spill")), (5, 4));
        let gone = state.path().join(format!("transcripts/{}.jsonl", id(11)));
        assert!(!gone.exists());
    }
}
