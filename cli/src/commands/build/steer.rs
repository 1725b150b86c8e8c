//! Asks a build to pause, go on or stop: records the wish, wakes the build agent, and waits for what comes of it.

use std::time::Duration;

use ropewalk_desk::builds::named::misnamed;
use ropewalk_desk::builds::{self, Wish};
use ropewalk_desk::people::Person;
use ropewalk_desk::views::question::awaited;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::{BuildId, EventId};
use ropewalk_store::{DeliveryFilter, DeliveryState, Versioned};
use serde::Serialize;

use crate::app::App;
use crate::commands::question::answer_command as answer;
use crate::error::{CliError, UNKNOWN};
use crate::ids::IdText;
use crate::wiring::OpenProject;

/// How long the answer of the build agent is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize)]
struct Receipt {
    build: BuildId,
    state: BuildState,
    pause_requested: bool,
    recorded: bool,
}

/// Records `wish` about the build that `id` names, and shows what came of it.
pub(super) async fn steer(
    wish: Wish,
    id: &IdText,
    reason: Option<String>,
    app: &App,
) -> Result<(), CliError> {
    let opened = app.open().await?;
    let person = opened.person()?;
    let build = named(id, &opened, person).await?;
    let context = opened.context();
    let wished = builds::steer(&context, &build, wish, person, reason).await?;
    let now = if opened.poke_or_say(&app.output)? {
        outcome(&opened, (wish, wished), build.record).await?
    } else {
        build.record
    };
    let why = standstill(&opened, wish, &now).await?;
    let done = Receipt {
        build: now.id,
        state: now.state,
        pause_requested: now.pause_requested,
        recorded: true,
    };
    app.output
        .show(&done, |done| told(done, &why.unwrap_or_default()))
}

/// Finds the build that `id` names, for somebody who may steer it.
pub(super) async fn named(
    id: &IdText,
    opened: &OpenProject,
    person: &Person,
) -> Result<Versioned<Build>, CliError> {
    // Before anything is looked up for somebody who may not.
    person.demand(Right::Stop)?;
    match id.build(opened).await {
        Ok(build) => Ok(build),
        Err(unknown) => Err(specification(id, opened).await?.unwrap_or(unknown)),
    }
}

fn told(done: &Receipt, why: &str) -> String {
    let soon = if done.pause_requested && done.state != BuildState::Paused {
        ", and pauses once running tasks have ended"
    } else {
        ""
    };
    format!("build {} is {}{soon}{why}", done.build, done.state)
}

/// Says why a build that was to go on stands still, if it does: it may do so again at once, since it waits for a person.
async fn standstill(
    opened: &OpenProject,
    wish: Wish,
    now: &Build,
) -> Result<Option<String>, CliError> {
    if wish != Wish::Resume || now.state != BuildState::Paused {
        return Ok(None);
    }
    let Some(why) = &now.reason else {
        return Ok(None);
    };
    let next = match answer(&awaited(&opened.store, now).await?) {
        Some(next) => next,
        None => format!("`ropewalk build show {}` says more", now.id),
    };
    Ok(Some(format!(": {why}; {next}")))
}

/// Says that `id` names a specification and no build, if so.
async fn specification(id: &IdText, opened: &OpenProject) -> Result<Option<CliError>, CliError> {
    let Ok(spec) = id.specification(opened).await else {
        return Ok(None);
    };
    let wrong = misnamed(&opened.store, &spec, id.to_string()).await?;
    Ok(Some(CliError::advised(UNKNOWN, wrong)))
}

/// Returns the build once it has done what was wished, or whatever the wish came to; or as it stands when that takes too
/// long.
async fn outcome(
    opened: &OpenProject,
    (wish, wished): (Wish, EventId),
    before: Build,
) -> Result<Build, CliError> {
    let id = before.id;
    let open = DeliveryFilter {
        event: Some(wished),
        states: vec![DeliveryState::Open],
        ..DeliveryFilter::default()
    };
    let done = opened
        .wait_for(PATIENCE, || async {
            // Looked at first: what came of the wish is in the build by the time that nobody is to hear it any more.
            let is_handled = opened.store.deliveries(&open).await?.is_empty();
            let build = stored(opened, id).await?;
            Ok(build.filter(|build| is_handled || wish.is_fulfilled(build)))
        })
        .await?;
    match done {
        Some(done) => Ok(done),
        None => Ok(stored(opened, id).await?.unwrap_or(before)),
    }
}

async fn stored(opened: &OpenProject, id: BuildId) -> Result<Option<Build>, CliError> {
    let build = opened.store.get::<Build>(&id.to_string()).await?;
    Ok(build.map(|build| build.record))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_pause_is_announced_until_it_is_there() {
        for (state, pause_requested, expected) in [
            (
                BuildState::Running,
                true,
                "running, and pauses once running tasks have ended",
            ),
            (BuildState::Paused, true, "paused"),
            (BuildState::Running, false, "running"),
        ] {
            let build = BuildId(Uuid::nil());
            let done = Receipt {
                build,
                state,
                pause_requested,
                recorded: true,
            };
            assert_eq!(told(&done, ""), format!("build {build} is {expected}"));
        }
    }
}
