//! Hears the signals that stop a process: the first asks for a soft stop, the second for an immediate one.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ropewalk_runtime::{Shutdown, Supervisor};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tracing::warn;

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
    _listener: Supervisor,
}

impl Interrupts {
    /// Begins to listen.
    pub fn start() -> Self {
        let listener = Supervisor::new(Shutdown::new());
        let (shutdown, first) = (Shutdown::new(), Arc::new(AtomicU8::new(NONE)));
        let turn = OpenTurn::default();
        let heard = listen(shutdown.clone(), Arc::clone(&first), Arc::clone(&turn));
        listener.spawn("signals", heard);
        Self {
            shutdown,
            first,
            turn,
            _listener: listener,
        }
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

    /// Returns the shutdown that signals begin; whatever runs in this process watches it.
    pub const fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }

    /// Waits until the process was asked to stop, or asked itself.
    pub async fn requested(&self) {
        self.shutdown.soft().cancelled().await;
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

async fn listen(shutdown: Shutdown, first: Arc<AtomicU8>, turn: OpenTurn) {
    let signals = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    );
    let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
        warn!("signals cannot be heard; only a kill stops this process");
        return;
    };
    loop {
        let heard = tokio::select! {
            _ = interrupt.recv() => INTERRUPT,
            _ = terminate.recv() => TERMINATE,
        };
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
