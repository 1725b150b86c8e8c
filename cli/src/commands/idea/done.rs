//! Verb `idea done`: says that nothing is to be added; the brief is written of what is known.

use clap::Args;
use ropewalk_desk::ideas::{self, ChatError};
use ropewalk_schemas::Slug;
use serde::Serialize;

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

/// A conversation that had ended before.
#[derive(Serialize)]
struct EndedBefore {
    idea: Slug,
    next: String,
}

impl Done {
    /// Runs the verb; a conversation that has ended already is none that failed to.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let open = match self.idea.find(&opened).await {
            Ok(slug) => match ideas::unfinished(&opened.store, &slug).await {
                Ok(_) => Ok(None),
                Err(ChatError::Complete { idea, next }) => Ok(Some(EndedBefore { idea, next })),
                Err(error) => Err(error.into()),
            },
            Err(error) => Err(error),
        };
        opened.close().await?;
        if let Some(ended) = open? {
            return app.output.show(&ended, |EndedBefore { idea, next }| {
                format!("the idea `{idea}` is complete already; {next}")
            });
        }
        let (reach, slug) = Reach::open(app, Crew::Ideation, &self.idea).await?;
        let ended = chat::end(app, &reach, &slug).await;
        let closed = reach.close().await;
        ended.and(closed)
    }
}
