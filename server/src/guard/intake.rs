//! Takes in the body of a request, and lets what changes something run to its end.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ropewalk_desk::people::Person;
use tokio::sync::oneshot;

use crate::idempotency;
use crate::problem::Problem;
use crate::shared::ServerState;
use ropewalk_runtime::Supervisor;

/// The most bytes of a body.
const MOST: usize = 1024 * 1024;
/// How long a body may take to come.
const COMES: Duration = Duration::from_secs(10);
/// How long an answer may take.
const ANSWERS: Duration = Duration::from_secs(30);

/// Reads the body, then lets the request be handled; a stream sets its own pace.
pub(crate) async fn intake(
    State((shared, tasks)): State<(ServerState, Supervisor)>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = match read(&parts.headers, body).await {
        Ok(bytes) => bytes,
        Err(problem) => return problem.into_response(),
    };
    let is_safe = matches!(parts.method, Method::GET | Method::HEAD);
    let request = Request::from_parts(parts, Body::from(bytes.clone()));
    if is_safe {
        return next.run(request).await;
    }
    // Whoever hangs up stops nothing that has begun: a later try with the same key finds what came of it.
    let (send, done) = oneshot::channel();
    tasks.spawn("api.request", async move {
        drop(send.send(handled(&shared, request, bytes, next).await));
    });
    match tokio::time::timeout(ANSWERS, done).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => Problem::failed(&"the request was dropped").into_response(),
        Err(_) => {
            let text = (
                "the answer takes too long, and what was asked may still happen",
                "look before you ask again",
            );
            Problem::new(StatusCode::GATEWAY_TIMEOUT, "slow", text).into_response()
        }
    }
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

async fn read(headers: &axum::http::HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let announced = headers.get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > MOST) {
        return Err(too_large());
    }
    match tokio::time::timeout(COMES, to_bytes(body, MOST)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        // A body that breaks off has nobody left to be told.
        Ok(Err(_)) => Err(too_large()),
        Err(_) => {
            let text = ("the body did not come in time", "send it at once");
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "slow", text))
        }
    }
}

fn too_large() -> Problem {
    let text = (format!("a body has at most {MOST} bytes"), "send less");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", text)
}
