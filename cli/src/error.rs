//! Says in one line why a verb failed, how to mend it, and how the process exits.

use std::error::Error;
use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

use ropewalk_builder::land::LandError;
use ropewalk_bus::{BusError, SocketError};
use ropewalk_config::ConfigError;
use ropewalk_desk::attachments::AttachError;
use ropewalk_desk::builds::SteerError;
use ropewalk_desk::builds::landing::LandingError;
use ropewalk_desk::builds::tasks::TaskError;
use ropewalk_desk::comments::CommentError;
use ropewalk_desk::ideas::ChatError;
use ropewalk_desk::length::LengthError;
use ropewalk_desk::people::PermissionError;
use ropewalk_desk::questions::RefusedAnswer;
use ropewalk_desk::specifications::{ApproveError, RequestError};
use ropewalk_llm::BuildError;
use ropewalk_orchestrator::FrameError;
use ropewalk_orchestrator::questions::AnswerError;
use ropewalk_runtime::TaskFailure;
use ropewalk_runtime::telemetry::TelemetryError;
use ropewalk_runtime::traces::TracesError;
use ropewalk_schemas::InvalidId;
use ropewalk_schemas::advice::{Advice, Words};
use ropewalk_store::{
    BackupError, CommitError, InstanceLockError, LocationError, OpenError, ReadError,
};
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

/// What is said when a person stopped a verb.
const STOPPED: &str = "stopped on request";

/// The code of what has an id that nothing has.
pub(crate) const UNKNOWN: &str = "unknown-id";
/// The code of what has an id that several begin or end with.
pub(crate) const AMBIGUOUS: &str = "ambiguous-id";

/// Says why a verb failed.
#[derive(Debug, Clone)]
pub enum CliError {
    /// It failed; a text that names no cause of its own.
    Failed(Words),
    /// It failed for a reason that programs may want to tell from others.
    Refused {
        /// A stable word, for example `unknown-id`.
        code: &'static str,
        /// What is wrong, and how to mend it.
        words: Words,
        /// The error of a library that it comes from.
        source: Option<Arc<dyn Error + Send + Sync>>,
    },
    /// A person stopped it.
    Cancelled,
    /// The arguments are wrong.
    Usage(Words),
    /// A key is missing.
    Credentials(Words),
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
    /// Wraps an error of somebody else, with its causes.
    pub fn failed(error: impl Error) -> Self {
        Self::Failed(chain(&error).into())
    }

    /// Says that the arguments are wrong.
    pub fn usage(words: impl Into<Words>) -> Self {
        Self::Usage(words.into())
    }

    /// Says that a key is missing.
    pub fn credentials(words: impl Into<Words>) -> Self {
        Self::Credentials(words.into())
    }

    /// Returns a failure of the kind `code`: what is wrong, alone or with how to mend it.
    pub fn refused(code: &'static str, words: impl Into<Words>) -> Self {
        Self::Refused {
            code,
            words: words.into(),
            source: None,
        }
    }

    /// Wraps an error that knows how it is mended, with its causes.
    pub fn advised(code: &'static str, error: impl Advice + Send + Sync + 'static) -> Self {
        let next = error.next();
        Self::mended(code, error, next)
    }

    /// Wraps an error that nobody can mend, with its causes.
    pub fn plain(code: &'static str, error: impl Error + Send + Sync + 'static) -> Self {
        Self::mended(code, error, None::<String>)
    }

    /// Wraps an error with its causes, and with how it is mended.
    fn mended(
        code: &'static str,
        error: impl Error + Send + Sync + 'static,
        next: Option<impl Into<String>>,
    ) -> Self {
        let words = Words {
            message: chain(&error),
            next: next.map(Into::into),
        };
        Self::Refused {
            code,
            words,
            source: Some(Arc::new(error)),
        }
    }

    /// Says that nothing has this id.
    pub fn unknown(noun: &str, id: impl fmt::Display, list: &str) -> Self {
        let message = format!("no {noun} is called `{id}`");
        let next = format!("`ropewalk {list}` shows what there is");
        Self::refused(UNKNOWN, (message, next))
    }

    /// Says that a file or directory could not be used.
    pub fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        let next = match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                Some("make it writable or choose another place")
            }
            ErrorKind::NotFound => Some("check the path"),
            _ => None,
        };
        let words = Words {
            message: format!("cannot use `{}`: {error}", path.display()),
            next: next.map(str::to_owned),
        };
        Self::refused("file", words)
    }

    /// Returns whether it says that nothing has this id.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if *code == UNKNOWN)
    }

    /// Returns whether it says that several fit this id.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if *code == AMBIGUOUS)
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
        let words = match self {
            Self::Refused { words, .. }
            | Self::Failed(words)
            | Self::Usage(words)
            | Self::Credentials(words) => words.clone(),
            Self::Cancelled => STOPPED.into(),
        };
        Report {
            code,
            message: one_line(&words.message),
            next: words.next.as_deref().map(one_line),
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { message, next, .. } = self.report();
        match next {
            Some(next) => write!(formatter, "{message}; {next}"),
            None => formatter.write_str(&message),
        }
    }
}

impl Error for CliError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused {
                source: Some(source),
                ..
            } => Some(source.as_ref()),
            _ => None,
        }
    }
}

/// Returns what is said of an error with its causes.
fn told(error: &impl Advice) -> Words {
    Words {
        message: chain(error),
        next: error.next(),
    }
}

/// Whatever an error of a library says, it is shown as one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

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

/// Errors that nobody can mend.
macro_rules! plain_errors {
    ($( $error:ty = $code:literal ),+ $(,)?) => { $(
        impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                Self::plain($code, error)
            }
        }
    )+ };
}

plain_errors! {
    BackupError = "store",
    InvalidId = "name",
    SocketError = "bus",
    TaskFailure = "crash",
}

/// Errors that know how they are mended, with those inside of them that speak for themselves.
macro_rules! advised_errors {
    ($( $error:ident ( $($inner:ident),* ) = $code:literal ),+ $(,)?) => { $(
        impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                match error {
                    $( $error::$inner(inner) => inner.into(), )*
                    refused => Self::advised($code, refused),
                }
            }
        }
    )+ };
}

advised_errors! {
    AnswerError(Read, Commit) = "question",
    ApproveError(Forbidden, Read, Commit) = "approval",
    BusError() = "bus",
    ChatError(Read, Commit) = "idea",
    CommentError(Request) = "comments",
    CommitError() = "store",
    PermissionError() = "forbidden",
    FrameError() = "agents",
    GitError() = "git",
    InstanceLockError() = "running",
    LengthError() = "input",
    LandError() = "landing",
    LocationError() = "store",
    OpenError() = "store",
    ReadError() = "store",
    RequestError(Forbidden, Read, Commit) = "specification",
    SteerError(Forbidden, TooLong, Read, Commit) = "build-state",
}

impl From<AttachError> for CliError {
    fn from(error: AttachError) -> Self {
        match error {
            AttachError::Chat(error) => error.into(),
            refused => Self::advised("attachment", refused),
        }
    }
}

impl From<LandingError> for CliError {
    fn from(error: LandingError) -> Self {
        match error {
            LandingError::Forbidden(error) => error.into(),
            LandingError::Commit(error) => error.into(),
            refused => Self::advised("landing", refused),
        }
    }
}

impl From<TaskError> for CliError {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::Forbidden(error) => error.into(),
            TaskError::Unknown { build, task } => {
                Self::unknown("task", task, &format!("build show {build}"))
            }
            TaskError::Words => Self::advised("input", error),
            TaskError::TooLong(error) => error.into(),
            TaskError::Read(error) => error.into(),
            TaskError::Commit(error) => error.into(),
            refused => Self::advised("task-state", refused),
        }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::MissingKey { .. } => Self::Credentials(told(&error)),
            ConfigError::Untrusted { .. } => Self::advised("untrusted", error),
            ConfigError::NotAnOverride(_) => Self::Usage(told(&error)),
            _ => Self::advised("config", error),
        }
    }
}

// The crate `runtime` knows nobody's words, so that its errors are mended here.
impl From<TelemetryError> for CliError {
    fn from(error: TelemetryError) -> Self {
        let next = match error {
            TelemetryError::Filter { .. } => {
                Some("write for example `info` or `ropewalk_bus=debug`")
            }
            TelemetryError::Installed(_) => None,
        };
        Self::mended("config", error, next)
    }
}

impl From<TracesError> for CliError {
    fn from(error: TracesError) -> Self {
        let next = match error {
            TracesError::Exporter(_) => {
                Some("look at `telemetry.endpoint` and `telemetry.headers`")
            }
            TracesError::Client(_) => None,
        };
        Self::mended("telemetry", error, next)
    }
}

impl From<RefusedAnswer> for CliError {
    fn from(error: RefusedAnswer) -> Self {
        match error {
            RefusedAnswer::Forbidden(forbidden) => forbidden.into(),
            RefusedAnswer::TooLong(error) => error.into(),
            RefusedAnswer::Answer(error) => error.into(),
        }
    }
}

impl From<BuildError> for CliError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::MissingKey { .. } | BuildError::UnusableKey { .. } => {
                Self::Credentials(told(&error))
            }
            _ => Self::advised("model", error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_and_says_how_to_mend_it() {
        let words = ("the disk\nis full", "make  room; then go on");
        let error = CliError::refused("store", words);
        assert_eq!(error.to_string(), "the disk is full; make room; then go on");
        let report = error.report();
        assert_eq!(
            (report.code, report.message.as_str()),
            ("store", "the disk is full")
        );
        assert_eq!(report.next.as_deref(), Some("make room; then go on"));
    }

    #[test]
    fn no_text_is_parted_into_what_is_wrong_and_what_to_do() {
        let rows = [
            (
                CliError::from(LocationError::Unknown("a; b".to_owned())),
                "`a; b` names no store",
                Some("write `sqlite`, `sqlite:PATH` or `postgres://USER@HOST/DATABASE`"),
            ),
            (
                CliError::from(ConfigError::NotAnOverride("a; b".to_owned())),
                "`a; b` is not an override",
                Some("write `section.key=value`"),
            ),
            (
                CliError::from(ConfigError::Invalid {
                    origin: ropewalk_config::Origin::Flag,
                    key: "notices.quiet".to_owned(),
                    reason: "`a; b` names no hours".into(),
                }),
                "flag: `notices.quiet`: `a; b` names no hours",
                None,
            ),
            (
                CliError::from(ReadError::Malformed {
                    table: "tasks",
                    key: "a; b".to_owned(),
                    reason: "c; d".to_owned(),
                }),
                "row `a; b` of `tasks` cannot be read: c; d",
                None,
            ),
            (
                CliError::failed(std::io::Error::other("a; b")),
                "a; b",
                None,
            ),
        ];
        for (error, message, next) in rows {
            let report = error.report();
            assert_eq!(
                (report.message.as_str(), report.next.as_deref()),
                (message, next)
            );
        }
    }

    #[test]
    fn a_filter_of_the_log_that_is_none_says_what_to_write() {
        let error = CliError::from(TelemetryError::Filter {
            filter: "a; b".to_owned(),
            reason: "c; d".to_owned(),
        });
        assert_eq!(
            error.to_string(),
            "log filter `a; b` is not valid: c; d; write for example `info` or `ropewalk_bus=debug`"
        );
        assert_eq!(
            error.report().message,
            "log filter `a; b` is not valid: c; d"
        );
    }

    #[test]
    fn what_git_said_is_no_advice() {
        let failed = GitError::Failed {
            command: "merge".to_owned(),
            code: 128,
            reason: "error: no room; fatal: cannot write".to_owned(),
        };
        let error = CliError::from(failed);
        let report = error.report();
        let whole = "`git merge` failed with code 128: error: no room; fatal: cannot write";
        assert_eq!((report.message.as_str(), report.next), (whole, None));
        assert_eq!(error.to_string(), whole);
        assert!(error.source().is_some_and(<dyn Error>::is::<GitError>));
    }

    #[test]
    fn what_a_gate_found_is_told_from_what_to_do() {
        let error = CliError::from(LandError::Gate {
            branch: "build/walks".to_owned(),
            into: "main".to_owned(),
            findings: "1 failed; 2 could not run".to_owned(),
        });
        let report = error.report();
        assert!(report.message.ends_with("1 failed; 2 could not run"));
        assert_eq!(
            report.next.as_deref(),
            Some("build on what `main` holds now")
        );
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
            next: None,
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
