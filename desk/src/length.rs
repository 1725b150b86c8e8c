//! How long what people say beside a wish may be: the reason for it, advice, words to models.

use ropewalk_schemas::advice::Advice;

/// The most bytes of what is said at once. It goes into an event, of a reason also into rows that hold more beside it, and the
/// store takes a mebibyte of each; and a model reads what it is told with every turn.
pub const SAID_BYTES: usize = 8 * 1024;

/// Says that what was said is too long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} has {bytes} bytes, and {most} is the most")]
pub struct LengthError {
    /// What was said, for example `the reason`.
    pub what: &'static str,
    /// How long it is.
    pub bytes: usize,
    /// How long it may be.
    pub most: usize,
}

impl Advice for LengthError {
    fn next(&self) -> Option<String> {
        Some("say it in fewer words".to_owned())
    }
}

/// Refuses what is longer than may be said at once.
pub(crate) fn said(what: &'static str, text: Option<&str>) -> Result<(), LengthError> {
    check(what, text.unwrap_or_default(), SAID_BYTES)
}

/// Refuses what is longer than `most` bytes.
pub(crate) const fn check(what: &'static str, text: &str, most: usize) -> Result<(), LengthError> {
    let bytes = text.len();
    if bytes > most {
        Err(LengthError { what, bytes, most })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::advice::Words;

    use super::*;

    #[test]
    fn what_is_as_long_as_may_be_is_taken_and_a_byte_more_is_refused_in_words() {
        let most = "x".repeat(SAID_BYTES);
        assert_eq!(said("the reason", None), Ok(()));
        assert_eq!(said("the reason", Some(&most)), Ok(()));
        let refused = said("the reason", Some(&format!("{most}x"))).unwrap_err();
        assert_eq!(
            Words::of(&refused),
            (
                "the reason has 8193 bytes, and 8192 is the most",
                "say it in fewer words"
            )
                .into()
        );
    }
}
