//! Cuts lists into pages: at most so many entries, and where to go on.

use std::fmt::Display;
use std::str::FromStr;

use axum::Json;
use ropewalk_schemas::Slug;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::{Problem, unreadable};

/// How many entries a page has where nothing else is asked.
const DEFAULT: u32 = 100;
/// The most entries of a page.
const MOST: u32 = 500;

/// Reads a value of a query, where one is wanted.
pub(crate) fn wanted<T: FromStr<Err: Display>>(
    field: &str,
    text: Option<&str>,
) -> Result<Option<T>, Problem> {
    let read = text.map(str::parse).transpose();
    read.map_err(unreadable(field))
}

/// Which part of a list is wanted.
#[derive(Debug, Clone, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Part {
    /// At most so many entries: 1 to 500, 100 where nothing is said.
    #[param(minimum = 1, maximum = 500)]
    pub(crate) limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    pub(crate) cursor: Option<String>,
}

/// A part of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub(crate) struct Page<T> {
    /// The entries.
    pub(crate) items: Vec<T>,
    /// The cursor of the next page; none behind the last.
    pub(crate) next: Option<String>,
}

impl Part {
    /// Returns how many entries are wanted.
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        let limit = self.limit.unwrap_or(DEFAULT);
        if (1..=MOST).contains(&limit) {
            return Ok(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        let text = format!("`limit` must lie between 1 and {MOST}, and it is {limit}");
        let next = format!("write a number from 1 to {MOST}, or leave it out");
        Err(Problem::usage((text, next)))
    }

    /// Cuts the page out of a whole list, whose entries are told apart by `key`.
    pub(crate) fn of<T>(
        &self,
        all: Vec<T>,
        key: impl Fn(&T) -> String,
    ) -> Result<Page<T>, Problem> {
        let limit = self.limit()?;
        let begin = match &self.cursor {
            None => 0,
            Some(cursor) => {
                let found = all.iter().position(|item| key(item) == *cursor);
                1 + found.ok_or_else(|| {
                    Problem::usage((
                        "`cursor` names no entry of this list",
                        "begin again without it",
                    ))
                })?
            }
        };
        let is_more = all.len() > begin + limit;
        let items: Vec<T> = all.into_iter().skip(begin).take(limit).collect();
        let next = items.last().filter(|_| is_more).map(key);
        Ok(Page { items, next })
    }
}

/// Which part of a list is wanted, of everything or of one idea.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PartOfIdea {
    /// Only those of this idea.
    idea: Option<String>,
    /// At most so many entries: 1 to 500, 100 where nothing is said.
    limit: Option<u32>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

impl PartOfIdea {
    /// Returns the idea, where only what is of one is wanted.
    pub(crate) fn idea(&self) -> Result<Option<Slug>, Problem> {
        wanted("idea", self.idea.as_deref())
    }

    /// Cuts the part out of a whole list, whose entries are told apart by `key`.
    pub(crate) fn of<T>(
        self,
        all: Vec<T>,
        key: impl Fn(&T) -> String,
    ) -> Result<Json<Page<T>>, Problem> {
        let part = Part {
            limit: self.limit,
            cursor: self.cursor,
        };
        part.of(all, key).map(Json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(limit: Option<u32>, cursor: Option<&str>) -> Result<Page<u32>, Problem> {
        let part = Part {
            limit,
            cursor: cursor.map(str::to_owned),
        };
        part.of((1..=5).collect(), u32::to_string)
    }

    #[test]
    fn pages_together_are_the_list() {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let next = page(Some(2), cursor.as_deref()).unwrap();
            seen.extend(next.items);
            cursor = next.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, [1, 2, 3, 4, 5]);
        assert_eq!(page(Some(5), None).unwrap().next, None);
        assert_eq!(page(Some(1), Some("5")).unwrap().items, Vec::<u32>::new());
        for bad in [
            page(Some(0), None),
            page(Some(501), None),
            page(None, Some("x")),
        ] {
            assert!(bad.is_err());
        }
    }
}
