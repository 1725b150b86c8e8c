//! Verb `resume`: lets everything go on that `stop` stopped.

use clap::Args;
use ropewalk_desk::halt;

use crate::app::App;
use crate::error::CliError;
use crate::wiring::OpenProject;

/// Takes no arguments of its own.
#[derive(Debug, Args)]
pub struct Resume {}

impl Resume {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = OpenProject::open(app.project()?).await?;
        let halt = halt::lift(&opened.context(), opened.person()?).await?;
        app.output
            .show(&halt, |_| "everything goes on where it stood".to_owned())
    }
}
