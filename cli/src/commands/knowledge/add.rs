//! Verb `knowledge add`: adds something worth remembering, on a person's word.

use clap::{Args, ValueEnum};
use ropewalk_desk::knowledge::{self, Remark, RemarkError, RemarkOutcome};
use ropewalk_schemas::knowledge::KnowledgeKind;
use ropewalk_schemas::task::Action;
use ropewalk_schemas::{KnowledgeId, Slug};
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;

/// What to remember.
#[derive(Debug, Args)]
pub struct Add {
    /// What it says, at most 2,000 characters.
    #[arg(required = true)]
    content: Vec<String>,
    /// What it is.
    #[arg(long, value_enum, default_value = "gotcha")]
    kind: Kind,
    /// The files it applies to, for example `src/*.rs`; may be given again.
    #[arg(long = "file", value_name = "GLOB")]
    globs: Vec<String>,
    /// The action it applies to.
    #[arg(long, value_enum)]
    action: Option<TaskAction>,
    /// What it is about; may be given again.
    #[arg(long = "topic")]
    topics: Vec<String>,
    /// The idea it comes from.
    #[arg(long)]
    idea: Option<Slug>,
    /// How sure it is, 0 to 1.
    #[arg(long, default_value_t = 0.9, value_parser = confidence)]
    confidence: f64,
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A mistake to avoid.
    Gotcha,
    /// An approach that works.
    Pattern,
    /// A decision and its reason.
    Decision,
    /// A rule of the project.
    Convention,
    /// What a person likes.
    Preference,
    /// Anything else.
    Fact,
}

/// What a task does to its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TaskAction {
    /// Makes a new file.
    Create,
    /// Changes a file.
    Update,
    /// Adds to a file.
    Add,
    /// Removes a file.
    Delete,
    /// Runs a check.
    Verify,
}

#[derive(Debug, Serialize)]
struct Receipt {
    id: KnowledgeId,
    outcome: &'static str,
}

impl Add {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let person = opened.person()?;
        let remembered = knowledge::remember(&opened.context(), self.remark(), person).await?;
        opened.poke()?;
        let outcome = match remembered {
            RemarkOutcome::Added(_) => "added",
            RemarkOutcome::SeenAgain { .. } => "seen-again",
            RemarkOutcome::Superseded(_) => "superseded",
        };
        let counts = matches!(remembered, RemarkOutcome::SeenAgain { counted: true, .. });
        let done = Receipt {
            id: remembered.item(),
            outcome,
        };
        app.output.show(&done, |done| {
            let id = done.id;
            match done.outcome {
                "added" => format!("remembered as {id}"),
                "seen-again" if counts => format!("known already as {id}; counted once more"),
                "seen-again" => format!("known already as {id}"),
                _ => format!("remembered as {id} in place of a weaker item"),
            }
        })
    }

    fn remark(self) -> Remark {
        Remark {
            kind: self.kind.into(),
            content: self.content.join(" "),
            globs: self.globs,
            action: self.action.map(|action| match action {
                TaskAction::Create => Action::Create,
                TaskAction::Update => Action::Update,
                TaskAction::Add => Action::Add,
                TaskAction::Delete => Action::Delete,
                TaskAction::Verify => Action::Verify,
            }),
            topics: self.topics,
            confidence: self.confidence,
            idea: self.idea,
        }
    }
}

impl From<Kind> for KnowledgeKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Gotcha => Self::Gotcha,
            Kind::Pattern => Self::Pattern,
            Kind::Decision => Self::Decision,
            Kind::Convention => Self::Convention,
            Kind::Preference => Self::Preference,
            Kind::Fact => Self::Fact,
        }
    }
}

impl From<RemarkError> for CliError {
    fn from(error: RemarkError) -> Self {
        match error {
            RemarkError::Refused(refusal) => Self::advised("knowledge", refusal),
            RemarkError::Read(error) => error.into(),
            RemarkError::Commit(error) => error.into(),
        }
    }
}

fn confidence(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err("write a number from 0 to 1".to_owned()),
    }
}
