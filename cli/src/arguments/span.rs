//! The time that a list keeps to.

use chrono::{DateTime, Utc};
use clap::Args;
use ropewalk_desk::views::Span;

/// Within which time.
#[derive(Debug, Args)]
pub struct SpanArguments {
    /// Only those at or after this time, for example `2026-11-21T08:00:00Z`.
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<DateTime<Utc>>,
    /// Only those before this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<DateTime<Utc>>,
}

impl SpanArguments {
    /// Returns the time as lists take it.
    pub const fn span(&self) -> Span {
        Span {
            since: self.since,
            until: self.until,
        }
    }
}

fn time(text: &str) -> Result<DateTime<Utc>, String> {
    text.parse()
        .map_err(|_| "write a time with its zone, for example `2026-11-21T08:00:00Z`".to_owned())
}
