//! Keeps what models were asked and answered in a file, and answers from it: the same deltas at the same pace.
//!
//! Each line is one exchange: the print of its request, and every delta with the time since it was asked. Secrets are
//! struck out of it, ids and times leave no trace in a print, and so a run of the same work finds its answers again.

mod recording;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream;
use ropewalk_runtime::Clock;
use ropewalk_schemas::model_call::RequestPrint;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use tokio_util::sync::CancellationToken;

use crate::error::ModelError;
use crate::model::Model;
use crate::print;
use crate::reply::{Delta, ReplyStream};
use crate::request::ModelRequest;
pub use recording::{Recorder, RecordingModel};

/// Says why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file cannot be read or written.
    #[error("cannot use the cassette `{path}`: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is no exchange.
    #[error("line {line} of the cassette `{path}` is no exchange that `--record` wrote: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
}

/// Says why a line is no exchange; where it is no JSON at all, the parser's own words tell nobody anything.
fn no_exchange(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Eof => "it ends too early".to_owned(),
        Category::Syntax | Category::Io => "it is no JSON".to_owned(),
        Category::Data => error.to_string(),
    }
}

/// One request and all that came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    provider: String,
    model: String,
    asked: RequestPrint,
    heard: Vec<TimedItem>,
}

/// One item of a stream, and when it came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimedItem {
    /// Milliseconds since the request.
    ms: u64,
    what: Item,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Item {
    Delta(Delta),
    Error(ModelError),
}

/// A cassette that is played. Cheap to clone; what one player has used no other one gets.
#[derive(Debug, Clone)]
pub struct Cassette {
    path: PathBuf,
    left: Arc<Mutex<Vec<Exchange>>>,
}

impl Cassette {
    /// Reads a cassette.
    pub fn open(path: &Path) -> Result<Self, CassetteError> {
        let text = std::fs::read_to_string(path).map_err(|source| CassetteError::File {
            path: path.to_owned(),
            source,
        })?;
        let lines = text.lines().enumerate();
        let exchanges = lines.map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| CassetteError::Line {
                path: path.to_owned(),
                line: index + 1,
                reason: no_exchange(&error),
            })
        });
        Ok(Self {
            path: path.to_owned(),
            left: Arc::new(Mutex::new(exchanges.collect::<Result<_, _>>()?)),
        })
    }

    /// Returns the provider `name` as the cassette has it; waits go by `clock`.
    pub fn player(&self, name: &str, clock: Clock) -> Player {
        Player {
            name: name.to_owned(),
            cassette: self.clone(),
            clock,
        }
    }

    /// Takes the next exchange in which `provider` was asked the same; fails with what differs.
    fn take(&self, provider: &str, request: &ModelRequest) -> Result<Vec<TimedItem>, ModelError> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = print::print(request);
        let is_of = |one: &Exchange| one.provider == provider && one.model == request.model;
        let found = left.iter().position(|one| is_of(one) && one.asked == asked);
        if let Some(index) = found {
            return Ok(left.remove(index).heard);
        }
        let next = left.iter().find(|one| is_of(one));
        let what = match next {
            Some(next) => print::difference(&next.asked, request)
                .map(|what| what.to_string())
                .unwrap_or_default(),
            None => format!("it holds no more answers of `{provider}/{}`", request.model),
        };
        Err(ModelError::Strayed {
            place: self.path.display().to_string(),
            what,
        })
    }
}

/// Answers from a cassette.
pub struct Player {
    name: String,
    cassette: Cassette,
    clock: Clock,
}

#[async_trait]
impl Model for Player {
    fn name(&self) -> &str {
        &self.name
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        let heard = self.cassette.take(&self.name, request)?;
        let playing = (heard.into_iter(), 0, self.clock.clone(), cancel.clone());
        let items = stream::unfold(playing, |(mut heard, before, clock, cancel)| async move {
            let TimedItem { ms, what } = heard.next()?;
            let wait = Duration::from_millis(ms.saturating_sub(before));
            let item = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(ModelError::Cancelled),
                () = clock.sleep(wait) => match what {
                    Item::Delta(delta) => Ok(delta),
                    Item::Error(error) => Err(error),
                },
            };
            Some((item, (heard, ms, clock, cancel)))
        });
        Ok(ReplyStream::new(items))
    }
}
