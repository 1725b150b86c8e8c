//! Says on a page what was refused, and what to do.

pub(super) mod entering;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ropewalk_schemas::advice::Words;

use self::entering::Target;
use super::form::WrittenText;
use super::frame::{is_wanted, page};
use super::shown;
use crate::shared::ServerState;

/// What somebody does who is not logged in; who has a token fills it in below.
const LOG_IN: &str = "open the link that `ropewalk up` shows when it starts; it works once, and for a day: for another stop `ropewalk up` and start it again";
const LOG_IN_BY_TOKEN: &str = "log in with your token, or open the link that `ropewalk up` shows when it starts; it works once, and for a day: for another stop `ropewalk up` and start it again";
/// Where somebody goes on who came where no page is.
const PAGES: &str = "the board leads to every idea; `/questions`, `/builds`, `/running`, `/knowledge`, `/usage` and `/events` are the other pages";

/// A page that helps whoever was refused; goes along with the answer.
#[derive(Debug, Clone)]
pub(super) struct Onward {
    pub(super) href: String,
    /// How that is called.
    pub(super) called: String,
}

/// A page of a few words.
#[derive(Template)]
#[template(path = "note.html")]
struct Note<'a> {
    title: &'a str,
    words: &'a str,
    next: Option<&'a str>,
    /// What somebody wrote that came to nothing.
    written: Option<&'a str>,
    /// A page that helps.
    onward: Option<&'a Onward>,
    /// Where to go on, and how that is called.
    link: Option<(&'a str, &'a str)>,
    /// Whether the browser goes there by itself.
    goes_on: bool,
    /// Where somebody goes who logs in here with a token.
    entry: Option<&'a str>,
}

/// Knows how somebody who asks wants to be refused.
struct Refusal {
    is_page: bool,
    /// The page from which it was asked.
    back: String,
    /// Where to go on after logging in.
    target: String,
    /// Whether anybody has a token to log in with.
    by_token: bool,
}

impl Refusal {
    /// Returns how to refuse a request: on a page where a browser shows one.
    fn to(request: &Request, by_token: bool) -> Self {
        let path = request.uri().path();
        let is_safe = request.method().is_safe();
        // A form is sent to a path below the page that it stands on.
        let back = path.rsplit_once('/').map_or("/", |(page, _)| page);
        let back = if is_safe || back.is_empty() {
            "/"
        } else {
            back
        };
        Self {
            is_page: is_wanted(request.headers()) && !path.starts_with("/api/"),
            back: back.to_owned(),
            target: if is_safe {
                entering::target(request.uri())
            } else {
                back.to_owned()
            },
            by_token,
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
        let is_stranger = status == StatusCode::UNAUTHORIZED;
        let target = response.extensions().get::<Target>();
        let target = target.map_or(self.target.as_str(), |Target(path)| path);
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
                503 => "This cannot be done now",
                504 => "This takes too long",
                500.. => "This program failed",
                _ => "This cannot be done",
            },
            words: &words.message,
            // What a program can send is no help to who looks at a page.
            next: match status {
                StatusCode::UNAUTHORIZED if self.by_token => Some(LOG_IN_BY_TOKEN),
                StatusCode::UNAUTHORIZED => Some(LOG_IN),
                StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Some(PAGES),
                _ => words.next.as_deref(),
            },
            written: written.map(|WrittenText(text)| text.as_str()),
            onward: response.extensions().get::<Onward>(),
            link: (!is_stranger).then_some((self.back.as_str(), called)),
            goes_on: false,
            entry: (is_stranger && self.by_token).then_some(target),
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
pub(crate) async fn in_words(
    State(shared): State<ServerState>,
    request: Request,
    next: Next,
) -> Response {
    let refusal = Refusal::to(&request, shared.people.are_named());
    refusal.shown(next.run(request).await)
}
