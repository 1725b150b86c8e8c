//! Finds what people want here, whatever the work is: what they prefer, rules of theirs, what they decided.

use ropewalk_schemas::RepoPath;
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeState};
use ropewalk_schemas::task::Action;
use ropewalk_store::{Query, ReadError, Store, Versioned};
use serde::Serialize;

use crate::applies::fit;

/// What such items are.
const KINDS: [&str; 3] = ["preference", "convention", "decision"];
/// The most items that are looked at; the latest are.
const LOOKED_AT: u32 = 1_000;
/// So many are told, the newest.
const TOLD: usize = 24;
/// So many letters of all of them together.
const LETTERS: usize = 8_000;

/// What people want, as a model is told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wish {
    /// In words.
    pub text: String,
    /// The files that it is about, as globs; none means all.
    pub files: Vec<String>,
}

/// Lists what holds and is of interest, by `is_wanted`. What nobody confirmed holds for nobody yet, and what was promoted
/// stands in the conventions of the repository.
pub async fn wishes(
    store: &Store,
    is_wanted: impl Fn(&KnowledgeItem) -> bool,
) -> Result<Vec<Wish>, ReadError> {
    let query = Query::new()
        .one_of("kind", KINDS)
        .equal("state", KnowledgeState::Confirmed.as_str())
        .order_by("updated_at")
        .descending()
        .limit(LOOKED_AT);
    let found = store.list::<KnowledgeItem>(query).await?;
    let found = found.into_iter().map(Versioned::into_inner);
    Ok(bounded(found.filter(is_wanted)))
}

/// Says whether an item concerns work of one kind on some files.
pub fn concerns(item: &KnowledgeItem, files: &[&RepoPath], action: Action) -> bool {
    let is_of_it = item.action.is_none_or(|only| only == action);
    is_of_it && files.iter().any(|file| fit(item, file).is_some())
}

/// Takes the first of `items`. They are told in the order in which they were recorded, so that one more changes nothing
/// of what a prompt held before it.
fn bounded(items: impl Iterator<Item = KnowledgeItem>) -> Vec<Wish> {
    let mut room = LETTERS;
    let has_room = |item: &KnowledgeItem| {
        let left = room.checked_sub(item.content.chars().count());
        room = left.unwrap_or(room);
        left.is_some()
    };
    let mut told: Vec<KnowledgeItem> = items.filter(has_room).take(TOLD).collect();
    told.sort_by_key(|item| (item.created_at, item.id));
    let told = told.into_iter().map(|item| Wish {
        text: item.content,
        files: item.globs,
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::tests::item;

    #[test]
    fn the_newest_are_told_in_the_order_in_which_they_came() {
        let told = |sizes: &[usize]| {
            let items = (1..).zip('a'..='z').zip(sizes);
            let items = items.map(|((number, letter), letters)| {
                let mut wish = item(number);
                wish.content = letter.to_string().repeat(*letters);
                wish
            });
            let items: Vec<KnowledgeItem> = items.collect();
            let told = bounded(items.into_iter().rev()).into_iter();
            told.map(|wish| wish.text[..1].to_owned())
                .collect::<String>()
        };
        let rows = [
            (vec![], ""),
            (vec![10, 20], "ab"),
            (vec![10, LETTERS - 5, 5, 6], "acd"),
            (vec![1; TOLD + 2], "cdefghijklmnopqrstuvwxyz"),
        ];
        for (sizes, expected) in rows {
            assert_eq!(told(&sizes), expected, "{sizes:?}");
        }
    }

    #[test]
    fn work_is_concerned_by_its_files_and_its_action() {
        let path = |path| RepoPath::parse(path).unwrap();
        let (code, text) = (path("src/a.rs"), path("a.md"));
        let rows: [(&[&str], Option<Action>, bool); 5] = [
            (&[], None, true),
            (&["*.rs"], None, true),
            (&["*.md"], None, true),
            (&["*.py"], None, false),
            (&[], Some(Action::Delete), false),
        ];
        for (globs, action, expected) in rows {
            let mut wish = item(1);
            wish.globs = globs.iter().map(ToString::to_string).collect();
            wish.action = action;
            let concerned = concerns(&wish, &[&code, &text], Action::Update);
            assert_eq!(concerned, expected, "{globs:?} {action:?}");
        }
    }
}
