//! Serves the API in a process that runs agents: its address is taken before they begin, and it may be gone without them.

use std::sync::Arc;
use std::time::Duration;

use ropewalk_config::Origin;
use ropewalk_orchestrator::Services;
use ropewalk_runtime::Supervisor;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::idea::Idea;
use ropewalk_server::{Address, Checkup, Door, Hook, ListenError, Options, Server};
use ropewalk_workspace::Git;
use tracing::warn;

use super::changes::{self, LazyClone};
use crate::error::CliError;
use crate::project::Project;

/// The key of the address.
const ADDRESS: &str = "server.address";

/// Takes the address of the API; `None` where it is switched off, or where the default one cannot be had.
pub(crate) async fn door(project: &Project) -> Result<Option<Door>, CliError> {
    let settings = &project.config().server;
    if !settings.enabled {
        return Ok(None);
    }
    let address = Address {
        socket: settings.address,
        chosen: project.loaded.origin(ADDRESS) != Origin::Default,
    };
    match Door::open(address, &project.people).await {
        Ok(door) => Ok(Some(door)),
        // Nobody asked for it, so that nothing else is kept from running.
        Err(error) if !address.chosen => {
            warn!("the API is not served: {}", Words::of(&error));
            Ok(None)
        }
        Err(error @ ListenError::Taken(_)) => Err(CliError::advised("address-taken", error)),
        Err(error) => Err(CliError::advised("address", error)),
    }
}

/// Serves behind `door`; returns what people are told of it.
pub(super) fn serve(
    door: Door,
    project: &Project,
    (git, hook, checkup): (&Git, Option<Arc<dyn Hook>>, Checkup),
    (services, supervisor): (&Services, &Supervisor),
) -> Result<String, CliError> {
    let places = project.places();
    let clone = LazyClone::of(git.clone(), project);
    let options = Options {
        people: (*project.people).clone(),
        hosts: project.config().server.hosts.clone(),
        proxies: project.config().server.trusted_proxies.clone(),
        silent_after: Duration::from_secs(project.config().monitor.component_down_seconds.into()),
        state: project.state().to_owned(),
        hook,
        checkup,
        landings: changes::landings(clone.clone(), project, services),
        changes: changes::changes(clone),
        budget: project.config().budget.clone(),
        builds_with: project.config().models.builders(),
        folder: Arc::new(move |idea: &Idea| places.idea_folder(&idea.user, &idea.slug)),
    };
    let server = Server::new(door, options, services.clone(), supervisor)?;
    let told = match project.person() {
        Ok(person) => format!("pages and API: {}", server.link(person)),
        // Whoever runs this is nobody; people come with their tokens.
        Err(_) => format!("pages and API: http://{}", server.address()),
    };
    server.serve();
    Ok(told)
}
