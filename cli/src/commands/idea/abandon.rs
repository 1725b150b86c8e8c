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
    /// Says what would end, and abandons nothing.
    #[arg(long)]
    dry_run: bool,
    /// Asks nothing.
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
}

#[derive(Debug, Serialize)]
struct Receipt {
    idea: Slug,
}

impl Abandon {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let slug = self.idea.find_whole(&opened).await?;
        let person = opened.person()?;
        let preview = ideas::preview_abandonment(&opened.store, &slug, person).await;
        let preview = preview.map_err(refused)?;
        if self.dry_run {
            return app.output.show(&preview, |preview| {
                format!("{}; nothing was abandoned", preview.in_words())
            });
        }
        if !self.yes && app.can_ask() {
            app.output.note(&preview.in_words())?;
            App::confirm(&format!("Abandon {slug}? It cannot be taken back."))?;
        }
        let abandoned = ideas::abandon(&opened.context(), &slug, person, self.reason).await;
        abandoned.map_err(refused)?;
        opened.poke_or_say(&app.output)?;
        let done = Receipt { idea: slug };
        app.output
            .show(&done, |done| format!("abandoned {}", done.idea))
    }
}

fn refused(refusal: AbandonError) -> CliError {
    match refusal {
        AbandonError::Forbidden(forbidden) => forbidden.into(),
        AbandonError::TooLong(error) => error.into(),
        refusal => CliError::advised("idea-state", refusal),
    }
}
