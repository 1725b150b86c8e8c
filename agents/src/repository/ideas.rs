//! Tells of the other ideas about a repository: what landed, and what is on its way.

use ropewalk_desk::views::idea::{self, Whereabouts};
use ropewalk_orchestrator::AgentError;
use ropewalk_schemas::document::without_mark;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::{Slug, clip};
use ropewalk_store::{Query, Store};
use serde::Serialize;

use crate::failure;
use crate::idea_folder::{BRIEF, IdeaFolder, is_placeholder_line};
use crate::places::Places;

/// So many ideas are told of, the newest.
const MOST: u32 = 20;
/// So much of a brief is told, in letters, of an idea that is open: what is planned meets what is on its way.
const BRIEF_LETTERS: usize = 1_000;
/// So much of all of these together, the newest first.
const BRIEFS_LETTERS: usize = 6_000;
/// So much is told of where the others begin.
const BEGINNING_LETTERS: usize = 200;

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
    let mut room = BRIEFS_LETTERS;
    found
        .iter()
        .filter(|other| other.slug != *idea)
        .map(|other| {
            let folder = IdeaFolder::new(places.idea_folder(&other.user, &other.slug));
            let brief = folder
                .read(BRIEF)
                .map_err(|error| failure::of_folder(&error))?;
            let known = states.get(&other.slug).copied();
            let state = known.unwrap_or(Whereabouts::Discussed(other.state));
            Ok(OtherIdea {
                slug: other.slug.to_string(),
                title: other.title.clone(),
                state,
                brief: brief.and_then(|brief| told(&brief, state, &mut room)),
            })
        })
        .collect()
}

/// Returns what a brief says, on one line and without headings: all of it of an open idea, as long as there is `room`, else where it
/// begins.
fn told(brief: &str, state: Whereabouts, room: &mut usize) -> Option<String> {
    let lines = without_mark(brief).lines().map(str::trim);
    let said: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#') && !is_placeholder_line(line))
        .collect();
    let first = said.first()?;
    if !matches!(state, Whereabouts::Landed | Whereabouts::Abandoned) {
        let whole = clip::line(&said.join(" "), BRIEF_LETTERS);
        if let Some(left) = room.checked_sub(whole.chars().count()) {
            *room = left;
            return Some(whole);
        }
    }
    Some(clip::line(first, BEGINNING_LETTERS))
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::idea::IdeaState;

    use super::*;

    #[test]
    fn an_open_idea_is_told_by_its_brief_and_another_by_its_beginning() {
        let open = Whereabouts::Discussed(IdeaState::Captured);
        let brief = "# Brief\n\nTeams lose notes.\nThey want one place.\n\n## Risks\n\n- [risk]\n- Nobody writes.\n";
        for (brief, state, expected) in [
            (
                brief,
                open,
                Some("Teams lose notes. They want one place. - Nobody writes."),
            ),
            (brief, Whereabouts::Landed, Some("Teams lose notes.")),
            (brief, Whereabouts::Abandoned, Some("Teams lose notes.")),
            ("# Brief\n", open, None),
        ] {
            let mut room = BRIEFS_LETTERS;
            let told = told(brief, state, &mut room);
            assert_eq!(told.as_deref(), expected);
        }
    }

    #[test]
    fn however_many_ideas_are_open_their_briefs_have_a_bound() {
        let open = Whereabouts::Discussed(IdeaState::Captured);
        let long = format!("It begins.\n{}", "and goes on ".repeat(500));
        let mut room = BRIEFS_LETTERS;
        let letters = (0..MOST).map(|_| told(&long, open, &mut room).unwrap());
        let letters: Vec<usize> = letters.map(|told| told.chars().count()).collect();
        let whole = BRIEFS_LETTERS / BRIEF_LETTERS;
        assert!(
            letters[..whole]
                .iter()
                .all(|told| *told > BRIEF_LETTERS - 20)
        );
        assert!(
            letters.iter().sum::<usize>() < 2 * BRIEFS_LETTERS,
            "{letters:?}"
        );
        assert_eq!(told(&long, open, &mut room).as_deref(), Some("It begins."));
    }
}
