//! What models used, as people see it.

use std::collections::BTreeMap;

use ropewalk_schemas::build::Build;
use ropewalk_schemas::model_call::{Usage, UsageBy};
use ropewalk_schemas::{BuildId, Slug};
use ropewalk_store::{Query, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

use super::AT_ONCE;

/// Which calls are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Those for an idea; none for all.
    pub idea: Option<Slug>,
    /// Those for a build; none for all.
    pub build: Option<BuildId>,
}

/// What the calls for one idea or build, of one model or day used.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct UsageRow {
    /// The sums.
    #[serde(flatten)]
    pub usage: Usage,
    /// Which part of the input came from the providers' caches, from 0 to 1; none where nothing was read.
    pub cache_hit_rate: Option<f64>,
    /// Millionths of a dollar; none when the price of a call is unknown.
    pub micro_usd: Option<u64>,
}

impl Scope {
    fn query(&self) -> Query {
        let mut query = Query::new();
        if let Some(idea) = &self.idea {
            query = query.equal("idea", idea.as_str());
        }
        if let Some(build) = self.build {
            query = query.equal("build", build.to_string());
        }
        query
    }
}

/// Sums what was used, one row for each `by`.
pub async fn list(store: &Store, by: UsageBy, scope: &Scope) -> Result<Vec<UsageRow>, ReadError> {
    let rows = store.usage(by, scope.query()).await?;
    Ok(rows.into_iter().map(UsageRow::from).collect())
}

/// Sums what was used as [`list`] does, for those alone that used the most tokens: at most `most`, and these in that order.
pub async fn largest(
    store: &Store,
    by: UsageBy,
    scope: &Scope,
    most: u32,
) -> Result<Vec<UsageRow>, ReadError> {
    let rows = store.usage(by, scope.query().limit(most)).await?;
    Ok(rows.into_iter().map(UsageRow::from).collect())
}

/// Says how the builds of `rows` are called: by their idea and revision; one that is there no more has no name.
pub async fn names_of_builds(
    store: &Store,
    rows: &[UsageRow],
) -> Result<BTreeMap<String, String>, ReadError> {
    let keys: Vec<&str> = rows
        .iter()
        .filter_map(|row| row.usage.key.as_deref())
        .collect();
    let mut names = BTreeMap::new();
    for part in keys.chunks(AT_ONCE) {
        let builds = store
            .list::<Build>(Query::new().one_of("key", part.iter().copied()))
            .await?;
        let told = builds.iter().map(|build| {
            let name = format!("{}, revision {}", build.idea, build.revision);
            (build.id.to_string(), name)
        });
        names.extend(told);
    }
    Ok(names)
}

impl From<Usage> for UsageRow {
    fn from(usage: Usage) -> Self {
        Self {
            cache_hit_rate: rate(usage.cache_read_tokens, usage.input_tokens),
            micro_usd: usage.spending().micro_usd(),
            usage,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a rate is for eyes, and token counts lie far below what a float tells apart"
)]
fn rate(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
