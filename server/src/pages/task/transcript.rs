//! All that one attempt said and did.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use ropewalk_desk::views::transcript::{self, AttemptTranscript};
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::clip;
use ropewalk_schemas::job_event::Passage;

use super::steps::{Extent, Step, steps};
use super::{Frame, loaded, page, shown};
use crate::pages::pager::{PageQuery, Pager};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Parameters, Path};

/// How many steps stand on one page.
const ON_A_PAGE: usize = 100;
/// How many of the last ones stand on the page of the task.
const LAST: usize = 40;
/// How much of a transcript these are looked for in.
const LAST_BYTES: u64 = 256 * 1024;

#[derive(Template)]
#[template(path = "transcript.html")]
struct TranscriptPage {
    frame: Frame,
    build: Build,
    attempt: Attempt,
    number: usize,
    steps: Vec<Step>,
    pager: Pager,
}

/// What was said and done last at a task.
pub(super) struct LastSteps {
    pub(super) attempt: Attempt,
    pub(super) steps: Vec<Step>,
    /// Whether there are earlier ones.
    pub(super) is_cut: bool,
}

/// Returns the last steps of an attempt.
pub(super) async fn last(shared: &ServerState, attempt: &Attempt) -> Result<LastSteps, Problem> {
    let (steps, is_cut) = read(shared, attempt, LAST_BYTES, Extent::Ends).await?;
    let before = steps.len().saturating_sub(LAST);
    Ok(LastSteps {
        attempt: attempt.clone(),
        is_cut: is_cut || before > 0,
        steps: steps.into_iter().skip(before).collect(),
    })
}

/// Shows all steps of an attempt, page by page, the oldest first.
pub(in crate::pages) async fn show(
    State(shared): State<ServerState>,
    Path((id, task, attempt)): Path<(String, String, String)>,
    Parameters(wanted): Parameters<PageQuery>,
    frame: Frame,
) -> Result<Response, Problem> {
    let (build, view) = loaded(&shared, &id, &task).await?;
    let mut made = view.made.into_iter().enumerate();
    let found = made.find(|(_, one)| one.id.to_string() == attempt);
    let (place, found) = found.ok_or_else(|| unknown(&attempt))?;
    let (steps, _) = read(&shared, &found, Passage::MOST_BYTES, Extent::Whole).await?;
    let pages = u32::try_from(steps.len().div_ceil(ON_A_PAGE)).unwrap_or(u32::MAX);
    let before = (wanted.number() as usize).saturating_mul(ON_A_PAGE);
    let path = format!("/builds/{id}/tasks/{task}/attempts/{attempt}");
    page(&TranscriptPage {
        frame,
        build,
        number: place + 1,
        steps: steps.into_iter().skip(before).take(ON_A_PAGE).collect(),
        pager: wanted.pager_of(&path, pages, ["steps before", "further steps"]),
        attempt: found,
    })
}

async fn read(
    shared: &ServerState,
    attempt: &Attempt,
    most_bytes: u64,
    extent: Extent,
) -> Result<(Vec<Step>, bool), Problem> {
    let store = &shared.services.store;
    let read = transcript::of_attempt(store, &shared.state, attempt, most_bytes).await?;
    let AttemptTranscript { passages, is_cut } = read;
    let mut steps = steps(&passages, extent);
    for step in &mut steps {
        // What was cut off with its attempt goes on no more.
        step.has_ended |= attempt.ended_at.is_some();
    }
    Ok((steps, is_cut))
}

fn unknown(attempt: &str) -> Problem {
    let attempt = clip::line(attempt, 80);
    let message = format!("no attempt at this task is called `{attempt}`");
    let words = (message, "the page of the task shows them");
    Problem::new(StatusCode::NOT_FOUND, "unknown-id", words)
}
