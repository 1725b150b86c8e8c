//! Verb `idea abandon`: gives an idea up; what of it is not landed ends, and its files are free.

use clap::Args;
use ropewalk_desk::ideas::{self, AbandonError};
use ropewalk_schemas::Slug;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdeaText;

/// The idea and the reason.
#[derive(Debug, Args)]
pub struct Abandon {
    /// Its whole name, as `idea list` shows it.
    idea: IdeaText,
    /// Why.
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct Receipt {
    idea: Slug,
}

impl Abandon {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let slug = self.idea.find_whole(&desk).await?;
        ideas::abandon(&desk.context(), &slug, desk.person()?, self.reason)
            .await
            .map_err(|refused| match refused {
                AbandonError::Forbidden(forbidden) => forbidden.into(),
                refused => CliError::advised("idea-state", refused),
            })?;
        desk.poke_or_say(&app.output)?;
        let done = Receipt { idea: slug };
        app.output
            .show(&done, |done| format!("abandoned {}", done.idea))
    }
}
