//! Verb `spec lines`: the documents of the newest revision, line by line.

use clap::Args;
use ropewalk_desk::comments::lines_of_specification;

use crate::app::App;
use crate::comments;
use crate::error::CliError;
use crate::ids::IdText;

/// The specification.
#[derive(Debug, Args)]
pub struct Lines {
    /// Its id, as `spec list` shows it, or the name of its idea for the newest.
    id: IdText,
}

impl Lines {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let spec = self.id.specification(&opened).await?;
        let lines = lines_of_specification(&opened.store, &spec).await;
        let lines = lines.map_err(|error| CliError::advised("revision", error))?;
        comments::shown(app, &lines, &format!("spec comment {}", spec.id))
    }
}
