//! Asks a build to pause, go on or stop: records the wish, wakes the build agent, and waits for what comes of it.

use std::time::Duration;

use ropewalk_desk::builds::{self, Wish};
use ropewalk_schemas::BuildId;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::specification::SpecState;
use ropewalk_store::Query;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;
use crate::wiring::Desk;

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
    let desk = app.desk().await?;
    let person = desk.person()?;
    // Before anything is looked up for somebody who may not.
    person.demand(Right::Stop)?;
    let build = match id.build(&desk).await {
        Ok(build) => build,
        Err(unknown) => return Err(specification(id, &desk).await?.unwrap_or(unknown)),
    };
    let context = desk.context();
    builds::steer(&context, &build, wish, person, reason).await?;
    let now = if desk.poke_or_say(&app.output)? {
        outcome(&desk, wish, build.record).await?
    } else {
        build.record
    };
    // One that goes on may stand still again at once, since it waits for a person.
    let is_still = wish == Wish::Resume && now.state == BuildState::Paused;
    let why = now.reason.as_deref().filter(|_| is_still);
    let why = why.map(|why| format!(": {why}; `ropewalk build show {}` says more", now.id));
    let done = Receipt {
        build: now.id,
        state: now.state,
        pause_requested: now.pause_requested,
        recorded: true,
    };
    app.output.show(&done, |done| {
        let soon = if done.pause_requested {
            ", and pauses once running tasks have ended"
        } else {
            ""
        };
        let why = why.unwrap_or_default();
        format!("build {} is {}{soon}{why}", done.build, done.state)
    })
}

/// Says that `id` names a specification and no build, if so.
async fn specification(id: &IdText, desk: &Desk) -> Result<Option<CliError>, CliError> {
    let found = id.specification(desk).await;
    let Ok(spec) = found else {
        return Ok(None);
    };
    let of_spec = Query::new().equal("spec", spec.id.to_string());
    let (what, next) = match desk.store.list::<Build>(of_spec).await?.pop() {
        Some(build) => (
            format!("is the specification of build `{}`", build.id),
            format!("name that: `{}`", build.id),
        ),
        None => match &spec.hash {
            Some(hash) if spec.state == SpecState::Generated => (
                "is a specification that is generated, not approved".to_owned(),
                format!(
                    "`ropewalk spec approve {} --hash {hash}` begins its build",
                    spec.id
                ),
            ),
            _ => (
                format!(
                    "is a specification that is {}, and has no build",
                    spec.state
                ),
                format!("`ropewalk spec show {}` shows more", spec.id),
            ),
        },
    };
    Ok(Some(CliError::refused(
        "unknown-id",
        (format!("`{id}` {what}"), next),
    )))
}

/// Returns the build once it has done what was wished, or as it stands when that takes too long.
async fn outcome(desk: &Desk, wish: Wish, before: Build) -> Result<Build, CliError> {
    let id = before.id;
    let done = desk
        .wait_for(PATIENCE, || async {
            let build = stored(desk, id).await?;
            Ok(build.filter(|build| wish.is_fulfilled(build)))
        })
        .await?;
    match done {
        Some(done) => Ok(done),
        None => Ok(stored(desk, id).await?.unwrap_or(before)),
    }
}

async fn stored(desk: &Desk, id: BuildId) -> Result<Option<Build>, CliError> {
    let build = desk.store.get::<Build>(&id.to_string()).await?;
    Ok(build.map(|build| build.record))
}
