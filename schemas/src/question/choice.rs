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
    /// Whether words belong to it.
    #[serde(flatten)]
    pub words: ChoiceWords,
}

/// Says whether words of whoever chooses belong to a choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "WordsFields", into = "WordsFields")]
pub enum ChoiceWords {
    /// It takes none.
    #[default]
    None,
    /// They say why, as for a task that is skipped; it decides without them too.
    Optional,
    /// They are what is chosen, such as the advice of `guide`; without them it is no answer.
    Required,
}

impl ChoiceWords {
    /// Returns what is typed behind the id of the choice, for people.
    pub const fn typed(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Optional => "[: WORDS]",
            Self::Required => " WORDS",
        }
    }
}

/// How a choice holds it: the first of them is as old as choices are, and means to its readers what it meant.
#[derive(Serialize, Deserialize, JsonSchema)]
struct WordsFields {
    /// Whether words belong to it, such as the advice of `guide`; without them it is no answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    with_words: bool,
    /// Whether words may say why it is chosen, as for a task that is skipped; it is an answer without them too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    optional_words: bool,
}

impl From<WordsFields> for ChoiceWords {
    fn from(held: WordsFields) -> Self {
        match (held.with_words, held.optional_words) {
            (true, _) => Self::Required,
            (false, true) => Self::Optional,
            (false, false) => Self::None,
        }
    }
}

impl From<ChoiceWords> for WordsFields {
    fn from(words: ChoiceWords) -> Self {
        Self {
            with_words: words == ChoiceWords::Required,
            optional_words: words == ChoiceWords::Optional,
        }
    }
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
            words: ChoiceWords::None,
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
    use serde_json::json;

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
    fn what_words_a_choice_takes_is_read_as_it_was_written_before_words_could_be_optional() {
        for (words, held) in [
            (ChoiceWords::None, json!({})),
            (ChoiceWords::Optional, json!({ "optional_words": true })),
            (ChoiceWords::Required, json!({ "with_words": true })),
        ] {
            let choice = Choice {
                words,
                ..Choice::new(ChoiceId::parse("skip").unwrap(), "Skip it")
            };
            let mut written = json!({ "id": "skip", "label": "Skip it", "recommended": false });
            let fields = written.as_object_mut().unwrap();
            fields.extend(held.as_object().unwrap().clone());
            assert_eq!(serde_json::to_value(&choice).unwrap(), written);
            assert_eq!(serde_json::from_value::<Choice>(written).unwrap(), choice);
        }
        let of_before =
            json!({ "id": "skip", "label": "Skip it", "recommended": false, "with_words": false });
        let of_before: Choice = serde_json::from_value(of_before).unwrap();
        assert_eq!(of_before.words, ChoiceWords::None);
    }

    #[test]
    fn a_number_is_no_id_since_people_answer_by_number() {
        assert!(ChoiceId::parse("2").is_err());
        assert!(ChoiceId::parse("Merge it").is_err());
        assert!(ChoiceId::parse("2-loops").is_ok());
    }
}
