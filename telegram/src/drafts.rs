//! Shows the words of an answer while they come, in a message that is edited now and then until it holds the whole.
//!
//! They are ephemeral: whoever misses some, or dies, shows the whole answer in the end all the same. That a message is on its
//! way is written down before it is sent, so that a death in between repeats one at most, which is counted; one of first words
//! that nobody edits any more has a button that puts the whole answer in its place.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_bus::LiveEvent;
use ropewalk_desk::phones;
use ropewalk_runtime::failpoint;
use ropewalk_schemas::idea::{Author, Message};
use ropewalk_schemas::phone::{Draft, Phone};
use ropewalk_schemas::{MessageId, UserSlug};
use ropewalk_store::Query;
use tracing::debug;

use crate::api::{ApiError, Letter};
use crate::keyboard::{self, Mark};
use crate::styled;
use crate::surface::{Surface, SurfaceError, Whom};

/// What tells of words that came.
const DELTA: &str = "ideation.delta";
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
    coming: HashMap<MessageId, PartialAnswer>,
}

/// The words of one answer.
struct PartialAnswer {
    /// The try that they are of: those of one that broke off count no more.
    of_try: Option<String>,
    words: String,
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
        let answers = event.data["message_id"].as_str();
        let (Some(answers), Some(words)) = (
            answers.and_then(|id| id.parse::<MessageId>().ok()),
            event.data["text"]
                .as_str()
                .filter(|_| event.event_type == DELTA),
        ) else {
            return;
        };
        if self.coming.len() >= MOST && !self.coming.contains_key(&answers) {
            return;
        }
        let of_try = event.data["try"].as_str().map(str::to_owned);
        let coming = self.coming.entry(answers).or_insert_with(|| PartialAnswer {
            of_try: of_try.clone(),
            words: String::new(),
            shown: 0,
            since: now,
            // The first words are few; more follow soon.
            next: now + EVERY / 2,
            is_ours: false,
        });
        if coming.of_try != of_try {
            coming.of_try = of_try;
            coming.words.clear();
            coming.shown = 0;
        }
        if coming.words.len() + words.len() <= MOST_BYTES {
            coming.words.push_str(words);
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
        let Some(answers) = phone.shown else {
            return Ok(());
        };
        let Some(coming) = self.coming.get_mut(&answers) else {
            return Ok(());
        };
        let is_blank = coming.words.trim().is_empty();
        if is_blank || coming.words.len() == coming.shown || now < coming.next {
            return Ok(());
        }
        let begun = phone.draft.filter(|draft| draft.answers == answers);
        if begun.is_some_and(|draft| draft.sending || draft.message.is_some() && !coming.is_ours) {
            // Whoever began it died, or nobody knows whether it arrived: the whole answer mends it.
            return Ok(());
        }
        let mut pieces = styled::messages(&format!("{}{GOES_ON}", coming.words)).into_iter();
        let text = pieces.next().unwrap_or_default();
        let sent = match begun.and_then(|draft| Some((draft.chat, draft.message?))) {
            Some((chat, message)) => surface.api.edit(chat, message, &text).await,
            None => match begin(surface, &phone.person, (chat, answers), text).await {
                Err(DraftError::Store(failed)) => return Err(failed),
                Err(DraftError::Api(error)) => Err(error),
                Ok(()) => Ok(()),
            },
        };
        coming.is_ours = true;
        match sent {
            Ok(()) => {
                coming.shown = coming.words.len();
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
    send(surface, person, (draft, 0), &letter).await
}

/// Sends a message of an answer, by which so many of the whole are shown. That it is on its way is written down first.
async fn send(
    surface: &Surface,
    person: &UserSlug,
    (draft, shown): (Draft, u32),
    letter: &Letter,
) -> Result<(), DraftError> {
    let on_its_way = Draft {
        sending: true,
        ..draft
    };
    write_down(surface, person, on_its_way).await?;
    failpoint!("telegram.answer.begun");
    let sent = surface.api.send(draft.chat, letter).await;
    failpoint!("telegram.answer.sent");
    let (after, outcome) = match sent {
        Ok(message) => {
            let arrived = Draft {
                message: Some(message),
                whole: shown,
                sending: false,
                ..draft
            };
            (arrived, Ok(()))
        }
        Err(error @ ApiError::Unanswered(_)) => return Err(error.into()),
        Err(error) => {
            let waits = Draft {
                sending: false,
                ..draft
            };
            (waits, Err(error.into()))
        }
    };
    let context = surface.context();
    let recorded = phones::change(&context, person, |phone| phone.draft = Some(after));
    recorded.await.map_err(SurfaceError::from)?;
    outcome
}

/// Puts the whole answer in the place of first words that somebody pressed; nothing where it is the button of something else.
pub(crate) async fn pressed(
    surface: &Surface,
    whom: &Whom,
    message: i32,
    mark: Mark<'_>,
) -> Result<Option<String>, SurfaceError> {
    let Ok(answers) = mark.nonce.parse::<MessageId>() else {
        return Ok(None);
    };
    let store = &surface.services.store;
    let Some(answered) = store.get::<Message>(&answers.to_string()).await? else {
        return Ok(None);
    };
    let messages = Query::new().equal("session", answered.session);
    let messages = store.list::<Message>(messages).await?;
    let Some(answer) = messages.iter().find(|one| is_answer(one, answers)) else {
        return Ok(Some("The answer is still being written.".to_owned()));
    };
    let mut pieces = styled::messages(answer.text.trim_end()).into_iter();
    let text = pieces.next().unwrap_or_default();
    if let Err(error) = surface.api.edit(whom.chat, message, &text).await {
        debug!("first words stay in chat {}: {error}", whom.chat);
    }
    Ok(Some("The answer is here.".to_owned()))
}

/// Says whether a message of a conversation answers another one.
pub(crate) fn is_answer(message: &Message, answers: MessageId) -> bool {
    message.author == Author::Agent && message.id > answers
}

/// Says why an answer is not shown yet.
pub(crate) enum DraftError {
    /// Telegram does not take it.
    Api(ApiError),
    /// The store does not.
    Store(SurfaceError),
}

impl From<ApiError> for DraftError {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<SurfaceError> for DraftError {
    fn from(error: SurfaceError) -> Self {
        Self::Store(error)
    }
}

/// Puts a whole answer in the place of its first words, or sends it where there are none; goes on where it broke off.
pub(crate) async fn finish(
    surface: &Surface,
    phone: &Phone,
    (chat, answers): (i64, MessageId),
    text: &str,
) -> Result<(), DraftError> {
    let begun = phone.draft.filter(|draft| draft.answers == answers);
    let first = begun.and_then(|draft| Some((draft.chat, draft.message?)));
    if text.is_empty() {
        // All of it comes as a question.
        return match first {
            Some((chat, message)) => Ok(gone(surface.api.remove(chat, message).await)?),
            None => Ok(()),
        };
    }
    let done = begun.map_or(0, |draft| draft.whole);
    for (place, text) in (1..).zip(styled::messages(text)).skip(done as usize) {
        let mut draft = Draft {
            chat,
            message: None,
            answers,
            whole: place - 1,
            sending: false,
        };
        if let Some((chat, message)) = first.filter(|_| place == 1)
            && is_taken(surface.api.edit(chat, message, &text).await)?
        {
            draft.message = Some(message);
            draft.whole = place;
            write_down(surface, &phone.person, draft).await?;
            continue;
        }
        let letter = Letter {
            text,
            ..Letter::default()
        };
        send(surface, &phone.person, (draft, place), &letter).await?;
    }
    Ok(())
}

/// Says whether a message was edited: whoever removed it is told all the same.
fn is_taken(edited: Result<(), ApiError>) -> Result<bool, ApiError> {
    match edited {
        Ok(()) => Ok(true),
        Err(ApiError::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What is gone already need not be removed.
fn gone(removed: Result<(), ApiError>) -> Result<(), ApiError> {
    match removed {
        Err(ApiError::Refused(_)) => Ok(()),
        removed => removed,
    }
}

/// Writes down how far an answer is shown; what was on its way until now may have arrived, and is counted.
async fn write_down(
    surface: &Surface,
    person: &UserSlug,
    draft: Draft,
) -> Result<(), SurfaceError> {
    phones::change(&surface.context(), person, |phone| {
        leave(phone);
        phone.draft = Some(draft);
    })
    .await?;
    Ok(())
}

/// Lets the message in which an answer was shown be.
pub(crate) fn leave(phone: &mut Phone) {
    let left = phone.draft.take();
    phone.repeats += u32::from(left.is_some_and(|draft| draft.sending));
}

#[cfg(test)]
mod tests {
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
        assert_eq!(drafts.coming[&id(1)].words, "Who walks");
        drafts.hear(&delta(id(1), "c", "Why "), now);
        assert_eq!(drafts.coming[&id(1)].words, "Why ");
        drafts.hear(&delta(id(1), "c", &"x".repeat(MOST_BYTES)), now);
        assert_eq!(drafts.coming[&id(1)].words, "Why ");
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
