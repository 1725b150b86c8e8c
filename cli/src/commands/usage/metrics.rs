//! Verb `metrics`: what a store holds and models used, as programs that watch take it.

use clap::Args;
use ropewalk_desk::views::metrics;

use crate::app::App;
use crate::error::CliError;

/// There is nothing to choose.
#[derive(Debug, Args)]
pub struct Metrics {}

impl Metrics {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let metrics = metrics::list(&opened.store).await?;
        app.output.show(&metrics, |metrics| metrics::text(metrics))
    }
}
