//! Keeps what the bot could not do: it goes the way of every event, is tried again, and becomes a dead letter that people
//! see, replay or discard.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use ropewalk_desk::phones;
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile};
use ropewalk_schemas::payload::UpdateLeft;
use ropewalk_schemas::phone::{Phone, UpdateRecord};
use ropewalk_schemas::{ComponentName, Event, EventPattern, InvalidId, Payload, Subject};
use ropewalk_store::ChangeSet;
use tracing::error;

use crate::api::Update;
use crate::surface::{Parts, Surface, SurfaceError, Whom};
use crate::updates::perform;

/// What the subscriber is called.
const ROLE: &str = "telegram.left";
/// The events that it takes.
const TAKES: [&str; 1] = ["phone.update_left"];

/// Hands on what could not be done for `why`, and lets it count as done: it is no longer for Telegram to bring it. That of
/// strangers is forgotten, as it always is.
pub(crate) async fn hand_on(
    surface: &Surface,
    update: &Update,
    why: &str,
) -> Result<(), SurfaceError> {
    let Some(from) = update.from else {
        return Ok(());
    };
    let known = phones::whose(&surface.services.store, &surface.people, from).await?;
    let Some(person) = known else {
        return Ok(());
    };
    let context = surface.context();
    let phone = phones::of(&surface.services.store, &person.name).await?;
    let begun = phone
        .begun
        .filter(|begun| (begun.bot, begun.update) == (surface.bot, update.id));
    let written = serde_json::to_value(update).unwrap_or_default();
    let payload = Payload::UpdateLeft(UpdateLeft {
        bot: surface.bot,
        update_id: update.id,
        update: written,
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
        phone.begun = Some(done);
        phone.replies.push(reply.clone());
    };
    phones::change_and_tell(&context, &person.name, counts, &[event]).await?;
    error!("update {} could not be done and is kept: {why}", update.id);
    surface.wake.notify_one();
    Ok(())
}

/// Does again what the bot could not do: the subscriber `telegram.left`.
pub struct LeftUpdates {
    surface: Surface,
    role: ComponentName,
}

impl LeftUpdates {
    /// Returns the subscriber.
    pub fn new(parts: Parts) -> Result<Self, InvalidId> {
        Ok(Self {
            surface: Surface::new(parts)?,
            role: ComponentName::parse(ROLE)?,
        })
    }

    /// Does it, but for what it came to before: it may have been done and its delivery not closed.
    async fn again(&self, left: &UpdateLeft, since: DateTime<Utc>) -> Result<(), AgentError> {
        let surface = &self.surface;
        if left.bot != surface.bot {
            return Err(AgentError::permanent("it is of another bot"));
        }
        let update: Update =
            serde_json::from_value(left.update.clone()).map_err(AgentError::permanent)?;
        let nobody = || AgentError::permanent("nobody who is known did it");
        let from = update.from.ok_or_else(nobody)?;
        let known = phones::whose(&surface.services.store, &surface.people, from).await?;
        let whom = Whom {
            person: known.ok_or_else(nobody)?,
            chat: from.chat,
            begun_before: Some(left.begun_at.unwrap_or(since)),
        };
        // What it may come to is large.
        let performed = Box::pin(perform(surface, &whom, &update.did, None));
        performed.await.map_err(AgentError::transient)
    }
}

#[async_trait]
impl Agent for LeftUpdates {
    fn profile(&self) -> Profile {
        Profile {
            role: self.role.clone(),
            patterns: TAKES.map(EventPattern::of).to_vec(),
            in_flight: 1,
            schedules: Vec::new(),
        }
    }

    async fn handle(&self, event: &Event, _context: &Context) -> Result<ChangeSet, AgentError> {
        if let Payload::UpdateLeft(left) = &event.payload {
            self.again(left, event.time).await?;
        }
        Ok(ChangeSet::new())
    }
}
