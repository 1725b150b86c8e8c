//! Answers what is asked again under the same key as it was answered before, for a day, and does it once.
//!
//! The key is claimed before anything happens. Where the program dies in between, nobody knows what came of it: the key
//! then says so instead of doing it twice. Where the store surely took nothing, the key is free again.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_desk::people::Person;
use ropewalk_schemas::ContentHash;
use ropewalk_schemas::keyed_request::{KeyedAnswer, KeyedRequest};
use ropewalk_store::{ChangeSet, CommitOrRead, Query, Store, retry_on_conflict};
use tracing::warn;

use crate::problem::{NoEffect, Problem};
use crate::shared::ServerState;

/// The header that names a key.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// Says that an answer was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// How long a key stands for what was asked under it.
const KEPT: TimeDelta = TimeDelta::hours(24);
/// The longest key.
const LONGEST: usize = 255;
/// The most bytes of an answer that is kept.
const MOST: usize = 1024 * 1024;
/// How many old keys go at once.
const AT_ONCE: u32 = 500;

/// What is asked under a key.
pub(crate) struct IdempotencyKey {
    key: String,
    hash: ContentHash,
}

/// What a key stands for already.
enum Claim {
    /// Nothing until now.
    New,
    /// This was asked, and answered so.
    Answered(KeyedAnswer),
    /// This was asked, and nobody knows what came of it.
    Open,
    /// Something else was asked.
    Other,
}

impl IdempotencyKey {
    /// Returns what `person` asks under the key of a header.
    pub(crate) fn new(
        person: &Person,
        key: &HeaderValue,
        method: &Method,
        uri: &Uri,
        body: &[u8],
    ) -> Result<Self, Problem> {
        let key = key.to_str().unwrap_or_default();
        if key.is_empty() || key.len() > LONGEST {
            let text = (
                format!("`Idempotency-Key` is 1 to {LONGEST} printable characters"),
                "send another",
            );
            return Err(Problem::usage(text));
        }
        let mut asked = format!("{method} {uri}\n").into_bytes();
        asked.extend_from_slice(body);
        Ok(Self {
            key: format!("{}/{}", person.name, ContentHash::of(key.as_bytes())),
            hash: ContentHash::of(&asked),
        })
    }
}

/// Lets `work` happen where its key is new; else says what came of it.
pub(crate) async fn once(
    shared: &ServerState,
    asked: IdempotencyKey,
    work: impl Future<Output = Response>,
) -> Response {
    let store = &shared.services.store;
    let now = shared.services.clock.now();
    match claim(store, &asked, now).await {
        Ok(Claim::New) => {}
        Ok(Claim::Answered(answer)) => return replay(answer),
        Ok(Claim::Open) => {
            let text = (
                "this was asked under the same key, and how it ended is not known",
                "look what happened, then use a new key",
            );
            return Problem::new(StatusCode::CONFLICT, "idempotency", text).into_response();
        }
        Ok(Claim::Other) => {
            let text = (
                "something else was asked under the same key",
                "use a new one",
            );
            return Problem::new(StatusCode::CONFLICT, "idempotency", text).into_response();
        }
        Err(problem) => return problem.into_response(),
    }
    let (parts, body) = work.await.into_parts();
    let Ok(bytes) = to_bytes(body, MOST).await else {
        return Problem::failed(&"an answer is too large to be kept").into_response();
    };
    if parts.extensions.get::<NoEffect>().is_some() {
        if let Err(error) = give_back(store, &asked).await {
            warn!("a key stays claimed under which nothing happened: {error}");
        }
    } else if !parts.status.is_server_error() {
        let answer = KeyedAnswer {
            status: parts.status.as_u16(),
            body: String::from_utf8_lossy(&bytes).into_owned(),
        };
        let mut changes = ChangeSet::new();
        changes.put(&record(&asked, Some(answer), now));
        if let Err(error) = store.commit(changes).await {
            return Problem::from(error).into_response();
        }
    }
    Response::from_parts(parts, Body::from(bytes))
}

async fn claim(
    store: &Store,
    asked: &IdempotencyKey,
    now: DateTime<Utc>,
) -> Result<Claim, Problem> {
    let claim = record(asked, None, now);
    let claimed = retry_on_conflict!(CommitOrRead, asked.key, {
        let mut changes = ChangeSet::new();
        match store.get::<KeyedRequest>(&asked.key).await? {
            Some(known) if known.at + KEPT > now => {
                let known = known.into_inner();
                return Ok(Some(match known.answer {
                    _ if known.hash != asked.hash => Claim::Other,
                    Some(answer) => Claim::Answered(answer),
                    None => Claim::Open,
                }));
            }
            Some(old) => changes.update(&old, &claim),
            None => changes.insert(&claim),
        };
        // Somebody may ask the same in this moment.
        store.commit(changes).await?;
        Ok(Some(Claim::New))
    });
    claimed.map_err(Problem::from)
}

/// Lets a key stand for nothing again.
async fn give_back(store: &Store, asked: &IdempotencyKey) -> Result<(), CommitOrRead> {
    if let Some(claim) = store.get::<KeyedRequest>(&asked.key).await? {
        let mut changes = ChangeSet::new();
        changes.delete(&claim);
        store.commit(changes).await?;
    }
    Ok(())
}

fn record(asked: &IdempotencyKey, answer: Option<KeyedAnswer>, at: DateTime<Utc>) -> KeyedRequest {
    KeyedRequest {
        key: asked.key.clone(),
        hash: asked.hash.clone(),
        answer,
        at,
    }
}

fn replay(answer: KeyedAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let is_problem = status.is_client_error();
    let kind = if is_problem {
        "application/problem+json"
    } else {
        "application/json"
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (REPLAYED, HeaderValue::from_static("true")),
    ];
    (status, headers, answer.body).into_response()
}

/// Forgets the keys that are older than a day.
pub(crate) async fn forget(store: &Store, now: DateTime<Utc>) -> Result<(), Problem> {
    let old = Query::new().at_most("at", now - KEPT).limit(AT_ONCE);
    let old = store.list::<KeyedRequest>(old).await?;
    let mut changes = ChangeSet::new();
    for row in &old {
        changes.delete(row);
    }
    if !changes.is_empty() {
        store.commit(changes).await?;
    }
    Ok(())
}
