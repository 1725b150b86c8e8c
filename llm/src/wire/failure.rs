//! Sorts what providers say when they fail into the kinds of [`ModelError`].

use std::time::Duration;

use secrecy::ExposeSecret;
use serde_json::Value;

use super::Secret;
use crate::error::ModelError;

/// How many characters of a provider's message are kept.
const MESSAGE_CHARACTERS: usize = 500;

/// What providers write when a conversation is too long, in lower case.
const OVERFLOW_MARKS: [&str; 8] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "prompt is too long",
    "maximum context length",
    "exceed context limit",
    "exceeds the available context size",
    "context window",
    "request_too_large",
];

/// Sorts an HTTP error by its status and its page.
pub(super) fn of_status(
    status: u16,
    retry_after: Option<Duration>,
    page: &str,
    secret: Option<&Secret>,
) -> ModelError {
    let said = serde_json::from_str(page)
        .ok()
        .and_then(|page| Said::read(&page))
        .unwrap_or_else(|| Said {
            message: page.trim().to_owned(),
            ..Said::default()
        });
    sort(status, retry_after, &said, secret)
}

/// Sorts an error that came inside a successful stream; `None` if `data` is no error.
pub(crate) fn in_stream(data: &Value) -> Option<ModelError> {
    let is_error = data.get("error").is_some_and(|error| !error.is_null())
        || ["type", "object"]
            .iter()
            .any(|field| data.get(field).and_then(Value::as_str) == Some("error"));
    if !is_error {
        return None;
    }
    let said = Said::read(data).unwrap_or_default();
    Some(sort(said.status(), None, &said, None))
}

fn sort(
    status: u16,
    retry_after: Option<Duration>,
    said: &Said,
    secret: Option<&Secret>,
) -> ModelError {
    let message = said.shown(secret);
    match (status, secret) {
        (401 | 403, Some(secret)) => ModelError::Unauthorized {
            variable: secret.variable.clone(),
            message,
        },
        (429, _) => ModelError::RateLimited {
            message,
            retry_after,
        },
        (400..=599, _) if status != 401 && status != 403 && said.tells_overflow() => {
            ModelError::ContextOverflow { message }
        }
        (500..=599, _) => ModelError::Overloaded {
            status,
            message,
            retry_after,
        },
        _ => ModelError::Refused { status, message },
    }
}

/// Is what a provider said about an error, in any of the usual shapes.
#[derive(Debug, Default)]
struct Said {
    kind: String,
    code: String,
    message: String,
}

impl Said {
    fn read(page: &Value) -> Option<Self> {
        let inner = page.get("error").filter(|error| !error.is_null());
        let error = inner.unwrap_or(page);
        if let Value::String(message) = error {
            return Some(Self {
                message: message.clone(),
                ..Self::default()
            });
        }
        let field = |name: &str| match error.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let message = [field("message"), field("detail")]
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_else(|| error.to_string());
        error.is_object().then(|| Self {
            kind: field("type"),
            code: field("code"),
            message,
        })
    }

    /// Returns the status that an error without one stands for; an unknown one is the provider's fault.
    fn status(&self) -> u16 {
        if let Ok(status @ 400..=599) = self.code.parse() {
            return status;
        }
        match (self.kind.as_str(), self.code.as_str()) {
            ("rate_limit_error" | "rate_limit_exceeded", _) | (_, "rate_limit_exceeded") => 429,
            ("overloaded_error", _) => 529,
            ("authentication_error", _) => 401,
            ("permission_error", _) => 403,
            ("not_found_error", _) => 404,
            ("request_too_large", _) => 413,
            ("invalid_request_error" | "billing_error", _) => 400,
            _ => 500,
        }
    }

    fn tells_overflow(&self) -> bool {
        [&self.kind, &self.code, &self.message].iter().any(|text| {
            let text = text.to_lowercase();
            OVERFLOW_MARKS.iter().any(|mark| text.contains(mark))
        })
    }

    /// Returns a short message that does not hold the key.
    fn shown(&self, secret: Option<&Secret>) -> String {
        let mut message = if self.message.is_empty() {
            "it gave no reason".to_owned()
        } else {
            self.message.clone()
        };
        if let Some(secret) = secret {
            let key = secret.key.expose_secret();
            if !key.is_empty() {
                message = message.replace(key, "[key]");
            }
        }
        message.chars().take(MESSAGE_CHARACTERS).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(error: &ModelError) -> &'static str {
        match error {
            ModelError::Unauthorized { .. } => "unauthorized",
            ModelError::RateLimited { .. } => "limited",
            ModelError::Overloaded { .. } => "overloaded",
            ModelError::ContextOverflow { .. } => "overflow",
            ModelError::Refused { .. } => "refused",
            _ => "other",
        }
    }

    #[test]
    fn http_errors_are_sorted_by_status_and_words() {
        let anthropic = |kind: &str, message: &str| {
            json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
        };
        let openai = |code: &str, message: &str| {
            json!({"error": {"message": message, "type": "invalid_request_error", "code": code}})
                .to_string()
        };
        let cases = [
            (401, anthropic("authentication_error", "x"), "unauthorized"),
            (403, anthropic("permission_error", "x"), "unauthorized"),
            (404, anthropic("not_found_error", "model"), "refused"),
            (400, anthropic("invalid_request_error", "bad"), "refused"),
            (
                400,
                anthropic(
                    "invalid_request_error",
                    "prompt is too long: 210000 tokens > 200000 maximum",
                ),
                "overflow",
            ),
            (413, anthropic("request_too_large", "too big"), "overflow"),
            (
                400,
                openai("context_length_exceeded", "too many tokens"),
                "overflow",
            ),
            (
                400,
                openai("400", "This model's maximum context length is 8192 tokens."),
                "overflow",
            ),
            (
                429,
                anthropic("rate_limit_error", "long context window"),
                "limited",
            ),
            (
                529,
                anthropic("overloaded_error", "Overloaded"),
                "overloaded",
            ),
            (503, "<html>down</html>".to_owned(), "overloaded"),
            (500, String::new(), "overloaded"),
            (301, String::new(), "refused"),
        ];
        let secret = Secret {
            variable: "A_KEY".to_owned(),
            key: "k-123".into(),
        };
        for (status, page, expected) in cases {
            let error = of_status(status, None, &page, Some(&secret));
            assert_eq!(kind(&error), expected, "{status} {page}");
        }
    }

    #[test]
    fn errors_inside_a_stream_are_sorted_by_their_words() {
        let cases = [
            (json!({"type": "message_stop"}), None),
            (json!({"error": null, "choices": []}), None),
            (
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}),
                Some("overloaded"),
            ),
            (
                json!({"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}),
                Some("limited"),
            ),
            (
                json!({"error": {"message": "x", "type": "server_error"}}),
                Some("overloaded"),
            ),
            (
                json!({"error": {"message": "x", "code": 502}}),
                Some("overloaded"),
            ),
            (
                json!({"error": {"message": "x", "code": 400}}),
                Some("refused"),
            ),
            (
                json!({"object": "error", "message": "maximum context length", "code": 400}),
                Some("overflow"),
            ),
            (json!({"error": "model crashed"}), Some("overloaded")),
        ];
        for (data, expected) in cases {
            assert_eq!(in_stream(&data).as_ref().map(kind), expected, "{data}");
        }
    }

    #[test]
    fn a_key_that_the_provider_repeats_is_not_shown() {
        let secret = Secret {
            variable: "A_KEY".to_owned(),
            key: "k-123".into(),
        };
        let page = r#"{"error":{"message":"bad key k-123"}}"#;
        let text = of_status(401, None, page, Some(&secret)).to_string();
        assert!(text.contains("A_KEY") && text.contains("[key]") && !text.contains("k-123"));
    }
}
