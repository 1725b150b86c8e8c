//! Reads one file of question templates and checks each against its trigger.

use std::collections::BTreeSet;

use ropewalk_schemas::ChoiceId;
use ropewalk_schemas::idea::Phase;
use ropewalk_schemas::question::{Choice, QuestionKind};
use serde::Deserialize;

use super::{Condition, QuestionDraft, RenderError, Trigger, Values};
use crate::yaml;

/// A template as a file holds it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
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
}

/// A checked template.
#[derive(Debug, Clone)]
pub(super) struct Template {
    pub(super) trigger: Trigger,
    pub(super) phase: Option<Phase>,
    pub(super) condition: Option<Condition>,
    kind: QuestionKind,
    text: String,
    context: String,
    choices: Vec<Choice>,
    free_text: bool,
    pub(super) default: Option<String>,
    pub(super) consequential: bool,
}

/// Reads the templates of one file; the error names the trigger and what is wrong with it.
pub(super) fn read(text: &str) -> Result<Vec<Template>, String> {
    let written: Vec<Written> = yaml::read(text)?;
    written
        .into_iter()
        .map(|written| {
            let name = written.trigger.as_str();
            check(written).map_err(|reason| format!("`{name}`: {reason}"))
        })
        .collect()
}

fn check(written: Written) -> Result<Template, String> {
    let condition: Option<Condition> = written
        .condition
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error: super::InvalidCondition| error.to_string())?;
    let template = Template {
        trigger: written.trigger,
        phase: written.phase,
        condition,
        kind: written.kind,
        text: written.text.trim_end().to_owned(),
        context: written.context,
        choices: written.choices.into_iter().map(choice).collect(),
        free_text: written.free_text,
        default: written.default,
        consequential: written.consequential,
    };
    template.check_choices()?;
    template.check_default()?;
    template.check_names()?;
    Ok(template.with_implied_default())
}

fn choice(written: WrittenChoice) -> Choice {
    Choice {
        id: written.id,
        label: written.label,
        description: written.description,
        recommended: written.recommended,
        implications: written.implications,
        with_words: written.with_words,
    }
}

impl Template {
    /// Fills in the values, which the caller has checked to be complete.
    pub(super) fn fill(&self, values: &Values<'_>) -> Result<QuestionDraft, RenderError> {
        let with = |text: &String| filled(text, values);
        Ok(QuestionDraft {
            trigger: self.trigger,
            kind: self.kind,
            text: with(&self.text),
            context: with(&self.context),
            choices: self
                .choices
                .iter()
                .map(|choice| Choice {
                    label: with(&choice.label),
                    description: choice.description.as_ref().map(with),
                    implications: choice.implications.as_ref().map(with),
                    ..choice.clone()
                })
                .collect(),
            free_text: self.free_text,
            default: self.default_of(values)?,
            consequential: self.consequential,
        })
    }

    /// Returns the choice that the default names once the values are filled in.
    fn default_of(&self, values: &Values<'_>) -> Result<Option<ChoiceId>, RenderError> {
        let Some(default) = self.default.as_ref().map(|text| filled(text, values)) else {
            return Ok(None);
        };
        match self.choice(&default) {
            Some(choice) => Ok(Some(choice.id.clone())),
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
    fn check_default(&self) -> Result<(), String> {
        let recommended = self.choices.iter().filter(|choice| choice.recommended);
        match (self.kind, &self.default) {
            (QuestionKind::Clarifying, None) => Err("a clarifying question needs a default".into()),
            (QuestionKind::Clarifying, Some(_)) if self.consequential => {
                Err("a question with consequences takes no default".into())
            }
            (QuestionKind::Clarifying, Some(default)) => {
                let known =
                    placeholders(default).next().is_some() || self.choice(default).is_some();
                if known {
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

    /// Checks that the placeholders and the fields are those that the trigger declares.
    fn check_names(&self) -> Result<(), String> {
        let choices = self.choices.iter().flat_map(|choice| {
            std::iter::once(&choice.label)
                .chain(&choice.description)
                .chain(&choice.implications)
        });
        let used: BTreeSet<&str> = [&self.text, &self.context]
            .into_iter()
            .chain(choices)
            .chain(&self.default)
            .flat_map(|text| placeholders(text))
            .collect();
        let declared = self.trigger.placeholders().iter().copied().collect();
        if let Some(name) = used.symmetric_difference(&declared).next() {
            return Err(format!(
                "placeholder `{name}` must be both in the template and in the list of the trigger"
            ));
        }
        let fields: BTreeSet<&str> = self.condition.iter().flat_map(Condition::fields).collect();
        let facts = self.trigger.facts().iter().copied().collect();
        match fields.symmetric_difference(&facts).next() {
            Some(field) => Err(format!(
                "field `{field}` must be both in the condition and in the list of the trigger"
            )),
            None => Ok(()),
        }
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

/// Finds the `{name}`s of a text.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
        .filter(|name| is_name(name))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Replaces each `{name}` in one pass, so that a value is never searched for placeholders.
fn filled(text: &str, values: &Values<'_>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        result.push_str(before);
        match after.split_once('}') {
            Some((name, behind)) if values.contains_key(name) => {
                result.push_str(&values[name]);
                rest = behind;
            }
            _ => {
                result.push('{');
                rest = after;
            }
        }
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_that_does_not_fit_its_trigger_is_refused() {
        let head = "- {trigger: gotcha_candidate, context: c, kind: blocking, choices: \
                    [{id: add, label: a}, {id: project-only, label: b}, {id: reword, label: c}], text: ";
        let seen = "- {trigger: weekly_summary, context: c, text: t, choices: [{id: seen, label: Good}], kind:";
        let cases = [
            (format!("{head}'{{gotcha}} {{context}}'}}"), "placeholder `impact`"),
            (
                format!("{head}'{{gotcha}} {{context}} {{impact}} {{more}}'}}"),
                "placeholder `more`",
            ),
            (
                "- {trigger: task_failed_repeatedly, context: c, kind: blocking, choices: [{id: guide, label: a}, {id: rethink, label: a}, {id: skip, label: a}, {id: manual, label: a}, {id: leave, label: a}], text: '{task_id}{attempts}{error_message}{attempts_list}{standing}{recommended}', condition: tries > 1}".to_owned(),
                "field `attempts`",
            ),
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
            let refusal = read(&text).err().unwrap_or_default();
            assert!(refusal.contains(expected), "{text}: {refusal}");
        }
    }
}
