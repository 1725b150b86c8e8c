//! Asks a build to pause, go on or stop: records the wish, wakes the build agent, and waits for what comes of it.

use std::time::Duration;

use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::payload::BuildRequest;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_schemas::{BuildId, Payload, Priority, Subject};
use ropewalk_store::{ChangeSet, Query};
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;
use crate::wiring::Desk;

/// How long the answer of the build agent is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A wish about a whole build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Pause,
    Resume,
    Stop,
}

#[derive(Debug, Serialize)]
struct Done {
    build: BuildId,
    state: BuildState,
    pause_requested: bool,
    recorded: bool,
}

impl Wish {
    /// Says why the wish makes no sense, if so.
    fn refusal(self, state: BuildState) -> Option<&'static str> {
        use BuildState::{Failed, Paused, Priming, Queued, Running, Stopped, Succeeded, Verifying};
        match (self, state) {
            (Self::Pause, Queued | Priming | Running | Verifying)
            | (Self::Resume, Paused | Stopped | Failed | Running)
            | (Self::Stop, Queued | Priming | Running | Paused | Verifying) => None,
            (Self::Pause, Paused) => Some("it stands still already"),
            (Self::Pause | Self::Stop, Succeeded | Failed | Stopped) => Some("it has ended"),
            (Self::Resume, Queued | Priming | Verifying) => Some("it goes on by itself"),
            (Self::Resume, Succeeded) => Some("it has reached its goal"),
        }
    }

    /// Returns whether the build has done what was wished.
    fn is_fulfilled(self, build: &Build) -> bool {
        match self {
            Self::Pause => build.pause_requested || build.state == BuildState::Paused,
            Self::Resume => build.state == BuildState::Running && !build.pause_requested,
            Self::Stop => build.state == BuildState::Stopped,
        }
    }

    fn payload(self, request: BuildRequest) -> Payload {
        match self {
            Self::Pause => Payload::BuildPause(request),
            Self::Resume => Payload::BuildResume(request),
            Self::Stop => Payload::BuildStop(request),
        }
    }
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
    person.demand(Right::Stop)?;
    let build = match id.find::<Build>(&desk, "build", "build list").await {
        Ok(build) => build,
        Err(unknown) => return Err(specification(id, &desk).await?.unwrap_or(unknown)),
    };
    if let Some(next) = build.continued_by {
        let text = format!(
            "build `{}` was amended; build `{next}` goes on with its work",
            build.id
        );
        return Err(CliError::refused("build-state", text));
    }
    if build.stop == Some(StopCause::Abandoned) {
        let text = format!(
            "build `{}` has ended for good: the idea `{}` was abandoned",
            build.id, build.idea
        );
        return Err(CliError::refused("build-state", text));
    }
    if let Some(why) = wish.refusal(build.state) {
        let text = format!("build `{}` is {}: {why}", build.id, build.state);
        return Err(CliError::refused("build-state", text));
    }
    let request = BuildRequest {
        build_id: build.id,
        requested_by: person.name.to_string(),
        reason,
    };
    let context = desk
        .context()
        .for_claim(build.correlation_id, Priority::URGENT);
    let mut changes = ChangeSet::new();
    changes.emit(context.event(Subject::build(build.id), wish.payload(request)));
    desk.store.commit(changes).await?;
    let after = if desk.poke_or_say(&app.output)? {
        outcome(&desk, wish, build.id).await?
    } else {
        None
    };
    let now = after.as_ref().unwrap_or(&build.record);
    let done = Done {
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
        format!("build {} is {}{soon}", done.build, done.state)
    })
}

/// Says that `id` names a specification and no build, if so.
async fn specification(id: &IdText, desk: &Desk) -> Result<Option<CliError>, CliError> {
    let found = id
        .find::<Specification>(desk, "specification", "spec list")
        .await;
    let Ok(spec) = found else {
        return Ok(None);
    };
    let of_spec = Query::new().equal("spec", spec.id.to_string());
    let advice = match desk.store.list::<Build>(of_spec).await?.pop() {
        Some(build) => format!(
            "is the specification of build `{0}`; name that: `{0}`",
            build.id
        ),
        None => match &spec.hash {
            Some(hash) if spec.state == SpecState::Generated => format!(
                "is a specification that is generated, not approved; `ropewalk spec approve {} --hash {hash}` begins its build",
                spec.id
            ),
            _ => format!(
                "is a specification that is {}, and has no build; `ropewalk spec show {}` shows more",
                spec.state, spec.id
            ),
        },
    };
    Ok(Some(CliError::refused(
        "unknown-id",
        format!("`{id}` {advice}"),
    )))
}

async fn outcome(desk: &Desk, wish: Wish, id: BuildId) -> Result<Option<Build>, CliError> {
    desk.wait_for(PATIENCE, || async {
        let build = desk.store.get::<Build>(&id.to_string()).await?;
        Ok(build
            .map(|build| build.record)
            .filter(|build| wish.is_fulfilled(build)))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_refused_where_it_makes_no_sense() {
        let sensible = |wish: Wish| -> Vec<&str> {
            BuildState::ALL
                .iter()
                .filter(|state| wish.refusal(**state).is_none())
                .map(|state| state.as_str())
                .collect()
        };
        assert_eq!(
            sensible(Wish::Pause),
            ["queued", "priming", "running", "verifying"]
        );
        assert_eq!(
            sensible(Wish::Resume),
            ["running", "paused", "failed", "stopped"]
        );
        assert_eq!(
            sensible(Wish::Stop),
            ["queued", "priming", "running", "paused", "verifying"]
        );
    }
}
