//! Events: what happened, page by page.

use axum::Json;
use axum::extract::State;
use ropewalk_schemas::{CloudEvent, CorrelationId, EventPattern, Subject};
use ropewalk_store::{EventFilter, StoredEvent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Here, unreadable};
use crate::page::{Page, Part};
use crate::problem::Problem;
use crate::take::Parameters;

/// An event with its position.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TimelineEvent")]
pub(crate) struct Line {
    /// Its position in commit order.
    pub(crate) sequence: i64,
    /// The event.
    #[serde(flatten)]
    pub(crate) event: CloudEvent,
}

impl From<&StoredEvent> for Line {
    fn from(stored: &StoredEvent) -> Self {
        Self {
            sequence: stored.sequence,
            event: CloudEvent::clone(&stored.event),
        }
    }
}

/// Which events are wanted.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Which {
    /// Only those of this type, or of a family such as `build.*`.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    event_type: Option<String>,
    /// Only those about this entity, for example `idea/habits`.
    subject: Option<String>,
    /// Only those that one request set in motion.
    correlation: Option<String>,
    /// At most so many entries: 1 to 500, 100 where nothing is said.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

impl Which {
    /// Returns the filter for this.
    pub(crate) fn filter(&self) -> Result<EventFilter, Problem> {
        let pattern = self.event_type.as_deref().map(|text| {
            let none = "no event type is called so; write for example `task.failed` or `alert.*`";
            EventPattern::known(text).ok_or_else(|| Problem::usage(none))
        });
        let subject = self
            .subject
            .as_deref()
            .map(|text| Subject::parse(text).map_err(unreadable("subject")));
        let correlation = self.correlation.as_deref().map(|text| {
            text.parse::<CorrelationId>()
                .map_err(unreadable("correlation"))
        });
        Ok(EventFilter {
            pattern: pattern.transpose()?,
            subject: subject.transpose()?,
            correlation: correlation.transpose()?,
            ..EventFilter::default()
        })
    }
}

/// Lists the events, the oldest first.
#[utoipa::path(get, path = "/api/events", operation_id = "list_events", params(Which), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfTimelineEvent"))
))]
pub(crate) async fn list(
    State(shared): Here,
    Parameters(which): Parameters<Which>,
) -> Result<Json<Page<Line>>, Problem> {
    let part = Part {
        limit: which.limit,
        cursor: None,
    };
    let limit = part.limit()?;
    let after = which.cursor.as_deref().map(|cursor| {
        let text = "`cursor` is no position; begin again without it";
        cursor.parse::<i64>().map_err(|_| Problem::usage(text))
    });
    let filter = EventFilter {
        after_sequence: after.transpose()?,
        limit: u32::try_from(limit + 1).ok(),
        ..which.filter()?
    };
    let events = shared.services.store.events(&filter).await?;
    let is_more = events.len() > limit;
    let items: Vec<Line> = events.iter().take(limit).map(Line::from).collect();
    let next = items.last().filter(|_| is_more);
    let next = next.map(|line| line.sequence.to_string());
    Ok(Json(Page { items, next }))
}
