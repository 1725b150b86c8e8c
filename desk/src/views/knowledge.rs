//! What was learned, as people see it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use ropewalk_schemas::knowledge::{Injection, KnowledgeItem, KnowledgeKind};
use ropewalk_schemas::{Event, KnowledgeId, Payload, Subject};
use ropewalk_store::{EventFilter, Query, ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

use super::{pages, records};

/// How many items a page of them shows: each comes with its uses.
const LESSONS: u32 = 25;
/// The most items that are found by words.
const FOUND: u32 = 100;
/// The most uses that a list looks at.
const USES: u32 = 2_000;
/// The most steps of a life that are told, the newest ones.
const STEPS: u32 = 500;

/// An item with where it was used.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KnowledgeView {
    /// The item.
    #[serde(flatten)]
    pub item: KnowledgeItem,
    /// Where it was used.
    pub uses: Vec<Injection>,
    /// What became of it, the earliest first.
    pub history: Vec<LifeStep>,
}

/// A page of what was learned.
#[derive(Debug)]
pub struct KnowledgePage {
    /// The items, those that changed last or fit best first.
    pub items: Vec<KnowledgeItem>,
    /// How many pages there are.
    pub pages: u32,
}

/// A step in the life of an item.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LifeStep {
    /// When.
    pub at: DateTime<Utc>,
    /// What happened to it: `recorded`, `reinforced`, `weakened`, `promoted` or `deprecated`.
    pub step: &'static str,
    /// The confidence after it, where the step was about that.
    pub confidence: Option<f64>,
    /// Why, or where it was put, and who said so.
    pub why: String,
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

/// Lists a page of what fits `words`, of the best 100, or, where there are none, of what changed last, what is out of use
/// too; pages are numbered from 0.
pub async fn page(store: &Store, words: &str, number: u32) -> Result<KnowledgePage, ReadError> {
    if words.trim().is_empty() {
        let newest = Query::new().order_by("updated_at").descending();
        let all = store.count::<KnowledgeItem>(Query::new()).await?;
        return Ok(KnowledgePage {
            items: records(store.list(newest.page(number, LESSONS)).await?),
            pages: pages(all, LESSONS),
        });
    }
    let mut found = search(store, words, FOUND).await?;
    let all = found.len() as u64;
    let before = number.saturating_mul(LESSONS) as usize;
    found.drain(..before.min(found.len()));
    found.truncate(LESSONS as usize);
    Ok(KnowledgePage {
        items: found,
        pages: pages(all, LESSONS),
    })
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

/// Loads where an item was used, and what became of it.
pub async fn show(store: &Store, item: KnowledgeItem) -> Result<KnowledgeView, ReadError> {
    let of_item = Query::new()
        .equal("item", item.id.to_string())
        .order_by("at");
    let uses = records(store.list(of_item).await?);
    let history = history(store, item.id).await?;
    Ok(KnowledgeView {
        item,
        uses,
        history,
    })
}

async fn history(store: &Store, item: KnowledgeId) -> Result<Vec<LifeStep>, ReadError> {
    let about = EventFilter {
        subject: Some(Subject::knowledge(item)),
        limit: Some(STEPS),
        newest_first: true,
        ..EventFilter::default()
    };
    let events = store.events(&about).await?;
    let events = events.iter().rev();
    // What this program does not know is no step that it could tell.
    let known = events.filter_map(|stored| Event::try_from(&*stored.event).ok());
    Ok(known.filter_map(|event| step(&event)).collect())
}

/// Returns the step that an event tells of; none for one about something else.
fn step(event: &Event) -> Option<LifeStep> {
    let (step, confidence, why) = match &event.payload {
        Payload::KnowledgeRecorded(recorded) => {
            let of = recorded.idea_slug.as_ref();
            let why = of.map_or_else(String::new, |idea| format!("learned from `{idea}`"));
            ("recorded", Some(recorded.confidence), why)
        }
        Payload::KnowledgeReinforced(weighed) => {
            let is_less = weighed.to < weighed.from;
            let step = if is_less { "weakened" } else { "reinforced" };
            (step, Some(weighed.to), weighed.reason.clone())
        }
        Payload::KnowledgePromoted(promoted) => {
            let (file, by) = (&promoted.file, &promoted.approved_by);
            ("promoted", None, format!("put into `{file}`, as {by} said"))
        }
        Payload::KnowledgeDeprecated(gone) => {
            let why = format!("{}, as {} said", gone.reason, gone.by);
            ("deprecated", None, why)
        }
        _ => return None,
    };
    Some(LifeStep {
        at: event.time,
        step,
        confidence,
        why,
    })
}
