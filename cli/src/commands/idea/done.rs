//! Verb `idea done`: says that nothing is to be added; the brief is written of what is known.

use clap::Args;
use ropewalk_desk::ideas;

use super::chat;
use crate::app::App;
use crate::error::CliError;
use crate::ids::IdeaText;
use crate::wiring::{Crew, Reach};

/// The idea.
#[derive(Debug, Args)]
pub struct Done {
    /// Its name, as `idea list` shows it, or how it begins.
    idea: IdeaText,
}

impl Done {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let open = match self.idea.find(&desk).await {
            Ok(slug) => ideas::unfinished(&desk.store, &slug)
                .await
                .map_err(Into::into),
            Err(error) => Err(error),
        };
        desk.close().await?;
        open?;
        let (reach, slug) = Reach::open(app, Crew::Ideation, &self.idea).await?;
        let ended = chat::end(app, &reach, &slug).await;
        let closed = reach.close().await;
        ended.and(closed)
    }
}
