//! Tells a program of somebody else: each notice is a POST of JSON, signed where there is a secret.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use ropewalk_runtime::Clock;
use ropewalk_runtime::http::{self, ClientOptions, HttpError};
use ropewalk_schemas::UserSlug;
use ropewalk_store::{ReadError, Store};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::port::{Arrival, Notification, Port, SendError};

/// How long one POST may take.
const TIME: Duration = Duration::from_secs(20);
/// The bytes of a block of SHA-256.
const BLOCK: usize = 64;

/// A webhook without its client.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct WebhookError(#[from] HttpError);

/// A program that is told.
pub struct Webhook {
    url: String,
    secret: Option<String>,
    client: reqwest::Client,
    clock: Clock,
}

impl Webhook {
    /// Returns the port that posts to `url`, signed with `secret`.
    pub fn new(url: String, secret: Option<String>, clock: Clock) -> Result<Self, WebhookError> {
        let client = http::client(ClientOptions {
            total_timeout: Some(TIME),
            ..ClientOptions::default()
        })?;
        Ok(Self {
            url,
            secret,
            client,
            clock,
        })
    }

    async fn post(&self, body: &Value) -> Result<(), SendError> {
        let body = body.to_string();
        let at = self.clock.now().timestamp();
        let mut request = self
            .client
            .post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header("ropewalk-timestamp", at);
        if let Some(secret) = &self.secret {
            let signature = signature(secret.as_bytes(), format!("{at}.{body}").as_bytes());
            request = request.header("ropewalk-signature", format!("sha256={signature}"));
        }
        let later = |after, reason| SendError::Later { after, reason };
        let sent = request.body(body).send().await;
        let answer = sent.map_err(|error| {
            let never_arrived = error.is_connect();
            let reason = error.without_url().to_string();
            if never_arrived {
                later(None, reason)
            } else {
                SendError::Unanswered(reason)
            }
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let reason = format!("the webhook answered {status}");
        if status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) {
            return Err(later(asked(answer.headers()), reason));
        }
        Err(SendError::Refused(reason))
    }
}

#[async_trait]
impl Port for Webhook {
    fn name(&self) -> &'static str {
        "webhook"
    }

    async fn receivers(&self, _: &[UserSlug], _: &Store) -> Result<Vec<String>, ReadError> {
        Ok(vec![self.name().to_owned()])
    }

    async fn send(
        &self,
        _receiver: &str,
        telling: &Notification,
        _store: &Store,
    ) -> Result<Arrival, SendError> {
        // What it says of a message again bears the same id.
        let id = telling.nonce.clone();
        self.post(&body(&id, telling)).await?;
        Ok(Arrival {
            message: Some(id),
            more: false,
        })
    }

    async fn edit(&self, message: &str, telling: &Notification) -> Result<(), SendError> {
        self.post(&body(message, telling)).await
    }
}

fn body(id: &str, telling: &Notification) -> Value {
    let question = telling.question.as_ref();
    json!({
        "id": id,
        "type": telling.event_type,
        "subject": telling.subject,
        "title": telling.text.title,
        "body": telling.text.body,
        "recommendation": telling.text.recommendation,
        "question": question.map(|put| json!({ "id": put.id, "choices": put.choices, "role": put.role })),
    })
}

/// Reads how long somebody wants not to be asked.
fn asked(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Signs a message by HMAC with SHA-256, in hexadecimal digits.
fn signature(secret: &[u8], message: &[u8]) -> String {
    let mut key = [0_u8; BLOCK];
    let hashed = Sha256::digest(secret);
    let short: &[u8] = if secret.len() > BLOCK {
        &hashed
    } else {
        secret
    };
    for (place, byte) in key.iter_mut().zip(short) {
        *place = *byte;
    }
    let inner = Sha256::new()
        .chain_update(key.map(|byte| byte ^ 0x36))
        .chain_update(message)
        .finalize();
    let outer = Sha256::new()
        .chain_update(key.map(|byte| byte ^ 0x5c))
        .chain_update(inner)
        .finalize();
    hex::encode(outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_rfc_4231() {
        let digest = signature(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(
            digest,
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        let long = signature(
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
        );
        assert_eq!(
            long,
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }
}
