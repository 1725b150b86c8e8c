//! Ends a confined command with the process that asked for it, also when that was killed.
//!
//! The kernel can tell a child that the *thread* which started it is gone; here the whole process is waited for.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

/// Whoever started this process; none where a kernel tells nobody when that ends.
pub(super) struct Starter(Option<OwnedFd>);

impl Starter {
    /// Finds it; to be called before anything is started that ends with it.
    pub(super) fn of_this_process() -> io::Result<Self> {
        let parent = getppid().ok_or(Errno::SRCH)?;
        let watched = match pidfd_open(parent, PidfdFlags::empty()) {
            Err(Errno::NOSYS | Errno::PERM) => return Ok(Self(None)),
            watched => watched?,
        };
        // Gone meanwhile, its number would be another one's.
        if getppid() != Some(parent) {
            return Err(Errno::SRCH.into());
        }
        Ok(Self(Some(watched)))
    }

    /// Waits for `child`, which is killed as soon as the starter has ended.
    ///
    /// By one thread, since a process whose children have process ids of their own can have no other.
    pub(super) fn wait_for(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let Some(starter) = &self.0 else {
            return child.wait();
        };
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let running = pidfd_open(id.ok_or(Errno::SRCH)?, PidfdFlags::empty())?;
        let mut watched = [
            PollFd::new(&running, PollFlags::IN),
            PollFd::new(starter, PollFlags::IN),
        ];
        while let Err(error) = poll(&mut watched, None) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        if watched[0].revents().is_empty() {
            child.kill()?;
        }
        child.wait()
    }
}
