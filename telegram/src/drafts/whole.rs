//! Shows whole answers, and knows what of them arrived.
//!
//! That a message is on its way is written down before it is sent, so that a death in between repeats one at most, which is
//! counted; one of first words that nobody edits any more has a button that puts the answer in its place.

use ropewalk_desk::phones;
use ropewalk_runtime::failpoint;
use ropewalk_schemas::idea::{Author, Message};
use ropewalk_schemas::phone::{Draft, Phone};
use ropewalk_schemas::{MessageId, UserSlug};
use ropewalk_store::Query;
use tracing::debug;

use crate::api::{ApiError, Letter};
use crate::keyboard::Mark;
use crate::styled::{self, StyledText};
use crate::surface::{Surface, SurfaceError, Whom};

/// Sends a message of an answer, by which so many of the whole are shown. That it is on its way is written down first.
pub(super) async fn send(
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

/// Puts words in the place of those that a message of an answer holds; to do that twice changes nothing.
pub(super) async fn edit(
    surface: &Surface,
    chat: i64,
    message: i32,
    text: &StyledText,
) -> Result<(), ApiError> {
    failpoint!("telegram.answer.edit.before");
    let edited = surface.api.edit(chat, message, text).await;
    failpoint!("telegram.answer.edit.after");
    edited
}

/// Puts the answer in the place of first words that somebody pressed, as far as it goes into one message; nothing where it is
/// the button of something else.
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
    if let Err(error) = edit(surface, whom.chat, message, &text).await {
        debug!("first words stay in chat {}: {error}", whom.chat);
    }
    let told = if pieces.next().is_none() {
        "The answer is here."
    } else {
        "The answer begins here; the rest came below."
    };
    Ok(Some(told.to_owned()))
}

/// Says whether a message of a conversation answers another one.
fn is_answer(message: &Message, answers: MessageId) -> bool {
    let is_after = || message.id > answers;
    message.author == Author::Agent
        && message
            .answers
            .map_or_else(is_after, |answered| answered == answers)
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
            && is_taken(edit(surface, chat, message, &text).await)?
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
