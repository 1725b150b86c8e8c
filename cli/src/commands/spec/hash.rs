//! The hash of a revision, as people write it.

use std::fmt;
use std::str::FromStr;

use ropewalk_schemas::ContentHash;
use ropewalk_schemas::specification::Specification;

/// The fewest digits of a hash that name a revision.
pub(in crate::commands) const FEWEST_DIGITS: usize = 16;

/// A hash, or so many of its first digits that nothing else is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HashText(String);

impl FromStr for HashText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim().to_ascii_lowercase();
        let fits = (FEWEST_DIGITS..=64).contains(&text.len());
        if fits && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            Ok(Self(text))
        } else {
            Err(format!(
                "write at least {FEWEST_DIGITS} digits of the hash, as `ropewalk spec show` shows it"
            ))
        }
    }
}

impl HashText {
    /// Returns the hash that is meant: a whole one as it is, else that of the newest revision; none where it begins otherwise.
    pub(super) fn of(&self, spec: &Specification) -> Option<ContentHash> {
        let newest = spec.hash.as_ref();
        let meant = || newest.filter(|newest| newest.as_str().starts_with(&self.0));
        self.0.parse().ok().or_else(|| meant().cloned())
    }
}

impl fmt::Display for HashText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_digits_name_a_hash_and_fifteen_do_not() {
        let digits = "0123456789abcdef".repeat(4);
        for (count, expected) in [(15, false), (16, true), (64, true)] {
            assert_eq!(
                digits[..count].parse::<HashText>().is_ok(),
                expected,
                "{count}"
            );
        }
        for bad in ["", "0123456789abcdeg", &format!("{digits}0")] {
            assert!(bad.parse::<HashText>().is_err(), "{bad}");
        }
    }
}
