//! Verb `notice list`: what people are still to be told or could not be, the oldest first.

use clap::Args;
use ropewalk_desk::views::notice;
use ropewalk_schemas::clip;

use crate::app::App;
use crate::error::CliError;
use crate::output::time;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Those that arrived, or were over before that, too.
    #[arg(long)]
    all: bool,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let notices = notice::list(&opened.store, self.all).await?;
        app.output.list(
            &notices,
            [
                "since", "by", "whom", "event", "state", "tries", "repeats", "error",
            ],
            |notice| {
                [
                    time(notice.created_at),
                    notice.port.clone(),
                    notice.receiver.clone(),
                    notice.event_type.clone(),
                    notice.state.as_str().to_owned(),
                    notice.tries.to_string(),
                    notice.repeats.to_string(),
                    clip::line(notice.error.as_deref().unwrap_or_default(), 60),
                ]
            },
        )
    }
}
