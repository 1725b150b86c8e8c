//! Standard error of this process, which a program that runs for days must never wait for.
//!
//! A terminal that is stopped (Ctrl-S), a pager that was left alone and a full pipe take nothing, and a write to them
//! lasts until they do. A process that works on whoever listens [`detach`]es; others write as everybody does, so that
//! nothing of the answer of a verb is lost.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

/// So many lines wait for whoever listens; what comes then is left out.
const LINES: usize = 10_000;

/// Hands lines on, once this process has detached.
static HANDS_ON: OnceLock<NonBlocking> = OnceLock::new();
/// Keeps the thread that writes them.
static WRITES: Mutex<Option<WorkerGuard>> = Mutex::new(None);
/// How many lines it was told are missing.
static TOLD: AtomicUsize = AtomicUsize::new(0);

/// From now on a thread of its own writes, and nobody else waits.
pub fn detach() {
    let (hands_on, writes) = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES)
        .lossy(true)
        .thread_name("stderr")
        .finish(io::stderr());
    if HANDS_ON.set(hands_on).is_ok() {
        *guard() = Some(writes);
    }
}

/// Writes `text` as it is; where nobody takes it, it is lost, and that changes nothing.
pub fn write(text: &str) {
    let Some(mut hands_on) = HANDS_ON.get().cloned() else {
        drop(io::stderr().write_all(text.as_bytes()));
        return;
    };
    let missing = hands_on.error_counter().dropped_lines();
    let told = TOLD.swap(missing, Ordering::Relaxed);
    if missing > told {
        let many = missing - told;
        drop(writeln!(
            hands_on,
            "{many} lines are missing here, since nobody took them"
        ));
    }
    drop(hands_on.write_all(text.as_bytes()));
}

/// Writes what is still to be written, for about a second at most where nobody takes it; the last thing that a process does.
pub fn finish() {
    drop(guard().take());
}

fn guard() -> std::sync::MutexGuard<'static, Option<WorkerGuard>> {
    WRITES.lock().unwrap_or_else(PoisonError::into_inner)
}
