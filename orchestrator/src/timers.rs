//! Sets and clears durable timers; a timer that comes due is the event `schedule.due`.

use chrono::{DateTime, Utc};
use ropewalk_schemas::TimerId;
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{ChangeSet, Query, ReadError, Store};
use uuid::Uuid;

use crate::context::Context;

/// Sets a timer: at `due`, `schedule.due` carries `name` and `target`.
///
/// One timer exists per name and target: setting it again moves it.
pub fn set(
    changes: &mut ChangeSet,
    context: &Context,
    name: &str,
    target: &str,
    due: DateTime<Utc>,
) {
    changes.put(&Timer {
        id: id_of(name, target),
        name: name.to_owned(),
        target: target.to_owned(),
        due,
        cron: None,
        correlation_id: context.correlation(),
    });
}

/// Clears every timer of `target` whose name is one of `names`.
pub async fn clear(
    changes: &mut ChangeSet,
    store: &Store,
    names: &[&str],
    target: &str,
) -> Result<(), ReadError> {
    let set = store
        .list::<Timer>(
            Query::new()
                .equal("target", target)
                .one_of("name", names.iter().copied()),
        )
        .await?;
    for timer in &set {
        changes.delete(timer);
    }
    Ok(())
}

/// Returns the id of the timer of this name and target, so that setting it twice sets it once.
pub(crate) fn id_of(name: &str, target: &str) -> TimerId {
    TimerId(Uuid::new_v5(
        &Uuid::NAMESPACE_OID,
        format!("{name}\n{target}").as_bytes(),
    ))
}
