//! Who gave an idea up, when and why.

use chrono::{DateTime, Utc};
use ropewalk_schemas::{Event, EventPattern, Payload, Slug, Subject, UserSlug};
use ropewalk_store::{EventFilter, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

/// That an idea was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AbandonmentView {
    /// Who gave it up.
    pub by: UserSlug,
    /// When.
    pub at: DateTime<Utc>,
    /// Why, if that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Reads from the timeline how an idea was given up; nothing where it was not, or where that is kept no longer.
pub(super) async fn of(store: &Store, idea: &Slug) -> Result<Option<AbandonmentView>, ReadError> {
    let newest = EventFilter {
        pattern: Some(EventPattern::of("idea.abandoned")),
        subject: Some(Subject::idea(idea)),
        limit: Some(1),
        newest_first: true,
        ..EventFilter::default()
    };
    let found = store.events(&newest).await?.pop();
    Ok(found.and_then(|stored| {
        let event = Event::try_from(&*stored.event).ok()?;
        match event.payload {
            Payload::IdeaAbandoned(told) => Some(AbandonmentView {
                by: told.abandoned_by,
                at: stored.event.time,
                reason: told.reason,
            }),
            _ => None,
        }
    }))
}
