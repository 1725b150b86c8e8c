//! Takes in the body of a request, and lets what changes something run to its end.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ropewalk_desk::attachments::FILE_BYTES;
use ropewalk_desk::people::Person;
use ropewalk_runtime::{Supervisor, TaskFailure};
use ropewalk_schemas::amount::size;
use tokio::sync::oneshot;

use crate::idempotency;
use crate::problem::Problem;
use crate::shared::ServerState;

/// What a request is called where it crashes.
const NAME: &str = "api.request";

/// What a body may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    bytes: u64,
    /// How long it may take to come.
    comes: Duration,
}

impl Bounds {
    /// Of what is said.
    pub(crate) const WORDS: Self = Self {
        bytes: 1024 * 1024,
        comes: Duration::from_secs(10),
    };
    /// Of a form of somebody whom nobody knows: as long as what people write, and no longer.
    pub(crate) const STRANGER: Self = Self {
        bytes: 256 * 1024,
        comes: Duration::from_secs(10),
    };
    /// Of a file, which may come from a phone.
    pub(crate) const FILE: Self = Self {
        bytes: FILE_BYTES,
        comes: Duration::from_mins(2),
    };
}

/// Reads the body, then lets the request be handled; a stream sets its own pace.
pub(crate) async fn intake(
    State((shared, tasks, bounds)): State<(ServerState, Supervisor, Bounds)>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let come = read(&parts.headers, body, bounds);
    let come = tokio::select! {
        biased;
        come = come => come,
        // Nothing has begun by then.
        () = shared.stop.cancelled() => Err(stopping()),
    };
    let bytes = match come {
        Ok(bytes) => bytes,
        Err(problem) => return problem.into_response(),
    };
    let is_safe = matches!(parts.method, Method::GET | Method::HEAD);
    let request = Request::from_parts(parts, Body::from(bytes.clone()));
    let answers = shared.capacity.answers;
    if is_safe {
        return in_time(answers, next.run(request)).await;
    }
    let work = async move { handled(&shared, request, bytes, next).await };
    to_its_end(&tasks, answers, work).await
}

/// Lets `work` go on for so long: what only looks may be given up, and a stream has begun by then.
async fn in_time(answers: Duration, work: impl Future<Output = Response>) -> Response {
    match tokio::time::timeout(answers, Supervisor::guard(NAME, work)).await {
        Ok(Ok(response)) => response,
        Ok(Err(crash)) => crashed(&crash),
        Err(_) => slow(("the answer takes too long", "ask later, or for less")),
    }
}

/// Lets `work` run to its end, whether or not somebody waits for it. Whoever hangs up stops nothing that has begun: a later
/// try with the same key finds what came of it. One that crashes ends itself alone.
async fn to_its_end(
    tasks: &Supervisor,
    answers: Duration,
    work: impl Future<Output = Response> + Send + 'static,
) -> Response {
    let (send, done) = oneshot::channel();
    tasks.spawn(NAME, async move {
        drop(send.send(Supervisor::guard(NAME, work).await));
    });
    match tokio::time::timeout(answers, done).await {
        Ok(Ok(Ok(response))) => response,
        Ok(Ok(Err(crash))) => crashed(&crash),
        Ok(Err(_)) => Problem::failed(&"the request was dropped").into_response(),
        Err(_) => slow((
            "the answer takes too long, and what was asked may still happen",
            "look before you ask again",
        )),
    }
}

fn slow(text: (&str, &str)) -> Response {
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "slow", text).into_response()
}

fn crashed(crash: &TaskFailure) -> Response {
    Problem::failed(crash).into_response()
}

async fn handled(shared: &ServerState, request: Request, bytes: Bytes, next: Next) -> Response {
    let key = request.headers().get(idempotency::HEADER).cloned();
    let (Some(key), Some(person)) = (key, request.extensions().get::<Person>().cloned()) else {
        return next.run(request).await;
    };
    let asked =
        idempotency::IdempotencyKey::new(&person, &key, request.method(), request.uri(), &bytes);
    match asked {
        Ok(asked) => idempotency::once(shared, asked, next.run(request)).await,
        Err(problem) => problem.into_response(),
    }
}

/// Reads a body that keeps within its bounds.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    bounds: Bounds,
) -> Result<Bytes, Problem> {
    let announced = headers.get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let too_large = || too_large(bounds.bytes);
    if announced.is_some_and(|length| length > bounds.bytes) {
        return Err(too_large());
    }
    let most = usize::try_from(bounds.bytes).unwrap_or(usize::MAX);
    match tokio::time::timeout(bounds.comes, to_bytes(body, most)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        // A body that breaks off has nobody left to be told.
        Ok(Err(_)) => Err(too_large()),
        Err(_) => {
            let text = ("the body did not come in time", "send it at once");
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "slow", text))
        }
    }
}

fn stopping() -> Problem {
    let text = (
        "the server stops, and the body had not come",
        "send it again once it is back",
    );
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", text)
}

fn too_large(most: u64) -> Problem {
    let text = (
        format!("what is sent has at most {}", size(most)),
        "send less",
    );
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", text)
}

#[cfg(test)]
mod tests {
    use ropewalk_runtime::Shutdown;

    use super::*;

    #[tokio::test]
    async fn a_body_that_announces_more_than_may_come_is_refused_before_it_comes() {
        for bounds in [Bounds::WORDS, Bounds::FILE] {
            for (more, refused) in [(0, false), (1, true)] {
                let headers = [(header::CONTENT_LENGTH, (bounds.bytes + more).into())];
                let came = read(&HeaderMap::from_iter(headers), Body::empty(), bounds).await;
                assert_eq!(came.is_err(), refused, "{bounds:?} and {more}");
            }
        }
    }

    #[tokio::test]
    async fn what_never_ends_is_answered_in_time_and_what_changes_something_goes_on() {
        let tasks = Supervisor::new(Shutdown::new());
        let answers = Duration::from_millis(1);
        let looks = in_time(answers, std::future::pending()).await;
        assert_eq!(looks.status(), StatusCode::GATEWAY_TIMEOUT);
        let (send, done) = oneshot::channel();
        let changes = to_its_end(&tasks, answers, async move {
            tokio::time::sleep(answers * 50).await;
            send.send(()).unwrap();
            StatusCode::NO_CONTENT.into_response()
        });
        assert_eq!(changes.await.status(), StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(done.await, Ok(()));
        assert!(tasks.drain(Duration::from_secs(20)).await.is_ok());
    }

    #[tokio::test]
    async fn a_request_that_crashes_ends_itself_alone() {
        let tasks = Supervisor::new(Shutdown::new());
        let answers = Duration::from_secs(20);
        let answer = to_its_end(&tasks, answers, async { panic!("out of rope") }).await;
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!tasks.shutdown().soft().is_cancelled());
        let done = async { StatusCode::NO_CONTENT.into_response() };
        let answer = to_its_end(&tasks, answers, done).await;
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        let late = tasks.drain(Duration::from_secs(20)).await;
        assert_eq!(late, Ok(Vec::new()));
    }
}
