//! Puts what goes together into one message.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use ropewalk_schemas::notice::{Notice, NoticeState, NoticeText};
use ropewalk_schemas::question::Question;
use ropewalk_store::Versioned;

use super::port::{Notification, PosedQuestion};
use super::text;
use crate::questions;

/// How many gathered notices one message holds.
const GATHERED: usize = 20;

/// Says what is told now.
pub(super) fn telling(
    first: &Notice,
    together: &[&Versioned<Notice>],
    question: Option<&Question>,
) -> Notification {
    let words = match question {
        Some(question) if first.pieces == 0 => text::question(question),
        _ => joined(together),
    };
    let put = question.map(|question| PosedQuestion {
        id: question.id,
        choices: question.choices.clone(),
        free_text: question.free_text && !question.consequential,
        role: questions::role(question),
    });
    Notification {
        nonce: first.nonce.clone(),
        event_type: first.event_type.clone(),
        subject: first.subject.clone(),
        text: words,
        question: put,
        silent: !first.urgent && together.len() > 1,
        pieces: first.pieces,
    }
}

/// Returns whether something of a notice may have arrived: it was on its way when its sender died, or broke off in the middle.
pub(super) fn is_begun(notice: &Notice) -> bool {
    notice.state == NoticeState::Sending || notice.pieces > 0
}

/// Returns what of `waiting` is told together with `first`: whatever is for the same receiver and holds nothing up; of too
/// much, the newest. What holds work up is told alone, so that it is what a phone shows.
pub(super) fn gathered<'a>(
    first: &'a Versioned<Notice>,
    waiting: impl Iterator<Item = &'a Versioned<Notice>>,
) -> Vec<&'a Versioned<Notice>> {
    let goes_along = |notice: &&Versioned<Notice>| {
        let is_another = notice.receiver == first.receiver && notice.key != first.key;
        is_another && is_gathered(first) && is_gathered(notice)
    };
    let others = newest_first(waiting.filter(goes_along)).into_iter();
    newest_first(others.take(GATHERED - 1).chain([first]))
}

/// Puts notices into the order in which one message tells them: the newest before what is older. It does not depend on when they
/// are due, which each try changes: whoever goes on in the middle of a message has to find the same words.
pub(super) fn newest_first<'a>(
    notices: impl IntoIterator<Item = &'a Versioned<Notice>>,
) -> Vec<&'a Versioned<Notice>> {
    let mut sorted: Vec<_> = notices.into_iter().collect();
    sorted.sort_by(|one, other| age(one).cmp(&age(other)));
    sorted
}

/// Orders notices, the newest first; of those that were made at once, the one of the later event.
pub(super) fn age(notice: &Notice) -> Reverse<(DateTime<Utc>, &str)> {
    Reverse((notice.created_at, notice.key.as_str()))
}

fn is_gathered(notice: &Notice) -> bool {
    let waits = notice.state == NoticeState::Waiting && !is_begun(notice);
    waits && !notice.urgent && notice.question.is_none()
}

/// Puts several notices into one.
fn joined(together: &[&Versioned<Notice>]) -> NoticeText {
    if let [only] = together {
        return only.text.clone();
    }
    let mut reasons: Vec<&str> = Vec::new();
    let told = together.iter().map(|notice| {
        let NoticeText {
            title,
            body,
            recommendation,
        } = &notice.text;
        // What several failed for is told once.
        let paragraphs = body.split("\n\n").filter(|paragraph| {
            let is_new = !reasons.contains(paragraph);
            reasons.extend(is_new.then_some(*paragraph));
            is_new
        });
        let body = paragraphs.collect::<Vec<_>>().join("\n\n");
        let recommendation = recommendation.as_ref();
        let recommendation = recommendation.map_or_else(String::new, |best| format!("\n→ {best}"));
        format!("**{title}**\n{body}{recommendation}")
    });
    let told: Vec<String> = told.collect();
    text::text(format!("{} things happened", together.len()), told, None)
}
