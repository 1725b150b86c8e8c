//! Tells of checkouts that were retired, since nobody but a person can look what is wrong with them.

use chrono::{DateTime, Utc};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_schemas::payload::SlotRetired;
use ropewalk_schemas::{Payload, Subject};
use ropewalk_store::{ChangeSet, CommitError};
use ropewalk_workspace::Retirement;

use crate::SharedState;
use crate::error::BuilderError;

/// The checkouts that were retired and that nobody was told of yet, each with when that was found.
#[derive(Debug, Default)]
pub(super) struct UntoldRetirements(Vec<(Retirement, DateTime<Utc>)>);

impl UntoldRetirements {
    /// Raises an alert for each checkout that was retired; what the store does not take now is told at the next look.
    pub(super) async fn raise(
        &mut self,
        shared: &SharedState,
        context: &Context,
    ) -> Result<(), BuilderError> {
        self.note(shared.clone.take_retirements(), context.now());
        Ok(self.tell(context).await?)
    }

    fn note(&mut self, retirements: Vec<Retirement>, now: DateTime<Utc>) {
        self.0.extend(retirements.into_iter().map(|one| (one, now)));
    }

    async fn tell(&mut self, context: &Context) -> Result<(), CommitError> {
        let mut told = Ok(());
        let mut kept = 0;
        while let Some((retirement, since)) = self.0.get(kept) {
            let committed = context.store.commit(changes(context, retirement, *since));
            match committed.await {
                // The alert is there already where the store took it and could not say so.
                Ok(_) | Err(CommitError::Conflict { .. }) => {
                    self.0.remove(kept);
                }
                Err(refusal) => {
                    told = Err(refusal);
                    kept += 1;
                }
            }
        }
        told
    }
}

/// Says what telling of one changes: the same alert however often it is tried, and another one where the same place is found
/// again at another time.
fn changes(context: &Context, retirement: &Retirement, since: DateTime<Utc>) -> ChangeSet {
    let severity = Severity::Warning;
    let told = SlotRetired {
        checkout: retirement.checkout.display().to_string(),
        place: retirement.place.display().to_string(),
        reason: retirement.reason.clone(),
        severity: Some(severity),
    };
    let mut changes = ChangeSet::new();
    changes.insert(&Alert {
        cause: format!("checkout/{}/{}", told.place, since.timestamp_millis()),
        severity,
        message: format!(
            "`{}` could not be made clean ({}) and was replaced; look at `{}` and remove it",
            told.checkout, told.reason, told.place
        ),
        build: None,
        raised_at: since,
        escalations: 0,
        acknowledged: None,
        cleared_at: None,
    });
    let subject = Subject::component(context.source());
    changes.emit(context.event(subject, Payload::SlotRetired(told)));
    changes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ropewalk_runtime::Clock;
    use ropewalk_schemas::EventPattern;
    use ropewalk_store::{EventFilter, Query};
    use ropewalk_world::Plan;

    use super::*;
    use crate::decide::fixture::noon;

    /// Returns what people are told: the alerts, and how many events tell of one.
    async fn told(context: &Context) -> (Vec<Alert>, usize) {
        let alerts = context.store.list::<Alert>(Query::new()).await.unwrap();
        let filter = EventFilter {
            pattern: Some(EventPattern::of("alert.slot_retired")),
            ..EventFilter::default()
        };
        let events = context.store.events(&filter).await.unwrap();
        let alerts = alerts.into_iter().map(|alert| alert.record);
        (alerts.collect(), events.len())
    }

    #[tokio::test]
    async fn a_retirement_that_the_store_refuses_is_told_once_at_the_next_look() {
        let directory = tempfile::tempdir().unwrap();
        let clock = Clock::manual(noon());
        let open = async || {
            let plan = Plan::unlike_any_other(&clock);
            plan.open(directory.path()).await.unwrap()
        };
        let retired = |name: &str| Retirement {
            checkout: "slots/1".into(),
            place: name.into(),
            reason: "busy".to_owned(),
        };
        let both = || vec![retired("slots/retired-1-1"), retired("slots/retired-1-2")];
        let (mut untold, mut unsure) = (UntoldRetirements::default(), UntoldRetirements::default());
        untold.note(both(), clock.now());
        unsure.note(both(), clock.now());
        // A store that is closed takes nothing.
        let world = open().await;
        let context = world.context("build-scheduler").unwrap();
        world.close().await.unwrap();
        assert!(untold.tell(&context).await.is_err());
        clock.advance(Duration::from_secs(5));
        let world = open().await;
        let context = world.context("build-scheduler").unwrap();
        for _ in 0..2 {
            untold.tell(&context).await.unwrap();
            let (alerts, events) = told(&context).await;
            assert_eq!((alerts.len(), events), (2, 2), "{alerts:?}");
            assert!(alerts.iter().all(|alert| alert.raised_at == noon()));
        }
        // Whoever does not know that it was taken tells nobody again.
        unsure.tell(&context).await.unwrap();
        assert_eq!(told(&context).await.1, 2);
        world.close().await.unwrap();
    }
}
