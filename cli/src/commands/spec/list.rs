//! Verb `spec list`: the specifications, the oldest first.

use clap::Args;
use ropewalk_coordination::waits::blocking_questions;
use ropewalk_schemas::Slug;
use ropewalk_schemas::specification::Specification;
use ropewalk_store::Query;

use super::show::waits_for;
use crate::app::App;
use crate::error::CliError;
use crate::output::time;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Only those of this idea.
    #[arg(long)]
    idea: Option<Slug>,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let mut query = Query::new().order_by("created_at");
        if let Some(idea) = &self.idea {
            query = query.equal("idea", idea.as_str());
        }
        let rows = desk.store.list::<Specification>(query).await?;
        let specs: Vec<Specification> = rows.into_iter().map(|row| row.record).collect();
        let open = blocking_questions(&desk.store).await?;
        app.output.list(
            &specs,
            ["id", "idea", "state", "revision", "hash", "asked"],
            |spec| {
                [
                    spec.id.to_string(),
                    spec.idea.to_string(),
                    match waits_for(spec, &open).first() {
                        Some(question) => format!(
                            "{}, waits for your answer to question {question}",
                            spec.state
                        ),
                        None => spec.state.to_string(),
                    },
                    spec.revision.to_string(),
                    spec.hash
                        .as_ref()
                        .map_or("", |hash| &hash.as_str()[..12])
                        .to_owned(),
                    time(spec.created_at),
                ]
            },
        )
    }
}
