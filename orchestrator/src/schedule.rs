//! Turns timers and cron lines that have come due into `schedule.due` events, once each, also after a restart.

use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_schemas::advice::{Advice, Words};
use ropewalk_schemas::payload::ScheduleDue;
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{Payload, Subject};
use ropewalk_store::{ChangeSet, CommitError, Query, ReadError, Versioned};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::agent::Schedule;
use crate::context::Context;
use crate::timers::{self, id_of};

/// The longest time between two looks at the timers: other processes set timers too.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The most timers that fire in one change set.
const BATCH: u32 = 256;

/// Says that a cron line cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("schedule `{name}`: `{cron}` is not a cron line of 5 or 6 fields: {reason}")]
pub struct InvalidSchedule {
    /// The schedule.
    pub name: String,
    /// The line as given.
    pub cron: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Returns the first time after `after` at which `schedule` is due; `None` when it never is again.
pub fn next_due(
    schedule: &Schedule,
    after: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, InvalidSchedule> {
    let fields = schedule.cron.split_whitespace().count();
    // The `cron` crate wants seconds; a crontab line has none.
    let line = if fields == 5 {
        format!("0 {}", schedule.cron)
    } else {
        schedule.cron.clone()
    };
    let parsed = cron::Schedule::from_str(&line).map_err(|error| InvalidSchedule {
        name: schedule.name.clone(),
        cron: schedule.cron.clone(),
        reason: error.to_string(),
    })?;
    Ok(parsed.after(&after).next())
}

/// Lays down the timer of each schedule; one that stands already with the same line keeps its due time.
pub(crate) async fn lay_down(
    schedules: &[Schedule],
    context: &Context,
) -> Result<(), LayDownError> {
    let mut changes = ChangeSet::new();
    for schedule in schedules {
        let id = id_of(&schedule.name, "");
        let standing = context.store.get::<Timer>(&id.to_string()).await?;
        if standing.is_some_and(|timer| timer.cron.as_deref() == Some(schedule.cron.as_str())) {
            continue;
        }
        if let Some(due) = next_due(schedule, context.now())? {
            changes.put(&Timer {
                id,
                name: schedule.name.clone(),
                target: String::new(),
                due,
                cron: Some(schedule.cron.clone()),
                correlation_id: context.correlation(),
            });
        }
    }
    if !changes.is_empty() {
        context.store.commit(changes).await?;
    }
    Ok(())
}

/// Says why the schedules could not be laid down.
#[derive(Debug, thiserror::Error)]
pub enum LayDownError {
    /// A cron line cannot be read.
    #[error(transparent)]
    Invalid(#[from] InvalidSchedule),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl Advice for LayDownError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Invalid(_) => None,
            Self::Read(error) => error.next(),
            Self::Commit(error) => error.next(),
        }
    }
}

/// Fires timers until `stop`.
pub(crate) async fn run(context: Context, stop: CancellationToken) {
    loop {
        if let Err(error) = fire_due(&context).await {
            warn!(
                "timers could not be fired, they stay due: {}",
                Words::of(&error)
            );
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = context.clock.sleep(LOOK_EVERY) => {}
        }
    }
}

/// Fires every timer that is due now; a timer somebody else fired in between is left alone.
async fn fire_due(context: &Context) -> Result<(), LayDownError> {
    let now = context.now();
    let due = context
        .store
        .list::<Timer>(
            Query::new()
                .at_most("due", now.timestamp_millis())
                .order_by("due")
                .limit(BATCH),
        )
        .await?;
    for timer in &due {
        match context.store.commit(firing(timer, now, context)).await {
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns the change set that fires `timer`: its event, and its end or its next due time.
fn firing(timer: &Versioned<Timer>, now: DateTime<Utc>, context: &Context) -> ChangeSet {
    let mut changes = ChangeSet::new();
    let next = timer.cron.as_ref().and_then(|cron| {
        let schedule = Schedule {
            name: timer.name.clone(),
            cron: cron.clone(),
        };
        next_due(&schedule, now).ok().flatten()
    });
    match next {
        // After a long sleep a schedule is due once, not once for each time it missed.
        Some(due) => changes.update(
            timer,
            &Timer {
                due,
                ..timer.record.clone()
            },
        ),
        None => changes.delete(timer),
    };
    let claim = context.for_claim(timer.correlation_id, ropewalk_schemas::Priority::DEFAULT);
    let subject = Subject::parse(&format!("timer/{}", timer.id))
        .unwrap_or_else(|_| Subject::component(context.source()));
    let mut event = claim.event(
        subject,
        Payload::ScheduleDue(ScheduleDue {
            timer_id: timer.id,
            name: timer.name.clone(),
            target: timer.target.clone(),
        }),
    );
    event.source = timers::source(&timer.name).unwrap_or(event.source);
    changes.emit(event);
    changes
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;

    use super::*;

    fn schedule(cron: &str) -> Schedule {
        Schedule {
            name: "monitor.tick".to_owned(),
            cron: cron.to_owned(),
        }
    }

    #[test]
    fn five_and_six_fields_are_read_in_utc() {
        let after = Utc.with_ymd_and_hms(2026, 11, 21, 22, 31, 0).unwrap();
        let cases = [
            (
                "*/2 * * * *",
                Utc.with_ymd_and_hms(2026, 11, 21, 22, 32, 0).unwrap(),
            ),
            (
                "30 * * * * *",
                Utc.with_ymd_and_hms(2026, 11, 21, 22, 31, 30).unwrap(),
            ),
            (
                "0 3 * * *",
                Utc.with_ymd_and_hms(2026, 11, 22, 3, 0, 0).unwrap(),
            ),
        ];
        for (cron, expected) in cases {
            assert_eq!(
                next_due(&schedule(cron), after),
                Ok(Some(expected)),
                "{cron}"
            );
        }
    }

    #[test]
    fn a_line_that_is_no_cron_line_is_refused_by_name() {
        let error = next_due(&schedule("every day"), Utc.timestamp_nanos(0)).unwrap_err();
        assert!(error.to_string().contains("monitor.tick"), "{error}");
    }
}
