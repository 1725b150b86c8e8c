//! Ideas and builds by their names, wherever the lists have them.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use ropewalk_desk::views::build;
use ropewalk_desk::views::idea::{self, IdeaRow};
use ropewalk_schemas::build::Build;
use serde::Deserialize;

use super::{Frame, page, shown};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::Parameters;

/// The most of each sort that are shown.
const MOST: usize = 20;

/// What is looked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::pages) struct WantedName {
    words: String,
}

#[derive(Template)]
#[template(path = "find.html")]
struct Findings {
    frame: Frame,
    words: String,
    ideas: Vec<IdeaRow>,
    builds: Vec<Build>,
}

/// Shows the newest ideas, and builds of ideas, whose names bear some words; without words it asks for some.
pub(in crate::pages) async fn show(
    State(shared): State<ServerState>,
    frame: Frame,
    Parameters(wanted): Parameters<WantedName>,
) -> Result<Response, Problem> {
    let words = wanted.words.trim().to_owned();
    let (mut ideas, mut builds) = (Vec::new(), Vec::new());
    if !words.is_empty() {
        let store = &shared.services.store;
        (ideas, builds) = futures::try_join!(
            Box::pin(idea::find(store, &words, MOST)),
            build::find(store, &words, MOST),
        )?;
    }
    page(&Findings {
        frame,
        words,
        ideas,
        builds,
    })
}
