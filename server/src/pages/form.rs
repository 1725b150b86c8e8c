//! Takes forms: what a page sends proves by a hidden field that a page of this server made it.

use std::collections::BTreeMap;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::guard::Csrf;
use crate::problem::Problem;

/// The field that proves it.
const PROOF: &str = "csrf";
/// What forms are sent as.
const KIND: &str = "application/x-www-form-urlencoded";

/// What was filled in.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(BTreeMap<String, String>);

impl Fields {
    /// Reads what a browser sends; of two fields with one name the last counts.
    fn read(bytes: &[u8]) -> Self {
        let pairs = url::form_urlencoded::parse(bytes).into_owned();
        // Browsers end lines as another system does.
        Self(
            pairs
                .map(|(name, value)| (name, value.replace("\r\n", "\n")))
                .collect(),
        )
    }

    /// Returns what stands in a field; nothing where it is not there.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Returns what stands in a field, unless that is blank.
    pub(super) fn filled(&self, name: &str) -> Option<String> {
        let text = self.text(name).trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Fields {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

/// Lets a form through that proves itself, with its fields in the request.
pub(super) async fn proved(request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    match taken(request).await {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

async fn taken(request: Request) -> Result<Request, Problem> {
    let (mut parts, body) = request.into_parts();
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with(KIND) {
        let text = "a page takes forms alone; programs use `/api`";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Problem::new(status, "usage", text));
    }
    // `intake` has bounded it already.
    let bytes = to_bytes(body, usize::MAX).await;
    let fields = Fields::read(&bytes.map_err(|error| Problem::failed(&error))?);
    if let Some(Csrf(Some(csrf))) = parts.extensions.get::<Csrf>()
        && fields.text(PROOF) != csrf
    {
        let text = "this page is older than your login; load it again, then repeat what you did";
        return Err(Problem::new(StatusCode::FORBIDDEN, "csrf", text));
    }
    parts.extensions.insert(fields);
    Ok(Request::from_parts(parts, Body::empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_browsers_write_them() {
        let fields = Fields::read(b"text=one%0D%0Atwo+%26+%3Cb%3E&blank=++&twice=1&twice=2");
        assert_eq!(fields.text("text"), "one\ntwo & <b>");
        assert_eq!(fields.filled("blank"), None);
        assert_eq!(fields.text("twice"), "2");
        assert_eq!(fields.text("none"), "");
    }
}
