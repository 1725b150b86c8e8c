//! Verb `event tail`: events as they come, until Ctrl-C.

use clap::Args;
use ropewalk_desk::views::event;

use super::filter::Filter;
use super::line::human;
use crate::app::App;
use crate::error::CliError;

/// Which ones.
#[derive(Debug, Args)]
pub struct Tail {
    #[command(flatten)]
    filter: Filter,
    /// Begin with the events after this position instead of the next one.
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<i64>,
    /// End after so many events.
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,
}

impl Tail {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let mut filter = self.filter.build(&opened).await?;
        let mut last = match self.after {
            Some(after) => after,
            None => opened.store.last_sequence().await?,
        };
        let mut left = self.count.unwrap_or(u64::MAX);
        while left > 0 {
            filter.after_sequence = Some(last);
            filter.limit = Some(u32::try_from(left.min(500)).unwrap_or(500));
            let events = event::list(&opened.store, &filter).await?;
            for event in &events {
                last = event.sequence;
                left -= 1;
                if app.output.stream(event, human)?.is_break() {
                    return Ok(());
                }
            }
            if events.is_empty() {
                opened.pause().await;
            }
        }
        Ok(())
    }
}
