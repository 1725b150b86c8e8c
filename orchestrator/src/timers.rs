//! Sets and clears durable timers; a timer that comes due is the event `schedule.due`.
//!
//! The first word of its name is its family, whose agent alone is woken by it: `notices.escalate` comes from
//! `schedule.notices`, which those who tell people subscribe to by [`patterns`].

use chrono::{DateTime, Utc};
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{ComponentName, EventPattern, InvalidId, TimerId};
use ropewalk_store::{ChangeSet, Query, ReadError, Store};
use uuid::Uuid;

use crate::context::Context;

/// The type of the event.
const DUE: &str = "schedule.due";
/// Whoever lets timers come due.
pub(crate) const TIMEKEEPER: &str = "schedule";

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

/// Returns what takes these types, and of `schedule.due` what a timer of `family` brought.
pub fn patterns<'a>(
    types: impl IntoIterator<Item = &'a str>,
    family: &str,
) -> Result<Vec<EventPattern>, InvalidId> {
    let mut patterns = Vec::new();
    for event_type in types {
        let pattern = EventPattern::of(event_type);
        if event_type == DUE {
            patterns.push(pattern.clone().from_source(source(family)?));
            // A process of an older program that works on the same project names no family.
            let old = ComponentName::parse(TIMEKEEPER)?;
            patterns.push(pattern.from_source(old));
        } else {
            patterns.push(pattern);
        }
    }
    Ok(patterns)
}

/// Returns where the event of the timer of this name comes from.
pub fn source(name: &str) -> Result<ComponentName, InvalidId> {
    let family = name.split('.').next().unwrap_or(name);
    ComponentName::parse(&format!("{TIMEKEEPER}.{family}"))
}

/// Returns the id of the timer of this name and target, so that setting it twice sets it once.
pub(crate) fn id_of(name: &str, target: &str) -> TimerId {
    TimerId(Uuid::new_v5(
        &Uuid::NAMESPACE_OID,
        format!("{name}\n{target}").as_bytes(),
    ))
}
