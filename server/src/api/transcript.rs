//! What the models of a build said and did.

use axum::Json;
use axum::extract::State;
use ropewalk_desk::views::transcript::{TranscriptError, Transcripts};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::job_event::Passage;

use super::{Here, builds};
use crate::page::{Page, Part};
use crate::problem::Problem;
use crate::take::{Parameters, Path};

/// Lists what the models of a build said and did: words, tools, differences, verdicts and costs, the oldest first.
#[utoipa::path(get, path = "/api/builds/{id}/transcript", operation_id = "show_transcript",
    params(("id" = String, Path, description = "The id of the build."), Part), responses(
    (status = 200, description = "A part of it.", body = ref("#/components/schemas/PageOfPassage"))
))]
pub(crate) async fn show(
    State(shared): Here,
    Path(id): Path<String>,
    Parameters(part): Parameters<Part>,
) -> Result<Json<Page<Passage>>, Problem> {
    let build = builds::found(&shared, &id).await?.into_inner();
    let mut transcripts = Transcripts::of(build, &shared.state);
    let passages = transcripts.next(&shared.services.store).await?;
    // A passage has no name, so that its place is where to go on.
    let numbered = passages.into_iter().enumerate().collect();
    let Page { items, next } = part.of(numbered, |(place, _)| place.to_string())?;
    let items = items.into_iter().map(|(_, passage)| passage).collect();
    Ok(Json(Page { items, next }))
}

impl From<TranscriptError> for Problem {
    fn from(error: TranscriptError) -> Self {
        Self::failed(&Words::of(&error))
    }
}
