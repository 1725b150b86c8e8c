//! Writes exchanges into a cassette as they end.

use std::fs::{File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures::StreamExt;
use ropewalk_runtime::Clock;
use ropewalk_runtime::secrets::{self, SecretFilter};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{CassetteError, Exchange, Item, TimedItem};
use crate::error::ModelError;
use crate::model::Model;
use crate::print;
use crate::reply::{Delta, ReplyStream};
use crate::request::ModelRequest;

/// The mode of a file that only its owner may read and write.
const OWNER_ALONE: u32 = 0o600;

/// A cassette that is written. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Recorder {
    path: PathBuf,
    file: Arc<Mutex<File>>,
}

impl Recorder {
    /// Begins a cassette, which only its owner may read; what stood in the file is gone.
    pub fn create(path: &Path) -> Result<Self, CassetteError> {
        let file = open(path).map_err(|source| CassetteError::File {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            file: Arc::new(Mutex::new(file)),
        })
    }

    /// Lets whatever `model` is asked and answers be written down.
    pub fn around<M: Model>(&self, model: M, clock: Clock) -> RecordingModel<M> {
        RecordingModel {
            model,
            recorder: self.clone(),
            clock,
        }
    }

    fn write(&self, exchange: &Exchange) {
        let mut line = json!(exchange);
        secrets::strike_json(&mut line);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            warn!("`{}` misses an exchange: {error}", self.path.display());
        }
    }
}

/// Opens an empty file that only its owner may read, whoever might read what was there before.
fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.create(true).write(true).truncate(true);
    let file = options.mode(OWNER_ALONE).open(path)?;
    // A device is for everybody.
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(OWNER_ALONE))?;
    }
    Ok(file)
}

/// Wraps a model whose exchanges are written down.
pub struct RecordingModel<M> {
    model: M,
    recorder: Recorder,
    clock: Clock,
}

#[async_trait]
impl<M: Model> Model for RecordingModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        let mut tape = Tape {
            recorder: self.recorder.clone(),
            clock: self.clock.clone(),
            began: self.clock.now(),
            spoken: SecretFilter::default(),
            exchange: Exchange {
                provider: self.model.name().to_owned(),
                model: request.model.clone(),
                asked: print::print(request),
                heard: Vec::new(),
            },
        };
        match self.model.stream(request, cancel).await {
            Ok(deltas) => {
                let deltas = deltas.map(move |item| {
                    tape.hear(&item);
                    item
                });
                Ok(ReplyStream::new(deltas))
            }
            Err(error) => {
                tape.hear(&Err(error.clone()));
                Err(error)
            }
        }
    }
}

/// One exchange on its way; what nobody listened to the end of is not kept.
struct Tape {
    recorder: Recorder,
    clock: Clock,
    began: DateTime<Utc>,
    spoken: SecretFilter,
    exchange: Exchange,
}

impl Tape {
    fn hear(&mut self, item: &Result<Delta, ModelError>) {
        match item {
            Ok(Delta::Text(text)) => {
                // A secret that comes in pieces is in no piece.
                let text = self.spoken.hear(text);
                self.say(text);
            }
            Ok(delta) => {
                let held = self.spoken.end();
                self.say(held);
                self.keep(Item::Delta(delta.clone()));
            }
            Err(ModelError::Cancelled) => return,
            Err(error) => {
                let held = self.spoken.end();
                self.say(held);
                self.keep(Item::Error(error.clone()));
            }
        }
        if matches!(item, Err(_) | Ok(Delta::Done(_))) {
            self.recorder.write(&self.exchange);
        }
    }

    fn say(&mut self, text: String) {
        if !text.is_empty() {
            self.keep(Item::Delta(Delta::Text(text)));
        }
    }

    fn keep(&mut self, what: Item) {
        let ms = (self.clock.now() - self.began).num_milliseconds();
        self.exchange.heard.push(TimedItem {
            ms: u64::try_from(ms).unwrap_or_default(),
            what,
        });
    }
}
