//! Says which builds stand still because the provider of their model is away.

use ropewalk_engine::outages;
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::outage::Outage;

use crate::error::CliError;
use crate::wiring::Desk;

/// Returns the outage of the provider that builds, if it is away.
pub(super) async fn of_builds(desk: &Desk) -> Result<Option<Outage>, CliError> {
    let provider = &desk.project.config().models.build.provider;
    Ok(outages::standing(&desk.store, provider).await?)
}

/// Returns the outage if `build` stands still for it.
pub(super) fn holding<'a>(build: &Build, outage: Option<&'a Outage>) -> Option<&'a Outage> {
    let waits = match build.state {
        BuildState::Running => true,
        BuildState::Paused => build.pause_reason == Some(PauseReason::Outage),
        _ => false,
    };
    outage.filter(|_| waits)
}

/// Says why a build stands as it does.
pub(super) fn why(build: &Build, outage: Option<&Outage>) -> Option<String> {
    match holding(build, outage) {
        Some(outage) => Some(outage.to_string()),
        None => build.reason.clone(),
    }
}
