//! Verb `spec comment`: says something about lines of the newest revision; all of it together asks for another.

use clap::Args;
use ropewalk_desk::comments::on_specification;
use ropewalk_schemas::ContentHash;

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
        let hash = ContentHash::parse(&self.comments.of)?;
        let desk = app.desk().await?;
        let spec = self.id.specification(&desk).await?.id;
        let (context, person) = (desk.context(), desk.person()?);
        on_specification(&context, spec, &hash, person, &said).await?;
        desk.poke_or_say(&app.output)?;
        let comments = said.len();
        comments::sent(app, &CommentReceipt { spec, comments })
    }
}
