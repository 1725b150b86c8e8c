//! People: who works on the project, and what each of them may do.

pub mod link;
pub mod list;
pub mod token;
pub mod whoami;

use clap::Subcommand;

use crate::app::App;
use crate::error::CliError;

/// The verbs of `people`.
#[derive(Debug, Subcommand)]
pub enum People {
    /// Lists who works on the project.
    List(list::List),
    /// Prints a code by which somebody's phone is linked.
    Link(link::Link),
    /// Makes a token by which somebody is known elsewhere than on this terminal.
    Token(token::Token),
}

/// Runs a verb.
pub async fn run(noun: People, app: &App) -> Result<(), CliError> {
    match noun {
        People::Link(verb) => verb.run(app).await,
        People::List(verb) => verb.run(app),
        People::Token(verb) => verb.run(app),
    }
}
