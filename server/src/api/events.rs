//! Events: what happened, page by page or as it comes.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use ropewalk_desk::views::event::{self, TimelineEvent};
use ropewalk_store::EventFilter;
use serde::Deserialize;

use super::Here;
use crate::page::{Page, Part};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::stream;
use crate::take::Parameters;
use crate::wanted_events::WantedEvents;

/// Which events are wanted.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Which {
    /// Only those of this type, or of a family such as `build.*`.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    event_type: Option<String>,
    /// Only those of this component, for example `build`.
    source: Option<String>,
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
    /// Returns the position to go on after.
    fn position(&self) -> Result<Option<i64>, Problem> {
        let position = self.cursor.as_deref().map(|cursor| {
            let text = ("`cursor` is no position", "begin again without it");
            cursor.parse::<i64>().map_err(|_| Problem::usage(text))
        });
        position.transpose()
    }

    /// Returns the filter for this.
    pub(crate) fn filter(&self) -> Result<EventFilter, Problem> {
        let wanted = WantedEvents {
            event_type: self.event_type.as_deref(),
            source: self.source.as_deref(),
            subject: self.subject.as_deref(),
            correlation: self.correlation.as_deref(),
        };
        wanted.filter()
    }
}

/// Lists the events, the oldest first; or streams them, where `Accept` asks for `text/event-stream`.
#[utoipa::path(get, path = "/api/events", operation_id = "list_events", params(
    Which, ("Last-Event-ID" = Option<i64>, Header, description = "The position that a stream goes on after.")), responses(
    (status = 200, description = "A part of them, or the stream.", content(
        (ref("#/components/schemas/PageOfTimelineEvent") = "application/json"), (String = "text/event-stream")))
))]
pub(crate) async fn list(
    State(shared): Here,
    Parameters(which): Parameters<Which>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if stream::is_wanted(&headers) {
        // Who comes again names the old cursor as well.
        let after = stream::last_seen(&headers)?.or(which.position()?);
        return stream::open(&shared, which.filter()?, after).await;
    }
    page(&shared, &which)
        .await
        .map(|page| Json(page).into_response())
}

async fn page(shared: &ServerState, which: &Which) -> Result<Page<TimelineEvent>, Problem> {
    let part = Part {
        limit: which.limit,
        cursor: None,
    };
    let limit = part.limit()?;
    let filter = EventFilter {
        after_sequence: which.position()?,
        limit: u32::try_from(limit + 1).ok(),
        ..which.filter()?
    };
    let mut items = event::list(&shared.services.store, &filter).await?;
    let is_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| is_more);
    let next = next.map(|event| event.sequence.to_string());
    Ok(Page { items, next })
}
