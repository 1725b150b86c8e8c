//! What `doctor` finds: how each thing is that a run needs.

use schemars::JsonSchema;
use serde::Serialize;

/// How one thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fitness {
    /// As it has to be.
    Ok,
    /// Work goes on, but somebody should look.
    Warn,
    /// Work cannot go on.
    Fail,
}

impl Fitness {
    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One line of the report.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Finding {
    /// What was looked at.
    pub check: String,
    /// How it is.
    pub verdict: Fitness,
    /// What was seen, and how to mend it.
    pub detail: String,
}

impl Finding {
    /// Says how something is.
    pub fn new(check: &str, verdict: Fitness, detail: impl std::fmt::Display) -> Self {
        Self {
            check: check.to_owned(),
            verdict,
            detail: detail.to_string(),
        }
    }
}
