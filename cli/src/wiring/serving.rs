//! Serves the API in a process that runs agents: its address is taken before they begin, and it may be gone without them.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ropewalk_config::Origin;
use ropewalk_orchestrator::Services;
use ropewalk_runtime::Supervisor;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::idea::Idea;
use ropewalk_server::{Address, Capacity, Checkup, Door, Hook, ListenError, Options, Server};
use ropewalk_store::{InstanceLock, InstanceLockError};
use ropewalk_workspace::Git;
use tracing::warn;

use super::changes::{self, LazyClone};
use crate::error::CliError;
use crate::project::Project;

/// The key of the address.
const ADDRESS: &str = "server.address";

/// The key of the address at which it is told how the program does.
const ADMIN: &str = "server.admin_address";

/// Where is served: the API, and how the program does.
pub(crate) struct Doors {
    api: Door,
    admin: Option<Door>,
    /// The default address, where another program has it.
    taken: Option<SocketAddr>,
}

/// Takes the addresses; `None` where the API is switched off, or where the default one cannot be had.
pub(crate) async fn doors(project: &Project) -> Result<Option<Doors>, CliError> {
    let admin = admin_door(project).await?;
    let api = api_door(project).await?;
    let wanted = project.config().server.address;
    Ok(api.map(|api| Doors {
        taken: has_moved(wanted, api.address()).then_some(wanted),
        api,
        admin,
    }))
}

/// Says whether another address was taken than the one that was wanted, which may leave the port to the system.
fn has_moved(wanted: SocketAddr, address: SocketAddr) -> bool {
    wanted.port() != 0 && wanted.port() != address.port()
}

/// Says who runs on the state of `project` already, where an address is taken: that is the reason then, and another address would
/// help nobody.
fn already_running(project: &Project) -> Option<CliError> {
    let holder = InstanceLock::holder(project.state());
    holder.map(|pid| InstanceLockError::Held { pid: Some(pid) }.into())
}

/// Takes the address at which whoever comes is told how the program does, where one is named.
async fn admin_door(project: &Project) -> Result<Option<Door>, CliError> {
    let Some(socket) = project.config().server.admin_address else {
        return Ok(None);
    };
    let chosen = true;
    match Door::open_to_all(Address { socket, chosen }).await {
        Ok(door) => Ok(Some(door)),
        Err(error @ ListenError::Taken(_)) => {
            Err(already_running(project)
                .unwrap_or_else(|| without_admin_door("address-taken", &error)))
        }
        Err(error) => Err(without_admin_door("address", &error)),
    }
}

fn without_admin_door(code: &'static str, error: &ListenError) -> CliError {
    let next = format!("set another `{ADMIN}`");
    CliError::refused(code, (error.to_string(), next))
}

async fn api_door(project: &Project) -> Result<Option<Door>, CliError> {
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
        Err(error @ ListenError::Taken(_)) => {
            Err(already_running(project)
                .unwrap_or_else(|| CliError::advised("address-taken", error)))
        }
        Err(error) => Err(CliError::advised("address", error)),
    }
}

/// Serves behind `doors`; returns what people are told of it.
pub(super) fn serve(
    doors: Doors,
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
        capacity: Capacity::default(),
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
    let admin = doors.admin.as_ref().map(Door::address);
    if let Some(taken) = doors.taken {
        let address = doors.api.address();
        warn!(
            server.taken = %taken, server.address = %address,
            "the address `{taken}` is taken, so that this program listens at `{address}`"
        );
    }
    let server = Server::new(doors.api, options, services.clone(), supervisor)?;
    let server = server.telling_at(doors.admin);
    let mut told = match project.person() {
        Ok(person) => format!("pages and API: {}", server.link(person)),
        // Whoever runs this is nobody; people come with their tokens.
        Err(_) => format!("pages and API: http://{}", server.address()),
    };
    if let Some(address) = server.elsewhere() {
        write!(told, "\nfrom other machines: {address}, with a token").ok();
    }
    if let Some(address) = admin {
        write!(told, "\nhow it does: http://{address}/readyz and /metrics").ok();
    }
    server.serve();
    Ok(told)
}
