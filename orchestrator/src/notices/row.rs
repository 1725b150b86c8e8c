//! Makes the row of a notice, before anything of it was sent.

use chrono::{DateTime, Utc};
use ropewalk_runtime::token;
use ropewalk_schemas::Subject;
use ropewalk_schemas::notice::{Notice, NoticeState, NoticeText};
use ropewalk_schemas::question::{Question, QuestionKind};
use ropewalk_store::{ChangeSet, Versioned};

/// The event by which a question is told.
const ASKED: &str = "question.asked";
/// Who is told where nobody is reached.
const NOBODY: &str = "";

/// Puts an open question to a receiver who asks for it, of which these notices are `known` to a port: once more where they were
/// told, and not where it is on its way. It reaches somebody by that, whatever was noted before.
pub fn asked_for(
    changes: &mut ChangeSet,
    known: &[Versioned<Notice>],
    (port, question, receiver): (&str, &Question, &str),
    now: DateTime<Utc>,
) {
    delete_unreached(changes, known);
    match known.iter().find(|notice| notice.receiver == receiver) {
        None => {
            changes.insert(&asking(port, question, receiver, now));
        }
        Some(notice) if matches!(notice.state, NoticeState::Sent | NoticeState::Dead) => {
            let again = Notice {
                state: NoticeState::Waiting,
                due: now,
                ..notice.record.clone()
            };
            changes.update(notice, &again);
        }
        Some(_) => {}
    }
}

/// Returns the notice that puts an open question to a receiver by a port, at once.
pub(super) fn asking(
    port: &str,
    question: &Question,
    receiver: &str,
    now: DateTime<Utc>,
) -> Notice {
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

/// Forgets that a question reaches nobody.
pub(super) fn delete_unreached(changes: &mut ChangeSet, known: &[Versioned<Notice>]) {
    for nobody in known.iter().filter(|notice| notice.receiver == NOBODY) {
        changes.delete(nobody);
    }
}

/// Returns the notice by which a port tells `what`, of a subject, to a receiver.
pub(super) fn of(
    (port, what, receiver): (&str, &str, &str),
    subject: Subject,
    (urgent, text): (bool, NoticeText),
    now: DateTime<Utc>,
) -> Notice {
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
        nonce: nonce(),
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

/// Returns what nothing else is known by; short enough for what a button carries, long enough that nobody guesses it.
pub(super) fn nonce() -> String {
    token::fresh().chars().take(32).collect()
}
