//! Dead letters: what could not be handled, and what is decided about it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ropewalk_desk::dead_letters::{self, DeadLetterName};
use ropewalk_desk::views::dead_letter::{self, DeadLetterRow, DeadLetterView};

use super::Here;
use crate::page::{Page, Part};
use crate::problem::Problem;
use crate::take::{Asker, Parameters, Path, Wordless};

/// Where dead letters are listed.
const LIST: &str = "/api/dead-letters";
/// The most that are looked through for a page.
const MOST: u32 = 10_000;

/// Lists what could not be handled, the newest first.
#[utoipa::path(get, path = "/api/dead-letters", operation_id = "list_dead_letters", params(Part), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfDeadLetterRow"))
))]
pub(crate) async fn list(
    State(shared): Here,
    Parameters(part): Parameters<Part>,
) -> Result<Json<Page<DeadLetterRow>>, Problem> {
    let letters = dead_letter::list(&shared.services.store, MOST).await?;
    part.of(letters, |letter| letter.id.clone()).map(Json)
}

/// Shows a dead letter with its event.
#[utoipa::path(get, path = "/api/dead-letters/{position}/{subscriber}", operation_id = "show_dead_letter",
    params(("position" = i64, Path, description = "The position of its event."),
        ("subscriber" = String, Path, description = "Who could not handle it.")), responses(
    (status = 200, description = "The dead letter.", body = ref("#/components/schemas/DeadLetterView"))
))]
pub(crate) async fn show(
    State(shared): Here,
    Path(parts): Path<(String, String)>,
) -> Result<Json<DeadLetterView>, Problem> {
    let (name, text) = named(&parts)?;
    let found = dead_letter::show(&shared.services.store, &name).await?;
    found.map(Json).ok_or_else(|| unknown(&text))
}

/// Has it handled again, with a fresh count of tries.
#[utoipa::path(post, path = "/api/dead-letters/{position}/{subscriber}/replay", operation_id = "replay_dead_letter",
    params(("position" = i64, Path, description = "The position of its event."),
        ("subscriber" = String, Path, description = "Who could not handle it.")), responses(
    (status = 204, description = "It is handled again.")
))]
pub(crate) async fn replay(
    State(shared): Here,
    Path(parts): Path<(String, String)>,
    Asker(person): Asker,
    _: Wordless,
) -> Result<StatusCode, Problem> {
    let (name, _) = named(&parts)?;
    dead_letters::replay(&shared.services.store, &name, &person).await?;
    shared.services.bus.poke();
    Ok(StatusCode::NO_CONTENT)
}

/// Gives it up for good; it stays in the record.
#[utoipa::path(post, path = "/api/dead-letters/{position}/{subscriber}/discard", operation_id = "discard_dead_letter",
    params(("position" = i64, Path, description = "The position of its event."),
        ("subscriber" = String, Path, description = "Who could not handle it.")), responses(
    (status = 204, description = "It was given up.")
))]
pub(crate) async fn discard(
    State(shared): Here,
    Path(parts): Path<(String, String)>,
    Asker(person): Asker,
    _: Wordless,
) -> Result<StatusCode, Problem> {
    let (name, _) = named(&parts)?;
    dead_letters::discard(&shared.services.store, &name, &person).await?;
    // What came after it on the same entity may go on.
    shared.services.bus.poke();
    Ok(StatusCode::NO_CONTENT)
}

fn named((position, subscriber): &(String, String)) -> Result<(DeadLetterName, String), Problem> {
    let text = format!("{position}/{subscriber}");
    let name = text.parse().map_err(|_| unknown(&text))?;
    Ok((name, text))
}

fn unknown(text: &str) -> Problem {
    Problem::unknown("dead letter", text, LIST)
}
