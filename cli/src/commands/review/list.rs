//! Verb `review list`: the reviews, the newest first.

use clap::Args;
use ropewalk_desk::views::review;

use super::subject;
use crate::app::App;
use crate::error::CliError;
use crate::ids::IdeaText;
use crate::output::time;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Only those of this idea.
    #[arg(long)]
    idea: Option<IdeaText>,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let idea = IdeaText::find_wanted(self.idea.as_ref(), &opened).await?;
        let reviews = review::list(&opened.store, idea.as_ref()).await?;
        app.output.list(
            &reviews,
            ["id", "idea", "of", "objections", "lessons", "at"],
            |review| {
                let lessons = review.gotchas.len() + review.patterns.len();
                [
                    review.id.to_string(),
                    review.idea.to_string(),
                    subject(review),
                    review.objections().count().to_string(),
                    lessons.to_string(),
                    time(review.at),
                ]
            },
        )
    }
}
