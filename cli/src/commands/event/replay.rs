//! Verb `event replay`: has a subscriber handle what happened before it began.

use clap::Args;
use ropewalk_desk::subscribers::{self, ReplayError};
use ropewalk_schemas::ComponentName;
use serde::Serialize;

use crate::app::App;
use crate::error::{CliError, UNKNOWN};
use crate::ids::EventText;

/// How many are replayed at once.
const REPLAYED: u64 = 10_000;

/// Who, and from where on.
#[derive(Debug, Args)]
pub struct Replay {
    /// The subscriber, for example `notify.webhook`.
    subscriber: ComponentName,
    /// The first event: its position, as `event list` shows it, or its id, or how that begins or ends.
    #[arg(long, value_name = "EVENT")]
    from: EventText,
}

#[derive(Debug, Serialize)]
struct Receipt {
    subscriber: ComponentName,
    events: u64,
}

impl From<ReplayError> for CliError {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Unknown { .. } => Self::advised(UNKNOWN, error),
            ReplayError::Forbidden(error) => error.into(),
            ReplayError::Read(error) => error.into(),
            ReplayError::Commit(error) => error.into(),
        }
    }
}

impl Replay {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let (name, person) = (&self.subscriber, opened.person()?);
        let from = self.from.position(&opened).await?;
        let events = subscribers::replay(&opened.store, name, from, person).await?;
        // Where there is none, nothing is recorded either.
        if events > 0 {
            opened.poke_or_say(&app.output)?;
        }
        let done = Receipt {
            subscriber: self.subscriber,
            events,
        };
        app.output.show(&done, |done| match done.events {
            0 => format!("`{}` has got all of them", done.subscriber),
            1 => format!("`{}` gets 1 event", done.subscriber),
            REPLAYED.. => format!(
                "`{}` gets {} events; say it again for more once these are handled",
                done.subscriber, done.events
            ),
            events => format!("`{}` gets {events} events", done.subscriber),
        })
    }
}
