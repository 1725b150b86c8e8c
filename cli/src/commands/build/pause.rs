//! Verb `build pause`: lets running tasks end and begins no others.

use clap::Args;

use ropewalk_desk::builds::Wish;

use super::steer::steer;
use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;

/// The build and the reason.
#[derive(Debug, Args)]
pub struct Pause {
    /// Its id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// Why.
    #[arg(long)]
    reason: Option<String>,
}

impl Pause {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        Box::pin(steer(Wish::Pause, &self.id, self.reason, app)).await
    }
}
