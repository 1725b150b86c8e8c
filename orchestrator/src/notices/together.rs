//! Puts what goes together into one message.

use ropewalk_schemas::notice::{Notice, NoticeState, NoticeText};
use ropewalk_schemas::question::Question;
use ropewalk_store::{ReadError, Versioned};

use super::port::{Notification, PosedQuestion};
use super::{compose, text};
use crate::context::Context;

/// How many gathered notices one message holds.
const GATHERED: usize = 20;

/// Says what is told now.
pub(super) async fn telling(
    first: &Notice,
    together: &[&Versioned<Notice>],
    question: Option<&Question>,
    context: &Context,
) -> Result<Notification, ReadError> {
    let words = match question {
        Some(question) if first.pieces == 0 => compose::question(question, &context.store).await?,
        _ => joined(together),
    };
    let put = question.map(|question| PosedQuestion {
        id: question.id,
        choices: question.choices.clone(),
        free_text: question.free_text && !question.consequential,
    });
    Ok(Notification {
        nonce: first.nonce.clone(),
        event_type: first.event_type.clone(),
        subject: first.subject.clone(),
        text: words,
        question: put,
        silent: !first.urgent && together.len() > 1,
        pieces: first.pieces,
    })
}

/// Returns what is told together with `first`: everything for the same receiver that holds nothing up, and of what was on
/// its way when its sender died or was put off, what was in the same message. What holds work up is told alone, so that it is what a phone
/// shows.
pub(super) fn gathered<'a>(
    first: &'a Versioned<Notice>,
    open: &'a [Versioned<Notice>],
) -> Vec<&'a Versioned<Notice>> {
    let mut together = vec![first];
    let is_begun =
        |notice: &Versioned<Notice>| notice.state == NoticeState::Sending || notice.pieces > 0;
    let is_gathered = |notice: &Versioned<Notice>| {
        notice.question.is_none() && notice.state == NoticeState::Waiting && !notice.urgent
    };
    let goes_along = |notice: &&Versioned<Notice>| {
        let is_of_it = if is_begun(first) {
            is_begun(notice) && notice.nonce == first.nonce
        } else {
            is_gathered(first) && is_gathered(notice) && !is_begun(notice)
        };
        is_of_it && notice.receiver == first.receiver && notice.key != first.key
    };
    together.extend(open.iter().filter(goes_along).take(GATHERED - 1));
    together
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
