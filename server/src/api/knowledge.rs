//! What was learned: items with where they were used.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ropewalk_desk::knowledge::{
    LONGEST, LONGEST_TOPIC, MOST_NAMED, Remark, RemarkOutcome, remember,
};
use ropewalk_desk::views::knowledge::{self, KnowledgeView};
use ropewalk_schemas::KnowledgeId;
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind};
use ropewalk_schemas::task::Action;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Here, find, wanted};
use crate::page::{Page, Part};
use crate::problem::Problem;
use crate::take::{Asker, Json as JsonBody, Parameters, Path};

/// Where items are listed.
const LIST: &str = "/api/knowledge";

/// The most items that are found by words.
const FOUND: u32 = 500;
/// How sure something is that a person says, where they do not tell.
const SURE: f64 = 0.9;

/// Which items are wanted.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Which {
    /// Those that are out of use too; not where words are looked for.
    all: bool,
    /// Only those that hold these words, the best match first.
    words: Option<String>,
    /// At most so many entries: 1 to 500, 100 where nothing is said.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// Something worth remembering.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKnowledge {
    /// What it says, at most 2,000 characters.
    #[schemars(length(max = LONGEST))]
    content: String,
    /// What it is; a gotcha where nothing is said.
    kind: Option<KnowledgeKind>,
    /// The files it applies to, for example `src/*.rs`; none means all.
    #[serde(default)]
    #[schemars(length(max = MOST_NAMED))]
    globs: Vec<String>,
    /// The action it applies to; none means all.
    action: Option<Action>,
    /// What it is about.
    #[serde(default)]
    #[schemars(length(max = MOST_NAMED), inner(length(max = LONGEST_TOPIC)))]
    topics: Vec<String>,
    /// The idea it comes from.
    idea: Option<String>,
    /// How sure it is, 0 to 1; 0.9 where nothing is said.
    #[schemars(range(min = 0, max = 1))]
    confidence: Option<f64>,
}

/// What came of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KnowledgeReceipt {
    /// The item that now holds it.
    id: KnowledgeId,
    outcome: KnowledgeOutcome,
}

/// How it was taken.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum KnowledgeOutcome {
    /// It is a new item.
    Added,
    /// It was known already.
    SeenAgain,
    /// It took the place of a weaker item.
    Superseded,
}

/// Lists what was learned, the newest first.
#[utoipa::path(get, path = "/api/knowledge", operation_id = "list_knowledge", params(Which), responses(
    (status = 200, description = "A part of it.", body = ref("#/components/schemas/PageOfKnowledgeItem"))
))]
pub(crate) async fn list(
    State(shared): Here,
    Parameters(which): Parameters<Which>,
) -> Result<Json<Page<KnowledgeItem>>, Problem> {
    let store = &shared.services.store;
    let items = match &which.words {
        Some(words) => knowledge::search(store, words, FOUND).await?,
        None => knowledge::list(store, None, which.all).await?,
    };
    let part = Part {
        limit: which.limit,
        cursor: which.cursor,
    };
    part.of(items, |item| item.id.to_string()).map(Json)
}

/// Adds something worth remembering, on a person's word.
#[utoipa::path(post, path = "/api/knowledge", operation_id = "add_knowledge",
    request_body(content = ref("#/components/schemas/NewKnowledge"), content_type = "application/json"), responses(
    (status = 201, description = "It is remembered.", body = ref("#/components/schemas/KnowledgeReceipt"))
))]
pub(crate) async fn add(
    State(shared): Here,
    Asker(person): Asker,
    JsonBody(new): JsonBody<NewKnowledge>,
) -> Result<(StatusCode, Json<KnowledgeReceipt>), Problem> {
    let confidence = new.confidence.unwrap_or(SURE);
    if !(0.0..=1.0).contains(&confidence) {
        let text = (
            "`confidence` is a number from 0 to 1",
            "write for example 0.8, or leave it out",
        );
        return Err(Problem::usage(text));
    }
    let remark = Remark {
        kind: new.kind.unwrap_or(KnowledgeKind::Gotcha),
        content: new.content,
        globs: new.globs,
        action: new.action,
        topics: new.topics,
        idea: wanted("idea", new.idea.as_deref())?,
        confidence,
    };
    let remembered = remember(&shared.context(), remark, &person).await?;
    let receipt = KnowledgeReceipt {
        id: remembered.item(),
        outcome: match remembered {
            RemarkOutcome::Added(_) => KnowledgeOutcome::Added,
            RemarkOutcome::SeenAgain { .. } => KnowledgeOutcome::SeenAgain,
            RemarkOutcome::Superseded(_) => KnowledgeOutcome::Superseded,
        },
    };
    Ok((StatusCode::CREATED, Json(receipt)))
}

/// Shows an item with where it was used.
#[utoipa::path(get, path = "/api/knowledge/{id}", operation_id = "show_knowledge",
    params(("id" = String, Path, description = "Its id.")), responses(
    (status = 200, description = "The item.", body = ref("#/components/schemas/KnowledgeView"))
))]
pub(crate) async fn show(
    State(shared): Here,
    Path(id): Path<String>,
) -> Result<Json<KnowledgeView>, Problem> {
    let store = &shared.services.store;
    let item = find::<KnowledgeItem>(store, &id, "knowledge item", LIST).await?;
    Ok(Json(knowledge::show(store, item.into_inner()).await?))
}
