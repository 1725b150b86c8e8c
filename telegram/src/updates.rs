//! Does what somebody did in a chat, once.

mod decide;

use decide::{UpdateArrival, UpdateCourse, UpdateTurn};
use ropewalk_desk::people::Person;
use ropewalk_desk::phones::{self, LinkError};
use ropewalk_runtime::failpoint;
use ropewalk_schemas::payload::UpdateKept;
use ropewalk_schemas::phone::{ChatUser, Phone, Reply, UpdateRecord};
use ropewalk_schemas::{Payload, Subject, UserSlug, clip};
use serde_json::Value;
use tracing::{debug, info, warn};

use crate::api::{Interaction, Update};
use crate::commands::{self, TextInput};
use crate::surface::{Answer, PressAnswer, Surface, SurfaceError, Whom};
use crate::{files, keyboard, orders, press, styled, talk};

pub(crate) use decide::{Origin, has_gone_on, is_stopped};

/// How many letters of what a press came to are shown; Telegram takes 200.
const LINE: usize = 190;
/// What is said to who was somebody in a chat and is nobody by now.
const NOBODY_HEARS: &str = "Nobody hears you here: the project calls nobody by the name that this chat was linked to any more. Whoever \
     runs it links the chat anew; what you do here before comes to nothing, so do it again then.";

/// Takes an update of somebody who is known; all others get no answer, but for who was somebody there.
pub(crate) async fn take(
    surface: &Surface,
    update: &Update,
    origin: Origin,
) -> Result<(), SurfaceError> {
    let Some(from) = update.from else {
        return Ok(());
    };
    let store = &surface.services.store;
    let Some(person) = phones::whose(store, &surface.people, from).await? else {
        return introduced(surface, from, &update.did).await;
    };
    let phone = phones::of(store, &person.name).await?;
    let arrival = UpdateArrival {
        update,
        origin,
        bot: surface.bot,
        now: surface.services.clock.now(),
    };
    match decide::course(arrival, phone.updates) {
        UpdateCourse::Over { is_kept } => {
            if is_kept {
                surface.answer_without_words(update).await;
            }
            Ok(())
        }
        UpdateCourse::Keep => keep(surface, &person.name, update).await,
        UpdateCourse::Perform(turn) => {
            begin(surface, (person, from.chat), (update, origin), turn).await
        }
    }
}

/// Begins what somebody did, where no try before this one did, and does it.
async fn begin(
    surface: &Surface,
    (person, chat): (Person, i64),
    (update, origin): (&Update, Origin),
    turn: UpdateTurn,
) -> Result<(), SurfaceError> {
    let UpdateTurn {
        record,
        is_first,
        is_stopped,
    } = turn;
    if is_first {
        let context = surface.context();
        let begins = |phone: &mut Phone| origin.begin(&mut phone.updates, record, &update.did);
        phones::change(&context, &person.name, begins).await?;
    }
    let whom = Whom {
        person,
        chat,
        begun_before: (!is_first).then_some(record.at),
        has_stopped: is_stopped,
        // What is tried again here waits for nothing that was begun behind it.
        has_gone_on: false,
    };
    perform(surface, &whom, &update.did, Some((origin, record))).await
}

/// Keeps an update until it has its turn among those of its person, see `left.rs`; the phone of a press does not wait so long.
async fn keep(surface: &Surface, person: &UserSlug, update: &Update) -> Result<(), SurfaceError> {
    let context = surface.context();
    let payload = Payload::UpdateKept(UpdateKept {
        bot: surface.bot,
        update_id: update.id,
        update: written(update),
    });
    // Those of one subject are delivered one after the other.
    let event = context.event(Subject::phone(person), payload);
    let kept = UpdateRecord {
        bot: surface.bot,
        update: update.id,
        at: context.now(),
        done: false,
    };
    let keeps = |phone: &mut Phone| decide::keep(&mut phone.updates, kept);
    phones::change_and_tell(&context, person, keeps, &[event]).await?;
    surface.answer_without_words(update).await;
    Ok(())
}

/// Returns what an event says of an update. Others read events, so that nothing stands there by which a button is pressed;
/// `press::reveal` finds that again.
pub(crate) fn written(update: &Update) -> Value {
    let mut update = update.clone();
    if let Interaction::Pressed { data, .. } = &mut update.did {
        *data = keyboard::concealed(data);
    }
    serde_json::to_value(&update).unwrap_or_default()
}

/// Does what somebody did, and writes down that it is done where it was `begun`.
pub(crate) async fn perform(
    surface: &Surface,
    whom: &Whom,
    did: &Interaction,
    begun: Option<(Origin, UpdateRecord)>,
) -> Result<(), SurfaceError> {
    failpoint!("telegram.update.begun");
    let update = begun.map(|(_, record)| record.update);
    let outcome = act(surface, whom, did, update).await?;
    failpoint!("telegram.update.acted");
    // Together: words that a death brings again must find the choice that they were for, or they would begin an idea, and a
    // press the offer that it decides. What is answered is neither lost nor said of an offer that another one replaced.
    let context = surface.context();
    phones::change(&context, &whom.person.name, |phone| {
        if let Some((origin, record)) = begun {
            origin.end(&mut phone.updates, record);
        }
        phone.words_for = phone.words_for.take().filter(|_| !outcome.spent);
        if let Some(nonce) = &outcome.decided {
            phone.close_offer(nonce);
        }
        phone.replies.extend(outcome.replies.iter().cloned());
        let late = outcome.late.as_ref();
        let late = late.filter(|late| !waits(phone, late)).cloned();
        phone.replies.extend(late);
    })
    .await?;
    surface.wake.notify_one();
    Ok(())
}

/// What an update comes to.
#[derive(Default)]
struct UpdateOutcome {
    /// Whether it was the words that a choice waited for.
    spent: bool,
    /// The nonce of the offer that it decided.
    decided: Option<String>,
    /// What is answered.
    replies: Vec<Reply>,
    /// What is answered but where the same is to be said already, such as what a press came to that was answered without words.
    late: Option<Reply>,
}

/// Says whether the same is to be said already: who presses many buttons that mean nothing hears that once.
fn waits(phone: &Phone, reply: &Reply) -> bool {
    let mut waiting = phone.replies.iter();
    waiting.any(|other| other.chat == reply.chat && other.text == reply.text)
}

/// Does what somebody did, unless it is for somebody else, or they have stopped it since.
async fn act(
    surface: &Surface,
    whom: &Whom,
    did: &Interaction,
    update: Option<i64>,
) -> Result<UpdateOutcome, SurfaceError> {
    if let Interaction::Wrote { text, .. } = did
        && surface.is_for_another(text).await?
    {
        return Ok(UpdateOutcome::default());
    }
    if whom.has_stopped
        && let Some(told) = undone(surface, whom, did).await?
    {
        return Ok(UpdateOutcome {
            late: Some(surface.reply(whom.chat, told)),
            ..UpdateOutcome::default()
        });
    }
    answer(surface, whom, did, update).await
}

/// Says of what somebody did before they stopped something that it comes to nothing, and how to do it again; nothing of what
/// may be done all the same, since it sets nothing going that was stopped: an answer without consequences counts, whether it
/// is words or a button.
async fn undone(
    surface: &Surface,
    whom: &Whom,
    did: &Interaction,
) -> Result<Option<String>, SurfaceError> {
    let since = "You asked to stop something after you";
    match did {
        Interaction::Pressed { data, .. } => {
            let again = press::again(surface, whom, data).await?;
            Ok(again.map(|again| {
                format!(
                    "{since} pressed a button, so that came to nothing. Press it again if you still want it; {again}."
                )
            }))
        }
        Interaction::Wrote {
            text,
            reply_to,
            forwarded: false,
            ..
        } => match commands::read(text) {
            TextInput::Order(command, _) if command.sets_going() => {
                let sent = text.split_whitespace().next().unwrap_or_default();
                Ok(Some(format!(
                    "{since} sent `{sent}`, so it was not done. Send it again if you still want it."
                )))
            }
            TextInput::Words => {
                let decides = press::decides(surface, whom, *reply_to).await?;
                Ok(decides.then(|| {
                    format!(
                        "{since} sent words for the choice that you pressed, so they came to nothing. Send them again if you still want it; it waits for them."
                    )
                }))
            }
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Does what somebody did.
async fn answer(
    surface: &Surface,
    whom: &Whom,
    did: &Interaction,
    update: Option<i64>,
) -> Result<UpdateOutcome, SurfaceError> {
    let mut spent = false;
    let told = match did {
        Interaction::Pressed {
            press: id,
            message,
            data,
        } => {
            let pressed = press::pressed(surface, whom, *message, data).await?;
            return Ok(told_of(surface, whom, pressed, (id, update)).await);
        }
        Interaction::Wrote {
            forwarded: true, ..
        }
        | Interaction::Sent {
            forwarded: true, ..
        } => Some(
            "What somebody else wrote is not taken; write it yourself."
                .to_owned()
                .into(),
        ),
        // The store would keep another text than was sent.
        Interaction::Wrote { text, .. } | Interaction::Sent { words: text, .. }
            if text.contains('\0') =>
        {
            Some(
                "That holds the letter U+0000, which is no text; nothing was taken."
                    .to_owned()
                    .into(),
            )
        }
        Interaction::Sent { file, words, .. } => {
            Some(files::sent(surface, whom, file, words).await?)
        }
        Interaction::Wrote { text, reply_to, .. } => match commands::read(text) {
            TextInput::Start(_) => Some(orders::help().into()),
            TextInput::Order(command, rest) => {
                Some(orders::carry_out(surface, whom, command, rest).await?)
            }
            TextInput::Unknown(name) => {
                let name = clip::letters(name, commands::SAID_BACK);
                let told = format!("There is no /{name}; /help lists what there is.");
                Some(Answer::from(told))
            }
            TextInput::Words => match press::worded(surface, whom, *reply_to, text).await? {
                Some(worded) => {
                    spent = worded.of_choice;
                    Some(worded.told)
                }
                None => talk::say(surface, whom, text).await?,
            },
        },
        Interaction::Other => Some("Only text and files are taken here.".to_owned().into()),
    };
    let reply = told.map(|told| surface.reply(whom.chat, told));
    Ok(UpdateOutcome {
        spent,
        decided: None,
        replies: reply.into_iter().collect(),
        late: None,
    })
}

/// Says what a press came to: on the phone that waits for it, else in the chat, unless another reply tells it there.
async fn told_of(
    surface: &Surface,
    whom: &Whom,
    pressed: PressAnswer,
    (press, update): (&str, Option<i64>),
) -> UpdateOutcome {
    let PressAnswer {
        line,
        reply,
        decided,
    } = pressed;
    let mut late = None;
    if update.is_none_or(|update| surface.presses.came_to_something(update)) {
        let line = styled::line(&line);
        let line = clip::letters(&line, LINE);
        if let Err(error) = surface.api.show(press, &line).await {
            debug!("nobody saw what a press came to: {error}");
        }
    } else if reply.is_none() {
        late = Some(surface.reply(whom.chat, line));
    }
    UpdateOutcome {
        spent: false,
        decided,
        replies: reply.into_iter().collect(),
        late,
    }
}

/// Links whoever sends a code in a chat with nobody else; says nothing to anybody without one, but to those who were somebody there
/// that nobody hears them.
async fn introduced(
    surface: &Surface,
    from: ChatUser,
    did: &Interaction,
) -> Result<(), SurfaceError> {
    let Interaction::Wrote {
        text,
        private: true,
        forwarded: false,
        ..
    } = did
    else {
        return unheard(surface, from).await;
    };
    let TextInput::Start(code) = commands::read(text) else {
        return unheard(surface, from).await;
    };
    if surface.is_for_another(text).await? {
        return Ok(());
    }
    match phones::link(&surface.context(), &surface.people, code, from).await {
        Ok(person) => {
            info!("chat {} is linked to `{}`", from.chat, person.name);
            let hello = format!(
                "This chat is linked to {}.\n\n{}",
                person.name,
                orders::help()
            );
            surface.say(&person.name, from.chat, hello).await
        }
        Err(LinkError::Code | LinkError::Unknown(_)) => {
            debug!("somebody without a valid code wrote in chat {}", from.chat);
            Ok(())
        }
        Err(LinkError::Read(error)) => Err(error.into()),
        Err(LinkError::Commit(error)) => Err(error.into()),
    }
}

/// Says to somebody whose chat was linked, and who is nobody by now, that what they do there is not done. Who was never anybody
/// hears nothing.
pub(crate) async fn unheard(surface: &Surface, from: ChatUser) -> Result<(), SurfaceError> {
    let told = surface.reply(from.chat, NOBODY_HEARS.to_owned());
    if phones::tell_unheard(&surface.context(), from, &told).await? {
        warn!(
            "nobody hears chat {}, whose person is nobody in `[people]`; `ropewalk people link NAME` makes a code for it",
            from.chat
        );
        surface.wake.notify_one();
    }
    Ok(())
}
