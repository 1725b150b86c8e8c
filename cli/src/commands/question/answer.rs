//! Verb `question answer`: answers one question, or all that have a safe default.

use clap::Args;
use ropewalk_orchestrator::questions::{self, Answered};
use ropewalk_schemas::QuestionId;
use ropewalk_schemas::question::{Question, QuestionState};
use serde::Serialize;

use super::show::human;
use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;
use crate::wiring::Desk;

/// Where the answers of this verb come from.
const CHANNEL: &str = "cli";

/// The question and its answer.
#[derive(Debug, Args)]
pub struct Answer {
    /// Its id, as `question list` shows it.
    #[arg(required_unless_present = "all_defaults")]
    id: Option<IdText>,
    /// The label or number of an option, or a text of your own; asked for when absent.
    text: Vec<String>,
    /// Answers every question whose default neither blocks, approves, starts, merges, deletes nor spends.
    #[arg(long, conflicts_with_all = ["id", "text"])]
    all_defaults: bool,
}

#[derive(Debug, Serialize)]
struct Done {
    id: QuestionId,
    answer: String,
}

impl From<Answered> for Done {
    fn from(answered: Answered) -> Self {
        Self {
            id: answered.id,
            answer: answered.answer,
        }
    }
}

impl Answer {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let by = desk.user().to_string();
        let Some(id) = self.id else {
            let answered = questions::answer_defaults(&desk.context(), &by, CHANNEL).await?;
            let done: Vec<Done> = answered.into_iter().map(Done::from).collect();
            if !done.is_empty() {
                desk.poke_or_say(&app.output)?;
            }
            return app.output.list(&done, ["question", "answer"], |done| {
                [done.id.to_string(), done.answer.clone()]
            });
        };
        let question = id
            .find::<Question>(&desk, "question", "question list")
            .await?
            .record;
        let text = if self.text.is_empty() {
            ask(app, &question)?
        } else {
            self.text.join(" ")
        };
        let done = answer(&desk, question.id, &text, &by).await?;
        desk.poke_or_say(&app.output)?;
        app.output.show(&done, |done| {
            format!("answered {}: {}", done.id, done.answer)
        })
    }
}

async fn answer(desk: &Desk, id: QuestionId, text: &str, by: &str) -> Result<Done, CliError> {
    Ok(questions::answer(&desk.context(), id, text, by, CHANNEL)
        .await?
        .into())
}

/// Shows the question on the terminal and asks for the answer.
fn ask(app: &App, question: &Question) -> Result<String, CliError> {
    if question.state != QuestionState::Pending {
        let text = format!("question `{}` is already {}", question.id, question.state);
        return Err(CliError::refused("question", text));
    }
    if !app.can_ask() {
        let labels: Vec<String> = question
            .choices
            .iter()
            .map(|choice| format!("`{}`", choice.label))
            .collect();
        let text = format!("an answer is missing; add one of {}", labels.join(", "));
        return Err(CliError::Usage(text));
    }
    app.output.note(&human(question))?;
    let labels: Vec<String> = question
        .choices
        .iter()
        .map(|choice| choice.label.clone())
        .collect();
    let answered = if labels.is_empty() || question.free_text {
        inquire::Text::new("Your answer (a number, or words):").prompt()
    } else {
        inquire::Select::new("Your answer:", labels).prompt()
    };
    answered.map_err(|error| match error {
        inquire::InquireError::OperationCanceled | inquire::InquireError::OperationInterrupted => {
            CliError::Cancelled
        }
        other => CliError::failed(other),
    })
}
