//! The timeline: what happened, by position, the newest first.

mod download;

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ropewalk_desk::views::event::{self, EventName, EventView, TimelineEvent};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::{Slug, Subject, clip};
use ropewalk_store::EventFilter;
use serde::Deserialize;

use super::form::{FilterFields, filled, moment};
use super::frame::{Frame, page};
use super::shown;
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Parameters, Path};
use crate::wanted_events::WantedEvents;

pub(super) use download::download;

/// How many events a page has.
const LENGTH: u32 = 100;

/// Which events are wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Which {
    /// This type, or a family.
    #[serde(rename = "type")]
    event_type: String,
    /// About this entity.
    subject: String,
    /// Of this component.
    source: String,
    /// That one request set in motion.
    correlation: String,
    /// At this moment or later.
    since: String,
    /// Before this moment.
    until: String,
    /// Before this position.
    before: Option<i64>,
}

impl Which {
    /// Returns the filter for this.
    fn filter(&self) -> Result<EventFilter, Problem> {
        let wanted = WantedEvents {
            event_type: filled(&self.event_type),
            subject: filled(&self.subject),
            source: filled(&self.source),
            correlation: filled(&self.correlation),
        };
        Ok(EventFilter {
            before_sequence: self.before,
            from: moment("since", &self.since)?,
            until: moment("until", &self.until)?,
            ..wanted.filter()?
        })
    }

    fn fields(&self) -> FilterFields<'_> {
        FilterFields::of([
            ("type", &self.event_type),
            ("subject", &self.subject),
            ("source", &self.source),
            ("correlation", &self.correlation),
            ("since", &self.since),
            ("until", &self.until),
        ])
    }

    /// Returns whether more than type and entity is asked for.
    fn is_narrow(&self) -> bool {
        self.fields().has_beside(&["type", "subject"])
    }
}

#[derive(Template)]
#[template(path = "events.html")]
struct List {
    frame: Frame,
    which: Which,
    /// Why nothing is shown.
    refused: Option<Words>,
    events: Vec<TimelineEvent>,
    /// Where older ones begin.
    older: Option<i64>,
}

impl List {
    /// Returns what may be meant by the name of an idea, which is no entity by itself.
    fn idea_meant(&self) -> Option<String> {
        let name = Slug::parse(self.which.subject.trim()).ok()?;
        let subject = Subject::idea(&name);
        (name.as_str() != Subject::project().as_str()).then(|| subject.as_str().to_owned())
    }
}

#[derive(Template)]
#[template(path = "event.html")]
struct One {
    frame: Frame,
    view: EventView,
    data: String,
}

/// Shows what happened.
pub(super) async fn list(
    State(shared): State<ServerState>,
    frame: Frame,
    Parameters(which): Parameters<Which>,
) -> Result<Response, Problem> {
    let wanted = match which.filter() {
        Ok(wanted) => wanted,
        // The form stays, with what was written into it.
        Err(problem) => {
            let refused = page(&List {
                frame,
                which,
                refused: Some(problem.words()),
                events: Vec::new(),
                older: None,
            })?;
            return Ok((problem.status(), refused).into_response());
        }
    };
    let filter = EventFilter {
        limit: Some(LENGTH),
        newest_first: true,
        ..wanted
    };
    let events = event::list(&shared.services.store, &filter).await?;
    let is_full = events.len() >= LENGTH as usize;
    page(&List {
        older: events.last().filter(|_| is_full).map(|last| last.sequence),
        frame,
        which,
        refused: None,
        events,
    })
}

/// Shows an event with what became of it.
pub(super) async fn show(
    State(shared): State<ServerState>,
    Path(sequence): Path<String>,
    frame: Frame,
) -> Result<Response, Problem> {
    let unknown = || {
        let sequence = clip::line(&sequence, 80);
        let text = format!("no event is called `{sequence}`; the timeline shows them");
        Problem::new(StatusCode::NOT_FOUND, "unknown-id", text)
    };
    let name: EventName = sequence.parse().map_err(|_| unknown())?;
    let view = event::show(&shared.services.store, name).await?;
    let view = view.ok_or_else(unknown)?;
    let data = serde_json::to_string_pretty(&view.event).unwrap_or_default();
    page(&One { frame, view, data })
}
