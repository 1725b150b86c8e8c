//! Defines a question as a model puts it in a submission (seed pipeline §11.9).

use ropewalk_config::Trigger;
use ropewalk_orchestrator::questions::QuestionRequest;
use ropewalk_schemas::question::{About, Choice, QuestionKind};
use ropewalk_schemas::{ChoiceId, Slug};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most bytes of a question.
const TEXT_BYTES: usize = 8 * 1024;
/// The most options.
const OPTIONS: usize = 8;

/// The known triggers that a model may name; answers to all others set things in motion.
const TRIGGERS: [Trigger; 6] = [
    Trigger::ProblemStatementVague,
    Trigger::RequirementAmbiguous,
    Trigger::MultipleArchitectures,
    Trigger::ExternalDependencies,
    Trigger::MultipleImplementations,
    Trigger::MissingContext,
];

/// A question of the model to the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelQuestion {
    /// How it behaves: `blocking` stops the work until it is answered.
    #[serde(rename = "type")]
    pub kind: QuestionKind,
    /// What makes it necessary: `multiple_architectures`, `requirement_ambiguous`, `problem_statement_vague`,
    /// `external_dependencies`, `multiple_implementations`, `missing_context` or a name of your own.
    #[serde(default)]
    pub trigger: Option<String>,
    /// The question.
    pub text: String,
    /// Why it is asked.
    #[serde(default)]
    pub context: String,
    /// The options.
    #[serde(default)]
    pub options: Vec<ModelChoice>,
    /// The id or the label of the option taken when nobody answers.
    #[serde(default)]
    pub default: Option<String>,
    /// Whether any text is an answer.
    #[serde(default, rename = "allowFreeText", alias = "allow_free_text")]
    pub allow_free_text: bool,
    /// Whether its yes would approve, start, promote, merge, delete or spend; then no default ever applies, and the
    /// person has to take one of the options.
    #[serde(default)]
    pub consequential: bool,
}

/// An option of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelChoice {
    /// A short name of it, of `a-z 0-9 -`; without one it is made of the label.
    #[serde(default)]
    pub id: Option<String>,
    /// What is chosen.
    pub label: String,
    /// What it means.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether it is recommended.
    #[serde(default)]
    pub recommended: bool,
    /// What follows from it.
    #[serde(default)]
    pub implications: Option<String>,
}

impl ModelQuestion {
    /// Returns what is wrong with it, in words for the model.
    pub fn problem(&self) -> Option<String> {
        if self.text.trim().is_empty() {
            return Some("has no `text`".to_owned());
        }
        if self.text.len() + self.context.len() > TEXT_BYTES || self.options.len() > OPTIONS {
            return Some(format!(
                "is too long; give one short question and at most {OPTIONS} options"
            ));
        }
        let named = |trigger: &str| {
            (1..=64).contains(&trigger.len())
                && trigger
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        };
        if self
            .trigger
            .as_deref()
            .is_some_and(|trigger| !named(trigger))
        {
            return Some("has a `trigger` that is not 1 to 64 of `a-z _`".to_owned());
        }
        let reserved = self.trigger.as_deref().and_then(Trigger::parse);
        if reserved.is_some_and(|trigger| !TRIGGERS.contains(&trigger)) {
            let free: Vec<&str> = TRIGGERS.iter().map(|trigger| trigger.as_str()).collect();
            return Some(format!(
                "has a `trigger` that only the program may use; use one of {} or none",
                free.join(", ")
            ));
        }
        if self.is_binding() && self.options.is_empty() {
            return Some(
                "has no `options`, which a confirming or consequential one needs".to_owned(),
            );
        }
        self.default_choice()
            .is_none()
            .then(|| "has a `default` that is none of its options".to_owned())
            .filter(|_| self.default.is_some())
    }

    /// What a confirming one confirms is the model's secret, so silence is never taken for its yes, nor are words.
    fn is_binding(&self) -> bool {
        self.consequential || self.kind == QuestionKind::Confirming
    }

    /// Returns the ids of the options: the model's own where they are names, each once, else made of the labels.
    fn ids(&self) -> Vec<ChoiceId> {
        ChoiceId::of_labels(
            self.options
                .iter()
                .map(|option| option.id.as_ref().unwrap_or(&option.label).as_str()),
        )
    }

    fn default_choice(&self) -> Option<ChoiceId> {
        let default = self.default.as_ref()?;
        let mut named = self.options.iter().zip(self.ids());
        let is_default = |option: &ModelChoice, id: &ChoiceId| {
            option.label == *default
                || option.id.as_ref() == Some(default)
                || id.as_str() == default
        };
        named.find_map(|(option, id)| is_default(option, &id).then_some(id))
    }

    /// Returns the question as it is put to people.
    pub fn asking(self, about: About, idea: &Slug) -> QuestionRequest {
        let (consequential, default, ids) = (self.is_binding(), self.default_choice(), self.ids());
        let choices = self.options.into_iter().zip(ids);
        QuestionRequest {
            kind: self.kind,
            trigger: self.trigger.unwrap_or_else(|| "agent_question".to_owned()),
            text: self.text.trim().to_owned(),
            context: self.context.trim().to_owned(),
            free_text: !consequential && (self.allow_free_text || choices.len() == 0),
            choices: choices.map(|(option, id)| option.named(id)).collect(),
            default,
            consequential,
            content: None,
            about,
            topic: None,
            idea: Some(idea.clone()),
        }
    }
}

impl ModelChoice {
    fn named(self, id: ChoiceId) -> Choice {
        Choice {
            description: self.description,
            recommended: self.recommended,
            implications: self.implications,
            ..Choice::new(id, self.label)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_is_wrong_with_a_question_is_named() {
        let with = |key: &str, value: Value| {
            let mut question =
                json!({ "type": "clarifying", "text": "Which?", "options": [{ "label": "A" }] });
            question[key] = value;
            serde_json::from_value::<ModelQuestion>(question)
                .unwrap()
                .problem()
        };
        assert_eq!(with("default", json!("A")), None);
        assert!(with("default", json!("B")).unwrap().contains("default"));
        assert!(with("text", json!("  ")).unwrap().contains("text"));
        assert_eq!(with("consequential", json!(true)), None);
        assert!(with("options", json!([])).is_none());
        assert!(
            with("trigger", json!("Odd one"))
                .unwrap()
                .contains("trigger")
        );
        assert_eq!(with("trigger", json!("missing_context")), None);
        assert_eq!(with("trigger", json!("colour_of_buttons")), None);
        for reserved in ["spec_complete", "protected_files", "claude_md_promotion"] {
            let problem = with("trigger", json!(reserved)).unwrap();
            assert!(problem.contains("only the program"), "{problem}");
        }
        assert!(
            with("context", json!("x".repeat(9000)))
                .unwrap()
                .contains("too long")
        );
    }

    #[test]
    fn what_has_consequences_has_options_to_choose_from() {
        for kind in ["confirming", "blocking"] {
            let question = json!({ "type": kind, "text": "Go?", "consequential": true, "allowFreeText": true });
            let question: ModelQuestion = serde_json::from_value(question).unwrap();
            assert!(question.problem().unwrap().contains("options"), "{kind}");
            let asking = question.asking(About::Nothing, &Slug::parse("x").unwrap());
            assert!(!asking.free_text, "{kind}");
        }
    }

    #[test]
    fn options_have_the_ids_that_the_model_gave_them_or_names_of_their_words() {
        let question = json!({
            "type": "clarifying", "text": "Which?", "default": "Plain text",
            "options": [{ "label": "Plain text" }, { "id": "database", "label": "A database file" }],
        });
        let question: ModelQuestion = serde_json::from_value(question).unwrap();
        assert_eq!(question.problem(), None);
        let asking = question.asking(About::Nothing, &Slug::parse("x").unwrap());
        let ids: Vec<&str> = asking
            .choices
            .iter()
            .map(|choice| choice.id.as_str())
            .collect();
        assert_eq!(ids, ["plain-text", "database"]);
        assert_eq!(asking.default.unwrap().as_str(), "plain-text");
    }

    #[test]
    fn silence_never_confirms_what_a_model_asks() {
        let consequential = |kind: &str, declared: bool| {
            let question = json!({ "type": kind, "text": "Go?", "consequential": declared });
            let question: ModelQuestion = serde_json::from_value(question).unwrap();
            question
                .asking(About::Nothing, &Slug::parse("x").unwrap())
                .consequential
        };
        assert!(consequential("confirming", false));
        assert!(consequential("clarifying", true));
        assert!(!consequential("clarifying", false));
    }

    #[test]
    fn a_question_without_options_takes_any_text() {
        let question: ModelQuestion =
            serde_json::from_value(json!({ "type": "blocking", "text": " Why? " })).unwrap();
        let asking = question.asking(About::Nothing, &Slug::parse("x").unwrap());
        assert!(asking.free_text && !asking.consequential);
        assert_eq!(
            (asking.text.as_str(), asking.trigger.as_str()),
            ("Why?", "agent_question")
        );
    }
}
