//! Waits for what people do in Telegram, in one process at a time, and lets each be done before it is forgotten there.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_desk::people::People;
use ropewalk_desk::phones::{self, LinkError};
use ropewalk_orchestrator::Services;
use ropewalk_orchestrator::notices::Turn;
use ropewalk_runtime::{Supervisor, failpoint, secrets};
use ropewalk_schemas::phone::{ChatUser, UpdateRecord};
use ropewalk_schemas::{ComponentName, InvalidId};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::api::{Interaction, Update};
use crate::client::TelegramClient;
use crate::commands::{self, TextInput};
use crate::surface::{Answer, CHANNEL, Surface, SurfaceError, Whom};
use crate::{files, orders, press, talk};

/// How long the bot rests when Telegram or the store does not answer.
const REST: Duration = Duration::from_secs(3);
/// How often an update is tried that cannot be done, before it is left.
const TRIES: u32 = 5;
/// How many letters of what a press came to are shown; Telegram takes 200.
const LINE: usize = 190;
/// How long numbers of updates can be compared.
const NUMBERED: TimeDelta = TimeDelta::days(6);
/// How long whoever is not the poller waits to become it.
const WAIT: Duration = Duration::from_secs(5);
/// So long it rests after a crash.
const CRASHED: Duration = Duration::from_mins(1);
/// What it is called where it crashes.
const NAME: &str = "telegram";

/// What a bot is made of.
pub struct Parts {
    /// How Telegram is asked.
    pub client: TelegramClient,
    /// Everybody who works on the project.
    pub people: People,
    /// What every part works with.
    pub services: Services,
    /// The duty of polling, which one process at a time has.
    pub turn: Turn,
    /// The providers of the models that build.
    pub builds_with: Vec<String>,
    /// The state directory, which holds the folders of ideas.
    pub state: PathBuf,
}

/// The bot: what people say and press becomes verbs.
pub struct Bot {
    surface: Surface,
    turn: Turn,
}

impl Bot {
    /// Returns a bot that does nothing yet.
    pub fn new(parts: Parts) -> Result<Self, InvalidId> {
        let surface = Surface {
            services: parts.services,
            people: parts.people,
            bot: parts.client.id(),
            api: Arc::new(parts.client),
            builds_with: parts.builds_with,
            state: parts.state,
            source: ComponentName::parse(CHANNEL)?,
        };
        Ok(Self {
            surface,
            turn: parts.turn,
        })
    }

    /// Serves until the process stops.
    pub fn serve(self, supervisor: &Supervisor) {
        let stop = supervisor.shutdown().soft().clone();
        supervisor.spawn(NAME, async move {
            let held = loop {
                if let Some(held) = (self.turn)() {
                    break held;
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.surface.services.clock.sleep(WAIT) => {}
                }
            };
            while !stop.is_cancelled() {
                let follows = talk::follow(self.surface.clone(), stop.clone());
                let served = Box::pin(async { tokio::join!(poll(&self.surface, &stop), follows) });
                // Losing the phones changes nothing about the work.
                let Err(crash) = Supervisor::guard(NAME, served).await else {
                    break;
                };
                error!("nobody is heard over Telegram for a while: {crash}");
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = self.surface.services.clock.sleep(CRASHED) => {}
                }
            }
            drop(held);
        });
    }
}

async fn poll(surface: &Surface, stop: &CancellationToken) {
    let (mut offset, mut offered) = (0, false);
    let mut away: Option<String> = None;
    while !stop.is_cancelled() {
        if !offered {
            offered = surface.api.offer(&commands::menu()).await.is_ok();
        }
        let updates = tokio::select! {
            () = stop.cancelled() => return,
            updates = surface.api.updates(offset) => updates,
        };
        let rest = match updates {
            Ok(updates) => {
                away = None;
                for update in updates {
                    settle(surface, &update).await;
                    // Asked for from here on, Telegram forgets what is done.
                    offset = update.id + 1;
                }
                continue;
            }
            Err(error) => {
                let reason = error.to_string();
                // Told once for as long as it lasts.
                if away.as_ref() != Some(&reason) {
                    warn!("nobody is heard over Telegram: {reason}");
                    away = Some(reason);
                }
                error.rest(REST)
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = surface.services.clock.sleep(rest) => {}
        }
    }
}

/// Does what somebody did, again while the store does not answer.
async fn settle(surface: &Surface, update: &Update) {
    for _ in 0..TRIES {
        match Supervisor::guard(NAME, Box::pin(take(surface, update))).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => warn!("update {} waits: {error}", update.id),
            // What it crashed on it crashes on again.
            Err(crash) => return error!("update {} is left: {crash}", update.id),
        }
        surface.services.clock.sleep(REST).await;
    }
    warn!("update {} is left: it could not be done", update.id);
}

/// Takes an update of somebody who is known; all others get no answer.
async fn take(surface: &Surface, update: &Update) -> Result<(), SurfaceError> {
    let Some(from) = update.from else {
        return Ok(());
    };
    let store = &surface.services.store;
    let Some(person) = phones::whose(store, &surface.people, from).await? else {
        return introduced(surface, from, &update.did).await;
    };
    let name = person.name.clone();
    let phone = phones::of(store, &name).await?;
    let now = surface.services.clock.now();
    let last = phone.begun.filter(|begun| begun.bot == surface.bot);
    if last.is_some_and(|begun| is_done(begun, update.id, now)) {
        return Ok(());
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
        phones::change(&context, &name, |phone| phone.begun = Some(begun)).await?;
    }
    let whom = Whom {
        person,
        chat: from.chat,
    };
    failpoint!("telegram.update.begun");
    let spent = act(surface, &whom, &update.did).await?;
    failpoint!("telegram.update.acted");
    let done = UpdateRecord {
        done: true,
        ..begun
    };
    // Together: words that a death brings again must find the choice that they were for, or they would begin an idea.
    let recorded = phones::change(&context, &name, |phone| {
        phone.begun = Some(done);
        phone.words_for = phone.words_for.take().filter(|_| !spent);
    });
    Ok(recorded.await?)
}

/// Returns whether an update comes a second time: one is begun only after those before it are done. Numbers grow, but
/// begin anew where nothing was said for a week.
fn is_done(begun: UpdateRecord, update: i64, now: DateTime<Utc>) -> bool {
    let is_over = begun.update > update || (begun.update == update && begun.done);
    is_over && now - begun.at < NUMBERED
}

/// Does what somebody did; returns whether it was the words that a choice waited for.
async fn act(surface: &Surface, whom: &Whom, did: &Interaction) -> Result<bool, SurfaceError> {
    let mut spent = false;
    let told = match did {
        Interaction::Pressed {
            press: id,
            message,
            data,
        } => {
            let line = press::pressed(surface, whom, *message, data).await?;
            let line: String = secrets::strike(&line).chars().take(LINE).collect();
            if let Err(error) = surface.api.show(id, &line).await {
                debug!("nobody saw what a press came to: {error}");
            }
            return Ok(false);
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
        Interaction::Sent { file, words, .. } => {
            Some(files::sent(surface, whom, file, words).await?.into())
        }
        Interaction::Wrote { text, reply_to, .. } => match commands::read(text) {
            TextInput::Start(_) => Some(orders::help().into()),
            TextInput::Order(command, rest) => {
                Some(orders::carry_out(surface, whom, command, rest).await?)
            }
            TextInput::Unknown(name) => {
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
    if let Some(told) = told {
        surface.say(whom.chat, told).await;
    }
    Ok(spent)
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
    match phones::link(&surface.context(), &surface.people, code, from).await {
        Ok(person) => {
            info!("chat {} is linked to `{}`", from.chat, person.name);
            let hello = format!(
                "This chat is linked to {}.\n\n{}",
                person.name,
                orders::help()
            );
            surface.say(from.chat, hello).await;
            Ok(())
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
