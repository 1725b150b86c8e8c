//! Verb `build lines`: what a build changed, line by line.

use clap::Args;
use ropewalk_desk::comments::lines_of_build;

use crate::app::App;
use crate::comments;
use crate::error::CliError;
use crate::ids::IdText;
use crate::wiring;

/// The build.
#[derive(Debug, Args)]
pub struct Lines {
    /// The build's id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
}

impl Lines {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let build = self.id.build(&opened).await?;
        let files = wiring::changed_lines(&opened.project, &app.environment, &build).await?;
        let lines = lines_of_build(&build, files);
        comments::shown(app, &lines, &format!("build comment {}", build.id))
    }
}
