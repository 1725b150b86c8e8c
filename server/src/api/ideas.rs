//! Ideas: begun, talked about, ended and given up.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ropewalk_desk::ideas::{self, AcceptedMessage, Opening, StartedIdea};
use ropewalk_desk::length::SAID_BYTES;
use ropewalk_desk::views::Span;
use ropewalk_desk::views::idea::{self, IdeaFilter, IdeaRow, IdeaView};
use ropewalk_schemas::idea::IdeaKind;
use ropewalk_schemas::{MessageId, SessionId, Slug};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Here, wanted};
use crate::page::{Page, Part};
use crate::problem::Problem;
use crate::take::{Asker, Json as JsonBody, Parameters, Path, Wordless};

/// Where ideas are listed.
const LIST: &str = "/api/ideation/sessions";

/// Which ideas are wanted.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Which {
    /// Only those that have come so far.
    state: Option<String>,
    /// Only those that began at this time or later, as in RFC 3339.
    since: Option<String>,
    /// Only those that began before this time.
    until: Option<String>,
    /// At most so many entries: 1 to 500, 100 where nothing is said.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// An idea to begin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewIdea {
    /// The first message.
    text: String,
    /// What it is about; the first line of the message where nothing is said.
    title: Option<String>,
    /// Its name; made of the title where nothing is said.
    slug: Option<String>,
    /// What sort of idea it is; found out in the conversation where nothing is said.
    kind: Option<IdeaKind>,
    /// Whether the text is the whole idea, and nothing is asked.
    #[serde(default)]
    whole: bool,
}

/// An idea that has begun.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct IdeaReceipt {
    slug: Slug,
    session: SessionId,
    message: MessageId,
}

/// What a person says.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    /// The message.
    text: String,
}

/// A message that was taken.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MessageReceipt {
    idea: Slug,
    message: MessageId,
}

/// Why something is done.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reason {
    /// The reason, of at most 8,192 bytes.
    #[schemars(length(max = SAID_BYTES))]
    reason: Option<String>,
}

impl From<AcceptedMessage> for MessageReceipt {
    fn from(said: AcceptedMessage) -> Self {
        Self {
            idea: said.idea,
            message: said.message,
        }
    }
}

/// Lists the ideas, the oldest first.
#[utoipa::path(get, path = "/api/ideation/sessions", operation_id = "list_ideas", params(Which), responses(
    (status = 200, description = "A part of them.", body = ref("#/components/schemas/PageOfIdeaRow"))
))]
pub(crate) async fn list(
    State(shared): Here,
    Parameters(which): Parameters<Which>,
) -> Result<Json<Page<IdeaRow>>, Problem> {
    let filter = IdeaFilter {
        state: wanted("state", which.state.as_deref())?,
        begun: Span {
            since: wanted("since", which.since.as_deref())?,
            until: wanted("until", which.until.as_deref())?,
        },
        words: None,
    };
    let rows = idea::list(&shared.services.store, &filter).await?;
    let part = Part {
        limit: which.limit,
        cursor: which.cursor,
    };
    part.of(rows, |row| row.slug.to_string()).map(Json)
}

/// Begins an idea with its first message.
#[utoipa::path(post, path = "/api/ideation/sessions", operation_id = "begin_idea",
    request_body(content = ref("#/components/schemas/NewIdea"), content_type = "application/json"), responses(
    (status = 201, description = "It has begun.", body = ref("#/components/schemas/IdeaReceipt"))
))]
pub(crate) async fn begin(
    State(shared): Here,
    Asker(person): Asker,
    JsonBody(new): JsonBody<NewIdea>,
) -> Result<(StatusCode, Json<IdeaReceipt>), Problem> {
    let opening = Opening {
        user: person.name,
        title: new.title,
        text: new.text,
        slug: wanted("slug", new.slug.as_deref())?,
        kind: new.kind,
        whole: new.whole,
    };
    let StartedIdea {
        idea,
        session,
        message,
        ..
    } = ideas::start(&shared.context(), opening).await?;
    let begun = IdeaReceipt {
        slug: idea,
        session,
        message,
    };
    Ok((StatusCode::CREATED, Json(begun)))
}

/// Shows an idea with what was learned and said.
#[utoipa::path(get, path = "/api/ideation/sessions/{slug}", operation_id = "show_idea",
    params(("slug" = String, Path, description = "The name of the idea.")), responses(
    (status = 200, description = "The idea.", body = ref("#/components/schemas/IdeaView"))
))]
pub(crate) async fn show(
    State(shared): Here,
    Path(slug): Path<String>,
) -> Result<Json<IdeaView>, Problem> {
    let name = named(&slug)?;
    let folder = |idea: &_| (shared.folder)(idea);
    let view = idea::show(&shared.services.store, &name, folder).await?;
    view.map(Json)
        .ok_or_else(|| Problem::unknown("idea", &slug, LIST))
}

/// Says something to an idea.
#[utoipa::path(post, path = "/api/ideation/sessions/{slug}/messages", operation_id = "say",
    params(("slug" = String, Path, description = "The name of the idea.")),
    request_body(content = ref("#/components/schemas/Words"), content_type = "application/json"), responses(
    (status = 201, description = "It was taken; what is answered comes as events.", body = ref("#/components/schemas/MessageReceipt"))
))]
pub(crate) async fn say(
    State(shared): Here,
    Path(slug): Path<String>,
    Asker(person): Asker,
    JsonBody(words): JsonBody<Words>,
) -> Result<(StatusCode, Json<MessageReceipt>), Problem> {
    let session = session(&shared, &slug).await?;
    let said = ideas::say(&shared.context(), session, &person.name, &words.text).await?;
    Ok((StatusCode::CREATED, Json(said.into())))
}

/// Ends the conversation about an idea: its brief is written of what is known.
#[utoipa::path(post, path = "/api/ideation/sessions/{slug}/done", operation_id = "finish_idea",
    params(("slug" = String, Path, description = "The name of the idea.")), responses(
    (status = 201, description = "It was taken; `ideation.completed` follows.", body = ref("#/components/schemas/MessageReceipt"))
))]
pub(crate) async fn finish(
    State(shared): Here,
    Path(slug): Path<String>,
    Asker(person): Asker,
    _: Wordless,
) -> Result<(StatusCode, Json<MessageReceipt>), Problem> {
    session(&shared, &slug).await?;
    let said = ideas::finish(&shared.context(), &named(&slug)?, &person.name).await?;
    Ok((StatusCode::CREATED, Json(said.into())))
}

/// Gives an idea up.
#[utoipa::path(post, path = "/api/ideation/sessions/{slug}/abandon", operation_id = "abandon_idea",
    params(("slug" = String, Path, description = "The name of the idea.")),
    request_body(content = ref("#/components/schemas/Reason"), content_type = "application/json"), responses(
    (status = 204, description = "What of it is not landed ends.")
))]
pub(crate) async fn abandon(
    State(shared): Here,
    Path(slug): Path<String>,
    Asker(person): Asker,
    JsonBody(why): JsonBody<Reason>,
) -> Result<StatusCode, Problem> {
    session(&shared, &slug).await?;
    ideas::abandon(&shared.context(), &named(&slug)?, &person, why.reason).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn named(slug: &str) -> Result<Slug, Problem> {
    Slug::parse(slug).map_err(|_| Problem::unknown("idea", slug, LIST))
}

/// Finds the session of an idea, by the name of the idea.
pub(super) async fn session(
    shared: &crate::shared::ServerState,
    slug: &str,
) -> Result<SessionId, Problem> {
    let store = &shared.services.store;
    let found = store
        .get::<ropewalk_schemas::idea::Idea>(named(slug)?.as_str())
        .await?;
    let found = found.ok_or_else(|| Problem::unknown("idea", slug, LIST))?;
    Ok(found.session)
}
