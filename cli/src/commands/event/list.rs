//! Verb `event list`: events in commit order, the newest last.

use clap::Args;
use ropewalk_desk::views::event;

use super::filter::Filter;
use super::line::human;
use crate::app::App;
use crate::arguments::span::SpanArguments;
use crate::error::CliError;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    within: SpanArguments,
    /// The most events, the newest ones.
    #[arg(long, default_value_t = 50)]
    limit: u32,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let mut filter = self.filter.build(&opened).await?;
        let within = self.within.span();
        (filter.from, filter.until) = (within.since, within.until);
        filter.newest_first = true;
        filter.limit = Some(self.limit);
        let mut lines = event::list(&opened.store, &filter).await?;
        lines.reverse();
        if app.output.is_json() {
            return app.output.object(&lines);
        }
        for line in &lines {
            if app.output.stream(line, human)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
