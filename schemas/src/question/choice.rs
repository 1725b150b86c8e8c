//! The choices of a question: an id that programs read, a label that people read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ChoiceId, Slug};

/// A choice of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// Names it inside its question; whoever decides by an answer reads this and nothing else.
    pub id: ChoiceId,
    /// What is chosen, for people.
    pub label: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the agent recommends it.
    pub recommended: bool,
    /// What follows from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implications: Option<String>,
    /// Whether words belong to it, such as the advice of `guide`; without them it is no answer.
    #[serde(default, skip_serializing_if = "is_false")]
    pub with_words: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a reference to whatever it may skip"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Choice {
    /// Returns a choice that says what has to be said, and nothing more.
    pub fn new(id: ChoiceId, label: impl Into<String>) -> Self {
        Self {
            id,
            label: label.into(),
            description: None,
            recommended: false,
            implications: None,
            with_words: false,
        }
    }
}

impl ChoiceId {
    /// Makes ids of labels that came without: their words joined by `-`, numbered where two are alike.
    pub fn of_labels<'a>(labels: impl IntoIterator<Item = &'a str>) -> Vec<Self> {
        let mut ids: Vec<Self> = Vec::new();
        for label in labels {
            let words = Slug::from_text(label).map_or_else(String::new, String::from);
            let named = Self::parse(&words).ok();
            let free = named.filter(|id| !ids.contains(id));
            let id = free.or_else(|| {
                // One of so many numbers is free, since there are fewer ids so far.
                (ids.len() + 1..=2 * ids.len() + 1)
                    .filter_map(|number| Self::parse(&format!("choice-{number}")).ok())
                    .find(|id| !ids.contains(id))
            });
            ids.extend(id);
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_without_ids_get_names_of_their_own() {
        let ids =
            ChoiceId::of_labels(["Plain text", "plain text!", "2", "< 100ms", "…", "choice-6"]);
        let ids: Vec<&str> = ids.iter().map(ChoiceId::as_str).collect();
        assert_eq!(
            ids,
            [
                "plain-text",
                "choice-2",
                "choice-3",
                "100ms",
                "choice-5",
                "choice-6"
            ]
        );
    }

    #[test]
    fn a_number_is_no_id_since_people_answer_by_number() {
        assert!(ChoiceId::parse("2").is_err());
        assert!(ChoiceId::parse("Merge it").is_err());
        assert!(ChoiceId::parse("2-loops").is_ok());
    }
}
