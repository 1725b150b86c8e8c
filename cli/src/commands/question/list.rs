//! Verb `question list`: the questions, the most urgent first.

use clap::Args;
use ropewalk_desk::views::question;
use ropewalk_orchestrator::questions::choices_in_short;
use ropewalk_schemas::clip;
use ropewalk_schemas::question::{Question, QuestionState};

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdeaText;
use crate::output::{in_short, time};

/// So much of what is asked is told; `question show` shows the whole.
const LETTERS: usize = 100;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Closed ones too.
    #[arg(long)]
    all: bool,
    /// Only those about this idea.
    #[arg(long)]
    idea: Option<IdeaText>,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let idea = IdeaText::find_wanted(self.idea.as_ref(), &opened).await?;
        let found = question::list(&opened.store, idea.as_ref(), self.all).await?;
        app.output.list(
            &found,
            [
                "id", "kind", "idea", "question", "answers", "asked", "state",
            ],
            |row| {
                let question = &row.question;
                [
                    question.id.to_string(),
                    question.kind.in_words().to_owned(),
                    question
                        .idea
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                    in_short(&question.text, LETTERS),
                    choices_in_short(question),
                    time(question.asked_at),
                    state(question),
                ]
            },
        )
    }
}

fn state(question: &Question) -> String {
    match (&question.answer, question.due_at) {
        (Some(answer), _) => {
            let answer = question.answer_in_words(answer);
            format!("{}: {}", question.state, clip::line(&answer, 30))
        }
        (None, Some(due)) if question.state == QuestionState::Pending => {
            format!("pending, ends {}", time(due))
        }
        (None, _) => question.state.to_string(),
    }
}
