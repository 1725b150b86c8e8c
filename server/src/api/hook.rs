//! Takes what Telegram brings, from whoever knows the secret that it was told, and says yes only once it is done.

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use ropewalk_runtime::Supervisor;
use serde_json::json;

use crate::guard::intake::{Bounds, intake};
use crate::guard::rate::Kind;
use crate::guard::{peer, refused, too_many};
use crate::hook::HookError;
use crate::problem::Problem;
use crate::shared::ServerState;

/// Where it is brought to.
const PATH: &str = "/hooks/telegram";
/// The header that holds the secret.
const SECRET: HeaderName = HeaderName::from_static("x-telegram-bot-api-secret-token");

/// Returns the address, where there is something that takes what is brought there.
pub(crate) fn router(shared: &ServerState, tasks: &Supervisor) -> Router<ServerState> {
    if shared.hook.is_none() {
        return Router::new();
    }
    let taken_in = (shared.clone(), tasks.clone(), Bounds::WORDS);
    Router::new()
        .route(PATH, post(take))
        .layer(from_fn_with_state(taken_in, intake))
        .layer(from_fn_with_state(shared.clone(), known))
}

/// Lets through who knows the secret: no browser does, so that no page has to prove anything.
async fn known(State(shared): State<ServerState>, request: Request, next: Next) -> Response {
    let (peer, now) = (peer(&request), shared.services.clock.now());
    let secret = request.headers().get(SECRET);
    let is_known = secret.is_some_and(|secret| {
        let hook = shared.hook.as_ref();
        hook.is_some_and(|hook| hook.admits(secret.as_bytes()))
    });
    if is_known {
        return next.run(request).await;
    }
    if let Err(rests) = shared.rates().count(Kind::Wrong, &peer, now) {
        return refused(too_many(), Some(rests));
    }
    let text = (
        "nobody but Telegram brings something here",
        "start `ropewalk up` again: it tells Telegram the secret",
    );
    Problem::new(StatusCode::UNAUTHORIZED, "credentials", text).into_response()
}

async fn take(State(shared): State<ServerState>, body: Bytes) -> Response {
    let Some(hook) = &shared.hook else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match hook.take(&body).await {
        Ok(()) => Json(json!({})).into_response(),
        Err(HookError::Unreadable(reason)) => {
            let next = "send an update as Telegram writes it";
            Problem::usage((reason, next)).into_response()
        }
        Err(HookError::Late(reason)) => {
            let text = (reason, "bring it again");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "slow", text).into_response()
        }
    }
}
