//! Tells of checkouts that were retired, since nobody but a person can look what is wrong with them.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_schemas::payload::SlotRetired;
use ropewalk_schemas::{Payload, Subject};
use ropewalk_store::ChangeSet;
use ropewalk_workspace::Retirement;

use crate::SharedState;
use crate::error::BuilderError;

/// Raises an alert for each checkout that was retired since the last time.
pub(crate) async fn raise(shared: &SharedState, context: &Context) -> Result<(), BuilderError> {
    for retirement in shared.clone.take_retirements() {
        context.store.commit(changes(context, &retirement)).await?;
    }
    Ok(())
}

fn changes(context: &Context, retirement: &Retirement) -> ChangeSet {
    let severity = Severity::Warning;
    let told = SlotRetired {
        checkout: retirement.checkout.display().to_string(),
        place: retirement.place.display().to_string(),
        reason: retirement.reason.clone(),
        severity: Some(severity),
    };
    let mut changes = ChangeSet::new();
    changes.insert(&Alert {
        cause: format!(
            "checkout/{}/{}",
            told.place,
            context.now().timestamp_millis()
        ),
        severity,
        message: format!(
            "`{}` could not be made clean ({}) and was replaced; look at `{}` and remove it",
            told.checkout, told.reason, told.place
        ),
        build: None,
        raised_at: context.now(),
        escalations: 0,
        acknowledged: None,
        cleared_at: None,
    });
    let subject = Subject::component(context.source());
    changes.emit(context.event(subject, Payload::SlotRetired(told)));
    changes
}
