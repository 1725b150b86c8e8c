//! Verb `review show`: what came of a build, by the id of the review or of the build.

use std::fmt::Write as _;

use clap::Args;
use ropewalk_desk::views::review::{self, ReviewView};
use ropewalk_schemas::review::{Divergence, Review};

use super::subject;
use crate::app::App;
use crate::commands::knowledge::word;
use crate::error::CliError;
use crate::ids::IdText;
use crate::output::time;
use crate::wiring::OpenProject;

/// The review.
#[derive(Debug, Args)]
pub struct Show {
    /// The id of the review, as `review list` shows it, or of its build, as `build list` shows it.
    id: IdText,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let found = self.found(&opened).await?;
        let shown = review::show(&opened.store, found).await?;
        app.output.show(&shown, human)
    }

    async fn found(&self, opened: &OpenProject) -> Result<Review, CliError> {
        let unknown = match self
            .id
            .find::<Review>(opened, "review", "review list")
            .await
        {
            Ok(review) => return Ok(review.record),
            // Digits that several reviews begin with may still name one build.
            Err(error) if error.is_unknown() || error.is_ambiguous() => error,
            Err(error) => return Err(error),
        };
        let build = match self.id.build(opened).await {
            Ok(build) => build,
            Err(error) if error.is_unknown() || error.is_ambiguous() => return Err(unknown),
            Err(error) => return Err(error),
        };
        let newest = review::of_build(&opened.store, build.id).await?;
        newest.ok_or_else(|| {
            let text = (
                format!("build `{}` was not reviewed", build.id),
                "a review follows its end while `ropewalk up` runs",
            );
            CliError::refused("review", text)
        })
    }
}

fn human(shown: &ReviewView) -> String {
    let review = &shown.review;
    let mut text = format!(
        "review {} of {} of `{}` at {}\n",
        review.id,
        subject(review),
        review.idea,
        time(review.at)
    );
    // Writing to a String cannot fail.
    for measure in shown.measures() {
        writeln!(text, "{measure}").ok();
    }
    for divergence in &review.divergences {
        text.push_str(&told(divergence));
    }
    for item in &shown.lessons {
        let (kind, content) = (word(&item.kind), item.content.trim());
        writeln!(
            text,
            "{kind} {} ({:.2}): {content}",
            item.id, item.confidence
        )
        .ok();
    }
    for note in &review.notes {
        writeln!(text, "note: {note}").ok();
    }
    text
}

fn told(divergence: &Divergence) -> String {
    format!(
        "{} {}: planned {}, done {}\n",
        word(&divergence.class),
        divergence.place(),
        divergence.planned,
        divergence.actual
    )
}
