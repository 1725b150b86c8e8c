//! Lets what somebody did in a chat be done before Telegram forgets it; what cannot be done is handed on to `left.rs`.

use std::slice;
use std::time::Duration;

use ropewalk_desk::phones;
use ropewalk_runtime::{Supervisor, idle};
use ropewalk_schemas::payload::UpdateLeft;
use ropewalk_schemas::phone::{Phone, UpdateRecord};
use ropewalk_schemas::{Payload, Subject};
use ropewalk_store::ChangeSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::api::Update;
use crate::surface::{CHANNEL, Surface, SurfaceError};
use crate::updates::{Origin, take, unheard, written};

/// How long the bot rests when Telegram or the store does not answer.
pub(crate) const REST: Duration = Duration::from_secs(3);
/// How often an update is tried that cannot be done, before it is handed on.
const TRIES: u32 = 5;

/// What is added where what was to be said before had to go.
const GONE: &str = " What was still to be said before that is gone: it was more than can be kept.";

/// Does what somebody did, again while that fails, and hands it on when it fails on. Returns whether Telegram may forget
/// it: not where the process stops before one or the other is committed.
pub(crate) async fn settle(
    surface: &Surface,
    update: &Update,
    origin: Origin,
    stop: &CancellationToken,
) -> bool {
    let mut why = String::new();
    for _ in 0..TRIES {
        match Supervisor::guard(CHANNEL, Box::pin(take(surface, update, origin))).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => {
                warn!("update {} waits: {error}", update.id);
                why = error.to_string();
                // Whoever did something behind it, such as a stop, waits for no try that comes to the same.
                if error.is_permanent() {
                    break;
                }
            }
            // What it crashed on it crashes on again.
            Err(crash) => {
                why = crash.to_string();
                break;
            }
        }
        if !rest(surface, stop).await {
            return false;
        }
    }
    while let Err(error) = hand_on(surface, (update, origin), &why).await {
        warn!("update {} waits: {error}", update.id);
        if !rest(surface, stop).await {
            return false;
        }
    }
    true
}

/// Hands on what could not be done for `why`, and lets it count as done: it is no longer for Telegram to bring it. That of
/// strangers is forgotten, as it always is; who was somebody before hears that.
async fn hand_on(
    surface: &Surface,
    (update, origin): (&Update, Origin),
    why: &str,
) -> Result<(), SurfaceError> {
    let Some(from) = update.from else {
        return Ok(());
    };
    let known = phones::whose(&surface.services.store, &surface.people, from).await?;
    let Some(person) = known else {
        let told = unheard(surface, from).await;
        // A phone on which no more can be written down keeps nobody else waiting.
        let is_over = told.as_ref().is_err_and(SurfaceError::is_permanent);
        return if is_over { Ok(()) } else { told };
    };
    let context = surface.context();
    let phone = phones::of(&surface.services.store, &person.name).await?;
    let begun = origin.last(&phone.updates.of(surface.bot));
    let begun = begun.filter(|begun| begun.update == update.id);
    let payload = Payload::UpdateLeft(UpdateLeft {
        bot: surface.bot,
        update_id: update.id,
        update: written(update),
        begun_at: begun.map(|begun| begun.at),
        reason: why.to_owned(),
    });
    let event = context.event(Subject::component(&surface.source), payload);
    let done = UpdateRecord {
        bot: surface.bot,
        update: update.id,
        at: context.now(),
        done: true,
    };
    let told = format!(
        "This could not be done: {why}. It is kept and tried again; where that fails too, whoever runs the program finds it among its dead letters."
    );
    let reply = surface.reply(from.chat, told);
    let counts = |phone: &mut Phone| {
        origin.end(&mut phone.updates, done);
        phone.replies.push(reply.clone());
    };
    let events = slice::from_ref(&event);
    let kept = phones::change_and_tell(&context, &person.name, counts, events).await;
    let mut kept = kept.map_err(SurfaceError::from);
    if kept.as_ref().is_err_and(SurfaceError::is_permanent) {
        // Where more waits to be said than the phone holds, this is said alone, and there is room again for what comes next.
        let makes_room = |phone: &mut Phone| {
            let is_owed = !phone.replies.is_empty();
            phone.replies.clear();
            counts(phone);
            if let Some(told) = phone.replies.last_mut().filter(|_| is_owed) {
                told.text.push_str(GONE);
            }
        };
        let again = phones::change_and_tell(&context, &person.name, makes_room, events).await;
        kept = again.map_err(SurfaceError::from);
    }
    match kept {
        Ok(()) => {}
        // A phone of which no more can be written down keeps nobody else waiting.
        Err(error) if error.is_permanent() => {
            let mut changes = ChangeSet::new();
            changes.emit(event);
            context.store.commit(changes).await?;
        }
        Err(error) => return Err(error),
    }
    error!("update {} could not be done and is kept: {why}", update.id);
    surface.wake.notify_one();
    Ok(())
}

/// Rests; returns whether the process goes on.
async fn rest(surface: &Surface, stop: &CancellationToken) -> bool {
    tokio::select! {
        () = stop.cancelled() => false,
        () = idle::waiting(surface.services.clock.sleep(REST)) => true,
    }
}
