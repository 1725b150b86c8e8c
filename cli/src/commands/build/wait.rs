//! Verb `build wait`: waits for the end of a build, and exits as it ended.

use std::collections::HashSet;
use std::time::Duration;

use clap::{Args, value_parser};
use ropewalk_desk::views::question::awaited;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::{BuildId, QuestionId};

use super::asleep::{GOES_ON, NOTHING_RUNS};
use crate::app::App;
use crate::commands::question::{answer_command, commands_of};
use crate::error::CliError;
use crate::ids::IdText;
use crate::output::in_short;
use crate::wiring::OpenProject;

/// Nobody waits longer: a year.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// So much of a question is told; `question show` shows the whole.
const LETTERS: usize = 200;

/// The build, and how long it is waited for.
#[derive(Debug, Args)]
pub struct Wait {
    /// The build's id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// Waits at most so many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(..=FOR_EVER.as_secs()))]
    at_most: Option<u64>,
}

impl Wait {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let found = self.id.build(&opened).await?;
        let id = found.id;
        if !found.state.has_ended() && !opened.poke()? {
            app.output.note(&format!("{NOTHING_RUNS}; {GOES_ON}"))?;
        }
        let limit = self.at_most.map_or(FOR_EVER, Duration::from_secs);
        let Some(build) = end_of(&opened, app, id, limit).await? else {
            let now = opened.store.get::<Build>(&id.to_string()).await?;
            let asked = match now {
                Some(build) => awaited(&opened.store, &build).await?,
                None => Vec::new(),
            };
            let next = answer_command(&asked);
            let next =
                next.unwrap_or_else(|| format!("`ropewalk build show {id}` says where it stands"));
            let text = (format!("build {id} has not ended yet"), next);
            return Err(CliError::refused("build-state", text));
        };
        if build.state != BuildState::Succeeded {
            let why = build
                .reason
                .as_deref()
                .map_or_else(String::new, |why| format!(": {why}"));
            let text = (
                format!("build {id} is {}{why}", build.state),
                format!("`ropewalk build show {id}` shows its tasks"),
            );
            return Err(CliError::refused("build-state", text));
        }
        app.output.show(&build, |build| {
            format!("build {} is {}", build.id, build.state)
        })
    }
}

/// Waits until a build has ended; what it asks meanwhile is told once.
async fn end_of(
    opened: &OpenProject,
    app: &App,
    id: BuildId,
    limit: Duration,
) -> Result<Option<Build>, CliError> {
    let deadline = opened.clock.now() + limit;
    let mut asked: HashSet<QuestionId> = HashSet::new();
    loop {
        let found = opened.store.get::<Build>(&id.to_string()).await?;
        let build = found
            .ok_or_else(|| CliError::unknown("build", id, "build list"))?
            .record;
        if build.state.has_ended() {
            return Ok(Some(build));
        }
        for question in awaited(&opened.store, &build).await? {
            if asked.insert(question.id) {
                let text = in_short(&question.text, LETTERS);
                let next = commands_of(question.id);
                app.output
                    .note(&format!("it waits for your answer: {text}: {next}"))?;
            }
        }
        if opened.clock.now() >= deadline {
            return Ok(None);
        }
        opened.pause().await;
    }
}
