//! Watches over one event until it is handled, and says what keeps it from that.

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_desk::halt;
use ropewalk_schemas::{ComponentName, Subject};
use ropewalk_store::{DeliveryFilter, DeliveryRow, DeliveryState};

use super::Reach;
use crate::error::CliError;

/// The code of an error that holds for one event alone.
pub const UNHANDLED: &str = "dead-letter";
/// The code of an error that ends by itself, with what is waited for.
const PUT_OFF: &str = "put-off";
/// So long is waited for what is away: longer than a provider that was mended meanwhile takes to be found.
const PATIENCE: TimeDelta = TimeDelta::seconds(15);

/// Who handles an event, which one, and what was told of it so far.
pub struct Vigil {
    filter: DeliveryFilter,
    tries: u32,
    put_off: Option<DateTime<Utc>>,
    /// Since when nobody runs any agent.
    left: Option<DateTime<Utc>>,
}

/// How it stands with an event that is not handled yet.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DeliveryStatus {
    /// Nothing keeps it now: it is being handled, or about to be.
    Well,
    /// It failed, and is tried again.
    Failed { tries: u32, error: String },
    /// What it needs is away.
    PutOff { reason: String },
    /// It will not be handled any more.
    Dead { key: String, error: String },
}

impl Vigil {
    /// Watches over what `role` makes of the events about `subject` that came after the position `after`.
    pub fn over(role: &str, subject: Subject, after: i64) -> Result<Self, CliError> {
        Ok(Self {
            filter: DeliveryFilter {
                subscriber: Some(ComponentName::parse(role)?),
                states: vec![
                    DeliveryState::Open,
                    DeliveryState::Dead,
                    DeliveryState::Parked,
                ],
                subject: Some(subject),
                after_sequence: Some(after),
                ..DeliveryFilter::default()
            },
            tries: 0,
            put_off: None,
            left: None,
        })
    }

    /// Returns how many tries have failed so far.
    pub const fn failed_tries(&self) -> u32 {
        self.tries
    }

    /// Looks once, and returns what is new; an error when it is in vain to wait on. `outcome` says what has not happened.
    pub async fn look(&mut self, reach: &Reach, outcome: &str) -> Result<Option<String>, CliError> {
        let now = reach.clock().now();
        let left = self.look_who_runs(reach, now, outcome)?;
        if left.is_some() {
            return Ok(left);
        }
        let rows = reach.store().deliveries(&self.filter).await?;
        let standing = rows.into_iter().find_map(|row| standing(row, now));
        let stopped = halt::standing(reach.store()).await?;
        let stopped = stopped.map(|halt| DeliveryStatus::PutOff {
            reason: super::halt::in_words(&halt),
        });
        match standing.or(stopped).unwrap_or(DeliveryStatus::Well) {
            DeliveryStatus::Failed { tries, error } if tries > self.tries => {
                self.tries = tries;
                Ok(Some(format!("try {tries} failed, trying again: {error}")))
            }
            DeliveryStatus::Failed { .. } | DeliveryStatus::Well => Ok(None),
            DeliveryStatus::PutOff { reason } => match self.put_off {
                None => {
                    self.put_off = Some(now);
                    Ok(Some(format!("waiting: {reason}")))
                }
                Some(since) if now - since < PATIENCE => Ok(None),
                Some(_) => Err(CliError::refused(
                    PUT_OFF,
                    (
                        format!("{outcome} yet: {reason}"),
                        "it is kept, and `ropewalk up` goes on with it once that is over",
                    ),
                )),
            },
            DeliveryStatus::Dead { key, error } => Err(CliError::refused(
                UNHANDLED,
                (
                    format!("{outcome}: {error}"),
                    format!("mend that, then `ropewalk dead-letter replay {key}`"),
                ),
            )),
        }
    }

    /// Refuses to wait on where the process that ran the agents has ended, and no other has come; says so at first.
    fn look_who_runs(
        &mut self,
        reach: &Reach,
        now: DateTime<Utc>,
        outcome: &str,
    ) -> Result<Option<String>, CliError> {
        if !reach.is_left()? {
            self.left = None;
            return Ok(None);
        }
        let Some(since) = self.left else {
            self.left = Some(now);
            let seconds = PATIENCE.num_seconds();
            return Ok(Some(format!(
                "the process that ran the agents has ended; waiting {seconds} s for another"
            )));
        };
        if now - since < PATIENCE {
            return Ok(None);
        }
        let text = format!(
            "{outcome} yet: the process that ran the agents has ended; it is kept, and `ropewalk up` goes on with it"
        );
        Err(CliError::refused(PUT_OFF, text))
    }
}

fn standing(row: DeliveryRow, now: DateTime<Utc>) -> Option<DeliveryStatus> {
    let error = row.error?;
    Some(match row.state {
        DeliveryState::Open if row.attempts > 0 => DeliveryStatus::Failed {
            tries: row.attempts,
            error,
        },
        DeliveryState::Open if row.due > now => DeliveryStatus::PutOff { reason: error },
        DeliveryState::Open => DeliveryStatus::Well,
        _ => DeliveryStatus::Dead {
            key: row.key.to_string(),
            error,
        },
    })
}
