//! What is said of an error: what is wrong, and what to do about it, each by itself.
//!
//! The text of an error may quote whatever somebody wrote, so nobody can find the advice in it.

use std::error::Error;
use std::fmt;

/// An error that knows how it is mended.
///
/// An error that people meet at the terminal, the API or on the phone has it: its text says what is wrong, and no more.
/// Whoever tells both as one text, in a log, as a kept reason or to a model, writes [`Words`]. An error that only ever
/// becomes such a text may hold both in its own: what a model is told of a tool, what a reviewer finds in a document, and
/// what `serde` makes of a value, which passes on nothing but a text.
pub trait Advice: Error {
    /// Says how to mend it, where anybody can; an error that speaks for the one inside of it passes on what that says.
    fn next(&self) -> Option<String>;
}

/// What is said to a person about something that went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub next: Option<String>,
}

impl Words {
    /// Returns what is said of an error.
    pub fn of(error: &impl Advice) -> Self {
        Self {
            message: error.to_string(),
            next: error.next(),
        }
    }
}

impl fmt::Display for Words {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.next {
            Some(next) => write!(formatter, "{}; {next}", self.message),
            None => formatter.write_str(&self.message),
        }
    }
}

impl From<String> for Words {
    fn from(message: String) -> Self {
        Self {
            message,
            next: None,
        }
    }
}

impl From<&str> for Words {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl<M: Into<String>, N: Into<String>> From<(M, N)> for Words {
    fn from((message, next): (M, N)) -> Self {
        Self {
            message: message.into(),
            next: Some(next.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no name can be made of `{0}`")]
    struct NoName(&'static str);

    impl Advice for NoName {
        fn next(&self) -> Option<String> {
            (!self.0.is_empty()).then(|| "give one of `a-z`".to_owned())
        }
    }

    #[test]
    fn what_is_quoted_is_no_advice() {
        let words = Words::of(&NoName("a; b"));
        assert_eq!(
            words,
            ("no name can be made of `a; b`", "give one of `a-z`").into()
        );
        assert_eq!(
            words.to_string(),
            "no name can be made of `a; b`; give one of `a-z`"
        );
        let alone = Words::of(&NoName(""));
        assert_eq!(alone, "no name can be made of ``".into());
        assert_eq!(alone.to_string(), "no name can be made of ``");
    }
}
