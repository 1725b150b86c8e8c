//! Specifications: have one made, read it, decide about it.

pub mod approve;
pub mod comment;
pub mod diff;
pub mod generate;
mod given;
pub(super) mod hash;
pub mod lines;
pub mod list;
pub mod reject;
pub mod revise;
pub mod show;
pub mod validate;
mod writing;

use clap::Subcommand;

use crate::app::App;
use crate::error::CliError;

/// The verbs of `spec`.
#[derive(Debug, Subcommand)]
pub enum Spec {
    /// Has the specification of an idea made.
    Generate(generate::Generate),
    /// Lists the specifications.
    List(list::List),
    /// Shows a specification with its hash and price.
    Show(show::Show),
    /// Shows what changed between two revisions.
    Diff(diff::Diff),
    /// Shows the documents of the newest revision, line by line.
    Lines(lines::Lines),
    /// Checks the newest revision of a specification again.
    Validate(validate::Validate),
    /// Approves one revision by its hash; its build begins.
    Approve(approve::Approve),
    /// Asks for changes, and has another revision written.
    Revise(revise::Revise),
    /// Asks for changes by comments on lines.
    Comment(comment::Comment),
    /// Puts a specification away.
    Reject(reject::Reject),
}

/// Runs a verb.
pub async fn run(noun: Spec, app: &App) -> Result<(), CliError> {
    match noun {
        Spec::Generate(verb) => verb.run(app).await,
        Spec::List(verb) => verb.run(app).await,
        Spec::Show(verb) => verb.run(app).await,
        Spec::Diff(verb) => verb.run(app).await,
        Spec::Lines(verb) => verb.run(app).await,
        Spec::Validate(verb) => verb.run(app).await,
        Spec::Approve(verb) => Box::pin(verb.run(app)).await,
        Spec::Revise(verb) => Box::pin(verb.run(app)).await,
        Spec::Comment(verb) => verb.run(app).await,
        Spec::Reject(verb) => verb.run(app).await,
    }
}
