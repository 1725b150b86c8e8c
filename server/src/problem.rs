//! Says in the words of the terminal why a request was refused, as problem+json.

mod mending;

use std::fmt::Display;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ropewalk_desk::alerts::AcknowledgeError;
use ropewalk_desk::attachments::AttachError;
use ropewalk_desk::attachments::kept::KeptError;
use ropewalk_desk::builds::SteerError;
use ropewalk_desk::builds::landing::LandingError;
use ropewalk_desk::builds::named::MisnamedBuild;
use ropewalk_desk::builds::tasks::TaskError;
use ropewalk_desk::comments::CommentError;
use ropewalk_desk::dead_letters::DeadLetterError;
use ropewalk_desk::halt::HaltError;
use ropewalk_desk::ideas::{AbandonError, ChatError};
use ropewalk_desk::knowledge::RemarkError;
use ropewalk_desk::length::LengthError;
use ropewalk_desk::people::PermissionError;
use ropewalk_desk::questions::RefusedAnswer;
use ropewalk_desk::specifications::{ApproveError, RequestError};
use ropewalk_desk::subscribers::ReplayError;
use ropewalk_desk::views::specification::CompareError;
use ropewalk_orchestrator::questions::AnswerError;
use ropewalk_runtime::secrets;
use ropewalk_schemas::advice::{Advice, Words};
use ropewalk_schemas::clip;
use ropewalk_store::{CommitError, CommitOrRead, ReadError};
use schemars::JsonSchema;
use serde::Serialize;
use tracing::error;

/// The most letters that are said of a problem: it may quote what was sent, and under a key it is kept, in a row of at most a
/// mebibyte.
const LETTERS: usize = 4_000;
/// What a problem is sent as.
const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    next: Option<String>,
    /// Which request mends it, where a page, like the terminal, says something else.
    by_request: Option<String>,
    /// Whether the store took nothing, for sure.
    is_untaken: bool,
}

/// Says of an answer, to who passes it on, that the store took nothing of what was asked: it may be asked again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoEffect;

/// A problem as it is sent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct Body {
    /// The status of the answer.
    status: u16,
    /// A stable word, the same that the terminal gives.
    code: String,
    /// What is wrong.
    message: String,
    /// How to mend it.
    next: Option<String>,
}

impl Problem {
    /// Returns a problem: what is wrong, alone or with how to mend it.
    pub(crate) fn new(status: StatusCode, code: &'static str, words: impl Into<Words>) -> Self {
        let Words { message, next } = words.into();
        Self {
            status,
            code,
            message,
            next,
            by_request: None,
            is_untaken: false,
        }
    }

    /// Says which request mends it.
    fn mended_by(self, by_request: Option<String>) -> Self {
        Self { by_request, ..self }
    }

    /// Says that the store took nothing.
    fn untaken(self) -> Self {
        Self {
            is_untaken: true,
            ..self
        }
    }

    /// Returns the problem that an error is which knows how it is mended.
    fn of(status: StatusCode, code: &'static str, error: &impl Advice) -> Self {
        Self::new(status, code, Words::of(error))
    }

    /// Says that the request itself cannot be understood, and how it is mended.
    pub(crate) fn usage((message, next): (impl Into<String>, impl Into<String>)) -> Self {
        let words = (message, next);
        Self::new(StatusCode::BAD_REQUEST, "usage", words)
    }

    /// Says that nothing here has this id; `list` is where to look.
    pub(crate) fn unknown(noun: &str, id: &str, list: &str) -> Self {
        let id: String = id.chars().take(80).collect();
        let message = format!("no {noun} is called `{id}`");
        let next = format!("`GET {list}` shows what there is");
        Self::new(StatusCode::NOT_FOUND, "unknown-id", (message, next))
    }

    /// Returns what is said of it.
    pub(crate) fn words(&self) -> Words {
        Words {
            message: one_line(&self.message),
            next: self.next.as_deref().map(one_line),
        }
    }

    /// Returns what it is answered with.
    pub(crate) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Says that the store takes nothing now, or gives nothing, in its own words: nobody else knows how that is mended.
    fn unavailable(error: &impl Advice) -> Self {
        error!("a request came to nothing: {}", Words::of(error));
        Self::of(StatusCode::SERVICE_UNAVAILABLE, "store", error)
    }

    /// Says that this program failed; the reason is for its log alone.
    pub(crate) fn failed(reason: &dyn std::fmt::Display) -> Self {
        error!("a request failed: {reason}");
        let text = ("the request failed, and the log says why", "try again");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", text)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let words = self.words();
        let body = Body {
            status: self.status.as_u16(),
            code: self.code.to_owned(),
            message: words.message.clone(),
            next: match &self.by_request {
                Some(next) => Some(one_line(next)),
                None => words.next.clone(),
            },
        };
        let mut response = (self.status, Json(body)).into_response();
        response.extensions_mut().insert(words);
        if self.is_untaken {
            response.extensions_mut().insert(NoEffect);
        }
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, CONTENT_TYPE);
        response
    }
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    clip::letters(&secrets::strike(&words.join(" ")), LETTERS).into_owned()
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        match &error {
            // Of what holds it up people can free it; anything else is for the log.
            ReadError::Storage(_) if error.next().is_some() => Self::unavailable(&error),
            _ => Self::failed(&Words::of(&error)),
        }
    }
}

impl From<CommitError> for Problem {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict { .. }
            | CommitError::Contended(_)
            | CommitError::Closed { .. }
            | CommitError::NotDead { .. } => Self::new(
                StatusCode::CONFLICT,
                "store",
                (
                    "somebody changed this in the same moment",
                    "look at it again",
                ),
            ),
            CommitError::Closing => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "store",
                ("the program is about to stop", "try again once it runs"),
            ),
            CommitError::NoSpace | CommitError::ReadOnly => Self::unavailable(&error).untaken(),
            CommitError::Busy
            | CommitError::Unreachable(_)
            | CommitError::Blob { .. }
            | CommitError::Superseded(_)
            | CommitError::Damaged(_)
            | CommitError::Gone(_) => Self::unavailable(&error),
            CommitError::Backlog { .. } => {
                let problem = Self::unavailable(&error).untaken();
                problem.mended_by(mending::commit(&error))
            }
            CommitError::Oversized { .. } => {
                Self::of(StatusCode::PAYLOAD_TOO_LARGE, "store", &error)
            }
            CommitError::Twice { .. }
            | CommitError::Held { .. }
            | CommitError::Fenced { .. }
            | CommitError::HopLimit { .. }
            | CommitError::Unwritable { .. }
            | CommitError::NoPattern(_)
            | CommitError::Storage(_) => Self::failed(&Words::of(&error)),
        }
    }
}

impl From<CommitOrRead> for Problem {
    fn from(error: CommitOrRead) -> Self {
        match error {
            CommitOrRead::Read(error) => error.into(),
            CommitOrRead::Commit(error) => error.into(),
        }
    }
}

impl From<LengthError> for Problem {
    fn from(error: LengthError) -> Self {
        Self::of(StatusCode::BAD_REQUEST, "input", &error)
    }
}

impl From<PermissionError> for Problem {
    fn from(error: PermissionError) -> Self {
        Self::of(StatusCode::FORBIDDEN, "forbidden", &error)
    }
}

impl From<ChatError> for Problem {
    fn from(error: ChatError) -> Self {
        let status = match error {
            ChatError::Read(error) => return error.into(),
            ChatError::Commit(error) => return error.into(),
            ChatError::Empty | ChatError::TooLong(_) | ChatError::LongTitle(_) => {
                StatusCode::BAD_REQUEST
            }
            ChatError::Unknown(_) | ChatError::UnknownSession(_) => StatusCode::NOT_FOUND,
            ChatError::Taken(_) | ChatError::Abandoned(_) | ChatError::Complete { .. } => {
                StatusCode::CONFLICT
            }
        };
        Self::of(status, "idea", &error).mended_by(mending::chat(&error))
    }
}

impl From<AttachError> for Problem {
    fn from(error: AttachError) -> Self {
        let status = match error {
            AttachError::Chat(error) => return error.into(),
            AttachError::File { .. } => return Self::failed(&Words::of(&error)),
            AttachError::Empty => StatusCode::BAD_REQUEST,
            AttachError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            AttachError::Full { .. } => StatusCode::CONFLICT,
        };
        Self::of(status, "attachment", &error).mended_by(mending::attachment(&error))
    }
}

impl From<KeptError> for Problem {
    fn from(error: KeptError) -> Self {
        let (status, code) = match error {
            KeptError::Read(error) => return error.into(),
            KeptError::Unknown { .. } => (StatusCode::NOT_FOUND, "unknown-id"),
            KeptError::Changed(_) => (StatusCode::GONE, "attachment"),
        };
        Self::of(status, code, &error).mended_by(mending::kept(&error))
    }
}

impl From<AbandonError> for Problem {
    fn from(error: AbandonError) -> Self {
        let status = match error {
            AbandonError::Read(error) => return error.into(),
            AbandonError::Commit(error) => return error.into(),
            AbandonError::Forbidden(error) => return error.into(),
            AbandonError::TooLong(error) => return error.into(),
            AbandonError::Unknown(_) => StatusCode::NOT_FOUND,
            _ => StatusCode::CONFLICT,
        };
        Self::of(status, "idea-state", &error).mended_by(mending::abandon(&error))
    }
}

impl From<SteerError> for Problem {
    fn from(error: SteerError) -> Self {
        match error {
            SteerError::Read(error) => error.into(),
            SteerError::Commit(error) => error.into(),
            SteerError::Forbidden(error) => error.into(),
            SteerError::TooLong(error) => error.into(),
            error => Self::of(StatusCode::CONFLICT, "build-state", &error)
                .mended_by(mending::steer(&error)),
        }
    }
}

impl From<MisnamedBuild> for Problem {
    fn from(error: MisnamedBuild) -> Self {
        Self::of(StatusCode::NOT_FOUND, "unknown-id", &error).mended_by(mending::misnamed(&error))
    }
}

impl From<HaltError> for Problem {
    fn from(error: HaltError) -> Self {
        match error {
            HaltError::Read(error) => error.into(),
            HaltError::Commit(error) => error.into(),
            HaltError::Forbidden(error) => error.into(),
            error @ HaltError::TooLong(_) => Self::of(StatusCode::BAD_REQUEST, "input", &error),
            error => {
                Self::of(StatusCode::CONFLICT, "halt", &error).mended_by(mending::halt(&error))
            }
        }
    }
}

impl From<TaskError> for Problem {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::Forbidden(error) => error.into(),
            TaskError::Read(error) => error.into(),
            TaskError::Commit(error) => error.into(),
            TaskError::TooLong(error) => error.into(),
            TaskError::Unknown { build, task } => {
                Self::unknown("task", &task, &format!("/api/builds/{build}"))
            }
            TaskError::Words => {
                Self::of(StatusCode::BAD_REQUEST, "input", &error).mended_by(mending::task(&error))
            }
            error => Self::of(StatusCode::CONFLICT, "task-state", &error)
                .mended_by(mending::task(&error)),
        }
    }
}

impl From<LandingError> for Problem {
    fn from(error: LandingError) -> Self {
        match error {
            LandingError::Commit(error) => error.into(),
            LandingError::Forbidden(error) => error.into(),
            error => Self::of(StatusCode::CONFLICT, "landing", &error)
                .mended_by(mending::landing(&error)),
        }
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        let status = match error {
            RequestError::Read(error) => return error.into(),
            RequestError::Commit(error) => return error.into(),
            RequestError::Forbidden(error) => return error.into(),
            RequestError::UnknownIdea(_) | RequestError::UnknownSpecification(_) => {
                StatusCode::NOT_FOUND
            }
            RequestError::Text => StatusCode::BAD_REQUEST,
            RequestError::Abandoned(_)
            | RequestError::OnItsWay { .. }
            | RequestError::Landed { .. }
            | RequestError::Built { .. }
            | RequestError::Newer { .. }
            | RequestError::BeingWritten { .. }
            | RequestError::State { .. } => StatusCode::CONFLICT,
        };
        Self::of(status, "specification", &error).mended_by(mending::request(&error))
    }
}

impl From<CommentError> for Problem {
    fn from(error: CommentError) -> Self {
        let status = match error {
            CommentError::Document(error) => return error.into(),
            CommentError::Request(error) => return error.into(),
            CommentError::NoLine { .. } | CommentError::Count => StatusCode::BAD_REQUEST,
            CommentError::Unfinished(_) | CommentError::Amended(_) | CommentError::Changed => {
                StatusCode::CONFLICT
            }
        };
        Self::of(status, "comments", &error)
    }
}

impl From<ApproveError> for Problem {
    fn from(error: ApproveError) -> Self {
        let status = match error {
            ApproveError::Read(error) => return error.into(),
            ApproveError::Commit(error) => return error.into(),
            ApproveError::Forbidden(error) => return error.into(),
            ApproveError::Unknown(_) => StatusCode::NOT_FOUND,
            ApproveError::Already { .. }
            | ApproveError::PutAway { .. }
            | ApproveError::Stale { .. }
            | ApproveError::Abandoned(_)
            | ApproveError::Elsewhere { .. }
            | ApproveError::NotReady { .. } => StatusCode::CONFLICT,
        };
        Self::of(status, "approval", &error).mended_by(mending::approve(&error))
    }
}

impl From<CompareError> for Problem {
    fn from(error: CompareError) -> Self {
        match error {
            CompareError::Read(error) => error.into(),
            error => Self::of(StatusCode::NOT_FOUND, "unknown-id", &error),
        }
    }
}

impl From<AcknowledgeError> for Problem {
    fn from(error: AcknowledgeError) -> Self {
        let (status, code) = match error {
            AcknowledgeError::Read(error) => return error.into(),
            AcknowledgeError::Commit(error) => return error.into(),
            AcknowledgeError::Unknown(cause) => {
                return Self::unknown("alert", &cause, "/api/alerts");
            }
            AcknowledgeError::Ambiguous { .. } => (StatusCode::CONFLICT, "ambiguous-id"),
            AcknowledgeError::Already { .. } => (StatusCode::CONFLICT, "alert"),
        };
        Self::of(status, code, &error).mended_by(mending::acknowledge(&error))
    }
}

impl From<DeadLetterError> for Problem {
    fn from(error: DeadLetterError) -> Self {
        match error {
            DeadLetterError::Forbidden(error) => error.into(),
            DeadLetterError::Read(error) => error.into(),
            DeadLetterError::Commit(error) => error.into(),
            DeadLetterError::Unknown(name) => {
                Self::unknown("dead letter", &name.to_string(), "/api/dead-letters")
            }
        }
    }
}

impl From<ReplayError> for Problem {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Forbidden(error) => error.into(),
            ReplayError::Read(error) => error.into(),
            ReplayError::Commit(error) => error.into(),
            error @ ReplayError::Unknown { .. } => {
                Self::of(StatusCode::NOT_FOUND, "unknown-id", &error)
            }
        }
    }
}

impl From<RemarkError> for Problem {
    fn from(error: RemarkError) -> Self {
        match error {
            RemarkError::Read(error) => error.into(),
            RemarkError::Commit(error) => error.into(),
            error @ RemarkError::Refused(_) => {
                Self::of(StatusCode::BAD_REQUEST, "knowledge", &error)
            }
        }
    }
}

impl From<RefusedAnswer> for Problem {
    fn from(error: RefusedAnswer) -> Self {
        match error {
            RefusedAnswer::Forbidden(error) => error.into(),
            RefusedAnswer::TooLong(error) => error.into(),
            RefusedAnswer::Answer(error) => error.into(),
        }
    }
}

impl From<AnswerError> for Problem {
    fn from(error: AnswerError) -> Self {
        let status = match error {
            AnswerError::Read(error) => return error.into(),
            AnswerError::Commit(error) => return error.into(),
            AnswerError::Unknown(_) => StatusCode::NOT_FOUND,
            AnswerError::Closed { .. } => StatusCode::CONFLICT,
            AnswerError::Empty { .. }
            | AnswerError::NotAChoice { .. }
            | AnswerError::WordsAlone { .. }
            | AnswerError::WordsMissing { .. }
            | AnswerError::WordsBeside { .. } => StatusCode::BAD_REQUEST,
        };
        Self::of(status, "question", &error).mended_by(mending::answer(&error))
    }
}

/// Says which field holds a name that is none.
pub(crate) fn unreadable<E: Display>(field: &str) -> impl FnOnce(E) -> Problem + '_ {
    move |error| {
        let next = format!("write `{field}` as the lists of this server show it");
        Problem::usage((format!("`{field}` cannot be understood: {error}"), next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_told_in_one_line() {
        let unknown = Problem::unknown("build", "a; b", "/api/builds");
        assert_eq!(unknown.message, "no build is called `a; b`");
        assert_eq!(one_line("it is\nthere"), "it is there");
    }

    #[test]
    fn what_a_problem_quotes_is_cut_before_it_fills_a_row() {
        let quoting = Problem::usage(("x".repeat(1_000_000), "leave it out"));
        let words = quoting.words();
        assert_eq!(words.message.chars().count(), LETTERS);
        assert!(words.message.ends_with("x…"), "{}", words.message.len());
    }

    #[test]
    fn what_the_store_says_is_told_with_a_status_that_says_who_mends_it() {
        let told = |error: CommitError| {
            let problem = Problem::from(error);
            (problem.status.as_u16(), problem.code, problem.words())
        };
        let full = (
            "the disk of the database is full",
            "make room and try again",
        );
        assert_eq!(
            told(CommitError::NoSpace),
            (503, "store", Words::from(full))
        );
        let read_only = (
            "the database is read-only",
            "check the permissions of its file and directory",
        );
        assert_eq!(
            told(CommitError::ReadOnly),
            (503, "store", Words::from(read_only))
        );
        for error in [
            CommitError::Busy,
            CommitError::Unreachable("refused".to_owned()),
            CommitError::Gone("d.db".into()),
            CommitError::Closing,
        ] {
            let (status, code, words) = told(error);
            assert_eq!((status, code), (503, "store"), "{words}");
            assert!(words.next.is_some(), "{words}");
        }
        let oversized = CommitError::Oversized {
            what: "row `1` of `questions`".to_owned(),
            size_bytes: 9,
            limit_bytes: 8,
        };
        let words = (
            "row `1` of `questions` has 9 bytes",
            "8 is the most, store the rest elsewhere",
        );
        assert_eq!(told(oversized), (413, "store", Words::from(words)));
        let backlog = Problem::from(CommitError::Backlog { open: 9, limit: 8 });
        assert_eq!(backlog.status.as_u16(), 503);
        let next = backlog.by_request.unwrap();
        assert!(next.contains("`GET /api/dead-letters`"), "{next}");
        let (status, code, words) = told(CommitError::HopLimit {
            event_type: "a.b".to_owned(),
            hop: 99,
        });
        assert_eq!((status, code), (500, "failed"));
        assert!(!words.message.contains("a.b"), "{words}");
    }

    #[test]
    fn no_text_is_parted_into_what_is_wrong_and_what_to_do() {
        let quoting = Problem::usage(("`a; b` cannot be understood: c; d", "leave it out"));
        assert_eq!(quoting.message, "`a; b` cannot be understood: c; d");
        assert_eq!(quoting.next.as_deref(), Some("leave it out"));
    }
}
