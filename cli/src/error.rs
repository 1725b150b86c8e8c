//! Says in one line why a verb failed, how to mend it, and how the process exits.

use std::error::Error;
use std::fmt;

use ropewalk_builder::land::LandError;
use ropewalk_bus::BusError;
use ropewalk_bus::poke::PokeError;
use ropewalk_config::ConfigError;
use ropewalk_desk::ideas::ChatError;
use ropewalk_desk::specifications::{ApproveError, RequestError};
use ropewalk_llm::BuildError;
use ropewalk_orchestrator::FrameError;
use ropewalk_orchestrator::questions::AnswerError;
use ropewalk_runtime::TaskFailure;
use ropewalk_schemas::InvalidId;
use ropewalk_store::{CommitError, InstanceLockError, LocationError, OpenError, ReadError};
use ropewalk_workspace::GitError;
use serde::Serialize;

/// How the process exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Something failed or was refused.
    Failure,
    /// A person stopped it.
    Cancelled,
    /// The arguments are wrong.
    Usage,
    /// A key is missing.
    Credentials,
}

impl Exit {
    /// Returns the exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Failure => 1,
            Self::Cancelled => 2,
            Self::Usage => 3,
            Self::Credentials => 4,
        }
    }
}

/// Says why a verb failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CliError {
    /// It failed; a text that names no cause of its own.
    Failed(String),
    /// It failed for a reason that programs may want to tell from others.
    Refused {
        /// A stable word, for example `unknown-id`.
        code: &'static str,
        /// What is wrong; what follows the first `; ` says how to mend it.
        text: String,
    },
    /// A person stopped it.
    Cancelled,
    /// The arguments are wrong.
    Usage(String),
    /// A key is missing.
    Credentials(String),
}

/// An error as `--json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// A stable word.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub next: Option<String>,
}

impl CliError {
    /// Wraps an error with its causes.
    pub fn failed(error: impl Error) -> Self {
        Self::Failed(chain(&error))
    }

    /// Returns a failure of the kind `code`; what follows the first `; ` of `text` says how to mend it.
    pub fn refused(code: &'static str, text: impl fmt::Display) -> Self {
        Self::Refused {
            code,
            text: text.to_string(),
        }
    }

    /// Says that nothing has this id.
    pub fn unknown(noun: &str, id: impl fmt::Display, list: &str) -> Self {
        let text = format!("no {noun} is called `{id}`; `ropewalk {list}` shows what there is");
        Self::refused("unknown-id", text)
    }

    /// Says that a file or directory could not be used.
    pub fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        let advice = match error.kind() {
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                "; make it writable or choose another place"
            }
            std::io::ErrorKind::NotFound => "; check the path",
            _ => "",
        };
        Self::refused(
            "file",
            format!("cannot use `{}`: {error}{advice}", path.display()),
        )
    }

    /// Returns how the process exits.
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Failed(_) | Self::Refused { .. } => Exit::Failure,
            Self::Cancelled => Exit::Cancelled,
            Self::Usage(_) => Exit::Usage,
            Self::Credentials(_) => Exit::Credentials,
        }
    }

    /// Returns the error as `--json` shows it.
    pub fn report(&self) -> Report {
        let code = match self {
            Self::Failed(_) => "failed",
            Self::Refused { code, .. } => code,
            Self::Cancelled => "cancelled",
            Self::Usage(_) => "usage",
            Self::Credentials(_) => "credentials",
        };
        let line = self.to_string();
        match line.split_once("; ") {
            Some((message, next)) => Report {
                code,
                message: message.to_owned(),
                next: Some(next.to_owned()),
            },
            None => Report {
                code,
                message: line,
                next: None,
            },
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Failed(text)
            | Self::Refused { text, .. }
            | Self::Usage(text)
            | Self::Credentials(text) => text,
            Self::Cancelled => "stopped on request",
        };
        // Whatever an error of a library says, it is shown as one line.
        formatter.write_str(&text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl Error for CliError {}

/// Joins an error with those causes that its text does not already name.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = inner.source();
    }
    text
}

macro_rules! plain_errors {
    ($( $error:ty = $code:literal ),+ $(,)?) => { $(
        impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                Self::refused($code, chain(&error))
            }
        }
    )+ };
}

plain_errors! {
    AnswerError = "question",
    BusError = "bus",
    ChatError = "idea",
    CommitError = "store",
    FrameError = "agents",
    GitError = "git",
    InstanceLockError = "running",
    InvalidId = "name",
    LandError = "landing",
    LocationError = "store",
    OpenError = "store",
    PokeError = "bus",
    ReadError = "store",
    TaskFailure = "crash",
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::MissingKey { provider, variable } => Self::Credentials(format!(
                "provider `{provider}` needs a key; set the environment variable `{variable}`, or choose another provider in `[models]`"
            )),
            ConfigError::Untrusted { .. } => Self::refused("untrusted", error),
            ConfigError::NotAnOverride(_) => Self::Usage(error.to_string()),
            _ => Self::refused("config", error),
        }
    }
}

impl From<ApproveError> for CliError {
    fn from(error: ApproveError) -> Self {
        let advice = match &error {
            ApproveError::Already { .. } => "; `ropewalk build list` shows its build",
            _ => "",
        };
        Self::refused("approval", format!("{}{advice}", chain(&error)))
    }
}

impl From<RequestError> for CliError {
    fn from(error: RequestError) -> Self {
        let text = chain(&error);
        let advice = match &error {
            RequestError::State { spec, .. } if !text.contains("; ") => {
                format!("; `ropewalk spec show {spec}` shows what became of it")
            }
            _ => String::new(),
        };
        Self::refused("specification", format!("{text}{advice}"))
    }
}

impl From<BuildError> for CliError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::MissingKey { .. } | BuildError::UnusableKey { .. } => {
                Self::Credentials(error.to_string())
            }
            _ => Self::refused("model", chain(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_and_says_how_to_mend_it() {
        let error = CliError::refused("store", "the disk\nis full; make  room; then go on");
        assert_eq!(error.to_string(), "the disk is full; make room; then go on");
        let report = error.report();
        assert_eq!(
            (report.code, report.message.as_str()),
            ("store", "the disk is full")
        );
        assert_eq!(report.next.as_deref(), Some("make room; then go on"));
    }

    #[test]
    fn a_missing_key_asks_for_credentials_whoever_misses_it() {
        let (provider, variable) = ("anthropic".to_owned(), "ANTHROPIC_API_KEY".to_owned());
        let config = ConfigError::MissingKey {
            provider: provider.clone(),
            variable: variable.clone(),
        };
        for error in [
            CliError::from(config),
            CliError::from(BuildError::MissingKey { provider, variable }),
        ] {
            assert_eq!(error.exit().code(), 4, "{error}");
            assert!(error.to_string().contains("`ANTHROPIC_API_KEY`"));
        }
    }

    #[test]
    fn a_refused_decision_says_what_to_do_next() {
        use ropewalk_schemas::specification::SpecState;
        use ropewalk_schemas::{SpecId, UserSlug};

        let spec = SpecId(uuid::Uuid::nil());
        let already = ApproveError::Already {
            spec,
            by: UserSlug::parse("ada").unwrap(),
            at: "noon".to_owned(),
        };
        let gone = RequestError::State {
            spec,
            state: SpecState::Rejected,
            what: "it cannot be rejected any more",
        };
        for error in [CliError::from(already), CliError::from(gone)] {
            let next = error.report().next.unwrap_or_default();
            assert!(next.contains("`ropewalk "), "{error}");
        }
    }

    #[test]
    fn causes_are_named_once() {
        let inner = std::io::Error::other("no such door");
        let outer = GitError::Files {
            path: "/x".into(),
            source: inner,
        };
        assert_eq!(chain(&outer), "cannot use `/x`: no such door");
    }
}
