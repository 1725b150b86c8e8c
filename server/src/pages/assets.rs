//! What pages are drawn by: one stylesheet, some scripts and a picture, all inside the program.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;
use crate::take::Path;

/// Every file, with what it is.
const FILES: [(&str, &str, &str); 8] = [
    (
        "ropewalk.css",
        "text/css; charset=utf-8",
        include_str!("../../static/ropewalk.css"),
    ),
    (
        "ropewalk.js",
        "text/javascript; charset=utf-8",
        include_str!("../../static/ropewalk.js"),
    ),
    (
        "writing.js",
        "text/javascript; charset=utf-8",
        include_str!("../../static/writing.js"),
    ),
    (
        "comments.js",
        "text/javascript; charset=utf-8",
        include_str!("../../static/comments.js"),
    ),
    (
        "files.js",
        "text/javascript; charset=utf-8",
        include_str!("../../static/files.js"),
    ),
    (
        "watching.js",
        "text/javascript; charset=utf-8",
        include_str!("../../static/watching.js"),
    ),
    (
        "htmx.js",
        "text/javascript; charset=utf-8",
        include_str!("../../static/vendored/htmx.min.js"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        include_str!("../../static/icon.svg"),
    ),
];

/// A day: pages name each file with the version of the program.
const KEPT: &str = "private, max-age=86400";

/// Shows one file.
pub(super) async fn show(Path(name): Path<String>) -> Response {
    let found = FILES.iter().find(|(known, _, _)| *known == name);
    let Some((_, kind, text)) = found else {
        let text = "there is nothing here; go back to the board";
        return Problem::new(StatusCode::NOT_FOUND, "unknown-path", text).into_response();
    };
    let headers = [(header::CONTENT_TYPE, *kind), (header::CACHE_CONTROL, KEPT)];
    (headers, *text).into_response()
}
