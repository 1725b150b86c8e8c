//! Lets people talk about ideas: what they write belongs to one, and whatever is said in it comes back, whoever it answers.

pub(crate) mod asking;
pub(crate) mod landed;
pub(crate) mod silence;

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_desk::ideas::{self, Opening};
use ropewalk_desk::phones;
use ropewalk_schemas::clip;
use ropewalk_schemas::idea::{Author, Idea, Message, Session};
use ropewalk_schemas::notice::Notice;
use ropewalk_schemas::phone::Phone;
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::{MessageId, QuestionId, Slug, UserSlug};
use ropewalk_store::{Query, Versioned};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::api::{ApiError, Button};
use crate::commands::SAID_BACK;
use crate::drafts::{self, DraftError, Drafts};
use crate::keyboard;
use crate::orders::naming;
use crate::port;
use crate::surface::{Answer, Surface, SurfaceError, Whom};
use crate::words::refusal;

pub(crate) use landed::pressed;

/// How often answers are looked for, while somebody waits for one.
const LOOK: Duration = Duration::from_millis(500);
/// How often it is looked whether somebody waits.
const IDLE: Duration = Duration::from_secs(2);
/// How far apart an answer and the question that it ends in may say that they were made.
const TOGETHER: TimeDelta = TimeDelta::seconds(10);
/// How far a clock may be put back between two messages.
const PUT_BACK: TimeDelta = TimeDelta::minutes(1);
/// How long a question may take to become notices.
const UNHEARD: TimeDelta = TimeDelta::minutes(1);

/// Begins an idea with what somebody wrote.
pub(crate) async fn begin(
    surface: &Surface,
    whom: &Whom,
    text: &str,
) -> Result<String, SurfaceError> {
    if let Some((idea, message)) = begun_already(surface, whom, text).await? {
        listen_again(surface, whom, &idea, message).await?;
        return Ok(format!("It is the idea `{idea}` already."));
    }
    let opening = Opening {
        user: whom.person.name.clone(),
        title: None,
        text: text.to_owned(),
        slug: None,
        kind: None,
        whole: false,
    };
    match ideas::start(&surface.context(), opening).await {
        Ok(started) => {
            let mut told = format!(
                "It is the idea `{}` now; the answer comes here.",
                started.idea
            );
            let phone = phones::of(&surface.services.store, &whom.person.name).await?;
            if let Some(waits) = silence::told(surface, &phone).await? {
                told = format!("{told}\n{waits}");
            }
            listen(surface, whom, started.idea, started.message).await?;
            Ok(told)
        }
        Err(error) => Ok(refusal::chat(&error)),
    }
}

/// Adds what somebody wrote to the idea that is talked about; begins one where there is none. Of one that has landed it is said
/// that words change nothing of it any more.
pub(crate) async fn say(
    surface: &Surface,
    whom: &Whom,
    text: &str,
) -> Result<Option<Answer>, SurfaceError> {
    let store = &surface.services.store;
    let phone = phones::of(store, &whom.person.name).await?;
    let idea = match &phone.idea {
        Some(slug) => store.get::<Idea>(slug.as_str()).await?,
        None => None,
    };
    let Some(idea) = idea else {
        let begun = begin(surface, whom, text).await?;
        return Ok(Some(begun.into()));
    };
    if said_already(surface, whom, &idea, text).await?.is_some() {
        return Ok(None);
    }
    if let Some(landed) = landed::told(surface, whom, &idea, text).await? {
        return Ok(Some(landed));
    }
    let said = ideas::say(&surface.context(), idea.session, &whom.person.name, text).await;
    match said {
        Ok(said) => {
            let waits = silence::told(surface, &phone).await?;
            listen(surface, whom, said.idea, said.message).await?;
            Ok(waits.map(Into::into))
        }
        Err(error) => Ok(Some(refusal::chat(&error).into())),
    }
}

/// Returns the button that goes on with an idea; none where its name is longer than a button carries.
pub(crate) fn turning(idea: &Slug) -> Option<Button> {
    keyboard::typing(idea.to_string(), &format!("/idea {idea}"))
}

/// Goes on with another idea, which is named by its name or a part of it.
pub(crate) async fn turn_to(
    surface: &Surface,
    whom: &Whom,
    name: &str,
) -> Result<Answer, SurfaceError> {
    let store = &surface.services.store;
    let found = naming::find(store, name).await?;
    if found.len() > 1 {
        return Ok(Answer {
            text: naming::fits_several(name, &found),
            buttons: found.iter().filter_map(turning).collect(),
        });
    }
    let idea = match found.first() {
        Some(slug) => store.get::<Idea>(slug.as_str()).await?,
        None => None,
    };
    let Some(idea) = idea else {
        let name = clip::letters(name, SAID_BACK);
        return Ok(format!("No idea is called `{name}`; /ideas lists them.").into());
    };
    let said = Query::new().equal("session", idea.session);
    let said = store.list::<Message>(said).await?;
    let last = said.iter().map(|message| message.id).max();
    phones::change(&surface.context(), &whom.person.name, |phone| {
        turn(phone, &idea.slug, last);
    })
    .await?;
    // What is written next may answer it, for whoever has seen it.
    let session = store.get::<Session>(&idea.session.to_string()).await?;
    if let Some(id) = session.and_then(|session| session.waiting_for)
        && let Some(question) = store.get::<Question>(&id.to_string()).await?
    {
        asking::put_first(surface, whom, &question).await?;
    }
    Ok(format!("What you write belongs to `{}` now.", idea.slug).into())
}

/// Turns a phone to an idea, of which everything after `last` comes to the chat; where it is turned to it, nothing is missed.
fn turn(phone: &mut Phone, idea: &Slug, last: Option<MessageId>) {
    if phone.listens && phone.idea.as_ref() == Some(idea) {
        return;
    }
    phone.idea = Some(idea.clone());
    phone.shown = last;
    phone.listens = true;
    phone.awaits = None;
}

/// Brings what is said after `message` to the chat, where an answer to that is awaited.
pub(crate) async fn listen(
    surface: &Surface,
    whom: &Whom,
    idea: Slug,
    message: MessageId,
) -> Result<(), SurfaceError> {
    let context = surface.context();
    let changed = phones::change(&context, &whom.person.name, |phone| {
        turn(phone, &idea, Some(message));
        phone.awaits = Some(message);
    });
    Ok(changed.await?)
}

/// Does the same where an earlier try may have died before: whoever it had turned to the idea has it so, and whoever did something
/// else since stays where they are.
async fn listen_again(
    surface: &Surface,
    whom: &Whom,
    idea: &Slug,
    message: MessageId,
) -> Result<(), SurfaceError> {
    let phone = phones::of(&surface.services.store, &whom.person.name).await?;
    let is_there = phone.listens && phone.idea.as_ref() == Some(idea);
    if is_there || whom.has_gone_on {
        return Ok(());
    }
    listen(surface, whom, idea.clone(), message).await
}

/// Brings to the chat what a conversation comes to by an answer that it waited for.
pub(crate) async fn goes_on(
    surface: &Surface,
    whom: &Whom,
    answered: QuestionId,
    since: MessageId,
) -> Result<(), SurfaceError> {
    match talk_of(surface, answered).await? {
        Some(idea) => listen(surface, whom, idea.slug.clone(), since).await,
        None => Ok(()),
    }
}

/// Does the same where an earlier try had given the answer.
pub(crate) async fn went_on(
    surface: &Surface,
    whom: &Whom,
    answered: QuestionId,
) -> Result<(), SurfaceError> {
    let Some(begun) = whom.begun_before else {
        return Ok(());
    };
    let Some(idea) = talk_of(surface, answered).await? else {
        return Ok(());
    };
    let messages = Query::new().equal("session", idea.session);
    let messages = surface.services.store.list::<Message>(messages).await?;
    let before = messages.iter().filter(|message| message.at < begun);
    match before.map(|message| message.id).max() {
        Some(since) => listen_again(surface, whom, &idea.slug, since).await,
        None => Ok(()),
    }
}

/// Returns the idea whose conversation asked a question.
async fn talk_of(
    surface: &Surface,
    question: QuestionId,
) -> Result<Option<Versioned<Idea>>, SurfaceError> {
    let store = &surface.services.store;
    let question = store.get::<Question>(&question.to_string()).await?;
    let of_talk = question.filter(|question| matches!(question.about, About::Session { .. }));
    match of_talk.and_then(|question| question.into_inner().idea) {
        Some(idea) => Ok(store.get::<Idea>(idea.as_str()).await?),
        None => Ok(None),
    }
}

/// Returns the words as an earlier try had added them.
async fn said_already(
    surface: &Surface,
    whom: &Whom,
    idea: &Idea,
    text: &str,
) -> Result<Option<MessageId>, SurfaceError> {
    let Some(begun) = whom.begun_before else {
        return Ok(None);
    };
    let messages = Query::new().equal("session", idea.session);
    let messages = surface.services.store.list::<Message>(messages).await?;
    let said = messages.iter().find(|message| {
        message.author == Author::Person && message.at >= begun && message.text == text.trim()
    });
    Ok(said.map(|message| message.id))
}

/// Returns the idea that an earlier try had begun with these words, and what they are there.
async fn begun_already(
    surface: &Surface,
    whom: &Whom,
    text: &str,
) -> Result<Option<(Slug, MessageId)>, SurfaceError> {
    let store = &surface.services.store;
    let Some(begun) = whom.begun_before else {
        return Ok(None);
    };
    for idea in store.list::<Idea>(Query::new()).await? {
        let is_theirs = idea.user == whom.person.name && idea.created_at >= begun;
        if !is_theirs {
            continue;
        }
        if let Some(message) = said_already(surface, whom, &idea, text).await? {
            return Ok(Some((idea.slug.clone(), message)));
        }
    }
    Ok(None)
}

/// Shows what is answered to whoever waits for it, and its words while they come, until the process stops.
pub(crate) async fn follow(surface: Surface, stop: CancellationToken) {
    let mut live = surface.services.bus.live().subscribe();
    let mut drafts = Drafts::default();
    loop {
        let rest = match answers(&surface, &mut drafts).await {
            Ok(rest) => rest,
            Err(error) => {
                warn!("answers of conversations wait: {error}");
                IDLE
            }
        };
        let clock = &surface.services.clock;
        let wait = clock.sleep(rest);
        tokio::pin!(wait);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = &mut wait => break,
                Some(event) = live.next() => {
                    let first = !drafts.are_coming();
                    drafts.hear(&event, clock.now());
                    // Whoever waits for them should not wait for the end of an idle look too.
                    if first && drafts.are_coming() && rest > LOOK {
                        break;
                    }
                }
            }
        }
    }
}

/// What became of a message that was to be shown in a chat.
#[derive(Debug, Clone, Copy)]
enum Arrival {
    /// It is there, or Telegram will never take it.
    Shown,
    /// It is tried again after this long.
    Later(Duration),
}

/// Shows the answers that there are, and the words of those that come; returns when to look again.
async fn answers(surface: &Surface, drafts: &mut Drafts) -> Result<Duration, SurfaceError> {
    let store = &surface.services.store;
    let turned = Query::new().equal("listens", true);
    let mut phones = store.list::<Phone>(turned).await?;
    let awaited: Vec<MessageId> = phones.iter().filter_map(|phone| phone.awaits).collect();
    drafts.keep(&awaited, surface.services.clock.now());
    let mut rest = if drafts.are_coming() { LOOK } else { IDLE };
    // Where people share a chat, an answer comes there once: to whoever it answers.
    phones.sort_by_key(|phone| phone.awaits.is_none());
    let mut arrivals: HashMap<(i64, MessageId), Arrival> = HashMap::new();
    for phone in phones {
        let chat = ropewalk_desk::phones::chat(store, &surface.people, &phone.person).await?;
        let (Some(slug), Some(chat)) = (&phone.idea, chat) else {
            continue;
        };
        let Some(idea) = store.get::<Idea>(slug.as_str()).await? else {
            continue;
        };
        let Some(answer) = next(surface, &phone, &idea).await? else {
            if phone.awaits.is_some() {
                rest = rest.min(LOOK);
            }
            drafts.show(surface, &phone, chat).await?;
            continue;
        };
        let arrival = match arrivals.get(&(chat, answer.id)) {
            Some(arrival) => *arrival,
            None => show(surface, &phone, chat, (&idea, &answer)).await?,
        };
        arrivals.insert((chat, answer.id), arrival);
        match arrival {
            Arrival::Shown => {
                pass(surface, &phone, &answer).await?;
                // Another one may stand behind it.
                rest = rest.min(LOOK);
            }
            Arrival::Later(after) => rest = rest.min(after),
        }
    }
    Ok(rest)
}

/// Returns the first message of a conversation that its model wrote and a phone does not show yet.
async fn next(
    surface: &Surface,
    phone: &Phone,
    idea: &Idea,
) -> Result<Option<Message>, SurfaceError> {
    let mut messages = Query::new().equal("session", idea.session);
    if let Some(since) = phone.shown.and_then(made_at) {
        messages = messages.at_least("at", since - PUT_BACK);
    }
    let messages = surface.services.store.list::<Message>(messages).await?;
    let said = messages.into_iter().map(Versioned::into_inner);
    Ok(said
        .filter(|message| message.author == Author::Agent && phone.shown < Some(message.id))
        .min_by_key(|message| message.id))
}

/// Returns when an id was made.
fn made_at(id: MessageId) -> Option<DateTime<Utc>> {
    let (seconds, nanoseconds) = id.0.get_timestamp()?.to_unix();
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)
}

/// Shows an answer in a chat.
async fn show(
    surface: &Surface,
    phone: &Phone,
    chat: i64,
    (idea, answer): (&Idea, &Message),
) -> Result<Arrival, SurfaceError> {
    let Some(text) = beside_question(surface, &phone.person, idea, answer).await? else {
        return Ok(Arrival::Later(LOOK));
    };
    match drafts::finish(surface, phone, (chat, answered(phone, answer)), &text).await {
        Ok(()) => Ok(Arrival::Shown),
        Err(DraftError::Store(failed)) => Err(failed),
        Err(DraftError::Api(error @ (ApiError::Later { .. } | ApiError::Unanswered(_)))) => {
            Ok(Arrival::Later(error.rest(IDLE)))
        }
        Err(DraftError::Api(ApiError::Refused(reason))) => {
            warn!("an answer did not reach chat {chat}: {reason}");
            Ok(Arrival::Shown)
        }
    }
}

/// Returns what a message of the model answers.
fn answered(phone: &Phone, answer: &Message) -> MessageId {
    let answers = answer.answers.or(phone.awaits).or(phone.shown);
    answers.unwrap_or(answer.id)
}

/// Writes down that an answer is shown.
async fn pass(surface: &Surface, phone: &Phone, answer: &Message) -> Result<(), SurfaceError> {
    let (idea, answers) = (phone.idea.clone(), answered(phone, answer));
    let context = surface.context();
    let passed = phones::change(&context, &phone.person, |phone| {
        if phone.draft.is_some_and(|draft| draft.answers == answers) {
            drafts::leave(phone);
        }
        // Somebody who turned to another idea meanwhile has seen nothing of that.
        if phone.idea == idea && phone.shown < Some(answer.id) {
            phone.shown = Some(answer.id);
            // Somebody who wrote meanwhile waits for the next answer.
            phone.awaits = phone.awaits.filter(|awaits| answers < *awaits);
        }
    });
    Ok(passed.await?)
}

/// Returns what is left of an answer without the question that it ends in, where that comes as a notice; none while
/// nobody knows whom it reaches.
async fn beside_question(
    surface: &Surface,
    person: &UserSlug,
    idea: &Idea,
    answer: &Message,
) -> Result<Option<String>, SurfaceError> {
    let store = &surface.services.store;
    let whole = answer.text.trim_end();
    let of_idea = Query::new().equal("idea", idea.slug.as_str());
    let asked = store.list::<Question>(of_idea).await?;
    let about = About::Session {
        session: idea.session,
    };
    let is_asked_by_it = |question: &&Versioned<Question>| {
        question.about == about
            && whole.ends_with(question.text.trim())
            && (question.asked_at - answer.at).abs() < TOGETHER
    };
    let Some(question) = asked.iter().find(is_asked_by_it) else {
        return Ok(Some(whole.to_owned()));
    };
    let now = surface.services.clock.now();
    let put = Query::new()
        .equal("question", question.id)
        .equal("port", port::NAME);
    let put = store.list::<Notice>(put).await?;
    if put.is_empty() && now - question.asked_at < UNHEARD {
        return Ok(None);
    }
    // One that waits for the morning is asked here and now.
    let comes = |notice: &Versioned<Notice>| {
        notice.receiver == person.as_str() && (notice.due <= now || !notice.messages.is_empty())
    };
    let said = if put.iter().any(comes) {
        whole.strip_suffix(question.text.trim()).unwrap_or(whole)
    } else {
        whole
    };
    Ok(Some(said.trim_end().to_owned()))
}
