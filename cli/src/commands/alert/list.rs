//! Verb `alert list`: what is wrong, the oldest first, and who has seen it.

use clap::Args;
use ropewalk_desk::views::alert;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::clip;

use crate::app::App;
use crate::error::CliError;
use crate::output::time;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Those whose cause is gone too.
    #[arg(long)]
    all: bool,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let alerts = alert::list(&opened.store, self.all).await?;
        app.output.list(
            &alerts,
            ["cause", "severity", "since", "says", "seen by", "gone"],
            |alert| {
                [
                    alert.cause.clone(),
                    alert.severity.as_str().to_owned(),
                    time(alert.raised_at),
                    clip::line(&alert.message, 80),
                    seen(alert),
                    alert.cleared_at.map(time).unwrap_or_default(),
                ]
            },
        )
    }
}

/// Says who has seen an alert, and when.
pub(super) fn seen(alert: &Alert) -> String {
    let seen = alert.acknowledged.as_ref();
    seen.map(|seen| format!("{} at {}", seen.by, time(seen.at)))
        .unwrap_or_default()
}
