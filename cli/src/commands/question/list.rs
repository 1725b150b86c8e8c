//! Verb `question list`: the questions, the most urgent first.

use clap::Args;
use ropewalk_orchestrator::questions;
use ropewalk_schemas::Slug;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_store::Query;

use crate::app::App;
use crate::error::CliError;
use crate::output::{short, time};

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Closed ones too.
    #[arg(long)]
    all: bool,
    /// Only those about this idea.
    #[arg(long)]
    idea: Option<Slug>,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let mut query = Query::new();
        if !self.all {
            query = query.equal("state", QuestionState::Pending.as_str());
        }
        if let Some(idea) = &self.idea {
            query = query.equal("idea", idea.as_str());
        }
        let rows = desk.store.list::<Question>(query).await?;
        let mut found: Vec<Question> = rows.into_iter().map(|row| row.record).collect();
        found.sort_by_key(questions::rank);
        app.output.list(
            &found,
            ["id", "kind", "idea", "question", "asked", "state"],
            |question| {
                [
                    question.id.to_string(),
                    question.kind.as_str().to_owned(),
                    question
                        .idea
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                    short(&question.text, 70),
                    time(question.asked_at),
                    state(question),
                ]
            },
        )
    }
}

fn state(question: &Question) -> String {
    match (&question.answer, question.due_at) {
        (Some(answer), _) => format!("{}: {}", question.state, short(&answer.text, 30)),
        (None, Some(due)) if question.state == QuestionState::Pending => {
            format!("pending, ends {}", time(due))
        }
        (None, _) => question.state.to_string(),
    }
}
