//! Ideas: begin one, look at it, talk about it.

pub mod abandon;
pub mod attach;
pub mod chat;
pub mod done;
pub mod list;
pub mod new;
pub mod show;

use clap::Subcommand;

use crate::app::App;
use crate::error::CliError;

/// The verbs of `idea`.
#[derive(Debug, Subcommand)]
pub enum Idea {
    /// Begins an idea with its first message.
    New(new::New),
    /// Lists the ideas.
    List(list::List),
    /// Shows an idea, its brief and what was said about it.
    Show(show::Show),
    /// Talks about an idea until it is clear.
    Chat(chat::Chat),
    /// Keeps a file with an idea, and tells of it in its conversation.
    Attach(attach::Attach),
    /// Says that nothing is to be added: the brief is written of what is known.
    Done(done::Done),
    /// Gives an idea up: what of it is not landed ends.
    Abandon(abandon::Abandon),
}

/// Runs a verb.
pub async fn run(noun: Idea, app: &App) -> Result<(), CliError> {
    match noun {
        Idea::New(verb) => verb.run(app).await,
        Idea::List(verb) => verb.run(app).await,
        Idea::Show(verb) => verb.run(app).await,
        Idea::Chat(verb) => verb.run(app).await,
        Idea::Attach(verb) => verb.run(app).await,
        Idea::Done(verb) => verb.run(app).await,
        Idea::Abandon(verb) => verb.run(app).await,
    }
}
