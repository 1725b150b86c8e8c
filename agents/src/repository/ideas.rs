//! Tells of the other ideas about a repository: what landed, and what is on its way.

use ropewalk_desk::views::idea::{self, Whereabouts};
use ropewalk_orchestrator::AgentError;
use ropewalk_schemas::Slug;
use ropewalk_schemas::idea::Idea;
use ropewalk_store::{Query, Store};
use serde::Serialize;

use crate::failure;
use crate::idea_folder::{BRIEF, IdeaFolder, is_placeholder_line};
use crate::places::Places;

/// So many ideas are told of, the newest.
const MOST: u32 = 20;
/// So much of a brief is told, in characters.
const BRIEF_CHARACTERS: usize = 200;

/// Another idea.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct OtherIdea {
    slug: String,
    title: String,
    /// As every surface shows it.
    state: Whereabouts,
    brief: Option<String>,
}

/// Lists the newest ideas beside `idea`.
pub(crate) async fn others(
    store: &Store,
    places: &Places,
    idea: &Slug,
) -> Result<Vec<OtherIdea>, AgentError> {
    let newest = Query::new().order_by("created_at").descending().limit(MOST);
    let found = store.list::<Idea>(newest).await?;
    let others: Vec<Idea> = found.iter().map(|other| other.record.clone()).collect();
    let states = idea::whereabouts(store, &others).await?;
    found
        .iter()
        .filter(|other| other.slug != *idea)
        .map(|other| {
            let folder = IdeaFolder::new(places.idea_folder(&other.user, &other.slug));
            let brief = folder
                .read(BRIEF)
                .map_err(|error| failure::of_folder(&error))?;
            Ok(OtherIdea {
                slug: other.slug.to_string(),
                title: other.title.clone(),
                state: states
                    .get(&other.slug)
                    .copied()
                    .unwrap_or(Whereabouts::Discussed(other.state)),
                brief: brief.as_deref().and_then(first_words),
            })
        })
        .collect()
}

/// Returns how a brief begins, without headings.
fn first_words(brief: &str) -> Option<String> {
    let line = brief
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#') && !is_placeholder_line(line))?;
    Some(line.chars().take(BRIEF_CHARACTERS).collect())
}

#[cfg(test)]
mod tests {
    use super::first_words;

    #[test]
    fn a_brief_is_told_by_its_first_sentence() {
        assert_eq!(
            first_words("# Brief\n\nTeams lose notes.\nMore.\n").as_deref(),
            Some("Teams lose notes.")
        );
        assert_eq!(first_words("# Brief\n"), None);
    }
}
