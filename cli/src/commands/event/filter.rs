//! Selects events by the flags of `list` and `tail`.

use clap::Args;
use ropewalk_schemas::{ComponentName, EventPattern, Subject};
use ropewalk_store::EventFilter;

use crate::error::CliError;
use crate::ids::ChainText;
use crate::wiring::OpenProject;

/// Which events.
#[derive(Debug, Args)]
pub struct Filter {
    /// Only this type, for example `task.failed`, or a family such as `alert.*`.
    #[arg(long = "type", value_name = "TYPE", value_parser = pattern)]
    event_type: Option<EventPattern>,
    /// Only those of this component, for example `build`.
    #[arg(long)]
    source: Option<ComponentName>,
    /// Only those about this entity, for example `idea/habits`.
    #[arg(long, value_parser = Subject::parse)]
    subject: Option<Subject>,
    /// Only those that one request set in motion: the id of that chain, or how it begins or ends.
    #[arg(long)]
    correlation: Option<ChainText>,
}

impl Filter {
    /// Returns the filter as the store takes it.
    pub async fn build(self, opened: &OpenProject) -> Result<EventFilter, CliError> {
        let correlation = match &self.correlation {
            Some(chain) => Some(chain.find(opened).await?),
            None => None,
        };
        Ok(EventFilter {
            pattern: self.event_type,
            source: self.source,
            subject: self.subject,
            correlation,
            ..EventFilter::default()
        })
    }
}

fn pattern(text: &str) -> Result<EventPattern, String> {
    EventPattern::known(text).ok_or_else(|| {
        let near =
            EventPattern::near(text).unwrap_or_else(|| "task.failed` or `alert.*".to_owned());
        format!("no event type is called so; write for example `{near}`")
    })
}
