//! Sends a request and turns the answer into deltas, the same way for every wire format.
//!
//! A format gives a JSON body and a [`Decoder`]; time-outs, cancellation, bounds and error classes are kept here.

mod events;
mod failure;
mod retry_after;

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::StreamExt;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Response, Url};
use ropewalk_runtime::Clock;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use events::Decoder;
#[cfg(test)]
pub(crate) use events::fixtures;
pub(crate) use failure::in_stream;

use crate::error::{ModelError, TimeoutKind};
use crate::reply::ReplyStream;
use events::{BodyError, Bounds};

/// How much of an error page is read.
const ERROR_BODY_BYTES: u64 = 64 * 1024;

/// Bounds one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a connection may take to stand.
    pub connect: Duration,
    /// How long the provider may stay silent.
    pub idle: Duration,
    /// How long a reply may take, all in all.
    pub total: Duration,
    /// How many bytes a reply may have, after decompression, with all that its format wraps around the words.
    pub reply_bytes: u64,
    /// How many bytes of words and arguments a reply may have: no more than the store keeps of one record.
    pub content_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_mins(1),
            total: Duration::from_mins(15),
            reply_bytes: 16 * 1024 * 1024,
            content_bytes: 1024 * 1024,
        }
    }
}

/// Is one address of a provider, with all that every request to it needs.
pub(crate) struct Endpoint {
    pub(crate) client: reqwest::Client,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) secret: Option<Secret>,
    pub(crate) limits: Limits,
    pub(crate) clock: Clock,
}

/// Is the key that the headers carry: kept for error texts, where it is named and never shown.
pub(crate) struct Secret {
    pub(crate) variable: String,
    pub(crate) key: secrecy::SecretString,
}

impl Endpoint {
    /// Posts `body`, in the trace of what it is for, and reads the answer through `decoder`.
    pub(crate) async fn stream(
        &self,
        asked: (&(impl Serialize + Sync), Option<&str>),
        decoder: impl Decoder + 'static,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        self.stream_from(self.url.clone(), asked, decoder, cancel)
            .await
    }

    /// Does the same at an address of its own.
    pub(crate) async fn stream_from(
        &self,
        url: Url,
        (body, traceparent): (&(impl Serialize + Sync), Option<&str>),
        decoder: impl Decoder + 'static,
        cancel: &CancellationToken,
    ) -> Result<ReplyStream, ModelError> {
        let bounds = Bounds {
            deadline: Instant::now() + self.limits.total,
            content_bytes: self.limits.content_bytes,
            cancel: cancel.clone(),
        };
        let mut request = self
            .client
            .post(url)
            .headers(self.headers.clone())
            .json(body);
        if let Some(traceparent) = traceparent {
            request = request.header("traceparent", traceparent);
        }
        let response = bounds
            .keep(request.send())
            .await?
            .map_err(|error| network(&error))?;
        if !response.status().is_success() {
            return Err(self.refusal(response, &bounds).await);
        }
        if !is_event_stream(response.headers()) {
            return Err(self.no_stream(response, &bounds).await);
        }
        let bytes = events::capped(response.bytes_stream(), self.limits.reply_bytes);
        Ok(events::replies(bytes, decoder, bounds))
    }

    /// Reads an HTTP error.
    async fn refusal(&self, response: Response, bounds: &Bounds) -> ModelError {
        let status = response.status().as_u16();
        let retry_after = retry_after::read(response.headers(), self.now());
        match read_page(response, bounds).await {
            Ok(page) => failure::of_status(status, retry_after, &page, self.secret.as_ref()),
            Err(ModelError::Cancelled) => ModelError::Cancelled,
            // The status alone says what to do; the page would only have said it nicer.
            Err(_) => failure::of_status(status, retry_after, "", self.secret.as_ref()),
        }
    }

    /// Reads a successful answer that is no event stream: an error in disguise, or the wrong address.
    async fn no_stream(&self, response: Response, bounds: &Bounds) -> ModelError {
        let page = match read_page(response, bounds).await {
            Ok(page) => page,
            Err(error) => return error,
        };
        let error = serde_json::from_str::<Value>(&page)
            .ok()
            .as_ref()
            .and_then(in_stream);
        // Somebody in between speaks, or the address is wrong: the request is not at fault.
        error.unwrap_or_else(|| ModelError::Malformed {
            message: format!(
                "`{}` answers without an event stream; check the base URL",
                self.url
            ),
        })
    }

    fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }
}

/// Counts the bytes of a piece of a reply.
pub(crate) fn size(piece: &str) -> u64 {
    u64::try_from(piece.len()).unwrap_or(u64::MAX)
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_none_or(|kind| {
        kind.to_str()
            .is_ok_and(|kind| kind.trim_start().starts_with("text/event-stream"))
    })
}

/// Reads the beginning of an error page.
async fn read_page(response: Response, bounds: &Bounds) -> Result<String, ModelError> {
    let mut chunks = events::capped(response.bytes_stream(), ERROR_BODY_BYTES).boxed();
    let mut page = Vec::new();
    loop {
        match bounds.keep(chunks.next()).await? {
            None | Some(Err(BodyError::TooLong(_))) => break,
            Some(Ok(bytes)) => page.extend_from_slice(&bytes),
            Some(Err(BodyError::Read(error))) => return Err(network(&error)),
        }
    }
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Sorts an error of the HTTP client.
fn network(error: &reqwest::Error) -> ModelError {
    if error.is_timeout() {
        let what = if error.is_connect() {
            TimeoutKind::Connect
        } else {
            TimeoutKind::Idle
        };
        return ModelError::Timeout { what };
    }
    let mut message = String::new();
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if !message.is_empty() {
            message.push_str(": ");
        }
        message.push_str(&error.to_string());
        cause = error.source();
    }
    ModelError::Network { message }
}
