//! The timeline to take along: everything that a filter leaves, a line of JSON for each event, the oldest first.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures::stream::try_unfold;
use ropewalk_desk::views::event::{self, TimelineEvent};
use ropewalk_store::{EventFilter, ReadError, Store};

use super::Which;
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::Parameters;

/// How many events are read at once; no more are held, however many there are.
const AT_ONCE: u32 = 500;
const KIND: &str = "application/jsonl";
const FILE: &str = "attachment; filename=\"events.jsonl\"";

/// Sends what happened, as `event list --json` tells it, a line for each event.
pub(in crate::pages) async fn download(
    State(shared): State<ServerState>,
    Parameters(which): Parameters<Which>,
) -> Result<Response, Problem> {
    let filter = EventFilter {
        limit: Some(AT_ONCE),
        ..which.filter()?
    };
    let store = shared.services.store.clone();
    let lines = try_unfold(Some(filter), move |filter| {
        let store = store.clone();
        async move {
            match filter {
                None => Ok(None),
                Some(filter) => part(&store, filter).await.map(Some),
            }
        }
    });
    let headers = [(CONTENT_TYPE, KIND), (CONTENT_DISPOSITION, FILE)];
    Ok((headers, Body::from_stream(lines)).into_response())
}

/// Reads the next events, and returns the filter of those after them; none behind the last.
async fn part(
    store: &Store,
    filter: EventFilter,
) -> Result<(Bytes, Option<EventFilter>), ReadError> {
    let events = event::list(store, &filter).await?;
    let is_full = events.len() >= AT_ONCE as usize;
    let next = events.last().filter(|_| is_full);
    let next = next.map(|last| EventFilter {
        after_sequence: Some(last.sequence),
        ..filter
    });
    Ok((lines(&events).into(), next))
}

fn lines(events: &[TimelineEvent]) -> String {
    let line = |event: &TimelineEvent| serde_json::to_string(event).unwrap_or_default() + "\n";
    events.iter().map(line).collect()
}
