//! Verb `alert ack`: records that somebody has seen an alert; it stands until its cause is gone.

use clap::Args;
use ropewalk_desk::alerts::{self, AcknowledgeError};

use super::list::seen;
use crate::app::App;
use crate::error::{AMBIGUOUS, CliError};

/// The alert.
#[derive(Debug, Args)]
pub struct Ack {
    /// Its cause, as `alert list` shows it, or the beginning of that.
    cause: String,
}

impl Ack {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let alert = alerts::acknowledge(&opened.context(), &self.cause, opened.person()?).await?;
        app.output.show(&alert, |alert| {
            format!("`{}` was seen by {}", alert.cause, seen(alert))
        })
    }
}

impl From<AcknowledgeError> for CliError {
    fn from(error: AcknowledgeError) -> Self {
        match error {
            AcknowledgeError::Read(error) => error.into(),
            AcknowledgeError::Commit(error) => error.into(),
            AcknowledgeError::Unknown(cause) => Self::unknown("alert", cause, "alert list"),
            AcknowledgeError::Ambiguous { .. } => Self::advised(AMBIGUOUS, error),
            AcknowledgeError::Already { .. } => Self::advised("alert", error),
        }
    }
}
