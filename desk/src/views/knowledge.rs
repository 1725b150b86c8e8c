//! What was learned, as people see it.

use std::collections::BTreeMap;

use ropewalk_schemas::KnowledgeId;
use ropewalk_schemas::knowledge::{Injection, KnowledgeItem, KnowledgeKind};
use ropewalk_store::{Query, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

use super::records;

/// The most uses that a list looks at.
const USES: u32 = 2_000;

/// An item with where it was used.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KnowledgeView {
    /// The item.
    #[serde(flatten)]
    pub item: KnowledgeItem,
    /// Where it was used.
    pub uses: Vec<Injection>,
}

/// Lists what was learned, the newest first; `all` shows what is out of use too.
pub async fn list(
    store: &Store,
    kind: Option<KnowledgeKind>,
    all: bool,
) -> Result<Vec<KnowledgeItem>, ReadError> {
    let newest = Query::new().order_by("updated_at").descending();
    let mut items = records(store.list::<KnowledgeItem>(newest).await?);
    items.retain(|item| all || item.is_usable());
    items.retain(|item| kind.is_none_or(|kind| item.kind == kind));
    Ok(items)
}

/// Lists what changed last, at most `limit` of it, what is out of use too.
pub async fn newest(store: &Store, limit: u32) -> Result<Vec<KnowledgeItem>, ReadError> {
    let newest = Query::new().order_by("updated_at").descending();
    Ok(records(store.list(newest.limit(limit)).await?))
}

/// Loads where each of `items` was used, the earliest first; of all uses together the newest 2,000.
pub async fn uses(
    store: &Store,
    items: &[KnowledgeItem],
) -> Result<BTreeMap<KnowledgeId, Vec<Injection>>, ReadError> {
    let of_items = Query::new().one_of("item", items.iter().map(|item| item.id));
    let newest = of_items.order_by("at").descending().limit(USES);
    let mut found: BTreeMap<KnowledgeId, Vec<Injection>> = BTreeMap::new();
    for usage in records(store.list::<Injection>(newest).await?) {
        found.entry(usage.item).or_default().push(usage);
    }
    for uses in found.values_mut() {
        uses.reverse();
    }
    Ok(found)
}

/// Searches what was learned for words, the best match first, at most `limit` of it.
pub async fn search(
    store: &Store,
    words: &str,
    limit: u32,
) -> Result<Vec<KnowledgeItem>, ReadError> {
    Ok(records(
        ropewalk_knowledge::search(store, words, limit).await?,
    ))
}

/// Loads where an item was used.
pub async fn show(store: &Store, item: KnowledgeItem) -> Result<KnowledgeView, ReadError> {
    let of_item = Query::new()
        .equal("item", item.id.to_string())
        .order_by("at");
    let uses = records(store.list(of_item).await?);
    Ok(KnowledgeView { item, uses })
}
