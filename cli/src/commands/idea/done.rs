//! Verb `idea done`: says that nothing is to be added; the brief is written of what is known.

use clap::Args;
use ropewalk_desk::ideas;
use ropewalk_schemas::Slug;

use super::chat;
use crate::app::App;
use crate::error::CliError;
use crate::wiring::{Crew, Reach};

/// The idea.
#[derive(Debug, Args)]
pub struct Done {
    /// Its name, as `idea list` shows it.
    slug: Slug,
}

impl Done {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let open = ideas::unfinished(&desk.store, &self.slug).await;
        desk.close().await?;
        open?;
        let reach = Reach::open(app, Crew::Ideation, &self.slug).await?;
        let ended = chat::end(app, &reach, &self.slug).await;
        let closed = reach.close().await;
        ended.and(closed)
    }
}
