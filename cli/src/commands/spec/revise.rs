//! Verb `spec revise`: asks for changes to the newest revision.

use clap::Args;
use ropewalk_desk::specifications;
use ropewalk_schemas::SpecId;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;

/// The specification and what to change.
#[derive(Debug, Args)]
pub struct Revise {
    /// Its id, as `spec list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// What to change.
    #[arg(required = true)]
    feedback: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Receipt {
    spec: SpecId,
    requested: bool,
}

impl Revise {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let spec = self.id.specification(&desk).await?.id;
        let feedback = self.feedback.join(" ");
        specifications::revise(&desk.context(), spec, &desk.person()?.name, &feedback).await?;
        desk.poke_or_say(&app.output)?;
        app.output.show(
            &Receipt {
                spec,
                requested: true,
            },
            |done| {
                format!(
                    "asked for a new revision; `ropewalk spec show {}` shows it once it is there",
                    done.spec
                )
            },
        )
    }
}
