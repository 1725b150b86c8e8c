//! Says why a model did not answer, in the kinds that callers tell apart.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::request::ScriptKey;

/// Says why a model did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ModelError {
    /// The key is wrong or may not do this.
    #[error("the provider refused the key ({message}); check the variable `{variable}`")]
    Unauthorized {
        /// The environment variable that holds the key.
        variable: String,
        /// What the provider said.
        message: String,
    },
    /// Too many requests or tokens for now.
    #[error("the provider limits the rate: {message}")]
    RateLimited {
        /// What the provider said.
        message: String,
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
    },
    /// The account has nothing left to pay with: it is served again once somebody has paid, and nobody says when.
    #[error("the account at the provider has no credit left: {message}")]
    OutOfCredit {
        /// What the provider said.
        message: String,
    },
    /// The provider has a problem of its own (5xx, 408).
    #[error("the provider is overloaded or broken (status {status}): {message}")]
    Overloaded {
        /// The HTTP status, or the one that the error stands for when it came inside a stream.
        status: u16,
        /// What the provider said.
        message: String,
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
    },
    /// The conversation is too long for the model: compact it and ask again.
    #[error("the conversation does not fit into the model's context: {message}")]
    ContextOverflow {
        /// What the provider said.
        message: String,
    },
    /// The connection could not be made or broke.
    #[error("cannot reach the provider: {message}")]
    Network {
        /// The causes, outermost first.
        message: String,
    },
    /// Something took too long.
    #[error("the provider was too slow: {what} time-out")]
    Timeout {
        /// The bound that was hit.
        what: TimeoutKind,
    },
    /// The stream ended without its terminal event, so that the reply cannot be trusted.
    #[error("the reply was cut off before its end")]
    Truncated,
    /// The reply is larger than is kept; asking the same again would bring as much again.
    #[error(
        "the reply has more than {limit_bytes} bytes, which is the most; ask for it in smaller pieces"
    )]
    TooLong {
        /// The bound that was hit.
        limit_bytes: u64,
    },
    /// The provider sent what its format does not allow.
    #[error("the provider sent an unreadable reply: {message}")]
    Malformed {
        /// What is wrong with it.
        message: String,
    },
    /// The provider will not answer this request.
    #[error("the provider refused the request (status {status}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What the provider said.
        message: String,
    },
    /// No rule of the script answers the call.
    #[error(
        "no rule of the script answers agent `{}`, idea `{}`, task `{}`, attempt {}, turn {}; add one",
        .key.agent, .key.idea, .key.task, .key.attempt, .key.turn
    )]
    Script {
        /// Names the call.
        key: ScriptKey,
    },
    /// A cassette that is played holds no answer to this request.
    #[error("`{place}` does not hold what is asked: {what}")]
    Strayed {
        /// The cassette.
        place: String,
        /// What differs from the next request that it holds.
        what: String,
    },
    /// The caller gave up.
    #[error("the call was cancelled")]
    Cancelled,
}

/// Says when the same request may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// After a short wait.
    Soon,
    /// Once somebody has paid, which nobody does while a call waits.
    Later,
    /// Never as it is.
    Never,
}

impl ModelError {
    /// Tells whether the same request may succeed when it is sent again, at once or later.
    pub fn retryable(&self) -> bool {
        self.retry() != Retry::Never
    }

    /// Says when the same request may succeed.
    pub(crate) const fn retry(&self) -> Retry {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Network { .. }
            | Self::Truncated
            | Self::Malformed { .. }
            | Self::Timeout {
                what: TimeoutKind::Connect | TimeoutKind::Idle,
            } => Retry::Soon,
            Self::OutOfCredit { .. } => Retry::Later,
            Self::Timeout {
                what: TimeoutKind::Total,
            }
            | Self::Unauthorized { .. }
            | Self::ContextOverflow { .. }
            | Self::TooLong { .. }
            | Self::Refused { .. }
            | Self::Script { .. }
            | Self::Strayed { .. }
            | Self::Cancelled => Retry::Never,
        }
    }

    /// Returns whether nobody is served: any other request would meet the same.
    pub const fn is_outage(&self) -> bool {
        match self {
            Self::Unauthorized { .. } | Self::Overloaded { .. } | Self::Network { .. } => true,
            Self::Timeout { what } => !matches!(what, TimeoutKind::Total),
            Self::RateLimited { .. }
            | Self::OutOfCredit { .. }
            | Self::ContextOverflow { .. }
            | Self::Truncated
            | Self::TooLong { .. }
            | Self::Malformed { .. }
            | Self::Refused { .. }
            | Self::Script { .. }
            | Self::Strayed { .. }
            | Self::Cancelled => false,
        }
    }

    /// Returns how long the provider asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::Malformed {
            message: message.into(),
        }
    }
}

/// Names a bound on time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutKind {
    /// No connection stood in time.
    Connect,
    /// Nothing was heard for too long.
    Idle,
    /// The whole reply took too long; asking again would take as long again.
    Total,
}

impl std::fmt::Display for TimeoutKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Connect => "connect",
            Self::Idle => "idle",
            Self::Total => "total",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_again_soon_is_told_from_what_waits_for_somebody_who_pays() {
        let message = String::new;
        let timeout = |what| ModelError::Timeout { what };
        let rows = [
            (ModelError::Network { message: message() }, Retry::Soon),
            (ModelError::Truncated, Retry::Soon),
            (timeout(TimeoutKind::Connect), Retry::Soon),
            (timeout(TimeoutKind::Idle), Retry::Soon),
            (ModelError::OutOfCredit { message: message() }, Retry::Later),
            (timeout(TimeoutKind::Total), Retry::Never),
            (ModelError::TooLong { limit_bytes: 1 }, Retry::Never),
            (ModelError::Cancelled, Retry::Never),
        ];
        for (error, retry) in rows {
            assert_eq!(error.retry(), retry, "{error}");
            assert_eq!(error.retryable(), retry != Retry::Never, "{error}");
        }
    }
}
