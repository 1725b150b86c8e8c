//! Verb `build comment`: says something about lines that a finished build changed; the amended build does it.

use clap::Args;
use ropewalk_desk::comments::on_build;
use ropewalk_schemas::CommitId;

use crate::app::App;
use crate::comments::{self, CommentReceipt, Comments};
use crate::error::CliError;
use crate::ids::IdText;
use crate::wiring;

/// The build, its lines and what is said about them.
#[derive(Debug, Args)]
pub struct Comment {
    /// The build's id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
    #[command(flatten)]
    comments: Comments,
}

impl Comment {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let said = self.comments.said()?;
        let head = CommitId::parse(&self.comments.of)?;
        let desk = app.desk().await?;
        let build = self.id.build(&desk).await?;
        let files = wiring::changed_lines(&desk.project, &app.environment, &build).await?;
        let (context, person) = (desk.context(), desk.person()?);
        let spec = on_build(&context, &build, &head, &files, person, &said).await?;
        desk.poke_or_say(&app.output)?;
        let comments = said.len();
        comments::sent(app, &CommentReceipt { spec, comments })
    }
}
