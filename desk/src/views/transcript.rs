//! What the models of a build said and did, from the transcripts of its attempts; where one is missing, from the journal.

mod step_words;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ropewalk_schemas::attempt::{Attempt, AttemptState, Failure, FailureClass};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::job_event::{JobEvent, Passage};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::{AttemptId, BuildId, TaskId};
use ropewalk_store::{Query, ReadError, Store};

use super::records;
pub use step_words::StepWords;

/// How much of the end of a transcript is looked through for what was said last.
const LAST_BYTES: u64 = 64 * 1024;

/// Says why a transcript cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] ReadError),
    /// The file cannot be read.
    #[error("cannot read the transcript `{path}`: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Reads the transcripts of a build, on from where it was before.
pub struct Transcripts {
    state: PathBuf,
    build: Build,
    /// How much of each was read; none for one that was told from the journal.
    read: BTreeMap<AttemptId, Option<u64>>,
}

impl Transcripts {
    /// Begins before the first word of `build`.
    pub fn of(build: Build, state: &Path) -> Self {
        Self {
            state: state.to_owned(),
            build,
            read: BTreeMap::new(),
        }
    }

    /// Returns what came since the last call, the oldest first.
    pub async fn next(&mut self, store: &Store) -> Result<Vec<Passage>, TranscriptError> {
        let of_build = Query::new().equal("build", self.build.id.to_string());
        let attempts = records(store.list::<Attempt>(of_build).await?);
        let mut passages = Vec::new();
        for attempt in attempts {
            match self.read.get(&attempt.id).copied() {
                Some(None) => continue,
                known => {
                    let from = known.flatten().unwrap_or_default();
                    if let Some((new, until)) = self.read_on(attempt.id, from)? {
                        self.read.insert(attempt.id, Some(until));
                        passages.extend(new);
                        continue;
                    }
                }
            }
            // One that runs may be about to begin its file.
            if attempt.ended_at.is_some() {
                passages.extend(told_again(store, &attempt).await?);
                self.read.insert(attempt.id, None);
            }
        }
        passages.sort_by_key(|passage| passage.at);
        Ok(passages)
    }

    /// Reads the whole lines after a position; none when there is no file.
    fn read_on(
        &self,
        attempt: AttemptId,
        from: u64,
    ) -> Result<Option<(Vec<Passage>, u64)>, TranscriptError> {
        let path = self.state.join(Passage::file(attempt));
        let text = match read_from(&path, from) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(TranscriptError::File { path, source }),
        };
        let (passages, whole) = parsed(&text);
        let until = from + u64::try_from(whole).unwrap_or_default();
        Ok(Some((passages, until)))
    }
}

/// What one attempt said and did.
#[derive(Debug)]
pub struct AttemptTranscript {
    /// Its steps, the oldest first.
    pub passages: Vec<Passage>,
    /// Whether there are earlier ones.
    pub is_cut: bool,
}

/// Reads the last part of what an attempt said and did: about so many bytes.
pub async fn of_attempt(
    store: &Store,
    state: &Path,
    attempt: &Attempt,
    most_bytes: u64,
) -> Result<AttemptTranscript, TranscriptError> {
    let path = state.join(Passage::file(attempt.id));
    match read_last(&path, most_bytes) {
        Ok((text, is_cut)) => Ok(AttemptTranscript {
            passages: parsed(&text).0,
            is_cut,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(AttemptTranscript {
            // One that runs may be about to begin its file.
            passages: match attempt.ended_at {
                Some(_) => told_again(store, attempt).await?,
                None => Vec::new(),
            },
            is_cut: false,
        }),
        Err(source) => Err(TranscriptError::File { path, source }),
    }
}

/// Tells in a line what each task of a build is at that is worked on now.
pub async fn latest(
    store: &Store,
    state: &Path,
    build: BuildId,
) -> Result<BTreeMap<TaskId, String>, TranscriptError> {
    let running = [
        AttemptState::Working,
        AttemptState::Validating,
        AttemptState::Landing,
    ];
    let running = Query::new()
        .equal("build", build.to_string())
        .one_of("state", running.map(AttemptState::as_str));
    let mut lines = BTreeMap::new();
    for attempt in records(store.list::<Attempt>(running).await?) {
        let last = of_attempt(store, state, &attempt, LAST_BYTES).await?;
        let mut newest = last.passages.iter().rev();
        if let Some(told) = newest.find_map(|passage| StepWords::new(&passage.event)) {
            lines.insert(attempt.task, told.line);
        }
    }
    Ok(lines)
}

/// Returns the passages of whole lines, and how long those are: one that is still being written, or that a crash cut,
/// is no passage.
fn parsed(text: &str) -> (Vec<Passage>, usize) {
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let lines = text[..whole].lines();
    let passages = lines.filter_map(|line| Passage::parse(line).ok());
    (passages.collect(), whole)
}

/// Reads the end of a file from where a line begins, and says whether something stands before it.
fn read_last(path: &Path, most_bytes: u64) -> io::Result<(String, bool)> {
    let length = std::fs::metadata(path)?.len();
    let from = length.saturating_sub(most_bytes);
    let mut text = read_from(path, from)?;
    if from > 0 {
        let begin = text.find('\n').map_or(text.len(), |end| end + 1);
        text.drain(..begin);
    }
    Ok((text, from > 0))
}

fn read_from(path: &Path, from: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(Passage::MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Tells an attempt again: its words and calls from the journal, its verdicts from its row.
async fn told_again(store: &Store, attempt: &Attempt) -> Result<Vec<Passage>, ReadError> {
    let of_task = Query::new()
        .equal("build", attempt.build.to_string())
        .equal("task", attempt.task.as_str())
        .order_by("at");
    let calls = records(store.list::<ModelCall>(of_task).await?);
    let passage = |at, event| Passage {
        attempt: attempt.id,
        task: attempt.task.clone(),
        at,
        event,
    };
    let ended = attempt.ended_at.unwrap_or(attempt.started_at);
    let mut passages = Vec::new();
    for call in calls {
        if call.at < attempt.started_at || call.at > ended {
            continue;
        }
        let steps = JobEvent::of_call(&call);
        passages.extend(steps.into_iter().map(|step| passage(call.at, step)));
        let turn = format!("/{}/", attempt.round);
        let turn = call.key.rsplit_once(&turn).map(|(_, turn)| turn.to_owned());
        let refused = attempt
            .tries
            .iter()
            .find(|one| Some(one.turn.to_string()) == turn);
        if let Some(one) = refused {
            passages.push(passage(call.at, refusal(&one.failure)));
        }
    }
    match (attempt.state, &attempt.failure) {
        (AttemptState::Landed, _) => passages.push(passage(ended, taken())),
        (_, Some(failure)) => passages.push(passage(ended, refusal(failure))),
        _ => {}
    }
    Ok(passages)
}

fn taken() -> JobEvent {
    JobEvent::Judged {
        passed: true,
        asks: false,
        text: String::new(),
    }
}

fn refusal(failure: &Failure) -> JobEvent {
    JobEvent::Judged {
        passed: false,
        asks: failure.class == FailureClass::Tampered,
        text: failure.error.clone(),
    }
}
