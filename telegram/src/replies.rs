//! Says what people are answered. A reply is written down with what it answers and stays until it arrived: a flood or a
//! death puts it off, and no chat waits for another.
//!
//! That a message is on its way is written down before it is sent, so that a death in between repeats one at most, which is
//! counted.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_desk::phones;
use ropewalk_runtime::{Supervisor, failpoint};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::phone::{Phone, Reply};
use ropewalk_schemas::{ReplyId, UserSlug};
use ropewalk_store::{Query, ReadError};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::api::{ApiError, Letter};
use crate::styled;
use crate::surface::{Answer, CHANNEL, Surface, SurfaceError};

/// How often it is looked for what another process has to say.
const LOOK: Duration = Duration::from_secs(1);
/// How long is waited before something is said again, where Telegram does not say.
const REST: Duration = Duration::from_secs(2);
/// How long an answer is worth anything.
const WORTH_SAYING: TimeDelta = TimeDelta::hours(24);

/// A chat, and how long it wants to be left alone.
type ChatRest = (i64, Option<Duration>);

impl Surface {
    /// Returns an answer in a chat.
    pub(crate) fn reply(&self, chat: i64, answer: impl Into<Answer>) -> Reply {
        let Answer { text, buttons } = answer.into();
        Reply {
            id: ReplyId(self.services.ids.next()),
            chat,
            edits: None,
            text,
            buttons,
            wants_words: false,
            pieces: 0,
            sending: false,
            at: self.services.clock.now(),
        }
    }

    /// Returns an answer that is put in the place of a message there, whose buttons go with it.
    pub(crate) fn in_place(&self, chat: i64, message: i32, answer: impl Into<Answer>) -> Reply {
        Reply {
            edits: Some(message),
            ..self.reply(chat, answer)
        }
    }

    /// Says something to a person in a chat, once it is committed.
    pub(crate) async fn say(
        &self,
        person: &UserSlug,
        chat: i64,
        answer: impl Into<Answer>,
    ) -> Result<(), SurfaceError> {
        let reply = self.reply(chat, answer);
        phones::change(&self.context(), person, |phone| {
            phone.replies.push(reply.clone());
        })
        .await?;
        self.wake.notify_one();
        Ok(())
    }
}

/// Says what there is to say, in each chat by itself, until `stop`; what is on its way by then is seen to its end.
pub(crate) async fn deliver(surface: Surface, stop: CancellationToken) {
    let mut chats = Chats::default();
    let clock = &surface.services.clock;
    while !stop.is_cancelled() {
        match waiting(&surface).await {
            Ok(waiting) => chats.begin(&surface, &waiting, &stop),
            Err(error) => warn!("what people are answered waits: {}", Words::of(&error)),
        }
        tokio::select! {
            () = stop.cancelled() => {}
            Some(done) = chats.talking.join_next() => chats.end(done.ok(), clock.now()),
            () = surface.wake.notified() => {}
            () = clock.sleep(LOOK) => {}
        }
    }
    while chats.talking.join_next().await.is_some() {}
}

/// The chats in which something is said now, and those that want to be left alone.
#[derive(Default)]
struct Chats {
    talking: JoinSet<ChatRest>,
    busy: HashSet<i64>,
    rests: HashMap<i64, DateTime<Utc>>,
}

impl Chats {
    /// Begins to say what waits in chats where nothing is said.
    fn begin(
        &mut self,
        surface: &Surface,
        waiting: &[(UserSlug, Reply)],
        stop: &CancellationToken,
    ) {
        let now = surface.services.clock.now();
        self.rests.retain(|_, until| *until > now);
        for (_, reply) in waiting {
            let chat = reply.chat;
            if self.rests.contains_key(&chat) || !self.busy.insert(chat) {
                continue;
            }
            let (surface, stop) = (surface.clone(), stop.clone());
            self.talking.spawn(async move {
                let said = Supervisor::guard(CHANNEL, say_all(&surface, chat, &stop)).await;
                let rest = said.unwrap_or_else(|crash| {
                    warn!("what is answered in chat {chat} waits: {crash}");
                    Some(REST)
                });
                (chat, rest)
            });
        }
    }

    fn end(&mut self, done: Option<ChatRest>, now: DateTime<Utc>) {
        let Some((chat, rest)) = done else {
            return;
        };
        self.busy.remove(&chat);
        if let Some(rest) = rest {
            self.rests.insert(chat, now + rest);
        }
    }
}

/// Lists what is to be said to whom, the oldest first.
async fn waiting(surface: &Surface) -> Result<Vec<(UserSlug, Reply)>, ReadError> {
    let phones = surface.services.store.list::<Phone>(Query::new()).await?;
    let replies = phones.iter().flat_map(|phone| {
        let of_person = phone.replies.iter();
        of_person.map(|reply| (phone.person.clone(), reply.clone()))
    });
    let mut replies: Vec<(UserSlug, Reply)> = replies.collect();
    replies.sort_by_key(|(_, reply)| reply.id);
    Ok(replies)
}

/// Says in a chat what is to be said there; returns how long it wants to be left alone.
async fn say_all(surface: &Surface, chat: i64, stop: &CancellationToken) -> Option<Duration> {
    while !stop.is_cancelled() {
        let said = match waiting(surface).await {
            Ok(waiting) => {
                let mut waiting = waiting.into_iter();
                let (person, reply) = waiting.find(|(_, reply)| reply.chat == chat)?;
                say_next(surface, &person, &reply).await
            }
            Err(error) => Err(error.into()),
        };
        match said {
            Ok(None) => {}
            Ok(rest) => return rest,
            Err(error) => {
                warn!("what is answered in chat {chat} waits: {error}");
                return Some(REST);
            }
        }
    }
    None
}

/// Says the next message of a reply; returns how long to wait where that has to be done again.
async fn say_next(
    surface: &Surface,
    person: &UserSlug,
    reply: &Reply,
) -> Result<Option<Duration>, SurfaceError> {
    let is_old = surface.services.clock.now() - reply.at > WORTH_SAYING;
    let Some((letter, is_last)) = letter(reply).filter(|_| !is_old) else {
        warn!("an answer did not reach chat {} within a day", reply.chat);
        return forget(surface, person, reply).await;
    };
    let sent = hand_over(surface, person, reply, &letter).await?;
    match sent {
        Ok(()) if is_last => forget(surface, person, reply).await,
        Ok(()) => {
            let arrived = |phone: &mut Phone, place: usize| {
                if let Some(reply) = phone.replies.get_mut(place) {
                    reply.sending = false;
                    reply.pieces += 1;
                }
            };
            change(surface, person, reply.id, arrived).await?;
            Ok(None)
        }
        Err(ApiError::Refused(reason)) => {
            warn!("an answer did not reach chat {}: {reason}", reply.chat);
            forget(surface, person, reply).await
        }
        // The next try counts as one by which it may arrive twice.
        Err(error @ ApiError::Unanswered(_)) => Ok(Some(error.rest(REST))),
        Err(error @ ApiError::Later { .. }) => {
            let waits = |phone: &mut Phone, place: usize| {
                if let Some(reply) = phone.replies.get_mut(place) {
                    reply.sending = false;
                }
            };
            change(surface, person, reply.id, waits).await?;
            Ok(Some(error.rest(REST)))
        }
    }
}

/// Sends the next message of a reply, or puts it in the place of one.
async fn hand_over(
    surface: &Surface,
    person: &UserSlug,
    reply: &Reply,
    letter: &Letter,
) -> Result<Result<(), ApiError>, SurfaceError> {
    if let Some(message) = reply.edits {
        // To edit it twice changes nothing.
        failpoint!("telegram.reply.edit.before");
        let edited = surface.api.edit(reply.chat, message, &letter.text).await;
        failpoint!("telegram.reply.edit.after");
        return Ok(edited);
    }
    change(surface, person, reply.id, begin).await?;
    failpoint!("telegram.reply.begun");
    let sent = surface.api.send(reply.chat, letter).await;
    failpoint!("telegram.reply.sent");
    Ok(sent.map(drop))
}

/// Returns the next message of a reply, and whether it is the last.
fn letter(reply: &Reply) -> Option<(Letter, bool)> {
    let pieces = styled::messages(&reply.text).into_iter();
    let mut left = pieces.skip(reply.pieces as usize);
    let text = left.next()?;
    // One message stands in the place of one.
    let is_last = reply.edits.is_some() || left.next().is_none();
    let letter = Letter {
        text,
        buttons: reply.buttons.iter().filter(|_| is_last).cloned().collect(),
        wants_words: reply.wants_words && is_last,
        ..Letter::default()
    };
    Some((letter, is_last))
}

/// Writes down that the next message of a reply is handed over; one that was before may have arrived.
fn begin(phone: &mut Phone, place: usize) {
    if let Some(reply) = phone.replies.get_mut(place) {
        phone.repeats += u32::from(reply.sending);
        reply.sending = true;
    }
}

async fn forget(
    surface: &Surface,
    person: &UserSlug,
    reply: &Reply,
) -> Result<Option<Duration>, SurfaceError> {
    let gone = |phone: &mut Phone, place: usize| drop(phone.replies.remove(place));
    change(surface, person, reply.id, gone).await?;
    Ok(None)
}

/// Changes a phone by a reply, where that is still to be said.
async fn change(
    surface: &Surface,
    person: &UserSlug,
    id: ReplyId,
    change: impl Fn(&mut Phone, usize),
) -> Result<(), SurfaceError> {
    phones::change(&surface.context(), person, |phone| {
        if let Some(place) = phone.replies.iter().position(|reply| reply.id == id) {
            change(phone, place);
        }
    })
    .await?;
    Ok(())
}
