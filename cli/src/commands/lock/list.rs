//! Verb `lock list`: the file locks and who holds them.

use clap::Args;
use ropewalk_desk::views::lock;

use crate::app::App;
use crate::error::CliError;
use crate::output::time;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Those that no longer hold too.
    #[arg(long)]
    all: bool,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let leases = lock::list(&opened.store, self.all).await?;
        app.output.list(
            &leases,
            [
                "file", "state", "build", "task", "loop", "token", "since", "for",
            ],
            |lease| {
                [
                    lease.path.to_string(),
                    lease.state.to_string(),
                    lease.holder.build.to_string(),
                    lease.holder.task.to_string(),
                    lease.holder.loop_name.to_string(),
                    lease.token.to_string(),
                    time(lease.granted_at),
                    lease.reason.clone(),
                ]
            },
        )
    }
}
