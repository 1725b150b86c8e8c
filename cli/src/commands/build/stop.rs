//! Verb `build stop`: stops a build; what landed stays.

use clap::Args;

use ropewalk_desk::builds::Wish;

use super::steer::steer;
use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;

/// The build and the reason.
#[derive(Debug, Args)]
pub struct Stop {
    /// Its id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// Why.
    #[arg(long)]
    reason: Option<String>,
}

impl Stop {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        Box::pin(steer(Wish::Stop, &self.id, self.reason, app)).await
    }
}
