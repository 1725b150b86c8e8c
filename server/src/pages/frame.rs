//! The frame of every page: who looks, what waits for people, and how a page is sent.

use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use ropewalk_desk::halt;
use ropewalk_desk::people::Person;
use ropewalk_schemas::halt::Halt;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_store::Query;

use super::shown;
use crate::guard::Csrf;
use crate::problem::Problem;
use crate::shared::ServerState;

/// What a page may use: itself, its stylesheet and its scripts, and nothing of another machine.
const POLICY: (HeaderName, HeaderValue) = (
    header::CONTENT_SECURITY_POLICY,
    HeaderValue::from_static(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
);

/// Who looks, and what every page shows of it.
pub(super) struct Frame {
    /// Who.
    pub(super) person: Person,
    /// What forms prove themselves by.
    pub(super) csrf: String,
    /// Who stopped everything, while that stands.
    pub(super) halt: Option<Halt>,
    /// How many questions wait for people.
    pub(super) waiting: u64,
    /// The position up to which this page knows what happened; what comes later makes it fresh.
    pub(super) position: i64,
}

impl Frame {
    /// Says why this person may not do something, if so.
    pub(super) fn refusal(&self, right: Right) -> Option<String> {
        self.person
            .demand(right)
            .err()
            .map(|refused| refused.to_string())
    }

    /// Says as markup who stopped everything, while that stands.
    pub(super) fn halted(&self) -> Option<String> {
        let halt = self.halt.as_ref()?;
        let (by, since) = (shown::line_of(halt.by.as_str()), shown::time(&halt.since));
        let why = halt.why();
        let colon = if why.is_empty() { "" } else { ": " };
        let why = shown::line_of(&why);
        Some(format!("{by} stopped everything {since}{colon}{why}"))
    }

    /// The version of the program, which names its files anew.
    pub(super) const VERSION: &'static str = env!("CARGO_PKG_VERSION");
}

impl FromRequestParts<ServerState> for Frame {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &ServerState) -> Result<Self, Problem> {
        let unknown = || Problem::failed(&"a page was asked for by nobody");
        let person = parts.extensions.get::<Person>().cloned();
        let csrf = parts.extensions.get::<Csrf>().cloned();
        let text = "the program is about to stop; try again once it runs";
        let stopping = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store", text);
        // Before anything is loaded, so that nothing is missed in between.
        let position = shared
            .services
            .bus
            .tail()
            .listen()
            .await
            .map_err(stopping)?
            .after;
        let pending = Query::new().equal("state", QuestionState::Pending.as_str());
        let store = &shared.services.store;
        let (halt, waiting) =
            futures::try_join!(halt::standing(store), store.count::<Question>(pending))?;
        Ok(Self {
            person: person.ok_or_else(unknown)?,
            csrf: csrf.and_then(|Csrf(csrf)| csrf).unwrap_or_default(),
            halt,
            waiting,
            position,
        })
    }
}

/// Returns whether a request comes from somebody who wants to look.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT);
    accepted.is_some_and(|kinds| {
        kinds
            .to_str()
            .is_ok_and(|kinds| kinds.contains("text/html"))
    })
}

/// Sends a page.
pub(super) fn page(template: &impl Template) -> Result<Response, Problem> {
    let text = template.render().map_err(|error| Problem::failed(&error))?;
    Ok(([POLICY], Html(shown::visible(text))).into_response())
}

/// Goes on to a page after something was done.
pub(super) fn go(to: &str) -> Response {
    Redirect::to(to).into_response()
}
