//! Reads ids as people write them: whole, or the beginning or end of one.

use std::convert::Infallible;
use std::str::FromStr;

use ropewalk_store::{Query, Record, Versioned};
use uuid::Uuid;

use crate::error::CliError;
use crate::wiring::Desk;

/// The fewest digits that stand for an id.
const FEWEST_DIGITS: usize = 6;
/// So many of its last digits stand for an id where people are told of one.
const TOLD_DIGITS: usize = 8;
/// So many ids are named where a part fits several.
const CANDIDATES: usize = 5;

/// Returns the end of an id, which is enough to name it.
pub fn last_digits(id: impl std::fmt::Display) -> String {
    let id = id.to_string();
    let from = id.len().saturating_sub(TOLD_DIGITS);
    id.get(from..).unwrap_or(&id).to_owned()
}

/// An id, at least six of the digits it begins or ends with, or a text that is neither and so names nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdText {
    text: String,
    whole: Option<Uuid>,
}

impl FromStr for IdText {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let text = text.trim().to_ascii_lowercase();
        let whole = Uuid::parse_str(&text).ok();
        Ok(Self { text, whole })
    }
}

impl std::fmt::Display for IdText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl IdText {
    /// Finds the row of `R` that this id names; `noun` and `list` are for the error.
    pub async fn find<R: Record>(
        &self,
        desk: &Desk,
        noun: &str,
        list: &str,
    ) -> Result<Versioned<R>, CliError> {
        let unknown = || CliError::unknown(noun, self, list);
        if let Some(whole) = self.whole {
            return desk
                .store
                .get::<R>(&whole.to_string())
                .await?
                .ok_or_else(unknown);
        }
        if !self.is_part() {
            return Err(unknown());
        }
        let mut rows = desk.store.list::<R>(Query::new()).await?;
        rows.retain(|row| self.fits(&row.record.key()));
        match rows.len() {
            0 => Err(unknown()),
            1 => rows.pop().ok_or_else(unknown),
            many => {
                let keys = rows.iter().take(CANDIDATES).map(|row| row.record.key());
                let mut named: Vec<String> = keys.collect();
                if many > CANDIDATES {
                    named.push(format!("{} more", many - CANDIDATES));
                }
                Err(CliError::refused(
                    "ambiguous-id",
                    (
                        format!("`{self}` fits {many} ids: {}", named.join(", ")),
                        format!("write more digits (`ropewalk {list}` shows them)"),
                    ),
                ))
            }
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
