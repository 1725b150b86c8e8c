//! What models used and cost.

use axum::Json;
use axum::extract::State;
use ropewalk_desk::views::usage::{self, Scope, UsageRow};
use ropewalk_schemas::model_call::UsageBy;
use serde::Deserialize;

use super::{Here, wanted};
use crate::page::{Page, Part};
use crate::problem::Problem;
use crate::take::Parameters;

/// What is counted.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Which {
    /// What the rows are for: `idea`, `build`, `model` or `day`; `model` where nothing is said.
    by: Option<String>,
    /// Only what this idea used.
    idea: Option<String>,
    /// Only what this build used.
    build: Option<String>,
    /// At most so many entries: 1 to 500, 100 where nothing is said.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

impl Which {
    fn by(&self) -> Result<UsageBy, Problem> {
        match self.by.as_deref() {
            Some("idea") => Ok(UsageBy::Idea),
            Some("build") => Ok(UsageBy::Build),
            Some("model") | None => Ok(UsageBy::Model),
            Some("day") => Ok(UsageBy::Day),
            Some(_) => Err(Problem::usage((
                "`by` names nothing that use is summed by",
                "write `idea`, `build`, `model` or `day`",
            ))),
        }
    }

    fn scope(&self) -> Result<Scope, Problem> {
        Ok(Scope {
            idea: wanted("idea", self.idea.as_deref())?,
            build: wanted("build", self.build.as_deref())?,
        })
    }
}

/// Sums what models used, one row for each idea, build, model or day.
#[utoipa::path(get, path = "/api/usage", operation_id = "list_usage", params(Which), responses(
    (status = 200, description = "A part of the sums.", body = ref("#/components/schemas/PageOfUsageRow"))
))]
pub(crate) async fn list(
    State(shared): Here,
    Parameters(which): Parameters<Which>,
) -> Result<Json<Page<UsageRow>>, Problem> {
    let rows = usage::list(&shared.services.store, which.by()?, &which.scope()?).await?;
    let part = Part {
        limit: which.limit,
        cursor: which.cursor,
    };
    let key = |row: &UsageRow| row.usage.key.clone().unwrap_or_default();
    part.of(rows, key).map(Json)
}
