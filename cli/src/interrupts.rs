//! Hears the signals that stop a process: the first asks for a soft stop, the second for an immediate one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use ropewalk_runtime::{Shutdown, Supervisor};
use tokio::signal::unix::{SignalKind, signal};
use tracing::warn;

use crate::error::CliError;

const NONE: u8 = 0;
const INTERRUPT: u8 = 1;
const TERMINATE: u8 = 2;

/// Knows whether a person or the system asked this process to stop; cheap to clone.
#[derive(Debug, Clone)]
pub struct Interrupts {
    shutdown: Shutdown,
    first: Arc<AtomicU8>,
    /// Never drained, since the second signal comes during a drain.
    _listener: Supervisor,
}

impl Interrupts {
    /// Begins to listen.
    pub fn start() -> Self {
        let listener = Supervisor::new(Shutdown::new());
        let (shutdown, first) = (Shutdown::new(), Arc::new(AtomicU8::new(NONE)));
        listener.spawn("signals", listen(shutdown.clone(), Arc::clone(&first)));
        Self {
            shutdown,
            first,
            _listener: listener,
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

async fn listen(shutdown: Shutdown, first: Arc<AtomicU8>) {
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
        let earlier = first.compare_exchange(NONE, heard, Ordering::AcqRel, Ordering::Acquire);
        if earlier.is_err() {
            shutdown.abort();
            return;
        }
        shutdown.begin();
    }
}
