//! Verb `resume`: lets everything go on that `stop` stopped.

use clap::Args;
use ropewalk_desk::halt;

use crate::app::App;
use crate::error::CliError;
use crate::wiring::Desk;

/// Takes no arguments of its own.
#[derive(Debug, Args)]
pub struct Resume {}

impl Resume {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = Desk::open(app.project()?).await?;
        let halt = halt::lift(&desk.context(), desk.person()?).await?;
        app.output
            .show(&halt, |_| "everything goes on where it stood".to_owned())
    }
}
