//! Events: what happened, page by page or as it comes, and what became of each.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use ropewalk_desk::subscribers;
use ropewalk_desk::views::event::{self, EventName, EventView, TimelineEvent};
use ropewalk_schemas::ComponentName;
use ropewalk_store::EventFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Here;
use crate::page::{Page, Part};
use crate::problem::{Problem, unreadable};
use crate::shared::ServerState;
use crate::stream;
use crate::take::{Asker, Json as JsonBody, Parameters, Path};
use crate::wanted_events::WantedEvents;

/// Where events are listed.
const LIST: &str = "/api/events";

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

/// Shows an event, and what became of it at each who takes it.
#[utoipa::path(get, path = "/api/events/{id}", operation_id = "show_event",
    params(("id" = String, Path, description = "Its position, or its id.")), responses(
    (status = 200, description = "The event.", body = ref("#/components/schemas/EventView"))
))]
pub(crate) async fn show(
    State(shared): Here,
    Path(id): Path<String>,
) -> Result<Json<EventView>, Problem> {
    let unknown = || Problem::unknown("event", &id, LIST);
    let name: EventName = id.parse().map_err(|_| unknown())?;
    let shown = event::show(&shared.services.store, name).await?;
    shown.map(Json).ok_or_else(unknown)
}

/// Who is to handle what happened before they began.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Replay {
    /// The subscriber, for example `notify.webhook`.
    subscriber: String,
    /// The position of the first event.
    #[schemars(range(min = 1))]
    from: i64,
}

/// How much there is to handle.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReplayReceipt {
    subscriber: ComponentName,
    /// How many events; 10,000 at once, and more where it is asked again.
    events: u64,
}

/// Has a subscriber handle what happened before it began; what it got once, it does not get again.
#[utoipa::path(post, path = "/api/events/replay", operation_id = "replay_events",
    request_body(content = ref("#/components/schemas/Replay"), content_type = "application/json"), responses(
    (status = 202, description = "They are handled as others are.", body = ref("#/components/schemas/ReplayReceipt"))
))]
pub(crate) async fn replay(
    State(shared): Here,
    Asker(person): Asker,
    JsonBody(replay): JsonBody<Replay>,
) -> Result<(StatusCode, Json<ReplayReceipt>), Problem> {
    let subscriber = ComponentName::parse(&replay.subscriber).map_err(unreadable("subscriber"))?;
    if replay.from < 1 {
        let text = ("`from` is no position", "positions begin at 1");
        return Err(Problem::usage(text));
    }
    let store = &shared.services.store;
    let events = subscribers::replay(store, &subscriber, replay.from, &person).await?;
    shared.services.bus.poke();
    let receipt = ReplayReceipt { subscriber, events };
    Ok((StatusCode::ACCEPTED, Json(receipt)))
}
