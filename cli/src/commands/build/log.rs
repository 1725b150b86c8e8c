//! Verb `build log`: what happened in a build, event by event, with the output of what failed.

use clap::Args;
use ropewalk_desk::views::event::TimelineEvent;
use ropewalk_schemas::BuildId;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_store::{EventFilter, StoredEvent};

use crate::app::App;
use crate::commands::event::line::human;
use crate::error::CliError;
use crate::ids::IdText;
use crate::wiring::Desk;

/// The build, and whether to stay.
#[derive(Debug, Args)]
pub struct Log {
    /// Its id, as `build list` shows it.
    id: IdText,
    /// Stay and show what comes, until the build ends.
    #[arg(long, short)]
    follow: bool,
}

impl Log {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let build = self
            .id
            .find::<Build>(&desk, "build", "build list")
            .await?
            .record;
        let mut shown = 0;
        if !self.follow {
            let events = events(&desk, &build, shown).await?;
            let lines: Vec<TimelineEvent> = events.iter().map(TimelineEvent::from).collect();
            if app.output.is_json() {
                return app.output.object(&lines);
            }
            return lines
                .iter()
                .try_for_each(|line| app.output.stream(line, human));
        }
        loop {
            // Looked at first, so that the events of the end are not missed.
            let now = desk.store.get::<Build>(&build.id.to_string()).await?;
            for event in events(&desk, &build, shown).await? {
                shown = event.sequence;
                app.output.stream(&TimelineEvent::from(&event), human)?;
            }
            if now.is_none_or(|build| has_ended(build.state)) {
                return Ok(());
            }
            desk.pause().await;
        }
    }
}

const fn has_ended(state: BuildState) -> bool {
    matches!(
        state,
        BuildState::Succeeded | BuildState::Failed | BuildState::Stopped
    )
}

/// Returns the events of the build's chain that name it.
async fn events(desk: &Desk, build: &Build, after: i64) -> Result<Vec<StoredEvent>, CliError> {
    let filter = EventFilter {
        after_sequence: Some(after),
        correlation: Some(build.correlation_id),
        ..EventFilter::default()
    };
    let events = desk.store.events(&filter).await?;
    Ok(events
        .into_iter()
        .filter(|event| is_about(event, build.id))
        .collect())
}

fn is_about(event: &StoredEvent, build: BuildId) -> bool {
    let id = build.to_string();
    let data = &event.event.data;
    event.event.subject.as_str().contains(&id)
        || data["build_id"] == id.as_str()
        || data["about"]["build"] == id.as_str()
}
