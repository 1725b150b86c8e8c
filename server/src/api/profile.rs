//! Who asks: logging in and out, and everybody who works on the project.

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use ropewalk_desk::people::Person;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Here;
use crate::guard::rate::Kind;
use crate::guard::{Csrf, cookie, peer, unknown};
use crate::login::proof;
use crate::page::{Page, Part};
use crate::pages;
use crate::problem::Problem;
use crate::take::{Asker, Parameters};

/// Who asks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Profile {
    /// The person.
    #[serde(flatten)]
    person: Person,
    /// What a page sends as `X-Csrf-Token` with whatever changes something; none for a token.
    csrf: Option<String>,
}

/// The code of a link.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Code {
    code: Option<String>,
    /// The page to go on to.
    back: Option<String>,
}

/// Logs in whoever opened a link, once.
pub(crate) async fn login(
    State(shared): Here,
    code: Result<Query<Code>, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let (peer, now) = (peer(&request), shared.services.clock.now());
    let headers = request.headers().clone();
    if shared.rates().rests(Kind::Wrong, &peer, now).is_some() {
        let text = ("too many links that do not work", "wait a while");
        return Err(Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too-many",
            text,
        ));
    }
    let Code { code, back } = code.map(|Query(code)| code).unwrap_or_default();
    // Who comes without a link has tried none.
    let code = code.ok_or_else(|| unknown("nobody is logged in"))?;
    let entered = shared.logins().enter(&code, now);
    let Some((login, secret)) = entered else {
        shared.rates().count(Kind::Wrong, &peer, now).ok();
        let text = (
            "this link was used or has grown old",
            "a link works once, and for a day: for another stop `ropewalk up` and start it again",
        );
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "credentials", text));
    };
    shared.keep_logins().await;
    let person = shared.people.named(login.person.as_str());
    let person = person.ok_or_else(|| Problem::failed(&"a link names nobody"))?;
    let profile = Profile {
        person,
        csrf: Some(proof(&secret)),
    };
    let set = shared.cookie_of(&secret);
    if pages::is_wanted(&headers) {
        let entered = pages::entered(profile.person.name.as_str(), back.as_deref())?;
        return Ok((set, entered).into_response());
    }
    Ok((set, Json(profile)).into_response())
}

/// Shows who asks.
#[utoipa::path(get, path = "/api/profile", operation_id = "show_profile", responses(
    (status = 200, description = "Who asks.", body = ref("#/components/schemas/Profile"))
))]
pub(crate) async fn show(
    Asker(person): Asker,
    Extension(Csrf(csrf)): Extension<Csrf>,
) -> Json<Profile> {
    Json(Profile { person, csrf })
}

/// Logs out.
#[utoipa::path(delete, path = "/api/profile", operation_id = "log_out", responses(
    (status = 204, description = "Nobody is logged in by this cookie any more.")
))]
pub(crate) async fn leave(State(shared): Here, headers: HeaderMap) -> StatusCode {
    if let Some(cookie) = cookie(&headers, &shared.cookie) {
        shared.leave(cookie).await;
    }
    StatusCode::NO_CONTENT
}

/// Lists who works on the project.
#[utoipa::path(get, path = "/api/people", operation_id = "list_people", params(Part), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfPerson"))
))]
pub(crate) async fn people(
    State(shared): Here,
    Parameters(part): Parameters<Part>,
) -> Result<Json<Page<Person>>, Problem> {
    let page = part.of(shared.people.all(), |person| person.name.to_string());
    page.map(Json)
}
