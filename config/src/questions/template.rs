//! Reads one file of question templates and checks each against its trigger.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_schemas::ChoiceId;
use ropewalk_schemas::idea::Phase;
use ropewalk_schemas::question::{Choice, ChoiceWords, QuestionKind};
use serde::Deserialize;

use super::writing::TemplateLanguage;
use super::{QuestionDraft, RenderError, Trigger, Values};
use crate::yaml;

/// A template as a file holds it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTemplate {
    trigger: Trigger,
    #[serde(default)]
    phase: Option<Phase>,
    #[serde(default)]
    condition: Option<String>,
    kind: QuestionKind,
    text: String,
    context: String,
    #[serde(default)]
    choices: Vec<WrittenChoice>,
    #[serde(default)]
    free_text: bool,
    #[serde(default)]
    default: Option<String>,
    #[serde(default)]
    consequential: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenChoice {
    id: ChoiceId,
    label: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    recommended: bool,
    #[serde(default)]
    implications: Option<String>,
    #[serde(default)]
    with_words: bool,
    #[serde(default)]
    optional_words: bool,
}

/// A checked template.
#[derive(Debug, Clone)]
pub(super) struct Template {
    pub(super) trigger: Trigger,
    pub(super) phase: Option<Phase>,
    pub(super) condition: Option<String>,
    kind: QuestionKind,
    text: String,
    context: String,
    choices: Vec<Choice>,
    free_text: bool,
    pub(super) default: Option<String>,
    pub(super) consequential: bool,
}

/// Reads the templates of one file; the error names the trigger and what is wrong with it.
pub(super) fn read(text: &str, writing: &TemplateLanguage) -> Result<Vec<Template>, String> {
    let written: Vec<WrittenTemplate> = yaml::read(text)?;
    written
        .into_iter()
        .map(|written| {
            let name = written.trigger.as_str();
            check(written, writing).map_err(|reason| format!("`{name}`: {reason}"))
        })
        .collect()
}

fn check(written: WrittenTemplate, writing: &TemplateLanguage) -> Result<Template, String> {
    let template = Template {
        trigger: written.trigger,
        phase: written.phase,
        condition: written.condition,
        kind: written.kind,
        text: written.text.trim_end().to_owned(),
        context: written.context,
        choices: written.choices.into_iter().map(choice).collect(),
        free_text: written.free_text,
        default: written.default,
        consequential: written.consequential,
    };
    template.check_choices()?;
    template.check_default(writing)?;
    template.check_texts(writing)?;
    template.check_condition(writing)?;
    Ok(template.with_implied_default())
}

fn choice(written: WrittenChoice) -> Choice {
    let words = match (written.with_words, written.optional_words) {
        (true, _) => ChoiceWords::Required,
        (false, true) => ChoiceWords::Optional,
        (false, false) => ChoiceWords::None,
    };
    Choice {
        id: written.id,
        label: written.label,
        description: written.description,
        recommended: written.recommended,
        implications: written.implications,
        words,
    }
}

impl Template {
    /// Fills in the values, which the caller has checked to be complete.
    pub(super) fn fill(
        &self,
        writing: &TemplateLanguage,
        values: &Values<'_>,
    ) -> Result<QuestionDraft, RenderError> {
        let with = |text: &String| {
            let filled = writing.filled(text, values);
            filled.map_err(|reason| RenderError::Unfit {
                trigger: self.trigger.as_str(),
                reason,
            })
        };
        let choice = |choice: &Choice| {
            Ok(Choice {
                label: with(&choice.label)?,
                description: choice.description.as_ref().map(with).transpose()?,
                implications: choice.implications.as_ref().map(with).transpose()?,
                ..choice.clone()
            })
        };
        let default = self.default.as_ref().map(with).transpose()?;
        Ok(QuestionDraft {
            trigger: self.trigger,
            kind: self.kind,
            text: with(&self.text)?,
            context: with(&self.context)?,
            choices: self.choices.iter().map(choice).collect::<Result<_, _>>()?,
            free_text: self.free_text,
            default: default.map(|id| self.default_of(id)).transpose()?,
            consequential: self.consequential,
        })
    }

    /// Returns the choice that a default names whose values are filled in.
    fn default_of(&self, default: String) -> Result<ChoiceId, RenderError> {
        match self.choice(&default) {
            Some(choice) => Ok(choice.id.clone()),
            None => Err(RenderError::DefaultIsNoChoice {
                trigger: self.trigger.as_str(),
                default,
            }),
        }
    }

    fn choice(&self, id: &str) -> Option<&Choice> {
        self.choices.iter().find(|choice| choice.id.as_str() == id)
    }

    /// Checks that the choices are those of the trigger, each once, and that consequences follow from a choice alone.
    fn check_choices(&self) -> Result<(), String> {
        let offered: BTreeSet<&str> = self
            .choices
            .iter()
            .map(|choice| choice.id.as_str())
            .collect();
        let declared: BTreeSet<&str> = self.trigger.choices().iter().copied().collect();
        if let Some(id) = offered.symmetric_difference(&declared).next() {
            return Err(format!(
                "choice `{id}` must be both in the template and in the list of the trigger"
            ));
        }
        if offered.len() != self.choices.len() {
            return Err("two choices have one id".to_owned());
        }
        if self.consequential && (self.free_text || self.choices.is_empty()) {
            return Err(
                "a question with consequences takes one of its choices, so it has some and no `free_text`".to_owned(),
            );
        }
        Ok(())
    }

    /// Checks that the default fits the kind: only a clarifying question names one, and none with consequences has any.
    fn check_default(&self, writing: &TemplateLanguage) -> Result<(), String> {
        let recommended = self.choices.iter().filter(|choice| choice.recommended);
        match (self.kind, &self.default) {
            (QuestionKind::Clarifying, None) => Err("a clarifying question needs a default".into()),
            (QuestionKind::Clarifying, Some(_)) if self.consequential => {
                Err("a question with consequences takes no default".into())
            }
            (QuestionKind::Clarifying, Some(default)) => {
                let named = |reason| format!("`default`: {reason}");
                let filled_in = !writing.placeholders(default).map_err(named)?.is_empty();
                if filled_in || self.choice(default).is_some() {
                    Ok(())
                } else {
                    Err(format!("the default `{default}` is none of the choices"))
                }
            }
            (_, Some(_)) => Err("only a clarifying question names a default".into()),
            (QuestionKind::Confirming, None) if recommended.count() != 1 => {
                Err("a confirming question recommends exactly one choice".into())
            }
            _ => Ok(()),
        }
    }

    /// Lists every text into which values are filled, with its key.
    fn texts(&self) -> impl Iterator<Item = (String, &String)> {
        let keys = [("text", Some(&self.text)), ("context", Some(&self.context))];
        let own = keys.into_iter().chain([("default", self.default.as_ref())]);
        let own = own.map(|(key, text)| (key.to_owned(), text));
        let choices = self.choices.iter().flat_map(|choice| {
            let key = |name: &str| format!("{name} of `{}`", choice.id);
            [
                (key("label"), Some(&choice.label)),
                (key("description"), choice.description.as_ref()),
                (key("implications"), choice.implications.as_ref()),
            ]
        });
        own.chain(choices)
            .filter_map(|(key, text)| Some((key, text?)))
    }

    /// Checks that the texts can be filled in, and speak of all values that the trigger declares and of no other.
    fn check_texts(&self, writing: &TemplateLanguage) -> Result<(), String> {
        let mut used = BTreeSet::new();
        for (key, text) in self.texts() {
            let names = writing.placeholders(text);
            used.extend(names.map_err(|reason| format!("{key}: {reason}"))?);
        }
        let declared = names(self.trigger.placeholders());
        if let Some(name) = used.symmetric_difference(&declared).next() {
            return Err(format!(
                "placeholder `{name}` must be both in the template and in the list of the trigger"
            ));
        }
        // What the language does not know, a filter for example, shows only when a text is filled in.
        let values = self.trigger.placeholders().iter();
        let values = values.map(|name| (*name, (*name).to_owned())).collect();
        for (key, text) in self.texts() {
            let filled = writing.filled(text, &values);
            filled.map_err(|reason| format!("{key}: {reason}"))?;
        }
        Ok(())
    }

    /// Checks that the condition is one, and speaks of all numbers that the trigger declares and of no other.
    fn check_condition(&self, writing: &TemplateLanguage) -> Result<(), String> {
        let in_condition = |reason| format!("condition: {reason}");
        let condition = self.condition.as_ref();
        let used = condition.map(|condition| writing.facts(condition));
        let used = used.transpose().map_err(in_condition)?.unwrap_or_default();
        let declared = names(self.trigger.facts());
        if let Some(field) = used.symmetric_difference(&declared).next() {
            return Err(format!(
                "field `{field}` must be both in the condition and in the list of the trigger"
            ));
        }
        let facts = self.trigger.facts().iter();
        let facts: BTreeMap<&str, f64> = facts.map(|fact| (*fact, 1.0)).collect();
        let held = condition.map(|condition| writing.holds(condition, &facts));
        held.transpose().map_err(in_condition).map(drop)
    }

    /// A confirming question that nobody answers is taken for its recommended choice, unless that has consequences.
    fn with_implied_default(mut self) -> Self {
        if self.kind == QuestionKind::Confirming && !self.consequential {
            let recommended = self.choices.iter().find(|choice| choice.recommended);
            self.default = recommended.map(|choice| choice.id.to_string());
        }
        self
    }
}

fn names(declared: &[&str]) -> BTreeSet<String> {
    declared.iter().map(|name| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_that_does_not_fit_its_trigger_is_refused() {
        let writing = TemplateLanguage::new().unwrap();
        let head = "- {trigger: gotcha_candidate, context: c, kind: blocking, choices: \
                    [{id: add, label: a}, {id: project-only, label: b}, {id: reword, label: c}], text: ";
        let text = |text: &str| format!("{head}'{text}'}}");
        let condition = |condition: &str| {
            let values = "{{task_id}}{{attempts}}{{error_message}}{{attempts_list}}{{standing}}{{recommended}}";
            let ids = ["guide", "rethink", "skip", "manual", "leave"];
            let choices = ids.map(|id| format!("{{id: {id}, label: a}}")).join(", ");
            format!(
                "- {{trigger: task_failed_repeatedly, context: c, kind: blocking, choices: [{choices}], text: '{values}', condition: {condition}}}"
            )
        };
        let seen = "- {trigger: weekly_summary, context: c, text: t, choices: [{id: seen, label: Good}], kind:";
        let cases = [
            (text("{{ gotcha }} {{ context }}"), "placeholder `impact`"),
            (text("{{ gotcha }} {{ context }} {{ impact }} {{ more }}"), "placeholder `more`"),
            (text("{{ gotcha }} {{ context }} {{ impact }} {gotcha}"), "text: `{gotcha}` fills nothing in"),
            (text("{{ gotcha }} {{ context }} {{ impact"), "text: syntax error"),
            (text("{{ gotcha }} {{ context }} {{ impact | shout }}"), "text: unknown filter"),
            (condition("attempts"), "condition: `attempts` is a number"),
            (condition("attempts > 1 AND attempts < 3"), "condition: syntax error"),
            (condition("tries > 1"), "field `attempts`"),
            (format!("{seen} clarifying}}"), "needs a default"),
            (format!("{seen} clarifying, default: x}}"), "none of the choices"),
            (format!("{seen} blocking, default: seen}}"), "only a clarifying"),
            (format!("{seen} confirming}}"), "exactly one choice"),
            (
                "- {trigger: validation_passed, context: c, kind: blocking, text: t}".to_owned(),
                "choice `seen`",
            ),
            (
                "- {trigger: problem_statement_vague, context: c, kind: blocking, text: t, choices: [{id: go, label: Go}]}"
                    .to_owned(),
                "choice `go`",
            ),
            (
                "- {trigger: weekly_summary, context: c, kind: blocking, text: t, choices: [{id: seen, label: A}, {id: seen, label: B}]}"
                    .to_owned(),
                "one id",
            ),
            (
                format!("{seen} blocking, consequential: true, free_text: true}}"),
                "takes one of its choices",
            ),
            (
                "- {trigger: idea_creted, context: c, kind: blocking, text: t}".to_owned(),
                "idea_creted",
            ),
        ];
        for (text, expected) in cases {
            let refusal = read(&text, &writing).err().unwrap_or_default();
            assert!(refusal.contains(expected), "{text}: {refusal}");
            assert_eq!(refusal.lines().count(), 1, "{refusal}");
        }
    }
}
