//! Verb `build log`: what happened in a build, event by event, with what its models said and did.

mod passage;

use chrono::{DateTime, Utc};
use clap::Args;
use ropewalk_desk::views::event::TimelineEvent;
use ropewalk_desk::views::transcript::Transcripts;
use ropewalk_schemas::BuildId;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::job_event::Passage;
use ropewalk_store::{EventFilter, StoredEvent};
use serde::Serialize;

use crate::app::App;
use crate::commands::event::line::human;
use crate::error::CliError;
use crate::ids::IdText;
use crate::wiring::Desk;

/// The build, and whether to stay.
#[derive(Debug, Args)]
pub struct Log {
    /// Its id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// Stay and show what comes, until the build ends.
    #[arg(long, short)]
    follow: bool,
}

impl Log {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let build = self.id.build(&desk).await?.record;
        let mut shown = 0;
        let mut transcripts = Transcripts::of(build.clone(), desk.project.state());
        if !self.follow {
            let entries = entries(&desk, &build, &mut shown, &mut transcripts).await?;
            if app.output.is_json() {
                return app.output.object(&entries);
            }
            return entries.iter().try_for_each(|entry| print(app, entry));
        }
        loop {
            // Looked at first, so that the events of the end are not missed.
            let now = desk.store.get::<Build>(&build.id.to_string()).await?;
            for entry in entries(&desk, &build, &mut shown, &mut transcripts).await? {
                print(app, &entry)?;
            }
            if now.is_none_or(|build| build.state.has_ended()) {
                return Ok(());
            }
            desk.pause().await;
        }
    }
}

/// One thing that happened.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry {
    Event(Box<TimelineEvent>),
    Passage(Box<Passage>),
}

impl Entry {
    fn at(&self) -> DateTime<Utc> {
        match self {
            Self::Event(line) => line.event.time,
            Self::Passage(passage) => passage.at,
        }
    }
}

fn print(app: &App, entry: &Entry) -> Result<(), CliError> {
    match entry {
        Entry::Event(line) => app.output.stream(line, |line| human(line)),
        Entry::Passage(passage) if app.output.is_json() => {
            app.output.stream(passage, |_| String::new())
        }
        Entry::Passage(passage) => passage::lines(passage)
            .iter()
            .try_for_each(|line| app.output.line(line)),
    }
}

/// Returns what came since the last call, in the order of time.
async fn entries(
    desk: &Desk,
    build: &Build,
    shown: &mut i64,
    transcripts: &mut Transcripts,
) -> Result<Vec<Entry>, CliError> {
    let passages = transcripts.next(&desk.store).await;
    let passages = passages.map_err(|error| CliError::advised("failed", error))?;
    let mut entries = Vec::new();
    for event in events(desk, build, *shown).await? {
        *shown = event.sequence;
        entries.push(Entry::Event(Box::new(TimelineEvent::from(&event))));
    }
    entries.extend(
        passages
            .into_iter()
            .map(|passage| Entry::Passage(Box::new(passage))),
    );
    entries.sort_by_key(Entry::at);
    Ok(entries)
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
