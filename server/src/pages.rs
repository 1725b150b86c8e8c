//! Pages for people who would rather look: what the views of `desk` hold, in the words of the terminal.
//!
//! Everything can be read without a script; what changes something is a form. Scripts only keep a page fresh, and no
//! page asks for anything from another machine.

mod assets;
mod board;
mod build;
mod event;
mod form;
mod frame;
mod graph;
mod idea;
mod knowledge;
mod letter;
mod lines;
mod markdown;
mod pager;
mod question;
mod refusal;
mod running;
mod shown;
mod specification;
mod task;
mod usage;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use ropewalk_runtime::Supervisor;

use crate::guard::intake::{Bounds, intake};
use crate::shared::ServerState;

pub(crate) use frame::is_wanted;
pub(crate) use refusal::entering::{enter, entered};
pub(crate) use refusal::in_words;

/// Returns the pages, with what they are drawn by.
pub(crate) fn router(shared: &ServerState, tasks: &Supervisor) -> Router<ServerState> {
    let pages = Router::new()
        .route("/", get(board::show))
        .route("/ideas", post(idea::begin))
        .route("/ideas/new", get(board::new))
        .route("/ideas/{slug}", get(idea::show))
        .route("/ideas/{slug}/attachments/{name}", get(idea::file::show))
        .route("/ideas/{slug}/say", post(idea::say))
        .route("/ideas/{slug}/done", post(idea::finish))
        .route("/ideas/{slug}/abandon", post(idea::abandon))
        .route("/ideas/{slug}/specify", post(specification::generate))
        .route("/questions", get(question::list))
        .route("/questions/{id}", get(question::show))
        .route("/questions/{id}/answer", post(question::answer))
        .route("/specifications/{id}", get(specification::show))
        .route(
            "/specifications/{id}/difference",
            get(specification::compare),
        )
        .route("/specifications/{id}/approve", post(specification::approve))
        .route("/specifications/{id}/revise", post(specification::revise))
        .route("/specifications/{id}/lines", get(lines::specification))
        .route(
            "/specifications/{id}/comments",
            post(lines::on_specification),
        )
        .route("/specifications/{id}/reject", post(specification::reject))
        .route("/builds", get(build::list))
        .route("/builds/{id}", get(build::show))
        .route("/builds/{id}/pause", post(build::pause))
        .route("/builds/{id}/resume", post(build::resume))
        .route("/builds/{id}/stop", post(build::stop))
        .route("/builds/{id}/tell", post(build::tell))
        .route("/builds/{id}/priority", post(build::rank))
        .route("/builds/{id}/landing", get(build::landing::show))
        .route("/builds/{id}/land", post(build::landing::land))
        .route("/builds/{id}/difference", get(lines::difference))
        .route("/builds/{id}/comments", post(lines::on_build))
        .route("/builds/{id}/tasks/{task}", get(task::show))
        .route(
            "/builds/{id}/tasks/{task}/attempts/{attempt}",
            get(task::transcript::show),
        )
        .route("/builds/{id}/tasks/{task}/retry", post(task::retry))
        .route("/builds/{id}/tasks/{task}/tell", post(task::tell))
        .route("/running", get(running::show))
        .route("/running/seen", post(running::acknowledge))
        .route("/health", get(running::health::show))
        .route("/halt", post(running::stop))
        .route("/halt/lift", post(running::lift))
        .route("/dead-letters/{position}/{subscriber}", get(letter::show))
        .route(
            "/dead-letters/{position}/{subscriber}/replay",
            post(letter::replay),
        )
        .route(
            "/dead-letters/{position}/{subscriber}/discard",
            post(letter::discard),
        )
        .route("/find", get(board::find::show))
        .route("/usage", get(usage::show))
        .route("/knowledge", get(knowledge::list))
        .route("/knowledge/{id}", get(knowledge::show))
        .route("/events", get(event::list))
        .route("/events/download", get(event::download))
        .route("/events/{sequence}", get(event::show))
        .route("/leave", post(refusal::entering::leave))
        .layer(from_fn(form::proved))
        .layer(from_fn_with_state(
            (shared.clone(), tasks.clone(), Bounds::WORDS),
            intake,
        ))
        .layer(from_fn_with_state(shared.clone(), form::known));
    pages.route("/static/{name}", get(assets::show))
}
