//! Verb `stop`: stops everything, until somebody lets it go on.

use clap::Args;
use ropewalk_desk::halt::{self, HaltError};

use crate::app::App;
use crate::error::CliError;
use crate::wiring::Desk;

/// Why everything is stopped.
#[derive(Debug, Args)]
pub struct Stop {
    /// Why.
    #[arg(long)]
    reason: Option<String>,
}

impl Stop {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = Desk::open(app.project()?).await?;
        let halt = halt::stop(&desk.context(), desk.person()?, self.reason).await?;
        app.output.show(&halt, |_| {
            "everything is stopped: no model is asked and no command begins until `ropewalk resume`"
                .to_owned()
        })
    }
}

impl From<HaltError> for CliError {
    fn from(error: HaltError) -> Self {
        match error {
            HaltError::Forbidden(error) => error.into(),
            HaltError::Read(error) => error.into(),
            HaltError::Commit(error) => error.into(),
            refused => Self::advised("halt", refused),
        }
    }
}
