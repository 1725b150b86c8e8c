//! Standard error of this process, which a program that runs for days must never wait for.
//!
//! A terminal that is stopped (Ctrl-S), a pager that was left alone and a full pipe take nothing, and a write to them
//! lasts until they do. A process that works on whoever listens [`detach`]es; others write as everybody does, so that
//! nothing of the answer of a verb is lost.

use std::io::{self, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

/// So many lines wait for whoever listens; what comes then is left out.
const LINES: usize = 10_000;

/// What hands lines on, once this process has detached.
static DETACHED: OnceLock<DetachedWriter> = OnceLock::new();
/// Keeps the thread that writes them.
static THREAD: Mutex<Option<WorkerGuard>> = Mutex::new(None);

/// From now on a thread of its own writes, and nobody else waits.
pub fn detach() {
    let (detached, thread) = DetachedWriter::over(io::stderr(), LINES);
    if DETACHED.set(detached).is_ok() {
        *guard() = Some(thread);
    }
}

/// Writes `text` as it is; where nobody takes it, it is lost, and that changes nothing.
pub fn write(text: &str) {
    match DETACHED.get() {
        Some(detached) => detached.write(text),
        None => drop(io::stderr().write_all(text.as_bytes())),
    }
}

/// Writes what is still to be written, for about a second at most where nobody takes it; the last thing that a process does.
pub fn finish() {
    drop(guard().take());
}

fn guard() -> std::sync::MutexGuard<'static, Option<WorkerGuard>> {
    THREAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands lines to a thread that writes them, and leaves out what finds no room.
struct DetachedWriter {
    lines: NonBlocking,
    /// How many are missing that nobody was told of; held while a line is handed on, so that each is counted once.
    missing: Mutex<usize>,
}

impl DetachedWriter {
    fn over(writer: impl Write + Send + 'static, lines: usize) -> (Self, WorkerGuard) {
        let (lines, thread) = NonBlockingBuilder::default()
            .buffered_lines_limit(lines)
            .lossy(true)
            .thread_name("stderr")
            .finish(writer);
        let missing = Mutex::new(0);
        (Self { lines, missing }, thread)
    }

    fn write(&self, text: &str) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.hand_on(text) {
            *missing += 1;
            return;
        }
        let told = format!("{missing} lines before this are missing, since nobody took them\n");
        if *missing > 0 && self.hand_on(&told) {
            *missing = 0;
        }
    }

    /// Returns whether there was room.
    fn hand_on(&self, text: &str) -> bool {
        let counter = self.lines.error_counter();
        let before = counter.dropped_lines();
        // What finds no room is counted, and no error.
        drop(self.lines.clone().write_all(text.as_bytes()));
        counter.dropped_lines() == before
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// Takes nothing until it is let.
    struct StoppedReader {
        go: Option<Receiver<()>>,
        taken: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for StoppedReader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(go) = self.go.take() {
                go.recv().map_err(io::Error::other)?;
            }
            self.taken.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_stops_holds_nobody_up_and_is_told_what_it_missed() {
        let (let_go, go) = channel();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let reader = StoppedReader {
            go: Some(go),
            taken: Arc::clone(&taken),
        };
        let (writer, thread) = DetachedWriter::over(reader, 4);
        for number in 0..50 {
            writer.write(&format!("line {number}\n"));
        }
        let_go.send(()).unwrap();
        let text = || String::from_utf8(taken.lock().unwrap().clone()).unwrap();
        let mut said = 50;
        while !text().contains("are missing") {
            writer.write("later\n");
            said += 1;
            std::thread::yield_now();
        }
        drop(thread);
        let text = text();
        let (told, lines): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.contains("are missing"));
        let missing: usize = told
            .iter()
            .map(|line| line.split(' ').next().unwrap().parse::<usize>().unwrap())
            .sum();
        assert!(missing > 40, "{text}");
        let untold = *writer.missing.lock().unwrap();
        assert_eq!(lines.len() + missing + untold, said, "{text}");
    }
}
