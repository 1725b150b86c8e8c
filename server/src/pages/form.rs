//! Takes forms: what a page sends proves by a hidden field that a page of this server made it. What somebody wrote goes
//! along with the answer, so that a refusal can show it again.

use std::collections::BTreeMap;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use ropewalk_desk::views::Span;
use ropewalk_schemas::InvalidId;

use super::frame::is_wanted;
use crate::guard::intake::{self, Bounds};
use crate::guard::{Csrf, refused, who};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::refuse_zero;

/// The field that proves it.
const PROOF: &str = "csrf";
/// What forms are sent as.
const KIND: &str = "application/x-www-form-urlencoded";

/// The fields that hold what people write; a form with several of a kind numbers them.
const WRITTEN: [&str; 4] = ["guidance", "reason", "text", "title"];

/// What somebody wrote into the fields of a form; goes along with the answer.
#[derive(Debug, Clone)]
pub(super) struct WrittenText(pub(super) String);

/// What was filled in.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(BTreeMap<String, String>);

impl Fields {
    /// Reads what a browser sends; of two fields with one name the last counts.
    pub(super) fn read(bytes: &[u8]) -> Self {
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

    /// Returns all that somebody wrote, in one text; none where nothing was written.
    fn written(&self) -> Option<WrittenText> {
        let is_written = |name: &str| {
            let (kind, _) = name.split_once('.').unwrap_or((name, ""));
            WRITTEN.contains(&kind)
        };
        let texts: Vec<&str> = self
            .0
            .iter()
            .filter(|(name, text)| is_written(name) && !text.trim().is_empty())
            .map(|(_, text)| text.trim())
            .collect();
        (!texts.is_empty()).then(|| WrittenText(texts.join("\n\n")))
    }
}

/// Reads a moment in UTC, as a browser or a program writes it; a day is its beginning.
pub(super) fn moment(field: &str, text: &str) -> Result<Option<DateTime<Utc>>, Problem> {
    let Some(text) = filled(text) else {
        return Ok(None);
    };
    let plain = |form| NaiveDateTime::parse_from_str(text, form).ok();
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let local = plain("%Y-%m-%dT%H:%M")
        .or_else(|| plain("%Y-%m-%dT%H:%M:%S"))
        .or_else(|| day.and_then(|day| day.and_hms_opt(0, 0, 0)));
    let read = local.map(|at| at.and_utc()).or_else(|| text.parse().ok());
    let next = "write for example `2026-03-01T08:00`";
    let refused = || Problem::usage((format!("`{field}` is no moment"), next));
    read.map(Some).ok_or_else(refused)
}

/// Returns what stands in a field of a form, unless that is blank.
pub(super) fn filled(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// Reads the span of time between the fields `since` and `until` of a form that filters.
pub(super) fn span(since: &str, until: &str) -> Result<Span, Problem> {
    Ok(Span {
        since: moment("since", since)?,
        until: moment("until", until)?,
    })
}

/// The fields of a form that filters in which something is written, by their names.
pub(super) struct FilterFields<'a>(Vec<(&'static str, &'a str)>);

impl<'a> FilterFields<'a> {
    /// Keeps those of `all` that are filled in.
    pub(super) fn of(all: impl IntoIterator<Item = (&'static str, &'a String)>) -> Self {
        let read = all.into_iter();
        let read = read.filter_map(|(name, text)| Some((name, filled(text)?)));
        Self(read.collect())
    }

    /// Returns whether nothing is filtered.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether one that is not called so is filled in.
    pub(super) fn has_beside(&self, names: &[&str]) -> bool {
        self.0.iter().any(|(name, _)| !names.contains(name))
    }

    /// Returns the query of an address that wants the same.
    pub(super) fn query(&self) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&self.0);
        query.finish()
    }

    /// Returns the address of `path` that wants the same.
    pub(super) fn address(&self, path: &str) -> String {
        if self.is_empty() {
            return path.to_owned();
        }
        format!("{path}?{}", self.query())
    }
}

/// Says that a field holds no such id.
pub(super) fn unreadable(error: &InvalidId) -> Problem {
    Problem::usage((error.to_string(), "open the page again, and send its form"))
}

impl<S: Send + Sync> FromRequestParts<S> for Fields {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

/// Lets through who is known, with the person in the request. Who is not, because a login has ended, keeps what was
/// written.
pub(super) async fn known(
    State(shared): State<ServerState>,
    mut request: Request,
    next: Next,
) -> Response {
    match who(&shared, &request) {
        Ok((person, csrf)) => {
            request.extensions_mut().insert(person);
            request.extensions_mut().insert(csrf);
            next.run(request).await
        }
        Err((problem, rests)) => {
            let written = match rests {
                None => written_by_stranger(request).await,
                Some(_) => None,
            };
            with(refused(problem, rests), written)
        }
    }
}

async fn written_by_stranger(request: Request) -> Option<WrittenText> {
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST || !is_wanted(&parts.headers) || !is_form(&parts.headers) {
        return None;
    }
    let bytes = intake::read(&parts.headers, body, Bounds::STRANGER).await;
    Fields::read(&bytes.ok()?).written()
}

fn with(mut response: Response, written: Option<WrittenText>) -> Response {
    if let Some(written) = written {
        response.extensions_mut().insert(written);
    }
    response
}

/// Lets a form through that proves itself, with its fields in the request.
pub(super) async fn proved(request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let fields = match taken(&parts, body).await {
        Ok(fields) => fields,
        Err(problem) => return problem.into_response(),
    };
    let written = fields.written();
    let pairs = || fields.0.iter().map(|(name, text)| (&**name, &**text));
    let response = match proof(&parts, &fields).and_then(|()| refuse_zero(pairs())) {
        Ok(()) => {
            parts.extensions.insert(fields);
            next.run(Request::from_parts(parts, Body::empty())).await
        }
        Err(problem) => problem.into_response(),
    };
    with(response, written)
}

async fn taken(parts: &Parts, body: Body) -> Result<Fields, Problem> {
    if !is_form(&parts.headers) {
        return Err(no_form());
    }
    // `intake` has bounded it already.
    let bytes = to_bytes(body, usize::MAX).await;
    Ok(Fields::read(
        &bytes.map_err(|error| Problem::failed(&error))?,
    ))
}

pub(super) fn no_form() -> Problem {
    let text = "a page takes forms alone; programs use `/api`";
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "usage", text)
}

pub(super) fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.starts_with(KIND)
}

fn proof(parts: &Parts, fields: &Fields) -> Result<(), Problem> {
    if let Some(Csrf(Some(csrf))) = parts.extensions.get::<Csrf>()
        && fields.text(PROOF) != csrf
    {
        let text = "this page is older than your login; load it again, then repeat what you did";
        return Err(Problem::new(StatusCode::FORBIDDEN, "csrf", text));
    }
    Ok(())
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

    #[test]
    fn what_somebody_wrote_is_told_from_what_the_page_sends() {
        let of = |text: &[u8]| Fields::read(text).written().map(|written| written.0);
        let comments = b"csrf=x&of=y&file.0=a.rs&line.0=3&text.0=one&text.1=+&text.2=two";
        assert_eq!(of(comments).as_deref(), Some("one\n\ntwo"));
        assert_eq!(of(b"reason=+why%0D%0Anot+").as_deref(), Some("why\nnot"));
        assert_eq!(of(b"csrf=x&hash=y&choice=merge&text="), None);
    }
}
