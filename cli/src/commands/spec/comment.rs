//! Verb `spec comment`: says something about lines of the newest revision; all of it together asks for another.

use clap::Args;
use ropewalk_desk::comments::{CommentError, on_specification};

use super::hash::HashText;
use crate::app::App;
use crate::comments::{self, CommentReceipt, Comments};
use crate::error::CliError;
use crate::ids::IdText;

/// The specification, its lines and what is said about them.
#[derive(Debug, Args)]
pub struct Comment {
    /// Its id, as `spec list` shows it, or the name of its idea for the newest.
    id: IdText,
    #[command(flatten)]
    comments: Comments,
}

impl Comment {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let said = self.comments.said()?;
        let hash = self.comments.of.parse::<HashText>();
        let hash = hash.map_err(|next| {
            let named = format!("`{}` names no revision", self.comments.of);
            CliError::usage((named, next))
        })?;
        let opened = app.open().await?;
        let found = self.id.specification(&opened).await?;
        let (spec, hash) = (found.id, hash.of(&found).ok_or(CommentError::Changed)?);
        let (context, person) = (opened.context(), opened.person()?);
        on_specification(&context, spec, &hash, person, &said).await?;
        opened.poke_or_say(&app.output)?;
        let comments = said.len();
        comments::sent(app, &CommentReceipt { spec, comments })
    }
}
