//! A file that came along with what was said about an idea: a picture to look at, and anything else to take along.

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use ropewalk_desk::attachments::kept::{self, FileKind};

use super::named;
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::Path;

/// What a browser may do with it where it is opened by itself: draw it, and nothing else.
const POLICY: (HeaderName, HeaderValue) = (
    header::CONTENT_SECURITY_POLICY,
    HeaderValue::from_static(
        "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'; base-uri 'none'",
    ),
);

/// Sends it as what its bytes say that it is, whatever its sender called it.
pub(in crate::pages) async fn show(
    State(shared): State<ServerState>,
    Path((slug, name)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let store = &shared.services.store;
    let file = kept::read(store, &shared.state, &named(&slug)?, &name).await?;
    let (media_type, taken) = match file.kind {
        FileKind::Picture(kind) => (kind.media_type(), "inline"),
        FileKind::Text => ("text/plain; charset=utf-8", "attachment"),
        FileKind::Other => ("application/octet-stream", "attachment"),
    };
    let headers = [
        POLICY,
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static(taken)),
    ];
    Ok((headers, file.bytes).into_response())
}
