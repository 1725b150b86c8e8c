//! A dead letter: an event that could not be handled, and what is decided about it.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use ropewalk_desk::dead_letters::{self, DeadLetterName};
use ropewalk_desk::views::dead_letter::{self, DeadLetterView};
use ropewalk_schemas::clip;
use ropewalk_schemas::person::Right;

use super::frame::{Frame, go, page};
use super::shown;
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Asker, Path};

#[derive(Template)]
#[template(path = "letter.html")]
struct LetterPage {
    frame: Frame,
    view: DeadLetterView,
    /// Its event as it is stored.
    content: String,
    may_stop: Option<String>,
}

/// Shows a dead letter.
pub(super) async fn show(
    State(shared): State<ServerState>,
    Path(parts): Path<(String, String)>,
    frame: Frame,
) -> Result<Response, Problem> {
    let name = named(&parts)?;
    let view = dead_letter::show(&shared.services.store, &name).await?;
    let view = view.ok_or_else(|| unknown(&parts))?;
    let content = serde_json::to_string_pretty(&view.content).unwrap_or_default();
    page(&LetterPage {
        may_stop: frame.refusal(Right::Stop),
        frame,
        view,
        content,
    })
}

/// Has it handled again.
pub(super) async fn replay(
    State(shared): State<ServerState>,
    Path(parts): Path<(String, String)>,
    Asker(person): Asker,
) -> Result<Response, Problem> {
    dead_letters::replay(&shared.services.store, &named(&parts)?, &person).await?;
    shared.services.bus.poke();
    Ok(go("/running"))
}

/// Gives it up for good.
pub(super) async fn discard(
    State(shared): State<ServerState>,
    Path(parts): Path<(String, String)>,
    Asker(person): Asker,
) -> Result<Response, Problem> {
    dead_letters::discard(&shared.services.store, &named(&parts)?, &person).await?;
    Ok(go("/running"))
}

fn named(parts: &(String, String)) -> Result<DeadLetterName, Problem> {
    let (position, subscriber) = parts;
    let name = format!("{position}/{subscriber}").parse();
    name.map_err(|_| unknown(parts))
}

fn unknown((position, subscriber): &(String, String)) -> Problem {
    let name = clip::line(&format!("{position}/{subscriber}"), 80);
    let words = (
        format!("no dead letter is called `{name}`"),
        "the page of what runs shows them",
    );
    Problem::new(StatusCode::NOT_FOUND, "unknown-id", words)
}
