//! Verb `spec diff`: what changed between two revisions of a specification.

use clap::Args;
use ropewalk_desk::views::specification;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;

/// The specification and the revisions.
#[derive(Debug, Args)]
pub struct Diff {
    /// Its id, as `spec list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// The earlier revision; the one before the later when absent.
    from: Option<u32>,
    /// The later revision; the newest when absent.
    to: Option<u32>,
}

impl Diff {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let spec = self.id.specification(&opened).await?;
        let compared = specification::compare(&opened.store, &spec, self.from, self.to)
            .await
            .map_err(|error| CliError::advised("revision", error))?;
        app.output.show(&compared, |compared| {
            if compared.difference.is_empty() {
                format!(
                    "revisions {} and {} say the same",
                    compared.from, compared.to
                )
            } else {
                compared.difference.clone()
            }
        })
    }
}
