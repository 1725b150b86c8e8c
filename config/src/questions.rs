//! Holds the question templates of `questions/*.yaml`, checked when they are loaded (seed pipeline §11, design §11).

mod audience;
pub mod choice;
mod rights;
mod template;
mod trigger;
mod writing;

use std::collections::BTreeMap;

use ropewalk_schemas::ChoiceId;
use ropewalk_schemas::idea::Phase;
use ropewalk_schemas::question::{Choice, QuestionKind};

use template::Template;
pub use trigger::Trigger;
use writing::TemplateLanguage;

use crate::error::ConfigError;

/// The shipped files, each with its text.
pub const FILES: [(&str, &str); 7] = [
    (
        "questions/ideation.yaml",
        include_str!("../questions/ideation.yaml"),
    ),
    (
        "questions/specification.yaml",
        include_str!("../questions/specification.yaml"),
    ),
    (
        "questions/build.yaml",
        include_str!("../questions/build.yaml"),
    ),
    (
        "questions/validation.yaml",
        include_str!("../questions/validation.yaml"),
    ),
    ("questions/ux.yaml", include_str!("../questions/ux.yaml")),
    (
        "questions/improvement.yaml",
        include_str!("../questions/improvement.yaml"),
    ),
    ("questions/pm.yaml", include_str!("../questions/pm.yaml")),
];

/// The values of a question's placeholders by name.
pub type Values<'a> = BTreeMap<&'a str, String>;

/// Every question that an agent may ask by trigger.
#[derive(Debug, Clone)]
pub struct QuestionTemplates {
    templates: BTreeMap<Trigger, Template>,
    writing: TemplateLanguage,
}

/// A question with its values filled in, not yet asked.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionDraft {
    /// What made the agent ask.
    pub trigger: Trigger,
    /// How it behaves.
    pub kind: QuestionKind,
    /// The question.
    pub text: String,
    /// Why it is asked.
    pub context: String,
    /// The choices.
    pub choices: Vec<Choice>,
    /// Whether words alone are an answer.
    pub free_text: bool,
    /// The choice taken when nobody answers.
    pub default: Option<ChoiceId>,
    /// Whether an answer would approve, start, promote, merge, delete, spend, skip or accept a risk.
    pub consequential: bool,
}

impl QuestionDraft {
    /// Recommends one choice and no other; none recommends nothing.
    pub fn recommend(&mut self, best: Option<&str>) {
        for choice in &mut self.choices {
            choice.recommended = Some(choice.id.as_str()) == best;
        }
    }
}

/// Says why a question cannot be filled in, or not whether it applies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A value was not given.
    #[error("question `{trigger}` needs a value for `{name}`")]
    MissingPlaceholder {
        /// The trigger.
        trigger: &'static str,
        /// The placeholder.
        name: &'static str,
    },
    /// A number of its condition was not given.
    #[error("the condition of `{trigger}` needs `{fact}`")]
    MissingFact {
        /// The trigger.
        trigger: &'static str,
        /// The number.
        fact: &'static str,
    },
    /// Its template or its condition takes no such values.
    #[error("question `{trigger}` cannot be filled in: {reason}")]
    Unfit {
        /// The trigger.
        trigger: &'static str,
        /// What does not fit.
        reason: String,
    },
    /// The default is none of the choices.
    #[error("question `{trigger}` takes no default `{default}`; give the id of one of its choices")]
    DefaultIsNoChoice {
        /// The trigger.
        trigger: &'static str,
        /// The default.
        default: String,
    },
}

impl QuestionTemplates {
    /// Loads the shipped templates.
    pub fn shipped() -> Result<Self, ConfigError> {
        Self::read(FILES)
    }

    /// Reads the templates of `files`, each a name and a text, which have one for every trigger.
    pub fn read<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ConfigError> {
        let broken = |file: &str, reason: String| ConfigError::Shipped {
            file: file.to_owned(),
            reason,
        };
        let writing = TemplateLanguage::new().map_err(|reason| broken("questions", reason))?;
        let mut templates = BTreeMap::new();
        for (file, text) in files {
            let broken = |reason: String| broken(file, reason);
            for template in template::read(text, &writing).map_err(broken)? {
                let trigger = template.trigger;
                if templates.insert(trigger, template).is_some() {
                    let name = trigger.as_str();
                    return Err(broken(format!("`{name}` has a template already")));
                }
            }
        }
        match Trigger::ALL
            .iter()
            .find(|trigger| !templates.contains_key(trigger))
        {
            Some(trigger) => {
                let reason = format!("`{}` has no template", trigger.as_str());
                Err(broken("questions", reason))
            }
            None => Ok(Self { templates, writing }),
        }
    }

    /// Returns whether the condition of `trigger` holds; one without a condition always does.
    pub fn applies(
        &self,
        trigger: Trigger,
        facts: &BTreeMap<&str, f64>,
    ) -> Result<bool, RenderError> {
        let template = self.templates.get(&trigger);
        let Some(condition) = template.and_then(|template| template.condition.as_ref()) else {
            return Ok(true);
        };
        let missing = trigger
            .facts()
            .iter()
            .find(|fact| !facts.contains_key(*fact));
        if let Some(fact) = missing {
            return Err(RenderError::MissingFact {
                trigger: trigger.as_str(),
                fact,
            });
        }
        let unfit = |reason| RenderError::Unfit {
            trigger: trigger.as_str(),
            reason,
        };
        self.writing.holds(condition, facts).map_err(unfit)
    }

    /// Returns the only phase in which `trigger` asks, if it is bound to one.
    pub fn phase(&self, trigger: Trigger) -> Option<Phase> {
        self.templates.get(&trigger)?.phase
    }

    /// Fills the values into the question of `trigger`.
    pub fn render(
        &self,
        trigger: Trigger,
        values: &Values<'_>,
    ) -> Result<QuestionDraft, RenderError> {
        if let Some(name) = trigger
            .placeholders()
            .iter()
            .find(|name| !values.contains_key(**name))
        {
            return Err(RenderError::MissingPlaceholder {
                trigger: trigger.as_str(),
                name,
            });
        }
        // `read` has made sure that every trigger has a template.
        self.templates[&trigger].fill(&self.writing, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_values(trigger: Trigger) -> Values<'static> {
        let names = trigger.placeholders().iter();
        names.map(|name| (*name, format!("<{name}>"))).collect()
    }

    #[test]
    fn every_trigger_has_a_template_and_every_template_a_trigger() {
        // `read` refuses both a template without a trigger and a trigger without a template.
        let templates = QuestionTemplates::shipped().unwrap();
        assert_eq!(templates.templates.len(), Trigger::ALL.len());
        for trigger in Trigger::ALL {
            assert_eq!(Trigger::parse(trigger.as_str()), Some(*trigger));
        }
    }

    #[test]
    fn the_opening_fits_the_kind_of_idea() {
        let templates = QuestionTemplates::shipped().unwrap();
        let rows = [
            ("venture", "Who experiences this problem"),
            ("product", "Who experiences this problem"),
            ("fix", "What should happen instead?"),
            ("feature", "What has to stay as it is?"),
            ("tool", "What has to stay as it is?"),
            ("", "What has to stay as it is?"),
        ];
        for (kind, asked) in rows {
            let values = [
                ("kind", kind.to_owned()),
                ("problem_snippet", "a discount".to_owned()),
            ];
            let draft = templates.render(Trigger::ProblemStatementVague, &values.into());
            let text = draft.unwrap().text;
            assert_eq!(text.matches("• ").count(), 3, "{text}");
            assert!(
                text.contains(asked) && text.contains("a discount"),
                "{text}"
            );
        }
    }

    #[test]
    fn every_question_can_be_asked_with_its_values_and_not_without() {
        let templates = QuestionTemplates::shipped().unwrap();
        for trigger in Trigger::ALL {
            let mut values = all_values(*trigger);
            if *trigger == Trigger::ValidationLevelNeeded {
                values.insert("recommendation", "standard".to_owned());
            }
            let draft = templates.render(*trigger, &values).unwrap();
            assert!(
                !draft.text.contains('{') && !draft.context.is_empty(),
                "{draft:?}"
            );
            if let Some(name) = trigger.placeholders().first() {
                values.remove(name);
                let error = templates.render(*trigger, &values).unwrap_err();
                assert!(error.to_string().contains(name), "{error}");
            }
        }
    }

    #[test]
    fn only_questions_without_consequences_have_a_default() {
        let templates = QuestionTemplates::shipped().unwrap();
        let mut consequential = Vec::new();
        for (trigger, template) in &templates.templates {
            if template.consequential {
                assert_eq!(template.default, None, "{trigger:?}");
                consequential.push(trigger.as_str());
            }
        }
        assert_eq!(
            consequential,
            [
                "spec_complete",
                "task_complexity_exceeded",
                "task_failed_repeatedly",
                "task_interrupted",
                "protected_files",
                "check_held",
                "branch_moved",
                "branch_refused",
                "build_held",
                "build_finished",
                "landing_refused",
                "budget_exceeded",
                "multiple_failures",
                "security_vulnerability",
                "blind_check",
                "claude_md_promotion",
                "task_stuck",
                "decision_needed",
                "provider_key_refused"
            ]
        );
    }

    #[test]
    fn whoever_skips_a_task_may_say_why() {
        use ropewalk_schemas::question::ChoiceWords;

        let templates = QuestionTemplates::shipped().unwrap();
        for trigger in [
            Trigger::TaskComplexityExceeded,
            Trigger::TaskFailedRepeatedly,
            Trigger::TaskInterrupted,
            Trigger::CheckHeld,
            Trigger::TaskStuck,
            Trigger::DecisionNeeded,
        ] {
            let draft = templates.render(trigger, &all_values(trigger)).unwrap();
            let mut choices = draft.choices.iter();
            let skip = choices.find(|choice| choice.id.as_str() == "skip").unwrap();
            assert_eq!(skip.words, ChoiceWords::Optional, "{trigger:?}");
        }
    }

    /// Prose decides nothing there, so that no word of the question may read as if it did.
    #[test]
    fn a_question_with_consequences_names_a_choice_and_asks_for_no_yes() {
        let templates = QuestionTemplates::shipped().unwrap();
        let all = templates.templates.values();
        for template in all.filter(|template| template.consequential) {
            let trigger = template.trigger;
            let draft = templates.render(trigger, &all_values(trigger)).unwrap();
            let told = format!("{} {}", draft.text, draft.context);
            let labels = draft.choices.iter().map(|choice| choice.label.as_str());
            let told = labels.fold(told, |told, label| told.replace(label, ""));
            let told = told.to_lowercase();
            let mut words = told.split(|letter: char| !letter.is_alphanumeric());
            assert!(words.all(|word| word != "yes"), "{trigger:?}: {told}");
        }
        let asked = Trigger::SpecComplete;
        let draft = templates.render(asked, &all_values(asked)).unwrap();
        let start = choice::SpecComplete::Start.as_str();
        let mut choices = draft.choices.iter();
        let start = choices.find(|choice| choice.id.as_str() == start).unwrap();
        for named in [format!("`{}`", start.id), start.label.clone()] {
            assert!(draft.context.contains(&named), "no {named}: {draft:?}");
        }
    }

    #[test]
    fn a_value_that_looks_like_a_placeholder_is_left_alone() {
        let templates = QuestionTemplates::shipped().unwrap();
        let mut values = all_values(Trigger::MissingContext);
        values.insert("task_id", "{missing_info} {{x}}".to_owned());
        let draft = templates.render(Trigger::MissingContext, &values).unwrap();
        assert!(draft.text.contains("task: {missing_info} {{x}}"));
    }

    #[test]
    fn a_default_that_is_no_option_is_refused() {
        let templates = QuestionTemplates::shipped().unwrap();
        let values = Values::from([("recommendation", "Nightly".to_owned())]);
        assert!(matches!(
            templates.render(Trigger::ValidationLevelNeeded, &values),
            Err(RenderError::DefaultIsNoChoice { .. })
        ));
    }

    #[test]
    fn a_condition_decides_whether_a_question_is_asked() {
        let templates = QuestionTemplates::shipped().unwrap();
        let asked = |attempts| {
            templates.applies(
                Trigger::TaskFailedRepeatedly,
                &BTreeMap::from([("attempts", attempts)]),
            )
        };
        assert_eq!((asked(2.0), asked(3.0)), (Ok(false), Ok(true)));
        assert_eq!(
            templates.applies(Trigger::IdeaCreated, &BTreeMap::new()),
            Ok(true)
        );
        assert!(
            templates
                .applies(Trigger::PatternDetected, &BTreeMap::new())
                .is_err()
        );
        assert_eq!(
            templates.phase(Trigger::PhaseComplete),
            Some(Phase::Exploring)
        );
    }
}
