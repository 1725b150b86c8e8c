//! Reads server-sent events within bounds and lets a decoder turn them into deltas.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, Stream, StreamExt};
use sse_stream::{Sse, SseStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::network;
use crate::error::{ModelError, TimeoutKind};
use crate::reply::{Delta, Reply, ReplyStream};

/// How long a reply whose content is whole may wait for its trailers (usage, `[DONE]`).
const TRAILER_GRACE: Duration = Duration::from_secs(5);

/// Turns the events of one wire format into deltas, without doing anything else.
pub(crate) trait Decoder: Send {
    /// Takes the data of one event; [`Delta::Done`] comes last and ends the stream.
    fn event(&mut self, data: &str) -> Result<Vec<Delta>, ModelError>;

    /// Counts the bytes of words and arguments so far.
    fn content_bytes(&self) -> u64;

    /// Tells whether only trailers can follow: losing them loses no content.
    fn settled(&self) -> bool;

    /// Ends the reply where the connection ended: whole if it was settled, else truncated.
    fn closed(&mut self) -> Result<Reply, ModelError>;
}

/// Bounds one reply, and the waiting for it.
pub(super) struct Bounds {
    pub(super) deadline: Instant,
    pub(super) content_bytes: u64,
    pub(super) cancel: CancellationToken,
}

impl Bounds {
    /// Waits for `work` until the deadline or until the caller gives up.
    pub(super) async fn keep<T>(&self, work: impl Future<Output = T>) -> Result<T, ModelError> {
        self.keep_until(self.deadline, work).await
    }

    async fn keep_until<T>(
        &self,
        deadline: Instant,
        work: impl Future<Output = T>,
    ) -> Result<T, ModelError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ModelError::Cancelled),
            done = tokio::time::timeout_at(deadline, work) => {
                done.map_err(|_| ModelError::Timeout { what: TimeoutKind::Total })
            }
        }
    }
}

/// Says why a body could not be read on.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("{0}")]
    Read(#[from] reqwest::Error),
    #[error("the reply has more than {0} bytes")]
    TooLong(u64),
}

/// Ends a body with an error at the first byte past `limit`.
pub(super) fn capped(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    limit: u64,
) -> impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static {
    let mut left = limit;
    bytes.map(move |chunk| {
        let chunk = chunk?;
        let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        left = left.checked_sub(length).ok_or(BodyError::TooLong(limit))?;
        Ok(chunk)
    })
}

/// Reads `bytes` through `decoder`.
pub(super) fn replies(
    bytes: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static,
    decoder: impl Decoder + 'static,
    bounds: Bounds,
) -> ReplyStream {
    let reading = Reading {
        events: SseStream::from_bytes_stream(bytes.boxed()).boxed(),
        decoder,
        bounds,
        settled_at: None,
        ready: VecDeque::new(),
    };
    ReplyStream::new(stream::unfold(reading, |mut reading| async move {
        let item = reading.next().await;
        Some((item, reading))
    }))
}

struct Reading<D> {
    events: BoxStream<'static, Result<Sse, sse_stream::Error>>,
    decoder: D,
    bounds: Bounds,
    settled_at: Option<Instant>,
    ready: VecDeque<Delta>,
}

impl<D: Decoder> Reading<D> {
    async fn next(&mut self) -> Result<Delta, ModelError> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Ok(delta);
            }
            match self.event().await {
                Ok(Some(event)) => {
                    if let Some(data) = event.data {
                        self.ready.extend(self.decoder.event(&data)?);
                        self.check_size()?;
                    }
                    if self.settled_at.is_none() && self.decoder.settled() {
                        self.settled_at = Some(Instant::now());
                    }
                }
                Ok(None) => return self.decoder.closed().map(Delta::Done),
                Err(ModelError::Cancelled) => return Err(ModelError::Cancelled),
                Err(_) if self.settled_at.is_some() => {
                    return self.decoder.closed().map(Delta::Done);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends a reply that nobody would keep while it is still being written, and paid.
    fn check_size(&self) -> Result<(), ModelError> {
        let limit_bytes = self.bounds.content_bytes;
        if self.decoder.content_bytes() > limit_bytes {
            return Err(ModelError::TooLong { limit_bytes });
        }
        Ok(())
    }

    async fn event(&mut self) -> Result<Option<Sse>, ModelError> {
        let deadline = self
            .settled_at
            .map_or(self.bounds.deadline, |at| at + TRAILER_GRACE);
        match self.bounds.keep_until(deadline, self.events.next()).await? {
            None => Ok(None),
            Some(Ok(event)) => Ok(Some(event)),
            Some(Err(sse_stream::Error::Body(error))) => Err(unreadable(error)),
            Some(Err(error)) => Err(ModelError::malformed(error.to_string())),
        }
    }
}

fn unreadable(error: Box<dyn std::error::Error + Send + Sync>) -> ModelError {
    match error.downcast::<BodyError>() {
        Ok(body) => match *body {
            BodyError::Read(error) => network(&error),
            BodyError::TooLong(limit_bytes) => ModelError::TooLong { limit_bytes },
        },
        Err(other) => ModelError::Network {
            message: other.to_string(),
        },
    }
}

#[cfg(test)]
pub(crate) mod fixtures {
    //! Feeds hand-written streams to a decoder, whole, byte by byte or cut.

    use super::*;
    use crate::reply::complete;

    /// Returns the deltas of `bytes`, delivered in pieces of `piece` bytes, and what came last.
    pub(crate) async fn read(
        bytes: &[u8],
        piece: usize,
        decoder: impl Decoder + 'static,
    ) -> (Vec<Delta>, Result<Reply, ModelError>) {
        let pieces: Vec<_> = bytes
            .chunks(piece)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        let bounds = Bounds {
            deadline: Instant::now() + Duration::from_mins(1),
            content_bytes: 1024 * 1024,
            cancel: CancellationToken::new(),
        };
        let stream = replies(stream::iter(pieces), decoder, bounds);
        let mut deltas = Vec::new();
        let reply = complete(stream, |delta| deltas.push(delta.clone())).await;
        (deltas, reply)
    }

    /// Feeds a decoder with whatever there is: it neither panics nor hears something else when packets are cut otherwise.
    pub(crate) fn fuzz<D: Decoder + 'static>(name: &str, decoder: fn() -> D) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let check = |input: &[u8]| {
            runtime.block_on(async {
                let whole = read(input, input.len().max(1), decoder()).await;
                for piece in [1, 7] {
                    let again = read(input, piece, decoder()).await;
                    // A line that is none spoils all events of its packet, so only what is read whole is the same.
                    assert!(whole.1.is_err() || again == whole, "{again:?} {whole:?}");
                }
                let (deltas, reply) = whole;
                let kinds = deltas.len().min(9);
                match reply {
                    Ok(reply) => format!("{kinds} {:?}", reply.stop),
                    Err(error) => format!("{kinds} {error}"),
                }
            })
        };
        ropewalk_tests::fuzz::Target {
            name,
            words: &WORDS,
            check: &check,
        }
        .run();
    }

    /// What streams are made of.
    const WORDS: [&str; 12] = [
        "data: ",
        "\n\n",
        "\r",
        "event: error\n",
        ": ping\n\n",
        "data: [DONE]\n\n",
        "null",
        "{}",
        "[]",
        "\"\"",
        "-1",
        "18446744073709551616",
    ];

    /// Returns what comes of a stream that stays open and silent after `bytes`.
    pub(crate) async fn read_and_hang(
        bytes: &'static [u8],
        decoder: impl Decoder + 'static,
        cancel: CancellationToken,
    ) -> Result<Reply, ModelError> {
        let open = stream::iter([Ok(Bytes::from_static(bytes))]).chain(stream::pending());
        let bounds = Bounds {
            deadline: Instant::now() + Duration::from_mins(15),
            content_bytes: 1024 * 1024,
            cancel,
        };
        complete(replies(open, decoder, bounds), |_| ()).await
    }
}
