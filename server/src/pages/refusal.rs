//! Says on a page what was refused, and what to do; also what somebody sees who comes or goes.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ropewalk_schemas::advice::Words;

use super::form::WrittenText;
use super::frame::{is_wanted, page};
use crate::guard::cookie;
use crate::problem::Problem;
use crate::shared::ServerState;

/// What somebody does who is not logged in.
const LOG_IN: &str = "open the link that `ropewalk up` shows";

/// A page of a few words.
#[derive(Template)]
#[template(path = "note.html")]
struct Note<'a> {
    title: &'a str,
    words: &'a str,
    next: Option<&'a str>,
    /// What somebody wrote that came to nothing.
    written: Option<&'a str>,
    /// Where to go on, and how that is called.
    link: Option<(&'a str, &'a str)>,
    /// Whether the browser goes there by itself.
    goes_on: bool,
}

/// Knows how somebody who asks wants to be refused.
struct Refusal {
    is_page: bool,
    /// The page from which it was asked.
    back: String,
}

impl Refusal {
    /// Returns how to refuse a request: on a page where a browser shows one.
    fn to(request: &Request) -> Self {
        let path = request.uri().path();
        let is_safe = request.method().is_safe();
        // A form is sent to a path below the page that it stands on.
        let back = path.rsplit_once('/').map_or("/", |(page, _)| page);
        Self {
            is_page: is_wanted(request.headers()) && !path.starts_with("/api/"),
            back: match (is_safe, back) {
                (true, _) | (false, "") => "/".to_owned(),
                (false, back) => back.to_owned(),
            },
        }
    }

    /// Shows a refusal as it is wanted; every other answer stays as it is.
    fn shown(self, response: Response) -> Response {
        let Some(words) = response
            .extensions()
            .get::<Words>()
            .filter(|_| self.is_page)
        else {
            return response;
        };
        let written = response.extensions().get::<WrittenText>();
        let status = response.status();
        let is_stranger = status == axum::http::StatusCode::UNAUTHORIZED;
        let called = if self.back == "/" {
            "To the board"
        } else {
            "Back to the page"
        };
        let note = Note {
            title: match status.as_u16() {
                401 => "You are not logged in",
                403 => "You may not do this",
                404 => "There is nothing here",
                409 => "Something stands against this",
                429 => "Too much at once",
                500.. => "This program failed",
                _ => "This cannot be done",
            },
            words: &words.message,
            // What a program can send is no help to who looks at a page.
            next: if is_stranger {
                Some(LOG_IN)
            } else {
                words.next.as_deref()
            },
            written: written.map(|WrittenText(text)| text.as_str()),
            link: (!is_stranger).then_some((self.back.as_str(), called)),
            goes_on: false,
        };
        let Ok(shown) = page(&note) else {
            return response;
        };
        let mut shown = (status, shown).into_response();
        // What a page says of itself goes before what the refusal said of its JSON.
        let of_text = [header::CONTENT_LENGTH, header::CONTENT_TYPE];
        for (name, value) in response.headers() {
            if !of_text.contains(name) {
                shown.headers_mut().entry(name).or_insert(value.clone());
            }
        }
        shown
    }
}

/// Shows what is refused as whoever asks wants it.
pub(crate) async fn in_words(request: Request, next: Next) -> Response {
    let refusal = Refusal::to(&request);
    refusal.shown(next.run(request).await)
}

/// Greets who was logged in. The browser goes on from this page itself, since it sends no cookie along where a page of
/// somebody else led here.
pub(crate) fn entered(name: &str) -> Result<Response, Problem> {
    page(&Note {
        title: "Welcome",
        words: &format!("You are logged in as {name}, for a week."),
        next: None,
        written: None,
        link: Some(("/", "To the board")),
        goes_on: true,
    })
}

/// Says goodbye.
fn left() -> Result<Response, Problem> {
    page(&Note {
        title: "You are logged out",
        words: "Nobody is logged in by this browser any more.",
        next: Some("open the link that `ropewalk up` shows at its next start to come back"),
        written: None,
        link: None,
        goes_on: false,
    })
}

/// Logs out.
pub(super) async fn leave(
    State(shared): State<ServerState>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(cookie) = cookie(&headers, &shared.cookie) {
        shared.leave(cookie).await;
    }
    left()
}
