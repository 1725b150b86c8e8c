//! Lists the resources, and what stands before them.

pub(crate) mod attachments;
pub(crate) mod build_tasks;
pub(crate) mod builds;
pub(crate) mod dead_letters;
pub(crate) mod events;
pub(crate) mod halt;
mod hook;
pub(crate) mod ideas;
pub(crate) mod knowledge;
pub(crate) mod lines;
pub(crate) mod profile;
pub(crate) mod questions;
pub(crate) mod reviews;
pub(crate) mod running;
pub(crate) mod specifications;
pub(crate) mod transcript;
pub(crate) mod usage;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use ropewalk_runtime::Supervisor;
use ropewalk_store::{Record, Store, Versioned};
use std::sync::LazyLock;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::guard::intake::{Bounds, intake};
use crate::guard::{here, known, outer, outer_admin};
use crate::page::wanted;
use crate::problem::{Problem, unreadable};
use crate::shared::ServerState;
use crate::{document, health, pages};

/// Returns everything that is served.
pub(crate) fn router(shared: &ServerState, tasks: &Supervisor) -> Router {
    let (resources, _) = resources().split_for_parts();
    let (files, _) = files().split_for_parts();
    let taken_in = |bounds| from_fn_with_state((shared.clone(), tasks.clone(), bounds), intake);
    let guarded = resources
        .route("/api/openapi.json", get(described))
        .layer(taken_in(Bounds::WORDS))
        .merge(
            files
                // Nothing comes past the intake that is larger.
                .layer(DefaultBodyLimit::disable())
                .layer(taken_in(Bounds::FILE)),
        )
        .layer(from_fn_with_state(shared.clone(), known));
    let open = told().layer(from_fn(here));
    Router::new()
        .merge(guarded)
        .merge(open)
        .merge(pages::router(shared, tasks))
        .merge(hook::router(shared, tasks))
        .route("/login", get(profile::login).post(pages::enter))
        .fallback(nowhere)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn_with_state(shared.clone(), outer))
        .layer(from_fn_with_state(shared.clone(), pages::in_words))
        .with_state(shared.clone())
}

/// Returns what is told to whoever comes where nothing else is.
pub(crate) fn admin_router(shared: &ServerState) -> Router {
    told()
        .fallback(nothing_else)
        .layer(from_fn_with_state(shared.clone(), outer_admin))
        .with_state(shared.clone())
}

/// Returns what says how the program does.
fn told() -> Router<ServerState> {
    Router::new()
        .route("/livez", get(health::livez))
        .route("/healthz", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
}

/// What describes the resources. Made when it is asked for first: people seldom do, and it is a large part of what an idle
/// program would hold.
static DESCRIPTION: LazyLock<Bytes> = LazyLock::new(|| {
    let (_, mut paths) = resources().split_for_parts();
    paths.merge(files().split_for_parts().1);
    document::complete(&paths).to_string().into()
});

async fn described() -> impl IntoResponse {
    let json = [(CONTENT_TYPE, "application/json")];
    (json, DESCRIPTION.clone())
}

async fn nothing_else() -> Response {
    let next = "`/livez`, `/readyz` and `/metrics` are all that there is at this address";
    let text = ("there is nothing here", next);
    Problem::new(StatusCode::NOT_FOUND, "unknown-path", text).into_response()
}

fn resources() -> OpenApiRouter<ServerState> {
    OpenApiRouter::with_openapi(document::base())
        .routes(routes!(profile::show, profile::leave))
        .routes(routes!(profile::people))
        .routes(routes!(ideas::list, ideas::begin))
        .routes(routes!(ideas::show))
        .routes(routes!(ideas::say))
        .routes(routes!(ideas::finish))
        .routes(routes!(ideas::abandon))
        .routes(routes!(specifications::list))
        .routes(routes!(specifications::generate))
        .routes(routes!(specifications::show))
        .routes(routes!(specifications::compare))
        .routes(routes!(specifications::approve))
        .routes(routes!(specifications::revise))
        .routes(routes!(specifications::reject))
        .routes(routes!(lines::of_specification))
        .routes(routes!(lines::on_specification))
        .routes(routes!(builds::list))
        .routes(routes!(builds::show))
        .routes(routes!(builds::pause))
        .routes(routes!(builds::resume))
        .routes(routes!(builds::stop))
        .routes(routes!(lines::of_build))
        .routes(routes!(lines::on_build))
        .routes(routes!(build_tasks::show))
        .routes(routes!(build_tasks::retry))
        .routes(routes!(build_tasks::tell))
        .routes(routes!(build_tasks::rank))
        .routes(routes!(build_tasks::preview))
        .routes(routes!(build_tasks::land))
        .routes(routes!(transcript::show))
        .routes(routes!(usage::list))
        .routes(routes!(questions::list))
        .routes(routes!(questions::answer_defaults))
        .routes(routes!(questions::show))
        .routes(routes!(questions::form, questions::answer))
        .routes(routes!(events::list))
        .routes(routes!(events::replay))
        .routes(routes!(events::show))
        .routes(routes!(running::waits))
        .routes(routes!(running::graph))
        .routes(routes!(running::notices))
        .routes(routes!(running::locks))
        .routes(routes!(running::agents))
        .routes(routes!(running::doctor))
        .routes(routes!(running::alerts))
        .routes(routes!(running::acknowledge))
        .routes(routes!(halt::show, halt::stop, halt::lift))
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::show))
        .routes(routes!(dead_letters::replay))
        .routes(routes!(dead_letters::discard))
        .routes(routes!(knowledge::list, knowledge::add))
        .routes(routes!(knowledge::show))
        .routes(routes!(reviews::list))
        .routes(routes!(reviews::show))
}

/// What takes files.
fn files() -> OpenApiRouter<ServerState> {
    OpenApiRouter::new().routes(routes!(attachments::attach))
}

async fn nowhere() -> Response {
    let text = (
        "there is nothing here",
        "`GET /api/openapi.json` shows what there is",
    );
    Problem::new(StatusCode::NOT_FOUND, "unknown-path", text).into_response()
}

async fn no_such_method() -> Response {
    let text = (
        "this cannot be done here",
        "`GET /api/openapi.json` shows what can",
    );
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "unknown-path", text).into_response()
}

/// Finds the row that an id of a path names; one that is no id names nothing either.
async fn find<R: Record>(
    store: &Store,
    id: &str,
    noun: &str,
    list: &str,
) -> Result<Versioned<R>, Problem> {
    let unknown = || Problem::unknown(noun, id, list);
    let whole = id.parse::<uuid::Uuid>().map_err(|_| unknown())?;
    let found = store.get::<R>(&whole.to_string()).await?;
    found.ok_or_else(unknown)
}

/// What every handler takes.
type Here = State<ServerState>;

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::take;

    /// Reads a body as one type; what is refused is said in words.
    fn is<T: DeserializeOwned>(body: &[u8]) -> bool {
        match take::parse::<T>(body) {
            Ok(_) => true,
            Err(refused) => {
                assert!(!refused.words().message.is_empty());
                false
            }
        }
    }

    /// Returns whether a text in it, or the name of a field, holds U+0000; that it is spelled out is harmless.
    fn holds_zero(value: &serde_json::Value) -> bool {
        match value {
            serde_json::Value::String(text) => text.contains('\0'),
            serde_json::Value::Array(items) => items.iter().any(holds_zero),
            serde_json::Value::Object(fields) => {
                let mut fields = fields.iter();
                fields.any(|(name, value)| name.contains('\0') || holds_zero(value))
            }
            _ => false,
        }
    }

    /// A body is what each resource takes, or is refused; what is taken is JSON in which no text holds U+0000.
    #[test]
    fn fuzz_api_bodies() {
        type Taker = fn(&[u8]) -> bool;
        let kinds: [(&str, Taker); 16] = [
            ("retry", is::<build_tasks::Retry>),
            ("tell", is::<build_tasks::Tell>),
            ("rank", is::<build_tasks::Rank>),
            ("land", is::<build_tasks::Land>),
            ("why", is::<builds::Why>),
            ("replay", is::<events::Replay>),
            ("halt", is::<halt::StopAll>),
            ("idea", is::<ideas::NewIdea>),
            ("words", is::<ideas::Words>),
            ("reason", is::<ideas::Reason>),
            ("lesson", is::<knowledge::NewKnowledge>),
            ("comments", is::<lines::CommentsRequest>),
            ("answer", is::<questions::AnswerRequest>),
            ("specification", is::<specifications::SpecificationRequest>),
            ("approval", is::<specifications::ApprovalRequest>),
            ("feedback", is::<specifications::Feedback>),
        ];
        let check = |body: &[u8]| {
            let taken = kinds.iter().filter(|(_, takes)| takes(body));
            let taken: Vec<&str> = taken.map(|(name, _)| *name).collect();
            let value = serde_json::from_slice::<serde_json::Value>(body);
            if !taken.is_empty() {
                let value = value.as_ref().unwrap();
                assert!(value.is_object(), "{value}");
                assert!(!holds_zero(value), "{value}");
            }
            format!("{} {taken:?}", value.is_ok())
        };
        let words = [
            "\"text\":",
            "\"task\":",
            "\"reason\":",
            "\"hash\":",
            "\"priority\":",
            "\"choice\":",
            "null",
            "\\u0000",
            "\\ud800",
            "1e400",
            "[",
            "]",
            "{",
            "}",
            ",",
            "\"",
        ];
        ropewalk_tests::fuzz::Target {
            name: "api-bodies",
            words: &words,
            check: &check,
        }
        .run();
    }
}
