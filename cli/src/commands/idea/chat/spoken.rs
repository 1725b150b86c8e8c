//! What was shown of a reply while it came, and what is still to be shown of it.

use crate::output::Prose;

/// The words of a reply that came so far.
pub(super) struct PartialReply {
    /// What was shown.
    pub(super) text: String,
    /// The try of the agent that they come from.
    pub(super) this_try: Option<String>,
    /// How they are shown.
    pub(super) prose: Prose,
    /// What came while an earlier reply was still owed, which is shown first.
    pub(super) held: String,
}

impl PartialReply {
    pub(super) const fn new(prose: Prose) -> Self {
        Self {
            text: String::new(),
            this_try: None,
            prose,
            held: String::new(),
        }
    }
}

/// Returns what of `message` was not spoken yet; none where it is not what was being said. Before it an agent may have
/// said what it looks at, which is no part of its answer.
pub(super) fn unsaid<'a>(spoken: &str, message: &'a str) -> Option<&'a str> {
    let starts = spoken.char_indices().map(|(start, _)| &spoken[start..]);
    let said = starts.chain([""]).find(|said| {
        let said = said.trim_end();
        message.starts_with(said) && (!said.is_empty() || spoken.trim().is_empty())
    })?;
    message.get(said.trim_end().len()..)
}

#[cfg(test)]
mod tests {
    use super::unsaid;

    #[test]
    fn what_was_spoken_is_not_shown_again() {
        let message = "It is clear.\n\nOne question: which?";
        for (spoken, expected) in [
            ("", Some(message)),
            ("It is cl", Some("ear.\n\nOne question: which?")),
            (message, Some("")),
            (
                "I look first.\n\nIt is clear.\n\nOne",
                Some(" question: which?"),
            ),
            (
                "I look first.\n\nIt is clear.\n\nOne question: which?\n",
                Some(""),
            ),
            ("Another answer", None),
        ] {
            assert_eq!(unsaid(spoken, message), expected, "{spoken}");
        }
    }
}
