//! Shows the words of an answer while they come, in a message that is edited now and then until it holds the whole.
//!
//! They are ephemeral: whoever misses some, or dies, shows the whole answer in the end all the same (`whole`).

mod whole;

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_bus::LiveEvent;
use ropewalk_desk::views::idea::answer::{Delta, PartialAnswer};
use ropewalk_schemas::phone::{Draft, Phone};
use ropewalk_schemas::{MessageId, UserSlug};
use tracing::debug;

use crate::api::Letter;
use crate::keyboard;
use crate::styled;
use crate::surface::{Surface, SurfaceError};

pub(crate) use whole::{DraftError, finish, leave, pressed};

/// How long a message stays as it is before it is edited: a chat takes about one message a second.
const EVERY: TimeDelta = TimeDelta::seconds(2);
/// How long is waited after Telegram did not take one, where it does not say.
const REST: Duration = Duration::from_secs(5);
/// How long it may take until it is known that somebody waits for an answer.
const UNKNOWN: TimeDelta = TimeDelta::seconds(10);
/// How many answers are listened to at once.
const MOST: usize = 64;
/// The most bytes of words that are kept of one answer; a message holds less.
const MOST_BYTES: usize = 16 * 1024;
/// What stands behind words that are not the last.
const GOES_ON: &str = " …";
/// What the first words can be pressed for; their first edit takes the button away.
const WHOLE: &str = "Show the whole answer";

/// The words of answers that are being given, by what they answer.
#[derive(Default)]
pub(crate) struct Drafts {
    coming: HashMap<MessageId, ShownAnswer>,
}

/// The words of one answer, and how they are shown.
struct ShownAnswer {
    answer: PartialAnswer,
    /// How many bytes of them are shown.
    shown: usize,
    /// When they began to come.
    since: DateTime<Utc>,
    /// When more may be shown.
    next: DateTime<Utc>,
    /// Whether the message that shows them was begun here, so that no word is missing in it.
    is_ours: bool,
}

impl Drafts {
    /// Takes words that came.
    pub(crate) fn hear(&mut self, event: &LiveEvent, now: DateTime<Utc>) {
        let Some(delta) = Delta::of(event) else {
            return;
        };
        if self.coming.len() >= MOST && !self.coming.contains_key(&delta.answers) {
            return;
        }
        let coming = self.coming.entry(delta.answers);
        let coming = coming.or_insert_with(|| ShownAnswer {
            answer: PartialAnswer::default(),
            shown: 0,
            since: now,
            // The first words are few; more follow soon.
            next: now + EVERY / 2,
            is_ours: false,
        });
        if coming.answer.hear(&delta, MOST_BYTES) {
            coming.shown = 0;
        }
    }

    /// Forgets the words for which nobody waits: of `awaited` alone, and of what is so new that this may not be known yet.
    pub(crate) fn keep(&mut self, awaited: &[MessageId], now: DateTime<Utc>) {
        self.coming
            .retain(|answers, coming| awaited.contains(answers) || now - coming.since < UNKNOWN);
    }

    /// Returns whether words come.
    pub(crate) fn are_coming(&self) -> bool {
        !self.coming.is_empty()
    }

    /// Shows somebody the words that came of the answer they wait for, where it is time for more.
    pub(crate) async fn show(
        &mut self,
        surface: &Surface,
        phone: &Phone,
        chat: i64,
    ) -> Result<(), SurfaceError> {
        let now = surface.services.clock.now();
        let Some(answers) = phone.awaits else {
            return Ok(());
        };
        let Some(coming) = self.coming.get_mut(&answers) else {
            return Ok(());
        };
        let is_blank = coming.answer.words.trim().is_empty();
        if is_blank || coming.answer.words.len() == coming.shown || now < coming.next {
            return Ok(());
        }
        let begun = phone.draft.filter(|draft| draft.answers == answers);
        if begun.is_some_and(|draft| draft.sending || draft.message.is_some() && !coming.is_ours) {
            // Whoever began it died, or nobody knows whether it arrived: the whole answer mends it.
            return Ok(());
        }
        let mut pieces = styled::messages(&format!("{}{GOES_ON}", coming.answer.words)).into_iter();
        let text = pieces.next().unwrap_or_default();
        let sent = match begun.and_then(|draft| Some((draft.chat, draft.message?))) {
            Some((chat, message)) => whole::edit(surface, chat, message, &text).await,
            None => match begin(surface, &phone.person, (chat, answers), text).await {
                Err(DraftError::Store(failed)) => return Err(failed),
                Err(DraftError::Api(error)) => Err(error),
                Ok(()) => Ok(()),
            },
        };
        coming.is_ours = true;
        match sent {
            Ok(()) => {
                coming.shown = coming.answer.words.len();
                coming.next = now + EVERY;
            }
            Err(error) => {
                debug!("words that come are not shown in chat {chat}: {error}");
                let rest = TimeDelta::from_std(error.rest(REST)).unwrap_or(EVERY);
                coming.next = now + rest;
            }
        }
        Ok(())
    }
}

/// Sends the first words, with a button by which they are not all that whoever reads them gets, whatever dies.
async fn begin(
    surface: &Surface,
    person: &UserSlug,
    (chat, answers): (i64, MessageId),
    text: styled::StyledText,
) -> Result<(), DraftError> {
    let letter = Letter {
        text,
        buttons: keyboard::labelled(&answers.to_string(), &[WHOLE]),
        ..Letter::default()
    };
    let draft = Draft {
        chat,
        message: None,
        answers,
        whole: 0,
        sending: false,
    };
    whole::send(surface, person, (draft, 0), &letter).await
}

#[cfg(test)]
mod tests {
    use ropewalk_desk::views::idea::answer::DELTA;

    use super::*;
    use ropewalk_schemas::{Slug, Subject};
    use serde_json::json;

    fn delta(answers: MessageId, of_try: &str, text: &str) -> LiveEvent {
        LiveEvent {
            event_type: DELTA.to_owned(),
            subject: Subject::idea(&Slug::parse("walks").unwrap()),
            data: json!({ "message_id": answers, "try": of_try, "text": text }),
        }
    }

    #[test]
    fn words_of_an_earlier_try_are_dropped_and_what_nobody_waits_for_is_forgotten() {
        let id = |number: u32| -> MessageId {
            format!("00000000-0000-7000-8000-{number:012}")
                .parse()
                .unwrap()
        };
        let (mut drafts, now) = (Drafts::default(), DateTime::UNIX_EPOCH);
        drafts.hear(&delta(id(1), "a", "Who "), now);
        drafts.hear(&delta(id(1), "a", "walks"), now);
        drafts.hear(&delta(id(2), "b", "Where"), now);
        assert_eq!(drafts.coming[&id(1)].answer.words, "Who walks");
        drafts.hear(&delta(id(1), "c", "Why "), now);
        assert_eq!(drafts.coming[&id(1)].answer.words, "Why ");
        drafts.hear(&delta(id(1), "c", &"x".repeat(MOST_BYTES)), now);
        assert_eq!(drafts.coming[&id(1)].answer.words, "Why ");
        let later = now + UNKNOWN;
        drafts.keep(&[], now + TimeDelta::seconds(9));
        assert_eq!(drafts.coming.len(), 2);
        drafts.keep(&[id(2)], later);
        assert!(drafts.coming.contains_key(&id(2)) && drafts.coming.len() == 1);
        let mut other = delta(id(3), "a", "x");
        "ideation.failed".clone_into(&mut other.event_type);
        drafts.hear(&other, now);
        for number in 0..200 {
            drafts.hear(&delta(id(10 + number), "a", "x"), now);
        }
        assert_eq!(drafts.coming.len(), MOST);
        drafts.keep(&[], later);
        assert!(!drafts.are_coming());
    }
}
