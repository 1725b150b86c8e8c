//! Reads a regular expression of a model, bounded where it enters.

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ropewalk_schemas::clip;

/// The most bytes of an expression.
const LONGEST_BYTES: usize = 1_000;
/// The most groups, repetitions and alternatives that may stand in each other.
const DEEPEST: u32 = 50;
/// The most memory that an expression may take when it is compiled, and again when it is run.
const MOST_MEMORY_BYTES: usize = 10 * 1024 * 1024;
/// So many characters of what is wrong are shown.
const SHOWN: usize = 200;

/// Is a regular expression for the lines of files.
#[derive(Debug, Clone)]
pub(super) struct SearchPattern(RegexMatcher);

/// Says why a text is not searched for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SearchPatternError {
    /// The text is longer than any expression needs to be.
    #[error("the pattern has {0} bytes; {LONGEST_BYTES} is the most")]
    TooLong(usize),
    /// The text is not well-formed, nests too deep or comes to too much.
    #[error("the pattern is no regular expression that can be used: {0}")]
    Unusable(String),
}

impl SearchPattern {
    /// Reads an expression.
    pub(super) fn parse(text: &str, ignore_case: bool) -> Result<Self, SearchPatternError> {
        if text.len() > LONGEST_BYTES {
            return Err(SearchPatternError::TooLong(text.len()));
        }
        RegexMatcherBuilder::new()
            .case_insensitive(ignore_case)
            .line_terminator(Some(b'\n'))
            .nest_limit(DEEPEST)
            .size_limit(MOST_MEMORY_BYTES)
            .dfa_size_limit(MOST_MEMORY_BYTES)
            .build(text)
            .map(Self)
            .map_err(|error| SearchPatternError::Unusable(shown(&error.to_string())))
    }

    /// Returns what searches.
    pub(super) fn matcher(&self) -> &RegexMatcher {
        &self.0
    }
}

/// Keeps the end of a message, which repeats the whole expression before it says what is wrong.
fn shown(message: &str) -> String {
    clip::end(message, SHOWN).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_bounded_in_length_depth_and_size() {
        let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        let rows = [
            ("a+b".to_owned(), ""),
            (nested(40), ""),
            (r"\w{50}".to_owned(), ""),
            (nested(60), "nest"),
            (nested(8_000), "1000 is the most"),
            ("((a{99}){99}){99}".to_owned(), "size limit"),
            ("(".to_owned(), "unclosed"),
        ];
        for (text, told) in rows {
            match SearchPattern::parse(&text, false) {
                Ok(_) => assert_eq!(told, "", "{text}"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(!told.is_empty() && error.contains(told), "{text}: {error}");
                }
            }
        }
    }
}
