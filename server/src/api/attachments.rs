//! Files that are sent along with what is said about an idea.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use ropewalk_desk::attachments::{self, AttachmentReceipt, Upload};
use ropewalk_schemas::MessageId;
use ropewalk_schemas::Slug;
use ropewalk_schemas::idea::Attachment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::Here;
use super::ideas::session;
use crate::problem::Problem;
use crate::take::{Asker, Parameters, Path};

/// What a sender says who does not know what sort of file it is.
const ANY: &str = "application/octet-stream";

/// What is said of a file.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileDetails {
    /// What the file is called; nothing in it is trusted.
    name: String,
    /// What is said along with it.
    #[serde(default)]
    words: String,
}

/// What a file holds, byte for byte.
#[derive(JsonSchema)]
#[schemars(extend("format" = "binary"))]
pub(crate) struct FileContent(
    #[expect(dead_code, reason = "it stands for bytes in the description")] String,
);

/// A file that was kept.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FileReceipt {
    idea: Slug,
    message: MessageId,
    file: Attachment,
}

impl From<AttachmentReceipt> for FileReceipt {
    fn from(kept: AttachmentReceipt) -> Self {
        Self {
            idea: kept.said.idea,
            message: kept.said.message,
            file: kept.file,
        }
    }
}

/// Keeps a file with an idea and tells of it in the conversation. It has at most 20 MiB; its type is that of the request.
#[utoipa::path(post, path = "/api/ideation/sessions/{slug}/attachments", operation_id = "attach",
    params(("slug" = String, Path, description = "The name of the idea."), FileDetails),
    request_body(content = ref("#/components/schemas/FileContent"), content_type = "application/octet-stream"), responses(
    (status = 201, description = "It is kept.", body = ref("#/components/schemas/FileReceipt"))
))]
pub(crate) async fn attach(
    State(shared): Here,
    Path(slug): Path<String>,
    Parameters(details): Parameters<FileDetails>,
    Asker(person): Asker,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<(StatusCode, Json<FileReceipt>), Problem> {
    let session = session(&shared, &slug).await?;
    let sort = headers.get(header::CONTENT_TYPE);
    let sort = sort.and_then(|sort| sort.to_str().ok());
    let sent = Upload {
        name: &details.name,
        media_type: sort.filter(|sort| *sort != ANY),
        bytes: &bytes,
        words: &details.words,
        note: "",
    };
    let (context, state) = (shared.context(), &shared.state);
    let kept = attachments::attach(&context, state, session, &person.name, sent).await?;
    Ok((StatusCode::CREATED, Json(kept.into())))
}
