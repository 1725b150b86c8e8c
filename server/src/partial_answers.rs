//! Keeps the words of answers that are being given, for pages that are opened meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use ropewalk_bus::{LiveEvent, LiveEvents};
use ropewalk_desk::views::idea::answer::{Delta, PartialAnswer};
use ropewalk_runtime::Supervisor;
use ropewalk_schemas::MessageId;

/// How many answers are kept: the oldest goes first.
const MOST: usize = 64;
/// The most bytes of words that are kept of one.
const MOST_BYTES: usize = 64 * 1024;

/// The answers that began last; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct PartialAnswers(Arc<Mutex<VecDeque<(MessageId, PartialAnswer)>>>);

impl PartialAnswers {
    /// Listens from now on.
    pub(crate) fn start(mut live: LiveEvents, supervisor: &Supervisor) -> Self {
        let (answers, stop) = (Self::default(), supervisor.shutdown().soft().clone());
        let heard = answers.clone();
        supervisor.spawn("pages.words", async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    Some(event) = live.next() => heard.hear(&event),
                    else => return,
                }
            }
        });
        answers
    }

    /// Returns how the answer to a message begins, as far as words of it came.
    pub(crate) fn answer_to(&self, message: MessageId) -> Option<PartialAnswer> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = answers.iter().find(|(answered, _)| *answered == message);
        found.map(|(_, answer)| answer.clone())
    }

    fn hear(&self, event: &LiveEvent) {
        let Some(delta) = Delta::of(event) else {
            return;
        };
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, answer)) = answers.iter_mut().find(|(id, _)| *id == delta.answers) {
            answer.hear(&delta, MOST_BYTES);
            return;
        }
        if answers.len() == MOST {
            answers.pop_front();
        }
        let mut answer = PartialAnswer::default();
        answer.hear(&delta, MOST_BYTES);
        answers.push_back((delta.answers, answer));
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_desk::views::idea::answer::DELTA;
    use ropewalk_schemas::{Slug, Subject};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_answers_that_began_last_are_kept_and_no_more() {
        let heard = PartialAnswers::default();
        let id = |number: usize| -> MessageId {
            let id = format!("00000000-0000-7000-8000-{number:012}");
            id.parse().unwrap()
        };
        let say = |number: usize, part: u32, text: &str| {
            heard.hear(&LiveEvent {
                event_type: DELTA.to_owned(),
                subject: Subject::idea(&Slug::parse("walks").unwrap()),
                data: json!({ "message_id": id(number), "try": "a", "part": part, "text": text }),
            });
        };
        say(1, 0, "Who ");
        say(1, 1, "walks");
        assert_eq!(heard.answer_to(id(1)).unwrap().words, "Who walks");
        assert_eq!(heard.answer_to(id(2)), None);
        say(2, 0, &"x".repeat(MOST_BYTES + 1));
        assert_eq!(heard.answer_to(id(2)).unwrap().words, "");
        for number in 3..=MOST + 1 {
            say(number, 0, "x");
        }
        assert_eq!(heard.answer_to(id(1)), None);
        assert!(heard.answer_to(id(MOST + 1)).is_some());
    }
}
