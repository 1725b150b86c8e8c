//! Verb `question answer`: answers one question, or all that have a safe default.

use clap::Args;
use ropewalk_config::Trigger;
use ropewalk_config::questions::choice::{BuildFinished, LandingRefused, SpecComplete};
use ropewalk_desk::people::Person;
use ropewalk_desk::questions;
use ropewalk_orchestrator::questions::{AcceptedAnswer, choices_told};
use ropewalk_schemas::question::{About, Choice, ChoiceWords, Question, QuestionState};
use ropewalk_schemas::{ChoiceId, QuestionId};
use serde::Serialize;

use super::show::whole;
use crate::app::{App, forget_what_was_typed};
use crate::error::CliError;
use crate::ids::{IdText, last_digits};
use crate::output::clean;
use crate::wiring::OpenProject;

/// Where the answers of this verb come from.
const CHANNEL: &str = "cli";

/// The question and its answer.
#[derive(Debug, Args)]
pub struct Answer {
    /// Its id, as `question list` shows it.
    #[arg(required_unless_present = "all_defaults")]
    id: Option<IdText>,
    /// A choice by its id, its number or its whole label, the words that it takes behind its id and a colon, or words where the
    /// question takes them; asked for when absent.
    #[arg(value_name = "CHOICE|TEXT")]
    text: Vec<String>,
    /// Answers every question whose default neither blocks, approves, starts, merges, deletes nor spends.
    #[arg(long, conflicts_with_all = ["id", "text"])]
    all_defaults: bool,
}

#[derive(Debug, Serialize)]
struct Receipt {
    id: QuestionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    choice: Option<ChoiceId>,
    answer: String,
    /// What follows, and what tells of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<AcceptedAnswer> for Receipt {
    fn from(answered: AcceptedAnswer) -> Self {
        Self {
            id: answered.id,
            choice: answered.choice,
            answer: answered.answer,
            next: None,
        }
    }
}

impl Answer {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let person = opened.person()?;
        let Some(id) = self.id else {
            let answered = questions::answer_defaults(&opened.context(), person, CHANNEL).await?;
            let done: Vec<Receipt> = answered.into_iter().map(Receipt::from).collect();
            if !done.is_empty() {
                opened.poke_or_say(&app.output)?;
            }
            return app.output.list(&done, ["question", "answer"], |done| {
                [done.id.to_string(), done.answer.clone()]
            });
        };
        let question = id
            .find::<Question>(&opened, "question", "question list")
            .await?
            .record;
        let text = if self.text.is_empty() {
            ask(app, &opened, &question)?
        } else {
            self.text.join(" ")
        };
        let done = answer(&opened, &question, &text, person).await?;
        opened.poke_or_say(&app.output)?;
        app.output.show(&done, |done| {
            let next = done.next.as_ref();
            let next = next.map_or_else(String::new, |next| format!("\n{next}"));
            format!("answered {}: {}{next}", done.id, done.answer)
        })
    }
}

async fn answer(
    opened: &OpenProject,
    question: &Question,
    text: &str,
    person: &Person,
) -> Result<Receipt, CliError> {
    let answered = questions::answer(&opened.context(), question.id, text, person, CHANNEL).await?;
    Ok(Receipt {
        next: next(question, answered.choice.as_ref()),
        ..answered.into()
    })
}

/// Says what follows from this choice, and which verb tells of it: whoever asked goes on by itself, a moment later.
fn next(question: &Question, choice: Option<&ChoiceId>) -> Option<String> {
    let trigger = Trigger::parse(&question.trigger);
    let is_merged = match trigger {
        Some(Trigger::BuildFinished) => BuildFinished::of(choice) == Some(BuildFinished::Merge),
        Some(Trigger::LandingRefused) => {
            LandingRefused::of(choice) == Some(LandingRefused::TryAgain)
        }
        _ => false,
    };
    let is_begun = trigger == Some(Trigger::SpecComplete)
        && SpecComplete::of(choice) == Some(SpecComplete::Start);
    let verb = match &question.about {
        About::Build { build } | About::Task { build, .. } => {
            format!("build show {}", last_digits(build))
        }
        About::Specification { .. } if is_begun => "build list".to_owned(),
        About::Specification { spec } => format!("spec show {}", last_digits(spec)),
        About::Session { .. } => format!("idea show {}", question.idea.as_ref()?),
        About::Knowledge { item } => format!("knowledge show {}", last_digits(item)),
        About::Nothing => return None,
    };
    Some(if is_merged {
        format!("the build agent merges the branch; `ropewalk {verb}` tells when it has")
    } else {
        format!("`ropewalk {verb}` shows what comes of it")
    })
}

/// Shows the question on the terminal and asks for the answer.
fn ask(app: &App, opened: &OpenProject, question: &Question) -> Result<String, CliError> {
    if question.state != QuestionState::Pending {
        let text = format!("question `{}` is already {}", question.id, question.state);
        return Err(CliError::refused("question", text));
    }
    if !app.can_ask() {
        let choices = choices_told(question);
        let text = ("an answer is missing", format!("add {choices}"));
        return Err(CliError::usage(text));
    }
    app.output.note(&whole(question, opened.project.state()))?;
    forget_what_was_typed();
    let answered = if question.choices.is_empty() || question.free_text {
        inquire::Text::new("Your answer (an id, a number, or words):").prompt()
    } else {
        pick(&question.choices)
    };
    answered.map_err(|error| match error {
        inquire::InquireError::OperationCanceled | inquire::InquireError::OperationInterrupted => {
            CliError::Cancelled
        }
        other => CliError::failed(other),
    })
}

/// Lets a person pick a choice, and asks for its words where it takes some; returns it as it would be typed.
fn pick(choices: &[Choice]) -> Result<String, inquire::InquireError> {
    let labels: Vec<String> = choices.iter().map(|choice| clean(&choice.label)).collect();
    let picked = inquire::Select::new("Your answer:", labels).raw_prompt()?;
    let choice = &choices[picked.index];
    let wanted = match choice.words {
        ChoiceWords::None => return Ok(choice.id.to_string()),
        ChoiceWords::Optional => "Why, if you want to say so:",
        ChoiceWords::Required => "Your words:",
    };
    let words = inquire::Text::new(wanted).prompt()?;
    Ok(format!("{}: {words}", choice.id))
}
