//! Stands before every resource: who is meant, how often, who asks, and whether a page of somebody else made them.

pub(crate) mod hosts;
pub(crate) mod intake;
pub(crate) mod proxies;
pub(crate) mod rate;

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ropewalk_desk::people::Person;
use ropewalk_runtime::Supervisor;

use crate::login::proof;
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::traced::RequestSpan;
use rate::Kind;

/// The header in which a page proves that it is ours.
const CSRF: HeaderName = HeaderName::from_static("x-csrf-token");

/// What every answer says to browsers: nothing of it is a page, and nobody frames or keeps it.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
    ),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        header::REFERRER_POLICY,
        // Not `no-referrer`: with it a browser says of its own forms that they come from `null`.
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// Where a request comes from; behind a proxy that is believed, whom it asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// What a page has to send, where somebody is logged in by a cookie.
#[derive(Debug, Clone)]
pub(crate) struct Csrf(pub(crate) Option<String>);

/// Answers nobody who means another server, or asks too often; no crash of a handler is more than an answer.
pub(crate) async fn outer(
    State(shared): State<ServerState>,
    request: Request,
    next: Next,
) -> Response {
    let admitted = meant(&shared, &request).map_err(|problem| (problem, None));
    let admitted = admitted.and_then(|()| counted(&shared, &request));
    answer(&shared, admitted, request, next).await
}

/// Answers whoever does not ask too often, by whatever name: those who watch know an address alone.
pub(crate) async fn outer_admin(
    State(shared): State<ServerState>,
    request: Request,
    next: Next,
) -> Response {
    let admitted = counted(&shared, &request);
    answer(&shared, admitted, request, next).await
}

/// Why a request is not let through, and how long whoever asked rests.
pub(crate) type Refusal = (Problem, Option<Duration>);

async fn answer(
    shared: &ServerState,
    admitted: Result<(), Refusal>,
    request: Request,
    next: Next,
) -> Response {
    let asking = RequestSpan::begin(shared, &request);
    let outcome = match admitted {
        Ok(()) => Supervisor::guard("api", next.run(request))
            .await
            .map_err(|crash| Problem::failed(&crash)),
        Err((problem, rests)) => Ok(refused(problem, rests)),
    };
    let mut response = outcome.unwrap_or_else(IntoResponse::into_response);
    shared.counters.answered(response.status());
    if response.status() == StatusCode::PAYLOAD_TOO_LARGE {
        // What was not read ends the connection; who is not told sends the next request into it.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    if let Some(asking) = asking {
        asking.end(response.status(), shared);
    }
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}

/// Refuses who means another server, and what a page of another one asks.
fn meant(shared: &ServerState, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    if headers.get_all(header::HOST).iter().nth(1).is_some() {
        let text = ("the request names several hosts", "send one `Host`");
        return Err(Problem::usage(text));
    }
    // Where the request line names a server, that counts, and the header says nothing.
    let named = request.uri().authority().map(Authority::as_str);
    let host = named.or_else(|| text(headers, &header::HOST));
    let host = host.unwrap_or_default();
    if !shared.hosts.has(host) {
        let text = (
            "this server is not called so",
            "name its own address, or add the name to `server.hosts`",
        );
        return Err(Problem::new(StatusCode::FORBIDDEN, "host", text));
    }
    if headers.contains_key(header::ORIGIN)
        && !text(headers, &header::ORIGIN)
            .is_some_and(|origin| shared.hosts.has_origin(origin, host))
    {
        let text = (
            "a page of somebody else may not ask here",
            "open one of this server",
        );
        return Err(Problem::new(StatusCode::FORBIDDEN, "origin", text));
    }
    Ok(())
}

/// Counts a request to whom it comes from.
fn counted(shared: &ServerState, request: &Request) -> Result<(), Refusal> {
    let peer = peer(request);
    let now = shared.services.clock.now();
    let mut rates = shared.rates();
    let counted = rates.count(Kind::Request, &peer, now);
    counted.map_err(|rests| (too_many(), Some(rests)))
}

pub(crate) fn too_many() -> Problem {
    let text = ("too many requests", "wait as long as `Retry-After` says");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many", text)
}

pub(crate) fn refused(problem: Problem, rests: Option<Duration>) -> Response {
    let mut response = problem.into_response();
    if let Some(rests) = rests {
        // Nobody waits for no time at all, however little is missing.
        let seconds = (rests.as_secs() + u64::from(rests.subsec_nanos() > 0)).max(1);
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Lets through who is known, with the person in the request; a login proves in a header what it changes.
pub(crate) async fn known(
    State(shared): State<ServerState>,
    mut request: Request,
    next: Next,
) -> Response {
    match who(&shared, &request) {
        Ok((_, Csrf(Some(csrf)))) if !is_proved(&request, &csrf) => {
            let text =
                "the header `X-Csrf-Token` is missing or wrong; send what `GET /api/profile` gives";
            Problem::new(StatusCode::FORBIDDEN, "csrf", text).into_response()
        }
        Ok((person, csrf)) => {
            request.extensions_mut().insert(person);
            request.extensions_mut().insert(csrf);
            next.run(request).await
        }
        Err((problem, rests)) => refused(problem, rests),
    }
}

fn is_proved(request: &Request, csrf: &str) -> bool {
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD);
    is_safe || text(request.headers(), &CSRF) == Some(csrf)
}

/// Lets through who asks from this machine: what is open to everybody there is nobody else's business.
pub(crate) async fn here(request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>();
    if peer.is_some_and(|Peer(address)| address.is_loopback()) {
        return next.run(request).await;
    }
    let text = ("this is told on the machine itself alone", "ask there");
    Problem::new(StatusCode::FORBIDDEN, "forbidden", text).into_response()
}

/// Finds out who asks, and by what a page of theirs proves itself.
pub(crate) fn who(shared: &ServerState, request: &Request) -> Result<(Person, Csrf), Refusal> {
    let (headers, now) = (request.headers(), shared.services.clock.now());
    let peer = peer(request);
    rested(shared, &peer)?;
    if let Some(authorization) = headers.get(header::AUTHORIZATION) {
        let token = authorization
            .to_str()
            .ok()
            .and_then(|text| text.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token);
        let person = with_token(shared, &peer, token.unwrap_or_default())?;
        return Ok((person, Csrf(None)));
    }
    let Some(cookie) = cookie(headers, &shared.cookie) else {
        return Err((unknown("nobody is logged in"), None));
    };
    let login = shared.logins().find(cookie, now);
    let person = login.and_then(|login| shared.people.named(login.person.as_str()));
    let person = person.ok_or_else(|| wrong(shared, &peer, "this login has ended"))?;
    Ok((person, Csrf(Some(proof(cookie)))))
}

/// Finds whose token this is; who tries many waits.
pub(crate) fn with_token(shared: &ServerState, peer: &str, token: &str) -> Result<Person, Refusal> {
    rested(shared, peer)?;
    let found = shared.people.with_token(token.trim());
    found.map_err(|_| wrong(shared, peer, "nobody has this token"))
}

/// Refuses who has tried too much that is wrong.
fn rested(shared: &ServerState, peer: &str) -> Result<(), Refusal> {
    let now = shared.services.clock.now();
    match shared.rates().rests(Kind::Wrong, peer, now) {
        Some(rests) => Err((too_many(), Some(rests))),
        None => Ok(()),
    }
}

/// Counts what was wrong; the count that goes over the bound shows at the next request.
fn wrong(shared: &ServerState, peer: &str, what: &str) -> Refusal {
    let now = shared.services.clock.now();
    shared.rates().count(Kind::Wrong, peer, now).ok();
    (unknown(what), None)
}

pub(crate) fn unknown(what: &str) -> Problem {
    let text = (
        what,
        "open the link that `ropewalk up` shows, or send `Authorization: Bearer TOKEN`",
    );
    Problem::new(StatusCode::UNAUTHORIZED, "credentials", text)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Finds a cookie by its name.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).into_iter();
    let pairs = all.filter_map(|value| value.to_str().ok());
    pairs
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(known, value)| (known == name).then_some(value))
}

/// Returns whom a request is counted to.
pub(crate) fn peer(request: &Request) -> String {
    let peer = request.extensions().get::<Peer>();
    peer.map_or_else(String::new, |Peer(address)| address.to_string())
}
