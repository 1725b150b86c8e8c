//! Verb `knowledge add`: adds something worth remembering, on a person's word.

use clap::{Args, ValueEnum};
use ropewalk_knowledge::{Draft, RecordOutcome};
use ropewalk_schemas::knowledge::KnowledgeKind;
use ropewalk_schemas::task::Action;
use ropewalk_schemas::{ComponentName, KnowledgeId, Payload, Slug, Subject};
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
    action: Option<Does>,
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
pub enum Does {
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
struct Done {
    id: Option<KnowledgeId>,
    outcome: &'static str,
}

impl Add {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let context = desk.context();
        let id = KnowledgeId(context.ids.next());
        let user = desk.person()?.name.to_string();
        let draft = self.draft(&user)?;
        let mut recorded =
            ropewalk_knowledge::record(&desk.store, draft, id, context.now()).await?;
        if let RecordOutcome::Refused(refusal) = &recorded.outcome {
            return Err(CliError::refused("knowledge", refusal));
        }
        let item = recorded.outcome.item();
        let subject = Subject::parse(&format!("knowledge/{}", item.unwrap_or(id)))?;
        for payload in recorded.payloads {
            let payload: Payload = payload;
            recorded
                .changes
                .emit(context.event(subject.clone(), payload));
        }
        desk.store.commit(recorded.changes).await?;
        desk.poke()?;
        let outcome = match recorded.outcome {
            RecordOutcome::Added(_) => "added",
            RecordOutcome::SeenAgain(_) => "seen-again",
            RecordOutcome::Superseded { .. } => "superseded",
            RecordOutcome::Refused(_) => "refused",
        };
        app.output.show(&Done { id: item, outcome }, |done| {
            let id = done.id.map(|id| id.to_string()).unwrap_or_default();
            match done.outcome {
                "added" => format!("remembered as {id}"),
                "seen-again" => format!("known already as {id}"),
                _ => format!("remembered as {id} in place of a weaker item"),
            }
        })
    }

    fn draft(self, user: &str) -> Result<Draft, CliError> {
        Ok(Draft {
            kind: match self.kind {
                Kind::Gotcha => KnowledgeKind::Gotcha,
                Kind::Pattern => KnowledgeKind::Pattern,
                Kind::Decision => KnowledgeKind::Decision,
                Kind::Convention => KnowledgeKind::Convention,
                Kind::Preference => KnowledgeKind::Preference,
                Kind::Fact => KnowledgeKind::Fact,
            },
            content: self.content.join(" "),
            globs: self.globs,
            action: self.action.map(|action| match action {
                Does::Create => Action::Create,
                Does::Update => Action::Update,
                Does::Add => Action::Add,
                Does::Delete => Action::Delete,
                Does::Verify => Action::Verify,
            }),
            topics: self.topics,
            confidence: self.confidence,
            execution: format!("person/{user}"),
            idea: self.idea,
            evidence: vec![format!("person/{user}")],
            discovered_by: ComponentName::parse("cli")?,
            from_person: true,
        })
    }
}

fn confidence(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err("write a number from 0 to 1".to_owned()),
    }
}
