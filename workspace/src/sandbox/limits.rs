//! Watches what a command uses up, from among its processes, and says when it is too much.

mod disk;
mod memory;
mod pace;
mod processes;

use std::cell::LazyCell;
use std::io;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::plan::Plan;
use disk::DiskWatch;
use memory::MemoryWatch;
use processes::{MemoryDevices, Process};

/// How often it is looked whether something seems too much.
const LOOK_PERIOD: Duration = Duration::from_millis(40);

/// Sets what the kernel holds by itself: no core, no file longer than all may be together, so many processes.
pub(super) fn set(plan: &Plan) -> io::Result<()> {
    let limits = plan.limits;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    lower(Resource::RLIMIT_FSIZE, limits.disk_bytes)?;
    if !plan.groups.is_empty() {
        return Ok(());
    }
    // Root is not held by it; the watch is what holds everyone.
    lower(Resource::RLIMIT_NPROC, limits.processes)
}

fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let (_, ceiling) = getrlimit(resource)?;
    let limit = limit.min(ceiling);
    Ok(setrlimit(resource, limit, limit)?)
}

/// How disks and memory were before a command began.
pub(super) struct Before {
    disk: disk::Before,
    memory: memory::Before,
    devices: MemoryDevices,
}

impl Before {
    pub(super) fn look(plan: &Plan) -> nix::Result<Self> {
        Ok(Self {
            disk: disk::Before::look(plan)?,
            memory: memory::Before::look(),
            devices: MemoryDevices::find(memory::directories(plan)),
        })
    }
}

/// Waits until the command used up more than it may; says what.
pub(super) fn exceeded(plan: &Plan, before: &Before) -> String {
    let limits = plan.limits;
    let mut disk = DiskWatch::new(&before.disk, &before.devices);
    let mut memory = MemoryWatch::new(&before.memory, &before.devices);
    loop {
        // Once for both, and not at all where neither asks.
        let processes: LazyCell<Vec<Process>> = LazyCell::new(processes::all);
        // A group counts both by itself.
        if plan.groups.is_empty() {
            let threads: u64 = processes.iter().map(|process| process.threads).sum();
            if threads > limits.processes {
                return limits.too_many_processes();
            }
            if let Some(reason) = memory.exceeded(plan, &processes) {
                return reason;
            }
        }
        if let Some(reason) = disk.exceeded(plan, &processes) {
            return reason;
        }
        std::thread::sleep(LOOK_PERIOD);
    }
}
