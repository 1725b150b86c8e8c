//! Questions: what waits for people, and what they answer.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use ropewalk_desk::questions;
use ropewalk_desk::views::question::{self, QuestionView};
use ropewalk_orchestrator::questions::{
    AcceptedAnswer as Accepted, AnswerInput as Reply, default_of, form as form_of,
};
use ropewalk_schemas::question::{ANSWER_BYTES, Question};
use ropewalk_schemas::{ChoiceId, QuestionId, Slug};
use ropewalk_store::Versioned;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Here, find, wanted};
use crate::page::{Page, Part};
use crate::problem::Problem;
use crate::shared::ServerState;
use crate::take::{Asker, Json as JsonBody, Parameters, Path, Wordless};

/// Where questions are listed.
const LIST: &str = "/api/questions";
/// Where the answers of requests come from.
const CHANNEL: &str = "api";

/// Which questions are wanted.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Which {
    /// Closed ones too.
    all: bool,
    /// Only those about this idea.
    idea: Option<String>,
    /// At most so many entries: 1 to 500, 100 where nothing is said.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// An answer: a choice by its id, or words where the question takes them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerRequest {
    /// The id of a choice.
    choice: Option<String>,
    /// The words: beside a choice that takes some, or alone where the question takes them; they name no choice. At most 8,192
    /// bytes.
    #[schemars(length(max = ANSWER_BYTES))]
    text: Option<String>,
}

/// What an answer has to be, and until when.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AnswerForm {
    /// The JSON schema of an answer.
    schema: Value,
    /// The choice that is taken when nobody answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<ChoiceId>,
    /// When it ends unanswered.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<DateTime<Utc>>,
}

/// What was accepted.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AcceptedAnswer {
    id: QuestionId,
    /// What was chosen; none where words alone are the answer.
    choice: Option<ChoiceId>,
    /// The words, else the label of the choice.
    answer: String,
}

impl From<Accepted> for AcceptedAnswer {
    fn from(done: Accepted) -> Self {
        Self {
            id: done.id,
            choice: done.choice,
            answer: done.answer,
        }
    }
}

/// Lists the questions, the most urgent first.
#[utoipa::path(get, path = "/api/questions", operation_id = "list_questions", params(Which), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfQuestionView"))
))]
pub(crate) async fn list(
    State(shared): Here,
    Parameters(which): Parameters<Which>,
) -> Result<Json<Page<QuestionView>>, Problem> {
    let idea: Option<Slug> = wanted("idea", which.idea.as_deref())?;
    let found = question::list(&shared.services.store, idea.as_ref(), which.all).await?;
    let part = Part {
        limit: which.limit,
        cursor: which.cursor,
    };
    part.of(found, |view| view.question.id.to_string())
        .map(Json)
}

/// Shows a question with its choices.
#[utoipa::path(get, path = "/api/questions/{id}", operation_id = "show_question",
    params(("id" = String, Path, description = "Its id.")), responses(
    (status = 200, description = "The question.", body = ref("#/components/schemas/QuestionView"))
))]
pub(crate) async fn show(
    State(shared): Here,
    Path(id): Path<String>,
) -> Result<Json<QuestionView>, Problem> {
    Ok(Json(found(&shared, &id).await?.into_inner().into()))
}

/// Shows which answers a question takes, as a JSON schema, and until when.
#[utoipa::path(get, path = "/api/questions/{id}/answer", operation_id = "show_answer_form",
    params(("id" = String, Path, description = "Its id.")), responses(
    (status = 200, description = "The form.", body = ref("#/components/schemas/AnswerForm"))
))]
pub(crate) async fn form(
    State(shared): Here,
    Path(id): Path<String>,
) -> Result<Json<AnswerForm>, Problem> {
    let question = found(&shared, &id).await?;
    Ok(Json(AnswerForm {
        schema: form_of(&question),
        default: default_of(&question),
        due_at: question.due_at,
    }))
}

/// Answers a question, once.
#[utoipa::path(post, path = "/api/questions/{id}/answer", operation_id = "answer_question",
    params(("id" = String, Path, description = "Its id.")),
    request_body(content = ref("#/components/schemas/AnswerRequest"), content_type = "application/json"), responses(
    (status = 200, description = "It was accepted.", body = ref("#/components/schemas/AcceptedAnswer"))
))]
pub(crate) async fn answer(
    State(shared): Here,
    Path(id): Path<String>,
    Asker(person): Asker,
    JsonBody(given): JsonBody<AnswerRequest>,
) -> Result<Json<AcceptedAnswer>, Problem> {
    let id = found(&shared, &id).await?.id;
    let choice: Option<ChoiceId> = wanted("choice", given.choice.as_deref())?;
    let reply = match (&choice, given.text.as_deref()) {
        (Some(choice), words) => Reply::Picked(choice, words),
        (None, text) => Reply::Words(text.unwrap_or_default()),
    };
    let done = questions::answer(&shared.context(), id, reply, &person, CHANNEL).await?;
    Ok(Json(done.into()))
}

/// Answers every question whose default neither blocks, approves, starts, merges, deletes nor spends.
#[utoipa::path(post, path = "/api/questions/all-defaults", operation_id = "answer_all_defaults", responses(
    (status = 200, description = "What was answered, all of it.", body = ref("#/components/schemas/PageOfAcceptedAnswer"))
))]
pub(crate) async fn answer_defaults(
    State(shared): Here,
    Asker(person): Asker,
    _: Wordless,
) -> Result<Json<Page<AcceptedAnswer>>, Problem> {
    let done = questions::answer_defaults(&shared.context(), &person, CHANNEL).await?;
    Ok(Json(Page {
        items: done.into_iter().map(AcceptedAnswer::from).collect(),
        next: None,
    }))
}

async fn found(shared: &ServerState, id: &str) -> Result<Versioned<Question>, Problem> {
    find(&shared.services.store, id, "question", LIST).await
}
