//! Reads ids as people write them: whole, or the beginning or end of one.

mod timeline;

use std::convert::Infallible;
use std::str::FromStr;

use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::specification::Specification;
use ropewalk_schemas::{InvalidId, Slug};
use ropewalk_store::{Query, ReadError, Record, Versioned};
use uuid::Uuid;

use crate::error::{AMBIGUOUS, CliError, UNKNOWN};
use crate::wiring::OpenProject;

pub use timeline::{ChainText, EventText, NoEventText};

/// The fewest digits that stand for an id.
const FEWEST_DIGITS: usize = 6;
/// So many of its last digits stand for an id where people are told of one.
const TOLD_DIGITS: usize = 8;
/// Words that are longer make no whole name.
const LONGEST_WORDS: usize = 48;
/// So many ids are named where a part fits several.
const CANDIDATES: usize = 5;

/// Returns the end of an id, which is enough to name it.
pub fn last_digits(id: impl std::fmt::Display) -> String {
    let id = id.to_string();
    let from = id.len().saturating_sub(TOLD_DIGITS);
    id.get(from..).unwrap_or(&id).to_owned()
}

/// An id, at least six of the digits it begins or ends with, or the name of an idea or so much of its beginning as no other
/// has, whose newest build or specification is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdText {
    text: String,
    whole: Option<Uuid>,
}

impl FromStr for IdText {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::new(text))
    }
}

impl std::fmt::Display for IdText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl IdText {
    fn new(text: &str) -> Self {
        let text = text.trim().to_ascii_lowercase();
        let whole = Uuid::parse_str(&text).ok();
        Self { text, whole }
    }

    /// Finds the row of `R` that this id names; `noun` and `list` are for the error.
    pub async fn find<R: Record>(
        &self,
        opened: &OpenProject,
        noun: &str,
        list: &str,
    ) -> Result<Versioned<R>, CliError> {
        let unknown = || CliError::unknown(noun, self, list);
        if let Some(whole) = self.whole {
            return opened
                .store
                .get::<R>(&whole.to_string())
                .await?
                .ok_or_else(unknown);
        }
        let mut rows = Vec::new();
        if self.is_part() {
            rows = opened.store.list::<R>(Query::new()).await?;
            rows.retain(|row| self.fits(&row.record.key()));
        }
        match rows.len() {
            0 => self.newest_of_idea(opened).await?.ok_or_else(unknown),
            1 => rows.pop().ok_or_else(unknown),
            _ => Err(fits_several(self, &keys(&rows), list)),
        }
    }

    /// Finds the build that is meant.
    pub async fn build(&self, opened: &OpenProject) -> Result<Versioned<Build>, CliError> {
        self.find(opened, "build", "build list").await
    }

    /// Finds the specification that is meant.
    pub async fn specification(
        &self,
        opened: &OpenProject,
    ) -> Result<Versioned<Specification>, CliError> {
        self.find(opened, "specification", "spec list").await
    }

    /// Finds the newest row of the idea that is called so, where rows of this sort belong to ideas.
    async fn newest_of_idea<R: Record>(
        &self,
        opened: &OpenProject,
    ) -> Result<Option<Versioned<R>>, CliError> {
        let Ok(named) = Slug::parse(&self.text) else {
            return Ok(None);
        };
        let named = IdeaText(named);
        if let Some(row) = newest_of(&named.0, opened).await? {
            return Ok(Some(row));
        }
        match named.fitting(opened).await?.as_slice() {
            [] => Ok(None),
            [idea] => newest_of(&idea.slug, opened).await,
            several => Err(fits_several(self, &keys(several), "idea list")),
        }
    }

    /// Returns whether this can be part of an id.
    fn is_part(&self) -> bool {
        let digits = self.text.bytes().filter(u8::is_ascii_hexdigit).count();
        let shape = self
            .text
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        shape && (FEWEST_DIGITS..32).contains(&digits)
    }

    fn fits(&self, key: &str) -> bool {
        key.starts_with(&self.text) || key.ends_with(&self.text)
    }
}

/// Finds the newest row of an idea, where rows of this sort belong to ideas.
async fn newest_of<R: Record>(
    idea: &Slug,
    opened: &OpenProject,
) -> Result<Option<Versioned<R>>, CliError> {
    let newest = Query::new().equal("idea", idea.as_str());
    let newest = newest.order_by("created_at").descending().limit(1);
    match opened.store.list(newest).await {
        Ok(mut rows) => Ok(rows.pop()),
        Err(ReadError::UnknownColumn { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn keys<R: Record>(rows: &[Versioned<R>]) -> Vec<String> {
    rows.iter().map(|row| row.record.key()).collect()
}

fn fits_several(text: impl std::fmt::Display, keys: &[String], list: &str) -> CliError {
    let mut named: Vec<String> = keys.iter().take(CANDIDATES).cloned().collect();
    if let Some(more) = keys.len().checked_sub(CANDIDATES).filter(|more| *more > 0) {
        named.push(format!("{more} more"));
    }
    let fits = format!("`{text}` fits {} of them: {}", keys.len(), named.join(", "));
    let next = format!("write more of it (`ropewalk {list}` shows them)");
    CliError::refused(AMBIGUOUS, (fits, next))
}

/// The name of an idea, or so much of its beginning as no other has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdeaText(Slug);

impl FromStr for IdeaText {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let text = text.trim();
        let is_words = text.len() <= LONGEST_WORDS
            && text
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, ' ' | '_' | '-'));
        let made = || Slug::from_text(text).filter(|_| is_words);
        let slug = Slug::parse(text).or_else(|invalid| made().ok_or(invalid));
        slug.map(Self)
    }
}

impl From<Slug> for IdeaText {
    fn from(slug: Slug) -> Self {
        Self(slug)
    }
}

impl From<IdeaText> for Slug {
    fn from(text: IdeaText) -> Self {
        text.0
    }
}

impl IdeaText {
    /// Finds the name of the idea where it is whole: what cannot be taken back is done to none that is only begun.
    pub async fn find_whole(&self, opened: &OpenProject) -> Result<Slug, CliError> {
        let found = self.find(opened).await?;
        if found == self.0 {
            return Ok(found);
        }
        let text = format!("no idea is called `{}`", self.0);
        let next = format!("for this write the whole name, such as `{found}`");
        Err(CliError::refused(UNKNOWN, (text, next)))
    }

    /// Finds the name of the idea of which alone a list is wanted, if any.
    pub async fn find_wanted(
        wanted: Option<&Self>,
        opened: &OpenProject,
    ) -> Result<Option<Slug>, CliError> {
        match wanted {
            Some(idea) => idea.find(opened).await.map(Some),
            None => Ok(None),
        }
    }

    /// Finds the name of the idea.
    pub async fn find(&self, opened: &OpenProject) -> Result<Slug, CliError> {
        let name = self.0.as_str();
        match self.fitting(opened).await?.as_slice() {
            [] => Err(CliError::unknown("idea", name, "idea list")),
            [idea] => Ok(idea.slug.clone()),
            several => Err(fits_several(name, &keys(several), "idea list")),
        }
    }

    /// Lists the ideas whose names begin so; the one alone that is called so, if there is one.
    async fn fitting(&self, opened: &OpenProject) -> Result<Vec<Versioned<Idea>>, CliError> {
        let name = self.0.as_str();
        if let Some(idea) = opened.store.get::<Idea>(name).await? {
            return Ok(vec![idea]);
        }
        let mut ideas = opened.store.list::<Idea>(Query::new()).await?;
        ideas.retain(|idea| idea.slug.as_str().starts_with(name));
        Ok(ideas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_whole_or_has_six_digits() {
        let whole = "0197a3c0-1111-7abc-8def-0123456789ab";
        for good in [whole, "0197a3", "0197A3C0-11", "6789ab", " 456789ab "] {
            let id = good.parse::<IdText>().unwrap();
            assert!(id.whole.is_some() || id.is_part(), "{good}");
        }
        let too_long = format!("{whole}0");
        for bad in [
            "",
            "0197",
            "habits",
            "../../x",
            "0197a3c0-zzzz",
            too_long.as_str(),
        ] {
            let id = bad.parse::<IdText>().unwrap();
            assert!(id.whole.is_none() && !id.is_part(), "{bad}");
        }
    }

    #[test]
    fn people_are_told_digits_that_name_the_id() {
        let told = last_digits("0197a3c0-1111-7abc-8def-0123456789ab");
        assert_eq!(told, "456789ab");
        assert!(told.parse::<IdText>().unwrap().is_part());
        assert_eq!(last_digits("short"), "short");
    }

    #[test]
    fn digits_fit_the_beginning_or_the_end() {
        let key = "0197a3c0-1111-7abc-8def-0123456789ab";
        for (text, expected) in [("0197a3", true), ("6789ab", true), ("1111-7abc", false)] {
            assert_eq!(
                text.parse::<IdText>().unwrap().fits(key),
                expected,
                "{text}"
            );
        }
    }
}
