//! Verb `agent list`: what every part of every process does.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use ropewalk_desk::views::agent;
use ropewalk_runtime::Clock;

use crate::app::App;
use crate::error::CliError;
use crate::output::time;
use crate::wiring::Gone;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Those that were stopped too.
    #[arg(long)]
    all: bool,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let down_after = app.project()?.config().monitor.component_down_seconds;
        let down_after = Duration::from_secs(down_after.into());
        let now = Clock::system().now();
        let parts = agent::list(&opened.store, self.all).await?;
        let gone = Gone::of(&opened.project, &parts)?;
        let mut works = BTreeMap::new();
        for part in &parts {
            works.insert(part.name.clone(), agent::work(part, &opened.store).await?);
        }
        let headers = [
            "part",
            "role",
            "state",
            "works on",
            "since",
            "last seen",
            "process",
        ];
        app.output.list(&parts, headers, |part| {
            [
                part.name.to_string(),
                part.role.clone(),
                gone.state(part, down_after, now).to_owned(),
                works.get(&part.name).cloned().unwrap_or_default(),
                time(part.since),
                time(part.last_seen),
                part.process.clone(),
            ]
        })
    }
}
