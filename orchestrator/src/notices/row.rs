//! Makes the row of a notice, before anything of it was sent.

use chrono::{DateTime, Utc};
use ropewalk_runtime::token;
use ropewalk_schemas::Subject;
use ropewalk_schemas::notice::{Notice, NoticeState, NoticeText};
use ropewalk_schemas::question::{Question, QuestionKind};

/// The event by which a question is told.
const ASKED: &str = "question.asked";
/// Who is told where nobody is reached.
const NOBODY: &str = "";

/// Returns the notice that puts an open question to a receiver by a port, at once.
pub fn asking(port: &str, question: &Question, receiver: &str, now: DateTime<Utc>) -> Notice {
    let urgent = question.kind == QuestionKind::Blocking;
    Notice {
        question: Some(question.id),
        event_type: ASKED.to_owned(),
        ..of(
            (port, &question.id.to_string(), receiver),
            Subject::question(question.id),
            (urgent, NoticeText::default()),
            now,
        )
    }
}

/// Returns the notice of an open question that reaches nobody by a port: nothing is to be done about it before somebody is reached.
pub(super) fn to_nobody(port: &str, question: &Question, now: DateTime<Utc>) -> Notice {
    Notice {
        state: NoticeState::Dead,
        error: Some(format!("{port} reaches nobody")),
        ..asking(port, question, NOBODY, now)
    }
}

/// Returns whether a notice says that a question reaches nobody.
pub(super) fn is_to_nobody(notice: &Notice) -> bool {
    notice.receiver == NOBODY
}

/// Returns the notice by which a port tells `what`, of a subject, to a receiver.
pub(super) fn of(
    (port, what, receiver): (&str, &str, &str),
    subject: Subject,
    (urgent, text): (bool, NoticeText),
    now: DateTime<Utc>,
) -> Notice {
    // Short enough for what a button carries, long enough that nobody guesses it.
    let nonce: String = token::fresh().chars().take(32).collect();
    Notice {
        key: format!("{port}/{what}/{receiver}"),
        port: port.to_owned(),
        receiver: receiver.to_owned(),
        event_type: String::new(),
        subject,
        question: None,
        text,
        urgent,
        state: NoticeState::Waiting,
        outdated: false,
        nonce,
        messages: Vec::new(),
        earlier: Vec::new(),
        pieces: 0,
        tries: 0,
        repeats: 0,
        error: None,
        due: now,
        created_at: now,
        sent_at: None,
    }
}
