//! Verb `build comment`: says something about lines that a finished build changed; the amended build does it.

use clap::Args;
use ropewalk_desk::comments::{CommentError, admits, on_build};
use ropewalk_schemas::CommitId;
use ropewalk_schemas::build::Build;

use crate::app::App;
use crate::comments::{self, CommentReceipt, Comments};
use crate::error::CliError;
use crate::ids::IdText;
use crate::wiring;

/// The fewest digits of a commit that name it; git shows so many.
const FEWEST_DIGITS: usize = 7;

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
        let opened = app.open().await?;
        let build = self.id.build(&opened).await?;
        let head = head(&self.comments.of, &build)?;
        let files = wiring::changed_lines(&opened.project, &app.environment, &build).await?;
        let (context, person) = (opened.context(), opened.person()?);
        let spec = on_build(&context, &build, &head, &files, person, &said).await?;
        opened.poke_or_say(&app.output)?;
        let comments = said.len();
        comments::sent(app, &CommentReceipt { spec, comments })
    }
}

/// Returns the commit that is meant by how it begins: the head of the build, which alone is commented on.
fn head(text: &str, build: &Build) -> Result<CommitId, CliError> {
    let wanted = text.trim().to_ascii_lowercase();
    let fits = wanted.len() >= FEWEST_DIGITS && wanted.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !fits {
        let text = (
            format!("`{text}` names no commit"),
            format!(
                "write at least its first {FEWEST_DIGITS} digits, as `ropewalk build lines {}` shows it",
                build.id
            ),
        );
        return Err(CliError::usage(text));
    }
    admits(build)?;
    let head = build.head.as_ref();
    let meant = head.filter(|head| head.as_str().starts_with(&wanted));
    Ok(meant.cloned().ok_or(CommentError::Changed)?)
}
