//! Sorts what providers say when they fail into the kinds of [`ModelError`].

use std::time::Duration;

use ropewalk_schemas::clip;
use secrecy::ExposeSecret;
use serde_json::Value;

use super::Secret;
use crate::error::ModelError;

/// How many characters of a provider's message are kept.
const MESSAGE_CHARACTERS: usize = 500;

/// What providers write when a request has more tokens than they take in a minute, in lower case: however long one waits,
/// only a shorter one passes.
const TOO_LARGE: &str = "request too large";

/// What providers write when an account has nothing left to pay with, in lower case.
const CREDIT_MARKS: [&str; 6] = [
    "billing_error",
    "insufficient_quota",
    "credit balance is too low",
    "insufficient credits",
    "insufficient balance",
    "insufficient quota",
];

/// What providers write when a conversation is too long, in lower case.
const OVERFLOW_MARKS: [&str; 10] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "prompt is too long",
    "maximum context length",
    "exceed context limit",
    "exceeds the available context size",
    "context window",
    "exceeds the maximum number of tokens",
    "request_too_large",
    TOO_LARGE,
];

/// What Gemini calls a key that it does not know, with the status of a bad request.
const BAD_KEY: &str = "API_KEY_INVALID";

/// Sorts an HTTP error by its status and its page.
pub(super) fn of_status(
    status: u16,
    retry_after: Option<Duration>,
    page: &str,
    secret: Option<&Secret>,
) -> ModelError {
    let said = serde_json::from_str(page)
        .ok()
        .and_then(|page| ErrorDetails::read(&page))
        .unwrap_or_else(|| ErrorDetails {
            message: page.trim().to_owned(),
            ..ErrorDetails::default()
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
    let said = ErrorDetails::read(data).unwrap_or_default();
    Some(sort(said.status(), None, &said, None))
}

fn sort(
    status: u16,
    retry_after: Option<Duration>,
    said: &ErrorDetails,
    secret: Option<&Secret>,
) -> ModelError {
    let message = said.shown(secret);
    let retry_after = retry_after.or(said.wait);
    let is_key = matches!(status, 401 | 403) || said.code == BAD_KEY;
    // Some providers say of plain throttling that the quota is used up: who names a wait serves again after it.
    let is_throttled = status == 429 && retry_after.is_some();
    match (status, secret) {
        (400..=599, _) if status == 402 || (!is_throttled && said.tells(&CREDIT_MARKS)) => {
            ModelError::OutOfCredit { message }
        }
        (400..=403, Some(secret)) if is_key => ModelError::Unauthorized {
            variable: secret.variable.clone(),
            message,
        },
        (429, _) if said.tells(&[TOO_LARGE]) => ModelError::ContextOverflow { message },
        (429, _) => ModelError::RateLimited {
            message,
            retry_after,
        },
        (400..=599, _) if status != 401 && status != 403 && said.tells(&OVERFLOW_MARKS) => {
            ModelError::ContextOverflow { message }
        }
        // Somebody behind the provider took too long (408).
        (408 | 500..=599, _) => ModelError::Overloaded {
            status,
            message,
            retry_after,
        },
        _ => ModelError::Refused { status, message },
    }
}

/// Is what a provider said about an error, in any of the usual shapes.
#[derive(Debug, Default)]
struct ErrorDetails {
    kind: String,
    code: String,
    message: String,
    /// How long the provider asks to wait.
    wait: Option<Duration>,
}

impl ErrorDetails {
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
        let details = error.get("details").and_then(Value::as_array);
        let detail = |name: &str| {
            let mut all = details.into_iter().flatten();
            all.find_map(|detail| detail.get(name)?.as_str())
        };
        let reason = detail("reason").filter(|reason| *reason == BAD_KEY);
        error.is_object().then(|| Self {
            kind: field("type"),
            code: reason.map_or_else(|| field("code"), str::to_owned),
            message,
            wait: detail("retryDelay").and_then(seconds),
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
            ("billing_error", _) => 402,
            ("invalid_request_error", _) => 400,
            _ => 500,
        }
    }

    /// Says whether one of `marks` stands in it.
    fn tells(&self, marks: &[&str]) -> bool {
        [&self.kind, &self.code, &self.message].iter().any(|text| {
            let text = text.to_lowercase();
            marks.iter().any(|mark| text.contains(mark))
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
        clip::letters(&message, MESSAGE_CHARACTERS).into_owned()
    }
}

/// Reads an amount of time as Gemini writes it: `3.5s`.
fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What OpenAI says of a request that no minute has room for.
    const LARGE: &str = "Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 45000. The input or \
                         output tokens must be reduced in order to run successfully.";

    fn kind(error: &ModelError) -> &'static str {
        match error {
            ModelError::Unauthorized { .. } => "unauthorized",
            ModelError::RateLimited { .. } => "limited",
            ModelError::OutOfCredit { .. } => "credit",
            ModelError::Overloaded { .. } => "overloaded",
            ModelError::ContextOverflow { .. } => "overflow",
            ModelError::Refused { .. } => "refused",
            _ => "other",
        }
    }

    fn anthropic(kind: &str, message: &str) -> String {
        json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
    }

    fn openai(code: &str, message: &str) -> String {
        json!({"error": {"message": message, "type": "invalid_request_error", "code": code}})
            .to_string()
    }

    /// Asserts what pages with their status are sorted as.
    fn assert_sorted(cases: impl IntoIterator<Item = (u16, String, &'static str)>) {
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
    fn http_errors_are_sorted_by_status_and_words() {
        let gemini = |message: &str, reason: &str| {
            json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT",
                "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]}})
            .to_string()
        };
        let cases = [
            (
                400,
                gemini("API key not valid.", "API_KEY_INVALID"),
                "unauthorized",
            ),
            (400, gemini("bad schema", "OTHER"), "refused"),
            (
                400,
                gemini(
                    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
                    "",
                ),
                "overflow",
            ),
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
            (429, openai("rate_limit_exceeded", LARGE), "overflow"),
            (413, openai("rate_limit_exceeded", LARGE), "overflow"),
            (408, openai("408", "upstream"), "overloaded"),
            (
                529,
                anthropic("overloaded_error", "Overloaded"),
                "overloaded",
            ),
            (503, "<html>down</html>".to_owned(), "overloaded"),
            (500, String::new(), "overloaded"),
            (301, String::new(), "refused"),
        ];
        assert_sorted(cases);
    }

    #[test]
    fn who_has_no_credit_is_told_from_who_asks_too_much() {
        assert_sorted([
            (402, anthropic("billing_error", "pay"), "credit"),
            (402, String::new(), "credit"),
            (
                400,
                anthropic(
                    "invalid_request_error",
                    "Your credit balance is too low to access the Anthropic API.",
                ),
                "credit",
            ),
            (
                429,
                openai(
                    "insufficient_quota",
                    "You exceeded your current quota, please check your plan and billing details.",
                ),
                "credit",
            ),
            (403, openai("403", "Insufficient credits."), "credit"),
        ]);
    }

    #[test]
    fn a_quota_that_is_used_up_for_a_named_time_is_a_limit_of_the_rate() {
        let wait = Some(Duration::from_secs(20));
        let page = openai("insufficient_quota", "Slow down.");
        let cases = [
            (429, wait, page.clone(), "limited"),
            (429, None, page.clone(), "credit"),
            (403, wait, page, "credit"),
            (402, wait, String::new(), "credit"),
            (429, wait, openai("rate_limit_exceeded", LARGE), "overflow"),
        ];
        for (status, wait, page, expected) in cases {
            let error = of_status(status, wait, &page, None);
            assert_eq!(kind(&error), expected, "{status} {wait:?} {page}");
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
            (
                json!({"error": {"message": "Insufficient credits", "code": 402}}),
                Some("credit"),
            ),
            (
                json!({"type": "error", "error": {"type": "billing_error", "message": "x"}}),
                Some("credit"),
            ),
            (
                json!({"error": {"message": "x", "code": "insufficient_quota"}}),
                Some("credit"),
            ),
            (
                json!({"error": {"message": LARGE, "code": "rate_limit_exceeded"}}),
                Some("overflow"),
            ),
            (
                json!({"error": {"message": "x", "code": 408}}),
                Some("overloaded"),
            ),
            (json!({"error": "model crashed"}), Some("overloaded")),
        ];
        for (data, expected) in cases {
            assert_eq!(in_stream(&data).as_ref().map(kind), expected, "{data}");
        }
    }

    #[test]
    fn a_wait_that_only_the_page_names_is_kept() {
        let page = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slower",
            "details": [{"@type": "x", "violations": []}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"}]}});
        let error = of_status(429, None, &page.to_string(), None);
        assert_eq!(error.retry_after(), Some(Duration::from_millis(3_500)));
        let header = Some(Duration::from_secs(1));
        let error = of_status(429, header, &page.to_string(), None);
        assert_eq!(error.retry_after(), header);
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

    #[test]
    fn a_message_that_is_too_long_is_cut_and_says_so() {
        let page = json!({"error": {"message": "no ".repeat(MESSAGE_CHARACTERS)}}).to_string();
        let ModelError::Refused { message, .. } = of_status(400, None, &page, None) else {
            panic!("a bad request is refused");
        };
        assert!(message.ends_with('…'), "{message}");
        assert!(message.chars().count() <= MESSAGE_CHARACTERS, "{message}");
    }
}
