//! Verb `event list`: events in commit order, the newest last.

use chrono::{DateTime, Utc};
use clap::Args;
use ropewalk_desk::views::event;

use super::filter::Filter;
use super::line::human;
use crate::app::App;
use crate::error::CliError;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    filter: Filter,
    /// Only those at or after this time, for example `2026-11-21T08:00:00Z`.
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<DateTime<Utc>>,
    /// Only those before this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<DateTime<Utc>>,
    /// The most events, the newest ones.
    #[arg(long, default_value_t = 50)]
    limit: u32,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let mut filter = self.filter.build();
        (filter.from, filter.until) = (self.since, self.until);
        filter.newest_first = true;
        filter.limit = Some(self.limit);
        let mut lines = event::list(&desk.store, &filter).await?;
        lines.reverse();
        if app.output.is_json() {
            return app.output.object(&lines);
        }
        lines
            .iter()
            .try_for_each(|line| app.output.stream(line, human))
    }
}

fn time(text: &str) -> Result<DateTime<Utc>, String> {
    text.parse()
        .map_err(|_| "write a time with its zone, for example `2026-11-21T08:00:00Z`".to_owned())
}
