//! Verb `lock list`: the file locks and who holds them.

use clap::Args;
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_store::Query;

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
        let desk = app.desk().await?;
        let mut query = Query::new();
        if !self.all {
            query = query.equal("state", LeaseState::Granted.as_str());
        }
        let rows = desk.store.list::<Lease>(query).await?;
        let leases: Vec<Lease> = rows.into_iter().map(|row| row.record).collect();
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
