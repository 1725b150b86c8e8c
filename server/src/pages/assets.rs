//! What pages are drawn by: one stylesheet, some scripts and a picture, all inside the program.

use std::io::Write as _;
use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::problem::Problem;
use crate::take::Path;

/// Every file, with what it is.
const FILES: [(&str, &str, &str); 9] = [
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
        "times.js",
        "text/javascript; charset=utf-8",
        include_str!("../../static/times.js"),
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

/// The files made small, in their order, once somebody asks for one.
static SMALL: LazyLock<[Vec<u8>; FILES.len()]> =
    LazyLock::new(|| FILES.map(|(_, _, text)| made_small(text)));

/// Shows one file; small, where the browser reads that.
pub(super) async fn show(Path(name): Path<String>, asked: HeaderMap) -> Response {
    let Some(index) = FILES.iter().position(|(known, _, _)| *known == name) else {
        let text = "there is nothing here; go back to the board";
        return Problem::new(StatusCode::NOT_FOUND, "unknown-path", text).into_response();
    };
    let (_, kind, text) = FILES[index];
    let headers: [(HeaderName, &str); 3] = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, KEPT),
        (header::VARY, "accept-encoding"),
    ];
    if reads_gzip(&asked) {
        let small = SMALL[index].as_slice();
        return (headers, [(header::CONTENT_ENCODING, "gzip")], small).into_response();
    }
    (headers, text).into_response()
}

fn made_small(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to a vector cannot fail.
    encoder.write_all(text.as_bytes()).ok();
    encoder.finish().unwrap_or_default()
}

/// Says whether `gzip` is among the encodings that are asked for, and not refused by a weight of 0.
fn reads_gzip(asked: &HeaderMap) -> bool {
    let encodings = asked.get_all(header::ACCEPT_ENCODING).iter();
    let encodings = encodings.filter_map(|encodings| encodings.to_str().ok());
    encodings.flat_map(|all| all.split(',')).any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let weight = weight.trim().strip_prefix("q=");
        name.trim().eq_ignore_ascii_case("gzip")
            && weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0))
    })
}
