//! Verb `idea new`: begins an idea with its first message.

use clap::{Args, ValueEnum};
use ropewalk_desk::ideas::{self, Opening};
use ropewalk_schemas::idea::IdeaKind;
use ropewalk_schemas::{SessionId, Slug};
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;

/// The idea.
#[derive(Debug, Args)]
pub struct New {
    /// What it is about, in a few words.
    #[arg(required = true)]
    title: Vec<String>,
    /// The first message; the title when absent.
    #[arg(long)]
    text: Option<String>,
    /// Its name; made of the title when absent.
    #[arg(long)]
    slug: Option<Slug>,
    /// What sort of idea it is; found out in the conversation when absent.
    #[arg(long, value_enum)]
    kind: Option<Kind>,
}

/// What sort of idea it is, which sets what has to be known before it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Something that has to find customers.
    Venture,
    /// Something that other people use.
    Product,
    /// Something that you and people like you use.
    Tool,
    /// More of what is in the repository.
    Feature,
    /// Something in the repository that is wrong.
    Fix,
}

impl From<Kind> for IdeaKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Venture => Self::Venture,
            Kind::Product => Self::Product,
            Kind::Tool => Self::Tool,
            Kind::Feature => Self::Feature,
            Kind::Fix => Self::Fix,
        }
    }
}

#[derive(Debug, Serialize)]
struct Receipt {
    slug: Slug,
    session: SessionId,
}

impl New {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let words = self.title.join(" ");
        // Words alone are the first message, whose beginning is the title.
        let title = self.text.is_some().then(|| words.clone());
        let opened = app.open().await?;
        let opening = Opening {
            user: opened.person()?.name.clone(),
            title,
            text: self.text.unwrap_or(words),
            slug: self.slug,
            kind: self.kind.map(Into::into),
            whole: false,
        };
        let started = ideas::start(&opened.context(), opening).await?;
        opened.poke()?;
        let begun = Receipt {
            slug: started.idea,
            session: started.session,
        };
        app.output.show(&begun, |begun| {
            format!(
                "began `{0}`; talk about it with `ropewalk idea chat {0}`",
                begun.slug
            )
        })
    }
}
