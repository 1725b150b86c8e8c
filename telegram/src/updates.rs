//! Does what somebody did in a chat, once.

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_desk::phones::{self, LinkError};
use ropewalk_runtime::failpoint;
use ropewalk_schemas::payload::UpdateKept;
use ropewalk_schemas::phone::{ChatUser, Phone, Reply, UpdateRecord};
use ropewalk_schemas::{Payload, Subject, UserSlug, clip};
use tracing::{debug, info};

use crate::api::{Interaction, Update};
use crate::commands::{self, Command, TextInput};
use crate::surface::{Answer, PressAnswer, Surface, SurfaceError, Whom};
use crate::{files, orders, press, styled, talk};

/// How many letters of what a press came to are shown; Telegram takes 200.
const LINE: usize = 190;
/// How long numbers of updates can be compared.
const NUMBERED: TimeDelta = TimeDelta::days(6);

/// Where an update comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Telegram brings it.
    Telegram,
    /// It was kept until it had its turn.
    Kept,
}

impl Origin {
    /// Returns where the update is written down that came last from there.
    pub(crate) const fn last(self, phone: &mut Phone) -> &mut Option<UpdateRecord> {
        match self {
            Self::Telegram => &mut phone.begun,
            Self::Kept => &mut phone.turn,
        }
    }
}

/// Takes an update of somebody who is known; all others get no answer. One that brings a file is kept, and so is what its sender
/// does behind it, but for what stops something: what one person does is done in its order, and nobody waits for the file of somebody else.
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
    let name = person.name.clone();
    let mut phone = phones::of(store, &name).await?;
    let now = surface.services.clock.now();
    let last = *origin.last(&mut phone);
    let last = last.filter(|begun| begun.bot == surface.bot);
    let is_over = |begun: UpdateRecord| match origin {
        Origin::Telegram => is_done(begun, update.id, now),
        // One that was given up, and is handled again, comes behind others that are done.
        Origin::Kept => begun.done && begun.update == update.id,
    };
    let kept = phone.kept.filter(|kept| kept.bot == surface.bot);
    if last.is_some_and(is_over) {
        if origin == Origin::Telegram && kept.is_some_and(|kept| kept.update == update.id) {
            // A death came between keeping and that.
            surface.answer_without_words(update).await;
        }
        return Ok(());
    }
    let waits = files::brings_one(&update.did) || (kept.is_some() && !stops(&update.did));
    if origin == Origin::Telegram && waits {
        return keep(surface, &name, update).await;
    }
    let again = last.filter(|begun| begun.update == update.id);
    let begun = again.unwrap_or(UpdateRecord {
        bot: surface.bot,
        update: update.id,
        at: now,
        done: false,
    });
    let context = surface.context();
    if again.is_none() {
        let begins = |phone: &mut Phone| {
            *origin.last(phone) = Some(begun);
            if origin == Origin::Telegram && phone.kept.is_some() && stops(&update.did) {
                phone.stopped = Some(begun);
            }
        };
        phones::change(&context, &name, begins).await?;
    }
    let stopped = phone.stopped.filter(|stopped| stopped.bot == surface.bot);
    let is_overtaken = origin == Origin::Kept && stopped.is_some_and(|one| one.update > update.id);
    if is_overtaken && sets_going(&update.did) {
        return overtaken(surface, (&name, from), (origin, begun)).await;
    }
    let whom = Whom {
        person,
        chat: from.chat,
        begun_before: again.map(|begun| begun.at),
    };
    perform(surface, &whom, &update.did, Some((origin, begun))).await
}

/// Says whether something is to stop, which waits behind no file.
fn stops(did: &Interaction) -> bool {
    let Interaction::Wrote {
        text,
        forwarded: false,
        ..
    } = did
    else {
        return false;
    };
    matches!(
        commands::read(text),
        TextInput::Order(Command::Stop | Command::StopAll, _)
    )
}

/// Says whether something may set work going that was stopped meanwhile.
fn sets_going(did: &Interaction) -> bool {
    match did {
        Interaction::Pressed { .. } => true,
        Interaction::Wrote { text, .. } => matches!(
            commands::read(text),
            TextInput::Order(
                Command::Execute
                    | Command::Land
                    | Command::Resume
                    | Command::ResumeAll
                    | Command::Retry,
                _
            )
        ),
        _ => false,
    }
}

/// Lets what was said before a stop, and has its turn after it, come to nothing but a line.
async fn overtaken(
    surface: &Surface,
    (person, from): (&UserSlug, ChatUser),
    (origin, begun): (Origin, UpdateRecord),
) -> Result<(), SurfaceError> {
    let done = UpdateRecord {
        done: true,
        ..begun
    };
    let told = "You stopped something after you did this, so it was not done; do it again if you still want it.";
    let reply = surface.reply(from.chat, told.to_owned());
    let ends = |phone: &mut Phone| {
        *origin.last(phone) = Some(done);
        forget_kept(phone, done);
        phone.replies.push(reply.clone());
    };
    phones::change(&surface.context(), person, ends).await?;
    surface.wake.notify_one();
    Ok(())
}

/// Keeps an update until it has its turn among those of its person, see `left.rs`; the phone of a press does not wait so long.
async fn keep(surface: &Surface, person: &UserSlug, update: &Update) -> Result<(), SurfaceError> {
    let context = surface.context();
    let payload = Payload::UpdateKept(UpdateKept {
        bot: surface.bot,
        update_id: update.id,
        update: serde_json::to_value(update).unwrap_or_default(),
    });
    // Those of one subject are delivered one after the other.
    let event = context.event(Subject::phone(person), payload);
    let kept = UpdateRecord {
        bot: surface.bot,
        update: update.id,
        at: context.now(),
        done: false,
    };
    let keeps = |phone: &mut Phone| {
        phone.kept = Some(kept);
        // Telegram need not bring it again.
        phone.begun = Some(UpdateRecord { done: true, ..kept });
    };
    phones::change_and_tell(&context, person, keeps, &[event]).await?;
    surface.answer_without_words(update).await;
    Ok(())
}

/// Does what somebody did, and writes down that it is done where it was `begun`.
pub(crate) async fn perform(
    surface: &Surface,
    whom: &Whom,
    did: &Interaction,
    begun: Option<(Origin, UpdateRecord)>,
) -> Result<(), SurfaceError> {
    failpoint!("telegram.update.begun");
    let update = begun.map(|(_, begun)| begun.update);
    let outcome = act(surface, whom, did, update).await?;
    failpoint!("telegram.update.acted");
    let done = begun.map(|(origin, begun)| {
        (
            origin,
            UpdateRecord {
                done: true,
                ..begun
            },
        )
    });
    // Together: words that a death brings again must find the choice that they were for, or they would begin an idea, and a
    // press the offer that it decides. What is answered is neither lost nor said of an offer that another one replaced.
    let context = surface.context();
    phones::change(&context, &whom.person.name, |phone| {
        if let Some((origin, done)) = done {
            *origin.last(phone) = Some(done);
            forget_kept(phone, done);
        }
        phone.words_for = phone.words_for.take().filter(|_| !outcome.spent);
        let is_open = |nonce: &String| outcome.decided.as_ref() != Some(nonce);
        phone.landing = phone.landing.take().filter(|shown| is_open(&shown.nonce));
        phone.starting = phone.starting.take().filter(|shown| is_open(&shown.nonce));
        phone.replies.extend(outcome.replies.iter().cloned());
        let late = outcome.late.as_ref();
        let late = late.filter(|late| !waits(phone, late)).cloned();
        phone.replies.extend(late);
    })
    .await?;
    surface.wake.notify_one();
    Ok(())
}

/// Lets nothing wait any more behind an update that is `done`, where it is the last that was kept.
pub(crate) fn forget_kept(phone: &mut Phone, done: UpdateRecord) {
    let is_last = |kept: &UpdateRecord| (done.bot, done.update) == (kept.bot, kept.update);
    phone.kept = phone.kept.filter(|kept| !is_last(kept));
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
    /// What a press came to that was answered without words before.
    late: Option<Reply>,
}

/// Says whether the same is to be said already: who presses many buttons that mean nothing hears that once.
fn waits(phone: &Phone, reply: &Reply) -> bool {
    let mut waiting = phone.replies.iter();
    waiting.any(|other| other.chat == reply.chat && other.text == reply.text)
}

/// Returns whether an update comes a second time: one is begun only after those before it are done. Numbers grow, but
/// begin anew where nothing was said for a week.
fn is_done(begun: UpdateRecord, update: i64, now: DateTime<Utc>) -> bool {
    let is_over = begun.update > update || (begun.update == update && begun.done);
    is_over && now - begun.at < NUMBERED
}

/// Does what somebody did.
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
            Some(files::sent(surface, whom, file, words).await?.into())
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
                    Some(worded.told.into())
                }
                None => talk::say(surface, whom, text).await?.map(Into::into),
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

/// Links whoever sends a code in a chat with nobody else; says nothing to anybody without one.
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
        return Ok(());
    };
    let TextInput::Start(code) = commands::read(text) else {
        return Ok(());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_comes_a_second_time_unless_numbers_began_anew() {
        let at = DateTime::UNIX_EPOCH;
        let begun = |done| UpdateRecord {
            bot: 1,
            update: 7,
            at,
            done,
        };
        for (begun, update, days, expected) in [
            (begun(true), 7, 0, true),
            (begun(true), 6, 5, true),
            (begun(true), 8, 0, false),
            (begun(false), 7, 0, false),
            (begun(false), 6, 0, true),
            (begun(true), 3, 6, false),
        ] {
            let now = at + TimeDelta::days(days);
            assert_eq!(
                is_done(begun, update, now),
                expected,
                "{begun:?} {update} {days}"
            );
        }
    }
}
