//! Ends a whole process group, so that no child of a child survives.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// A process group led by a child of ours; dropping it kills what is left of the group.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
}

impl Group {
    /// Watches the group that `child` leads; `None` when the child is already reaped.
    pub(super) fn led_by(child: &tokio::process::Child) -> Option<Self> {
        let leader = child.id().and_then(|id| i32::try_from(id).ok())?;
        Some(Self {
            leader: Pid::from_raw(leader),
        })
    }

    /// Asks every process of the group to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Kills every process of the group.
    pub(super) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    fn signal(&self, signal: Signal) {
        // An error says that the group is empty, which is what we want.
        killpg(self.leader, signal).ok();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
