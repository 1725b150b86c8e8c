//! Verb `build log`: what happened in a build, event by event, with what its models said and did.

mod passage;

use std::ops::ControlFlow;

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
use crate::wiring::OpenProject;

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
        let opened = app.open().await?;
        let build = self.id.build(&opened).await?.record;
        let mut shown = 0;
        let mut transcripts = Transcripts::of(build.clone(), opened.project.state());
        if !self.follow {
            let entries = entries(&opened, &build, &mut shown, &mut transcripts).await?;
            if app.output.is_json() {
                return app.output.object(&entries);
            }
            return print(app, &entries).map(drop);
        }
        loop {
            // Looked at first, so that the events of the end are not missed.
            let now = opened.store.get::<Build>(&build.id.to_string()).await?;
            let entries = entries(&opened, &build, &mut shown, &mut transcripts).await?;
            if print(app, &entries)?.is_break() {
                return Ok(());
            }
            if now.is_none_or(|build| build.state.has_ended()) {
                return Ok(());
            }
            opened.pause().await;
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

/// Shows the entries; breaks when nobody reads any more.
fn print(app: &App, entries: &[Entry]) -> Result<ControlFlow<()>, CliError> {
    for entry in entries {
        let told = match entry {
            Entry::Event(line) => app.output.stream(line, |line| human(line))?,
            Entry::Passage(passage) => {
                let lines = passage::lines(passage);
                if lines.is_empty() && !app.output.is_json() {
                    continue;
                }
                app.output.stream(passage, |_| lines.join("\n"))?
            }
        };
        if told.is_break() {
            return Ok(told);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Puts what has a time of its own among what is `ordered`, which keeps its order though its times may step back.
fn merged<T>(ordered: Vec<(DateTime<Utc>, T)>, timed: Vec<(DateTime<Utc>, T)>) -> Vec<T> {
    let mut newest = DateTime::<Utc>::MIN_UTC;
    let forward = ordered.into_iter().map(|(at, one)| {
        newest = newest.max(at);
        (newest, one)
    });
    let mut all: Vec<_> = forward.chain(timed).collect();
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, one)| one).collect()
}

/// Returns what came since the last call: events in the order of their positions, and passages when they were said.
async fn entries(
    opened: &OpenProject,
    build: &Build,
    shown: &mut i64,
    transcripts: &mut Transcripts,
) -> Result<Vec<Entry>, CliError> {
    let passages = transcripts.next(&opened.store).await;
    let passages = passages.map_err(|error| CliError::advised("failed", error))?;
    let mut lines = Vec::new();
    for event in events(opened, build, *shown).await? {
        *shown = event.sequence;
        let line = Box::new(TimelineEvent::from(&event));
        lines.push((line.event.time, Entry::Event(line)));
    }
    let passages = passages.into_iter();
    let passages = passages.map(|passage| (passage.at, Entry::Passage(Box::new(passage))));
    Ok(merged(lines, passages.collect()))
}

/// Returns the events of the build's chain that name it.
async fn events(
    opened: &OpenProject,
    build: &Build,
    after: i64,
) -> Result<Vec<StoredEvent>, CliError> {
    let filter = EventFilter {
        after_sequence: Some(after),
        correlation: Some(build.correlation_id),
        ..EventFilter::default()
    };
    let events = opened.store.events(&filter).await?;
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

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta};

    use super::merged;

    #[test]
    fn positions_stay_in_order_though_a_clock_was_read_before_the_commit() {
        let at = |second| DateTime::UNIX_EPOCH + TimeDelta::seconds(second);
        let events = vec![(at(1), "1"), (at(5), "2"), (at(4), "3"), (at(8), "4")];
        let said = vec![(at(6), "words"), (at(2), "earlier words")];
        let expected = ["1", "earlier words", "2", "3", "words", "4"];
        assert_eq!(merged(events, said), expected);
    }
}
