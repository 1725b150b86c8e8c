//! Forgets, once a day, what is old and finished.

mod transcripts;

use std::path::PathBuf;
use std::time::Duration;

use chrono::TimeDelta;
use ropewalk_runtime::{Clock, Supervisor};
use ropewalk_schemas::advice::Words;
use ropewalk_store::Store;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// How long after one time comes the next.
const EVERY: Duration = Duration::from_hours(24);

/// Forgets the events of what is finished once they are `days` old, and of as old builds the transcripts below `state`, at
/// the start of this process and then daily.
pub(super) fn daily(
    (store, state): (Store, PathBuf),
    days: u32,
    clock: Clock,
    supervisor: &Supervisor,
) {
    let stop = supervisor.shutdown().soft().clone();
    supervisor.keep("retention", move || {
        run(
            (store.clone(), state.clone()),
            days,
            clock.clone(),
            stop.clone(),
        )
    });
}

async fn run((store, state): (Store, PathBuf), days: u32, clock: Clock, stop: CancellationToken) {
    loop {
        let before = clock.now() - TimeDelta::days(days.into());
        let forgotten = tokio::select! {
            biased;
            // It goes step by step; what is left is forgotten after the next start.
            () = stop.cancelled() => return,
            forgotten = store.forget(before) => forgotten,
        };
        match forgotten {
            Ok(forgotten) if forgotten.events > 0 => {
                info!(
                    "forgot {} events that are older than {days} days",
                    forgotten.events
                );
            }
            Ok(_) => {}
            Err(error) => {
                warn!(
                    "old events stay until they are tried again tomorrow: {}",
                    Words::of(&error)
                );
            }
        }
        match transcripts::forget(&store, &state, before).await {
            Ok(forgotten) if forgotten > 0 => {
                info!("forgot {forgotten} transcripts that are older than {days} days");
            }
            Ok(_) => {}
            Err(error) => {
                warn!("old transcripts stay until they are tried again tomorrow: {error}");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = clock.sleep(EVERY) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_runtime::{Ids, Shutdown};
    use ropewalk_schemas::payload::BuildRequest;
    use ropewalk_schemas::{ComponentName, Event, Payload, Priority, Subject};
    use ropewalk_store::{ChangeSet, Location};

    use super::*;

    async fn emit(store: &Store, clock: &Clock, ids: &Ids) {
        let event = Event {
            id: ids.next().into(),
            source: ComponentName::parse("ada").unwrap(),
            subject: Subject::parse("build/1").unwrap(),
            time: clock.now(),
            correlation_id: ids.next().into(),
            causation_id: None,
            hop: 0,
            traceparent: None,
            priority: Priority::DEFAULT,
            payload: Payload::BuildStop(BuildRequest {
                build_id: ids.next().into(),
                requested_by: "ada".to_owned(),
                reason: None,
            }),
        };
        let mut changes = ChangeSet::new();
        changes.emit(event);
        store.commit(changes).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_old_goes_at_the_start_and_what_grows_old_goes_daily() {
        let state = tempfile::tempdir().unwrap();
        let clock = Clock::manual(chrono::DateTime::UNIX_EPOCH);
        let ids = Ids::seeded(1, clock.clone());
        let location = Location::Sqlite(state.path().join("ropewalk.db"));
        let store = Store::open(&location, clock.clone()).await.unwrap();
        emit(&store, &clock, &ids).await;
        clock.advance(Duration::from_hours(24 * 10));
        emit(&store, &clock, &ids).await;
        let supervisor = Supervisor::new(Shutdown::new());
        let kept = (store.clone(), state.path().to_owned());
        daily(kept, 9, clock.clone(), &supervisor);
        for left in [1, 0] {
            let forgotten = async {
                while store.count_events().await.unwrap() > left {
                    clock.advance(Duration::from_hours(24 * (1 - left)));
                }
            };
            tokio::time::timeout(Duration::from_secs(20), forgotten)
                .await
                .unwrap();
        }
        supervisor.shutdown().begin();
        let late = supervisor.drain(Duration::from_secs(20)).await;
        assert_eq!(late, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn a_process_that_stops_forgets_nothing_more() {
        let state = tempfile::tempdir().unwrap();
        let clock = Clock::manual(chrono::DateTime::UNIX_EPOCH);
        let ids = Ids::seeded(1, clock.clone());
        let location = Location::Sqlite(state.path().join("ropewalk.db"));
        let store = Store::open(&location, clock.clone()).await.unwrap();
        emit(&store, &clock, &ids).await;
        clock.advance(Duration::from_hours(24 * 10));
        let supervisor = Supervisor::new(Shutdown::new());
        supervisor.shutdown().begin();
        let kept = (store.clone(), state.path().to_owned());
        daily(kept, 9, clock.clone(), &supervisor);
        let late = supervisor.drain(Duration::from_secs(20)).await;
        assert_eq!(late, Ok(Vec::new()));
        assert_eq!(store.count_events().await.unwrap(), 1);
    }
}
