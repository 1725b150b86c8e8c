//! Finds what applies.

use ropewalk_schemas::RepoPath;
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::task::Action;
use ropewalk_store::{Query, ReadError, Store, Versioned};

use crate::applies::fit;

/// The most items that are looked at; the latest are.
const LOOKED_AT: u32 = 5_000;

/// Returns the gotchas for a task: what names the file first, then what matches it, then what is general; the surest
/// first, at most `limit`.
pub async fn retrieve(
    store: &Store,
    file: &RepoPath,
    action: Action,
    minimum: f64,
    limit: usize,
) -> Result<Vec<Versioned<KnowledgeItem>>, ReadError> {
    let items = usable(store, "gotcha").await?;
    Ok(ranked(items, file, action, minimum, limit))
}

/// Returns the patterns for topics, the surest first, at most `limit`.
pub async fn patterns(
    store: &Store,
    topics: &[String],
    minimum: f64,
    limit: usize,
) -> Result<Vec<Versioned<KnowledgeItem>>, ReadError> {
    let wanted: Vec<String> = topics.iter().map(|topic| topic.to_lowercase()).collect();
    let mut items = usable(store, "pattern").await?;
    items.retain(|item| {
        item.record.confidence >= minimum
            && item.record.may_be_told()
            && item
                .record
                .topics
                .iter()
                .any(|topic| wanted.contains(topic))
    });
    items.sort_by(|a, b| surest_first(&a.record, &b.record));
    items.truncate(limit);
    Ok(items)
}

/// Searches all kinds of items that may be used for words, the best match first.
pub async fn search(
    store: &Store,
    text: &str,
    limit: u32,
) -> Result<Vec<Versioned<KnowledgeItem>>, ReadError> {
    let mut items = store.search_knowledge(text, limit).await?;
    items.retain(|item| item.record.is_usable());
    Ok(items)
}

async fn usable(store: &Store, kind: &str) -> Result<Vec<Versioned<KnowledgeItem>>, ReadError> {
    let states = [
        KnowledgeState::Candidate,
        KnowledgeState::Confirmed,
        KnowledgeState::Promoted,
    ]
    .map(KnowledgeState::as_str);
    let query = Query::new()
        .equal("kind", kind)
        .one_of("state", states)
        .order_by("updated_at")
        .descending()
        .limit(LOOKED_AT);
    store.list(query).await
}

/// Orders gotchas by how closely they fit, then by how sure they are; pure, so that the same tasks get the same ones.
fn ranked(
    items: Vec<Versioned<KnowledgeItem>>,
    file: &RepoPath,
    action: Action,
    minimum: f64,
    limit: usize,
) -> Vec<Versioned<KnowledgeItem>> {
    let mut fitting: Vec<_> = items
        .into_iter()
        .filter(|row| {
            let item = &row.record;
            item.kind == KnowledgeKind::Gotcha
                && item.may_be_told()
                && item.confidence >= minimum
                && item.action.is_none_or(|only| only == action)
        })
        .filter_map(|row| Some((fit(&row.record, file)?, row)))
        .collect();
    fitting.sort_by(|(a_fit, a), (b_fit, b)| {
        a_fit
            .cmp(b_fit)
            .then_with(|| surest_first(&a.record, &b.record))
    });
    fitting.truncate(limit);
    fitting.into_iter().map(|(_, row)| row).collect()
}

fn surest_first(a: &KnowledgeItem, b: &KnowledgeItem) -> std::cmp::Ordering {
    b.confidence
        .total_cmp(&a.confidence)
        .then_with(|| b.occurrences().cmp(&a.occurrences()))
        .then_with(|| a.id.cmp(&b.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::tests::item;

    type Row<'a> = (u128, &'a [&'a str], Option<Action>, f64, KnowledgeState);

    fn ids(rows: &[Row<'_>], file: &str, action: Action, minimum: f64, limit: usize) -> Vec<u128> {
        let items = rows
            .iter()
            .map(|(id, globs, action, confidence, state)| {
                let mut record = item(*id);
                record.globs = globs.iter().map(ToString::to_string).collect();
                record.action = *action;
                record.confidence = *confidence;
                record.state = *state;
                Versioned { version: 1, record }
            })
            .collect();
        let file = RepoPath::parse(file).unwrap();
        ranked(items, &file, action, minimum, limit)
            .iter()
            .map(|row| row.record.id.0.as_u128())
            .collect()
    }

    #[test]
    fn the_closest_and_surest_gotchas_come_first() {
        use KnowledgeState::{Candidate, Confirmed, Deprecated, Promoted, Superseded};
        let rows: [Row<'_>; 9] = [
            (1, &[], None, 0.99, Confirmed),
            (2, &["*.sql"], None, 0.7, Candidate),
            (3, &["*.sql"], Some(Action::Create), 0.85, Confirmed),
            (4, &["db/1.sql"], None, 0.6, Promoted),
            (5, &["*.sql"], Some(Action::Update), 0.9, Confirmed),
            (6, &["*.rs"], None, 0.9, Confirmed),
            (7, &["*.sql"], None, 0.59, Confirmed),
            (8, &["*.sql"], None, 0.9, Deprecated),
            (9, &["*.sql"], None, 0.9, Superseded),
        ];
        assert_eq!(ids(&rows, "db/1.sql", Action::Create, 0.6, 5), [4, 3, 2, 1]);
        assert_eq!(ids(&rows, "db/1.sql", Action::Create, 0.7, 5), [3, 2, 1]);
        assert_eq!(ids(&rows, "db/1.sql", Action::Create, 0.6, 2), [4, 3]);
        assert_eq!(ids(&rows, "db/2.sql", Action::Update, 0.6, 5), [5, 2, 1]);
        assert_eq!(ids(&rows, "a.py", Action::Create, 0.6, 5), [1]);
    }
}
