//! Shows what an attempt does: to who listens now, and in its transcript to who looks later.
//!
//! A transcript is a file beside the truth, which stands in the rows of model calls: whoever misses the file tells the
//! words and calls again from those.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use ropewalk_bus::{LiveChannel, LiveEvent};
use ropewalk_engine::{JobEvent, Observer};
use ropewalk_orchestrator::Context;
use ropewalk_runtime::{Clock, secrets};
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::clip::{self, Weight};
use ropewalk_schemas::job_event::Passage;
use ropewalk_schemas::{AttemptId, Subject, TaskId};
use serde_json::Value;
use tracing::warn;

/// The most of one text that is shown.
const TEXT_BYTES: usize = 16 * 1024;

/// Watches the job of an attempt.
pub(crate) struct AttemptObserver {
    attempt: AttemptId,
    task: TaskId,
    subject: Subject,
    live: LiveChannel,
    clock: Clock,
    moved: AtomicBool,
    transcript: Mutex<Transcript>,
}

impl AttemptObserver {
    /// Watches `attempt`, whose transcript lies in the state directory.
    pub(crate) fn new(context: &Context, state: &Path, attempt: &Attempt) -> Self {
        Self {
            attempt: attempt.id,
            task: attempt.task.clone(),
            subject: Subject::task(attempt.build, &attempt.task),
            live: context.bus.live().clone(),
            clock: context.clock.clone(),
            moved: AtomicBool::new(false),
            transcript: Mutex::new(Transcript::Unopened(state.join(Passage::file(attempt.id)))),
        }
    }

    /// Says whether the work moved since the last call.
    pub(super) fn moved(&self) -> bool {
        self.moved.swap(false, Ordering::Relaxed)
    }
}

impl Observer for AttemptObserver {
    fn see(&self, event: JobEvent) {
        if event == JobEvent::Progressed {
            self.moved.store(true, Ordering::Relaxed);
        }
        let is_kept = event.is_kept();
        let passage = Passage {
            attempt: self.attempt,
            task: self.task.clone(),
            at: self.clock.now(),
            event,
        };
        // A passage is a struct of plain fields, which JSON can always hold.
        let mut data = serde_json::to_value(passage).unwrap_or_default();
        secrets::strike_json(&mut data);
        bound(&mut data);
        if is_kept {
            let transcript = self.transcript.lock();
            transcript
                .unwrap_or_else(PoisonError::into_inner)
                .add(&data);
        }
        self.live.publish(LiveEvent {
            event_type: Passage::LIVE.to_owned(),
            subject: self.subject.clone(),
            data,
        });
    }
}

/// The file of a transcript. What cannot be written costs the transcript, never the work.
enum Transcript {
    Unopened(PathBuf),
    Open { file: File, bytes: u64 },
    Closed,
}

impl Transcript {
    fn add(&mut self, passage: &Value) {
        if let Self::Unopened(path) = self {
            *self = match open(path) {
                Ok(file) => Self::Open { file, bytes: 0 },
                Err(error) => {
                    warn!(
                        "the transcript `{}` cannot be written: {error}",
                        path.display()
                    );
                    Self::Closed
                }
            };
        }
        let Self::Open { file, bytes } = self else {
            return;
        };
        let line = format!("{passage}\n");
        *bytes += u64::try_from(line.len()).unwrap_or(u64::MAX);
        if *bytes > Passage::MOST_BYTES {
            warn!("a transcript is full: what follows is only in the model calls");
            *self = Self::Closed;
        } else if let Err(error) = file.write_all(line.as_bytes()) {
            warn!("a transcript cannot be written on: {error}");
            *self = Self::Closed;
        }
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

/// Shortens every long text to its beginning and end.
fn bound(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > TEXT_BYTES => {
            *text = clip::ends(text, TEXT_BYTES, Weight::Head).into_owned();
        }
        Value::Array(values) => values.iter_mut().for_each(bound),
        Value::Object(fields) => fields.values_mut().for_each(bound),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_text_keeps_its_two_ends_wherever_it_stands() {
        let long = format!("begin{}end", "ä".repeat(20_000));
        let mut value = json!({ "a": [{ "b": long }], "c": "short" });
        bound(&mut value);
        let text = value["a"][0]["b"].as_str().unwrap();
        assert!(text.starts_with("beginä") && text.ends_with("äend"));
        assert!(text.contains("bytes left out") && text.len() < TEXT_BYTES + 100);
        assert_eq!(value["c"], "short");
    }

    #[test]
    fn a_full_transcript_takes_no_more_and_a_missing_folder_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.jsonl");
        let mut transcript = Transcript::Unopened(path.clone());
        let passage = json!("x".repeat(1024 * 1024));
        for _ in 0..20 {
            transcript.add(&passage);
        }
        let bytes = std::fs::metadata(&path).unwrap().len();
        assert!(bytes > Passage::MOST_BYTES / 2 && bytes <= Passage::MOST_BYTES);
    }
}
