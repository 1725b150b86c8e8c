//! Streams what happens: stored events by position, and ephemeral ones between them.
//!
//! A stream that breaks off goes on after the position that its reader saw last. Who reads too slowly is told to begin
//! anew from there, so that nobody's pace costs memory.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use ropewalk_bus::{LiveEvent, LiveEvents, TailError, TailEvents};
use ropewalk_desk::views::event::TimelineEvent;
use ropewalk_desk::views::transcript::StepWords;
use ropewalk_runtime::terminal;
use ropewalk_schemas::ComponentName;
use ropewalk_schemas::job_event::{JobEvent, Passage};
use ropewalk_store::{EventFilter, ReadError, Store, StoredEvent};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::problem::Problem;
use crate::shared::ServerState;

/// What a stream is asked for as.
const KIND: &str = "text/event-stream";
/// The header with the position that was seen last.
const LAST: HeaderName = HeaderName::from_static("last-event-id");
/// How many stored events are read at once.
const AT_ONCE: u32 = 256;
/// How often a silent stream says that it is there.
const ALIVE: Duration = Duration::from_secs(15);

/// Returns whether a request asks for a stream.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT);
    accepted.is_some_and(|kinds| kinds.to_str().is_ok_and(|kinds| kinds.contains(KIND)))
}

/// Returns the position that was seen last, where a stream goes on.
pub(crate) fn last_seen(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(last) = headers.get(LAST) else {
        return Ok(None);
    };
    let position = last.to_str().ok().and_then(|text| text.parse().ok());
    let text = ("`Last-Event-ID` is no position", "begin again without it");
    position.map(Some).ok_or_else(|| Problem::usage(text))
}

/// Opens a stream of what fits `filter`: after a position, or from now on.
pub(crate) async fn open(
    shared: &ServerState,
    filter: EventFilter,
    after: Option<i64>,
) -> Result<Response, Problem> {
    let text = ("too many listen already", "close some of them");
    let place = Arc::clone(&shared.streams).try_acquire_owned();
    let place = place.map_err(|_| Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many", text))?;
    let live = shared.services.bus.live().subscribe();
    let text = ("the program is about to stop", "try again once it runs");
    let tail = shared.services.bus.tail().listen().await;
    let tail = tail.map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store", text))?;
    let reader = Reader {
        store: shared.services.store.clone(),
        last: after.unwrap_or(tail.after),
        is_behind: after.is_some_and(|after| after < tail.after),
        stored_before: VecDeque::new(),
        stop: shared.stop.clone(),
        filter,
        tail,
        live,
        _place: place,
    };
    let stream = unfold(Some(reader), async |reader| {
        let mut reader = reader?;
        let (event, goes_on) = reader.next().await?;
        Some((Ok::<_, Infallible>(event), goes_on.then_some(reader)))
    });
    let alive = KeepAlive::new().interval(ALIVE);
    Ok(Sse::new(stream).keep_alive(alive).into_response())
}

/// Somebody who listens.
struct Reader {
    store: Store,
    filter: EventFilter,
    /// The position up to which everything was sent.
    last: i64,
    /// Whether stored events come before those that happen now.
    is_behind: bool,
    stored_before: VecDeque<StoredEvent>,
    tail: TailEvents,
    live: LiveEvents,
    stop: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Reader {
    /// Waits for what to send next, and says whether more follows; `None` at the end.
    async fn next(&mut self) -> Option<(Event, bool)> {
        loop {
            if let Some(event) = self.stored_before.pop_front() {
                return Some((self.stored(&event), true));
            }
            if self.is_behind {
                match self.catch_up().await {
                    Ok(()) => continue,
                    Err(_) => return Some((reload(), false)),
                }
            }
            let stop = self.stop.clone();
            tokio::select! {
                () = stop.cancelled() => return None,
                told = self.tail.next() => match told {
                    Ok(event) if event.sequence > self.last && self.takes(&event) => {
                        return Some((self.stored(&event), true));
                    }
                    Ok(_) => {}
                    Err(TailError::Missed(_)) => return Some((reload(), false)),
                    Err(TailError::Stopping) => return None,
                },
                event = self.live.next() => {
                    let event = event?;
                    if self.takes_live(&event) {
                        return Some((live(&event), true));
                    }
                }
            }
        }
    }

    /// Reads what comes next of what is stored.
    async fn catch_up(&mut self) -> Result<(), ReadError> {
        let filter = EventFilter {
            after_sequence: Some(self.last),
            limit: Some(AT_ONCE),
            ..self.filter.clone()
        };
        let found = self.store.events(&filter).await?;
        if found.len() < AT_ONCE as usize {
            // Whatever is stored later comes by the tail.
            self.is_behind = false;
            self.last = self.last.max(self.tail.after);
        }
        self.stored_before.extend(found);
        Ok(())
    }

    fn stored(&mut self, event: &StoredEvent) -> Event {
        self.last = self.last.max(event.sequence);
        let line = serde_json::to_string(&TimelineEvent::from(event)).unwrap_or_default();
        Event::default().id(event.sequence.to_string()).data(line)
    }

    fn takes(&self, stored: &StoredEvent) -> bool {
        let (filter, event) = (&self.filter, &stored.event);
        let source = filter.source.as_ref();
        self.takes_type(&event.event_type, &event.source)
            && source.is_none_or(|wanted| *wanted == event.source)
            && filter
                .subject
                .as_ref()
                .is_none_or(|wanted| *wanted == event.subject)
            && filter
                .correlation
                .is_none_or(|wanted| wanted == event.correlationid)
    }

    fn takes_live(&self, event: &LiveEvent) -> bool {
        let filter = &self.filter;
        let subject = filter.subject.as_ref();
        // Nobody is named as the source of an ephemeral event, and it belongs to no chain.
        let any = ComponentName::parse("any");
        filter.correlation.is_none()
            && filter.source.is_none()
            && subject.is_none_or(|wanted| *wanted == event.subject)
            && any.is_ok_and(|any| self.takes_type(&event.event_type, &any))
    }

    fn takes_type(&self, event_type: &str, source: &ComponentName) -> bool {
        let pattern = self.filter.pattern.as_ref();
        pattern.is_none_or(|pattern| pattern.matches(event_type, source))
    }
}

/// Says that something was missed: the reader goes on after the position that it saw last.
fn reload() -> Event {
    Event::default().event("reload").data("{}")
}

fn live(event: &LiveEvent) -> Event {
    let mut shown = event.clone();
    if shown.event_type == Passage::LIVE {
        tell(&mut shown.data);
    }
    // A page takes them up as they come, before any filter.
    terminal::show_in(&mut shown.data);
    let line = serde_json::to_string(&shown).unwrap_or_default();
    Event::default().event("live").data(line)
}

/// Adds to a step of a model what it is in a line, as every surface says it.
fn tell(data: &mut Value) {
    let event = JobEvent::deserialize(&*data);
    let told = event.as_ref().ok().and_then(StepWords::new);
    if let Some(told) = told {
        data["line"] = Value::String(told.line);
    }
}
