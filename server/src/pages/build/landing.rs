//! What landing a build comes to, shown before anything moves.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use ropewalk_desk::builds::landing::{self, Landing, LandingView};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::person::Right;

use super::found;
use crate::pages::form::Fields;
use crate::pages::frame::{Frame, go, page};
use crate::pages::{markdown, shown};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Asker, Path};

#[derive(Template)]
#[template(path = "landing.html")]
struct LandingPage {
    frame: Frame,
    build: Build,
    view: LandingView,
    /// What was done and shown.
    prospect: String,
    may_land: Option<String>,
}

/// Shows what it comes to.
pub(in crate::pages) async fn show(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    frame: Frame,
) -> Result<Response, Problem> {
    let build = found(&shared, &id).await?;
    landing::admits(&build)?;
    let prospect = landing::prospect(&shared.services.store, &build).await?;
    page(&LandingPage {
        view: shared.landing(&build).await?,
        prospect: markdown::html(&prospect),
        may_land: frame.refusal(Right::Land),
        frame,
        build,
    })
}

/// Brings the branch of a build into the one that it began from.
pub(in crate::pages) async fn land(
    State(shared): State<ServerState>,
    Path(id): Path<String>,
    Asker(person): Asker,
    fields: Fields,
) -> Result<Response, Problem> {
    let build = found(&shared, &id).await?;
    let landing = match fields.text("how") {
        "resolve" => Landing::Resolve,
        _ => Landing::Land,
    };
    let shown = ["from", "onto"].map(|field| fields.filled(field));
    shared.land(&build, landing, &person, shown).await?;
    Ok(go(&format!("/builds/{id}")))
}
