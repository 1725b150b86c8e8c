//! Rows of leases, ownership and waits.

use ropewalk_schemas::RepoPath;
use ropewalk_schemas::lease::{Lease, Ownership};
use ropewalk_schemas::wait::{Party, Resource, Wait};

use super::record;

/// Returns the key of a lease or an ownership: one for all spellings that a folding file system takes for one.
pub fn path_key(path: &RepoPath) -> String {
    path.key()
}

/// Returns the key of a wait.
pub fn wait_key(waiter: &Party, resource: &Resource) -> String {
    format!("{waiter} {resource}")
}

const fn kind(resource: &Resource) -> &'static str {
    match resource {
        Resource::Dependency { .. } => "dependency",
        Resource::Lease { .. } => "lease",
        Resource::Ownership { .. } => "ownership",
        Resource::Person { .. } => "person",
        Resource::Quota { .. } => "quota",
        Resource::Budget { .. } => "budget",
        Resource::Outage { .. } => "outage",
    }
}

fn build(party: &Party) -> String {
    match party {
        Party::Task { build, .. } | Party::Build { build } => build.to_string(),
    }
}

record!(Lease, "leases", |lease| path_key(&lease.path), {
    "build": text = lease.holder.build,
    "task": text = &lease.holder.task,
    "attempt": text = lease.holder.attempt,
    "state": text = lease.state,
    "token": integer = lease.token,
});

record!(Ownership, "ownership", |ownership| path_key(&ownership.path), {
    "build": text = ownership.build,
});

record!(Wait, "waits", |wait| wait_key(&wait.waiter, &wait.resource), {
    "build": text = build(&wait.waiter),
    "waiter": text = wait.waiter.to_string(),
    "kind": text = kind(&wait.resource),
    "resource": text = wait.resource.to_string(),
    "holder": text = wait.holder.as_ref().map(ToString::to_string),
    "since": integer = wait.since,
});
