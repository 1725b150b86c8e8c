//! What the program calls itself, and what it can be asked, when it is started again to confine a command.

/// The word after which the program is a helper.
pub(super) const WORD: &str = "__sandbox";
/// How every line of a helper begins.
pub(super) const VOICE: &str = "ropewalk: ";

/// What a helper is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Join the group, and become the command: bubblewrap.
    Grouped,
    /// Make namespaces, and wait for what runs in them.
    Namespaces,
    /// Be the first process in them: build the tree, then go on as inside.
    First,
    /// Be the first process in what bubblewrap made.
    Inside,
}

impl Stage {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Grouped => "grouped",
            Self::Namespaces => "namespaces",
            Self::First => "first",
            Self::Inside => "inside",
        }
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        [Self::Grouped, Self::Namespaces, Self::First, Self::Inside]
            .into_iter()
            .find(|stage| stage.word() == word)
    }
}

/// Says what could not be done on the way.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step}: {source}")]
pub(super) struct Fault {
    step: String,
    source: std::io::Error,
}

impl Fault {
    /// Names the step that an error came from.
    pub(super) fn at<Error: Into<std::io::Error>>(
        step: impl Into<String>,
    ) -> impl FnOnce(Error) -> Self {
        let step = step.into();
        |error| Self {
            step,
            source: error.into(),
        }
    }
}
