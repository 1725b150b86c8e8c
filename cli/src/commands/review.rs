//! Reviews: what came of a build, and what was learned from it.

pub mod list;
pub mod show;

use clap::Subcommand;
use ropewalk_schemas::review::{self, ReviewKind};

use crate::app::App;
use crate::error::CliError;

/// The verbs of `review`.
#[derive(Debug, Subcommand)]
pub enum Review {
    /// Lists the reviews, the newest first.
    List(list::List),
    /// Shows a review with its lessons.
    Show(show::Show),
}

/// Runs a verb.
pub async fn run(noun: Review, app: &App) -> Result<(), CliError> {
    match noun {
        Review::List(verb) => verb.run(app).await,
        Review::Show(verb) => verb.run(app).await,
    }
}

/// Names what was reviewed.
fn subject(review: &review::Review) -> String {
    match (review.kind, &review.build, &review.spec) {
        (ReviewKind::Build, Some(build), _) => format!("build {build}"),
        (ReviewKind::Specification, _, Some(spec)) => format!("specification {spec}"),
        _ => "the conversation".to_owned(),
    }
}
