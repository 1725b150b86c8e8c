//! Finds the idea that somebody names: by its whole name, by its beginning, or by its last letters.

use ropewalk_schemas::Slug;
use ropewalk_schemas::idea::Idea;
use ropewalk_store::{Query, ReadError, Store};

/// How many ideas are named that a text fits.
const NAMED: usize = 5;

/// Lists the ideas that a text names: the one that is called so, else those whose names begin so, else those whose names end
/// so.
pub(crate) async fn find(store: &Store, text: &str) -> Result<Vec<Slug>, ReadError> {
    let text = text.trim().to_lowercase();
    if let Some(idea) = store.get::<Idea>(&text).await? {
        return Ok(vec![idea.into_inner().slug]);
    }
    let ideas = store.list::<Idea>(Query::new().order_by("created_at"));
    let slugs = ideas.await?.into_iter().map(|idea| idea.into_inner().slug);
    Ok(fitting(slugs.collect(), &text))
}

/// Returns those of `slugs` that begin with a text, else those that end with it; none of them without a text.
fn fitting(slugs: Vec<Slug>, text: &str) -> Vec<Slug> {
    if text.is_empty() {
        return Vec::new();
    }
    let (begin, others): (Vec<Slug>, Vec<Slug>) = slugs
        .into_iter()
        .partition(|slug| slug.as_str().starts_with(text));
    if !begin.is_empty() {
        return begin;
    }
    let ends = others.into_iter();
    ends.filter(|slug| slug.as_str().ends_with(text)).collect()
}

/// Says that a text names several ideas.
pub(crate) fn fits_several(text: &str, ideas: &[Slug]) -> String {
    let mut named: Vec<String> = ideas
        .iter()
        .take(NAMED)
        .map(|idea| format!("`{idea}`"))
        .collect();
    if let Some(more) = ideas.len().checked_sub(NAMED).filter(|more| *more > 0) {
        named.push(format!("{more} more"));
    }
    let (count, named) = (ideas.len(), named.join(", "));
    format!("`{text}` fits {count} ideas: {named}. Write more of the name; /ideas lists them.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idea_is_named_by_its_beginning_before_its_end() {
        let slugs = || -> Vec<Slug> {
            let names = ["flat-bills", "flat-walks", "walks-of-dogs", "csv-export"];
            names
                .iter()
                .map(|name| Slug::parse(name).unwrap())
                .collect()
        };
        for (text, expected) in [
            ("csv", &["csv-export"][..]),
            ("export", &["csv-export"]),
            ("flat", &["flat-bills", "flat-walks"]),
            ("walks", &["walks-of-dogs"]),
            ("bills", &["flat-bills"]),
            ("rivers", &[]),
            ("", &[]),
        ] {
            let found = fitting(slugs(), text);
            let found: Vec<&str> = found.iter().map(Slug::as_str).collect();
            assert_eq!(found, expected, "{text}");
        }
        let told = fits_several("flat", &fitting(slugs(), "flat"));
        assert!(
            told.starts_with("`flat` fits 2 ideas: `flat-bills`, `flat-walks`. "),
            "{told}"
        );
    }
}
