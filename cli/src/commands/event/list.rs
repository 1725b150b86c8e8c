//! Verb `event list`: events, the newest last.

use clap::Args;

use super::filter::Filter;
use super::line::{Line, human};
use crate::app::App;
use crate::error::CliError;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    filter: Filter,
    /// The most events, the newest ones.
    #[arg(long, default_value_t = 50)]
    limit: u32,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let mut filter = self.filter.build();
        filter.newest_first = true;
        filter.limit = Some(self.limit);
        let mut events = desk.store.events(&filter).await?;
        events.reverse();
        let lines: Vec<Line> = events.iter().map(Line::from).collect();
        if app.output.is_json() {
            return app.output.object(&lines);
        }
        lines
            .iter()
            .try_for_each(|line| app.output.stream(line, human))
    }
}
