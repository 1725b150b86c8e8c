//! Keeps a backup of the database that is at most a day old.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_runtime::{Clock, Supervisor};
use ropewalk_store::{BackupError, Store};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// How old the newest backup may become.
const EVERY: Duration = Duration::from_hours(24);
/// How long a backup that failed waits for another try.
const AGAIN: Duration = Duration::from_mins(15);
/// How many backups stay.
const KEPT: usize = 3;

/// Backs `store` up into the folder `backups` of `state`, once a day, for as long as this process runs; a database on a
/// server is left to the backups of that server.
pub(super) fn daily(store: Store, state: &Path, clock: Clock, supervisor: &Supervisor) {
    let directory = state.join("backups");
    let stop = supervisor.shutdown().soft().clone();
    supervisor.keep("backups", move || {
        run(
            store.clone(),
            directory.clone(),
            clock.clone(),
            stop.clone(),
        )
    });
}

async fn run(store: Store, directory: PathBuf, clock: Clock, stop: CancellationToken) {
    loop {
        let wait = match left(newest(&directory), clock.now()) {
            Some(left) => left,
            None => match back_up(&store, &directory).await {
                Some(wait) => wait,
                None => return,
            },
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = clock.sleep(wait) => {}
        }
    }
}

/// Writes a backup and returns how long to wait for the next one; `None` when this is not the place for any.
async fn back_up(store: &Store, directory: &Path) -> Option<Duration> {
    match store.backup(directory, KEPT).await {
        Ok(path) => {
            info!("backed up to `{}`", path.display());
            Some(EVERY)
        }
        Err(elsewhere @ BackupError::Elsewhere) => {
            info!("{elsewhere}");
            None
        }
        Err(error) => {
            warn!("no backup could be written, it is tried again: {error}");
            Some(AGAIN)
        }
    }
}

/// Returns how long the newest backup is young enough; `None` when one is due.
fn left(newest: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Option<Duration> {
    let due = newest? + TimeDelta::from_std(EVERY).unwrap_or(TimeDelta::MAX);
    (due - now).to_std().ok().filter(|left| !left.is_zero())
}

/// Returns when the newest backup was written.
fn newest(directory: &Path) -> Option<DateTime<Utc>> {
    let files = std::fs::read_dir(directory).ok()?;
    let written = |path: PathBuf| path.metadata().ok()?.modified().ok();
    files
        .filter_map(|entry| written(entry.ok()?.path()))
        .max()
        .map(DateTime::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_due_without_one_and_after_a_day() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(9);
        let cases = [
            (None, None),
            (Some(now - TimeDelta::hours(24)), None),
            (Some(now - TimeDelta::hours(30)), None),
            (
                Some(now - TimeDelta::hours(23)),
                Some(Duration::from_hours(1)),
            ),
        ];
        for (newest, expected) in cases {
            assert_eq!(left(newest, now), expected, "{newest:?}");
        }
    }

    #[tokio::test]
    async fn a_process_backs_up_at_its_start_and_then_daily() {
        use ropewalk_runtime::Shutdown;
        use ropewalk_store::Location;
        let state = tempfile::tempdir().unwrap();
        let clock = Clock::manual(Clock::system().now());
        let location = Location::Sqlite(state.path().join("ropewalk.db"));
        let store = Store::open(&location, clock.clone()).await.unwrap();
        let supervisor = Supervisor::new(Shutdown::new());
        daily(store, state.path(), clock.clone(), &supervisor);
        let directory = state.path().join("backups");
        // The first needs no time at all, the second a day.
        for (wanted, step) in [(1, Duration::ZERO), (2, Duration::from_hours(1))] {
            let written = async {
                while std::fs::read_dir(&directory).map_or(0, Iterator::count) < wanted {
                    clock.advance(step);
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(20), written)
                .await
                .unwrap();
        }
        supervisor.shutdown().begin();
        let late = supervisor.drain(Duration::from_secs(20)).await;
        assert_eq!(late, Ok(Vec::new()));
    }
}
