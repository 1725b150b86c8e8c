//! Hears the signals that stop a process: the first asks for a soft stop, the second for an immediate one.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ropewalk_runtime::{Shutdown, Supervisor};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use crate::error::CliError;

const NONE: u8 = 0;
const INTERRUPT: u8 = 1;
const TERMINATE: u8 = 2;

/// The turn that an interrupt ends in the place of the process, if there is one.
type OpenTurn = Arc<Mutex<Option<Arc<Notify>>>>;

/// A turn of a conversation: while it lives, an interrupt ends it and nothing else.
#[derive(Debug)]
pub struct Turn {
    open: OpenTurn,
    left: Arc<Notify>,
}

impl Turn {
    /// Waits until the person leaves the turn.
    pub async fn left(&self) {
        self.left.notified().await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *guard(&self.open) = None;
    }
}

fn guard(turn: &OpenTurn) -> std::sync::MutexGuard<'_, Option<Arc<Notify>>> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Knows whether a person or the system asked this process to stop; cheap to clone.
#[derive(Debug, Clone)]
pub struct Interrupts {
    shutdown: Shutdown,
    first: Arc<AtomicU8>,
    turn: OpenTurn,
    /// Never drained, since the second signal comes during a drain.
    listener: Supervisor,
}

impl Interrupts {
    /// Begins to listen: whatever comes from now on is heard. A process listens once, since whoever begins later has missed
    /// what came before.
    pub fn start() -> Result<Self, CliError> {
        let listener = Supervisor::new(Shutdown::new());
        let (shutdown, first) = (Shutdown::new(), Arc::new(AtomicU8::new(NONE)));
        let turn = OpenTurn::default();
        let signals = Signals::open().map_err(CliError::failed)?;
        let heard = listen(
            signals,
            (shutdown.clone(), Arc::clone(&first)),
            Arc::clone(&turn),
        );
        listener.spawn("signals", heard);
        Ok(Self {
            shutdown,
            first,
            turn,
            listener,
        })
    }

    /// Returns a shutdown for a part of this process, which signals begin, too, also those that came before. Whoever else
    /// begins it stops that part alone.
    pub fn shutdown_of_part(&self) -> Shutdown {
        let (part, whole) = (Shutdown::new(), self.shutdown.clone());
        let of_part = part.clone();
        self.listener.spawn("signals-of-part", async move {
            whole.soft().cancelled().await;
            of_part.begin();
            whole.hard().cancelled().await;
            of_part.abort();
        });
        part
    }

    /// Begins a turn, which the next interrupt ends.
    pub fn turn(&self) -> Turn {
        let left = Arc::new(Notify::new());
        *guard(&self.turn) = Some(Arc::clone(&left));
        Turn {
            open: Arc::clone(&self.turn),
            left,
        }
    }

    /// Waits until the process was asked to stop.
    pub async fn requested(&self) {
        self.shutdown.soft().cancelled().await;
    }

    /// Returns whether the process was asked to stop.
    pub fn is_requested(&self) -> bool {
        self.shutdown.soft().is_cancelled()
    }

    /// Waits until the process was asked to stop at once.
    pub async fn insisted(&self) {
        self.shutdown.hard().cancelled().await;
    }

    /// Returns an error when the work was cut short by Ctrl-C; a termination that was heeded is a success.
    pub fn outcome(&self) -> Result<(), CliError> {
        match self.first.load(Ordering::Acquire) {
            INTERRUPT => Err(CliError::Cancelled),
            _ => Ok(()),
        }
    }
}

/// The signals that stop a process, caught from when this is made.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    fn open() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: hangup()?,
        })
    }

    /// Waits for the next one.
    async fn next(&mut self) -> u8 {
        let closed = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPT,
            _ = self.terminate.recv() => TERMINATE,
            // Its terminal was closed.
            _ = closed => TERMINATE,
        }
    }
}

async fn listen(
    mut signals: Signals,
    (shutdown, first): (Shutdown, Arc<AtomicU8>),
    turn: OpenTurn,
) {
    loop {
        let heard = signals.next().await;
        if heard == INTERRUPT
            && let Some(turn) = guard(&turn).take()
        {
            turn.notify_one();
            continue;
        }
        let earlier = first.compare_exchange(NONE, heard, Ordering::AcqRel, Ordering::Acquire);
        if earlier.is_err() {
            shutdown.abort();
            return;
        }
        shutdown.begin();
    }
}

/// Hears of the end of the terminal, unless whoever started the process wants it to outlive that (`nohup`): to hear a
/// signal is to ignore it no longer.
fn hangup() -> io::Result<Option<Signal>> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if is_ignored(&status, SignalKind::hangup()) {
        return Ok(None);
    }
    signal(SignalKind::hangup()).map(Some)
}

/// Returns whether a `/proc/PID/status` lists a signal as ignored.
fn is_ignored(status: &str, signal: SignalKind) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let number = u32::try_from(signal.as_raw_value()).unwrap_or_default();
    mask.is_some_and(|mask| mask >> number.saturating_sub(1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_a_bit_of_a_mask() {
        let status =
            "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(status, SignalKind::hangup()));
        assert!(is_ignored(status, SignalKind::pipe()));
        assert!(!is_ignored(status, SignalKind::interrupt()));
        assert!(!is_ignored("", SignalKind::hangup()));
    }
}
