//! Reads a glob, bounded where it enters: one that nests without bound would take the whole process down.

use std::fmt;

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};

use crate::advice::{Advice, Words};

/// The most bytes of a glob.
const LONGEST_BYTES: usize = 1_000;
/// The most `{` of a glob: whoever compiles it needs stack for each that stands in another.
const MOST_BRACES: usize = 32;
/// So many characters of a glob are shown in an error.
const SHOWN: usize = 100;

/// Is a glob that was read and can match: `*` stops at `/`, `**` does not.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GlobPattern {
    text: String,
    matcher: GlobMatcher,
}

/// Says why a text is no glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobPatternError {
    /// The text is empty.
    #[error("a glob is empty")]
    Empty,
    /// The text is longer than any glob needs to be.
    #[error("a glob has {0} bytes; {LONGEST_BYTES} is the most")]
    TooLong(usize),
    /// The text has more alternatives than any glob needs.
    #[error("a glob has {0} `{{`; {MOST_BRACES} is the most")]
    TooManyBraces(usize),
    /// The text is not well-formed.
    #[error("`{text}` is no glob ({reason})")]
    Malformed {
        /// Its beginning.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Advice for GlobPatternError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Empty | Self::Malformed { .. } => Some("write for example `src/*.rs`".to_owned()),
            Self::TooLong(_) | Self::TooManyBraces(_) => {
                Some("write several short ones, for example `src/*.rs`".to_owned())
            }
        }
    }
}

impl GlobPattern {
    /// Reads a glob of whole paths.
    pub fn parse(text: &str) -> Result<Self, GlobPatternError> {
        Self::compile(text, text)
    }

    /// Reads a glob as people write it: one without a slash is for the file name in any directory.
    pub fn anywhere(text: &str) -> Result<Self, GlobPatternError> {
        if text.contains('/') {
            Self::parse(text)
        } else {
            Self::compile(text, &format!("**/{text}"))
        }
    }

    /// Writes a text so that, as a glob, it matches nothing but itself.
    pub fn escape(text: &str) -> String {
        globset::escape(text)
    }

    /// Returns the glob as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Says whether a path relative to the repository matches.
    pub fn matches(&self, path: &str) -> bool {
        self.matcher.is_match(path)
    }

    /// Says whether a text keeps within the bounds, for a dialect that others compile, such as that of `.gitignore`.
    pub fn is_bounded(text: &str) -> bool {
        check_bounds(text).is_ok()
    }

    fn compile(text: &str, pattern: &str) -> Result<Self, GlobPatternError> {
        check_bounds(text)?;
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .build()
            .map_err(|error| GlobPatternError::Malformed {
                text: text.chars().take(SHOWN).collect(),
                reason: error.kind().to_string(),
            })?;
        Ok(Self {
            text: text.to_owned(),
            matcher: glob.compile_matcher(),
        })
    }
}

/// Refuses what no compiler of globs should be shown, whatever dialect it reads.
fn check_bounds(text: &str) -> Result<(), GlobPatternError> {
    if text.is_empty() {
        return Err(GlobPatternError::Empty);
    }
    if text.len() > LONGEST_BYTES {
        return Err(GlobPatternError::TooLong(text.len()));
    }
    // All count, also those in a class or behind a backslash: dialects differ there, and the bound leaves room.
    let braces = text.bytes().filter(|byte| *byte == b'{').count();
    if braces > MOST_BRACES {
        return Err(GlobPatternError::TooManyBraces(braces));
    }
    Ok(())
}

impl PartialEq for GlobPattern {
    fn eq(&self, other: &Self) -> bool {
        self.matcher.glob() == other.matcher.glob()
    }
}

impl Eq for GlobPattern {}

impl TryFrom<String> for GlobPattern {
    type Error = Words;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).map_err(|error| Words::of(&error))
    }
}

impl From<GlobPattern> for String {
    fn from(glob: GlobPattern) -> Self {
        glob.text
    }
}

impl fmt::Display for GlobPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> String {
        format!("{}a{}", "{".repeat(depth), "}".repeat(depth))
    }

    #[test]
    fn whoever_reads_one_is_told_what_is_wrong_and_what_to_write() {
        let error = GlobPattern::parse("").unwrap_err();
        let words = ("a glob is empty", "write for example `src/*.rs`");
        assert_eq!(Words::of(&error), words.into());
        // `serde` passes on a text alone.
        let read = serde_json::from_str::<GlobPattern>("\"\"").unwrap_err();
        let text = "a glob is empty; write for example `src/*.rs`";
        assert!(read.to_string().starts_with(text), "{read}");
    }

    #[test]
    fn what_is_too_long_or_nests_too_deep_is_refused_before_it_is_compiled() {
        let rows = [
            (nested(8_000), GlobPatternError::TooLong(16_001)),
            (nested(33), GlobPatternError::TooManyBraces(33)),
            // A class hides no brace, whatever stands in it.
            ("{[}]".repeat(33), GlobPatternError::TooManyBraces(33)),
            ("a".repeat(1_001), GlobPatternError::TooLong(1_001)),
            (String::new(), GlobPatternError::Empty),
        ];
        for (text, expected) in rows {
            assert_eq!(GlobPattern::anywhere(&text).err(), Some(expected), "{text}");
        }
        for text in [nested(32), "*".repeat(1_000), "**/".repeat(333)] {
            assert!(GlobPattern::parse(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_glob_is_told_in_one_short_line() {
        let error = GlobPattern::parse(&format!("{}[", "a".repeat(900))).unwrap_err();
        let told = error.to_string();
        assert!(told.contains("no glob") && told.len() < 250, "{told}");
    }

    #[test]
    fn a_glob_is_of_whole_paths_or_of_names_anywhere() {
        let rows = [
            ("*.rs", "a.rs", true, true),
            ("*.rs", "src/a.rs", false, true),
            ("src/*.rs", "src/a.rs", true, true),
            ("src/*.rs", "src/deep/a.rs", false, false),
            ("src/**/*.rs", "src/a.rs", true, true),
            ("*.{ts,tsx}", "web/a.tsx", false, true),
        ];
        for (glob, path, whole, anywhere) in rows {
            let of_path = GlobPattern::parse(glob).unwrap();
            assert_eq!(of_path.matches(path), whole, "{glob} {path}");
            let of_name = GlobPattern::anywhere(glob).unwrap();
            assert_eq!(of_name.matches(path), anywhere, "{glob} {path}");
        }
        let strange = GlobPattern::escape("a[b]{c}*");
        assert!(GlobPattern::parse(&strange).unwrap().matches("a[b]{c}*"));
    }

    #[test]
    fn a_glob_is_read_and_written_as_its_text() {
        let glob: GlobPattern = serde_json::from_str("\"src/*.rs\"").unwrap();
        assert_eq!(serde_json::to_string(&glob).unwrap(), "\"src/*.rs\"");
        assert!(serde_json::from_str::<GlobPattern>(&format!("\"{}\"", nested(40))).is_err());
    }
}
