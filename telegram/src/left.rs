//! Does what the bot left for later, which goes the way of every event: what brings a file or stands behind one, in its order,
//! and what could not be done, which is tried again, and becomes a dead letter that people see, replay or discard.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use ropewalk_desk::people::Person;
use ropewalk_desk::phones;
use ropewalk_orchestrator::{Agent, AgentError, Context, Profile};
use ropewalk_schemas::payload::{UpdateKept, UpdateLeft};
use ropewalk_schemas::{ComponentName, Event, EventPattern, InvalidId, Payload};
use ropewalk_store::ChangeSet;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::api::Update;
use crate::bot::settling::settle;
use crate::press;
use crate::surface::{Parts, Surface, Whom};
use crate::updates::{Origin, has_gone_on, is_stopped, perform};

/// What the subscriber is called.
const ROLE: &str = "telegram.left";
/// The events that it takes.
const TAKES: [&str; 2] = ["phone.update_kept", "phone.update_left"];
/// For how many people files are fetched at once.
const AT_ONCE: usize = 3;

/// Does what the bot left for later: the subscriber `telegram.left`.
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

    /// Does what was kept at a time, to its end.
    async fn take_up(&self, kept: &UpdateKept, at: DateTime<Utc>) -> Result<(), AgentError> {
        let surface = &self.surface;
        let (update, ..) = self.read(kept.bot, &kept.update).await?;
        // The phone waits no longer for what a press comes to; that is said in the chat.
        surface.presses.put_off(update.id);
        let (origin, stop) = (Origin::Kept(at), CancellationToken::new());
        settle(surface, &update, origin, &stop).await;
        surface.presses.forget(update.id);
        Ok(())
    }

    /// Reads what was left, if this bot left it, with who did it, and in which chat.
    async fn read(&self, bot: i64, written: &Value) -> Result<(Update, Person, i64), AgentError> {
        let surface = &self.surface;
        if bot != surface.bot {
            return Err(AgentError::permanent("it is of another bot"));
        }
        let update = serde_json::from_value::<Update>(written.clone());
        let mut update = update.map_err(AgentError::permanent)?;
        let from = update.from.ok_or_else(nobody)?;
        let known = phones::whose(&surface.services.store, &surface.people, from).await?;
        let person = known.ok_or_else(nobody)?;
        press::reveal(surface, &person.name, &mut update.did).await?;
        Ok((update, person, from.chat))
    }

    /// Does it, but for what it came to before: it may have been done and its delivery not closed.
    async fn again(&self, left: &UpdateLeft, since: DateTime<Utc>) -> Result<(), AgentError> {
        let surface = &self.surface;
        let (update, person, chat) = self.read(left.bot, &left.update).await?;
        let phone = phones::of(&surface.services.store, &person.name).await?;
        let progress = phone.updates.of(surface.bot);
        let begun = left.begun_at.unwrap_or(since);
        let whom = Whom {
            person,
            chat,
            begun_before: Some(begun),
            has_stopped: is_stopped(update.id, since, &progress),
            has_gone_on: has_gone_on(update.id, begun, &progress),
        };
        // What it may come to is large.
        let performed = Box::pin(perform(surface, &whom, &update.did, None));
        performed.await.map_err(AgentError::transient)
    }
}

fn nobody() -> AgentError {
    AgentError::permanent("nobody who is known did it")
}

#[async_trait]
impl Agent for LeftUpdates {
    fn profile(&self) -> Profile {
        Profile {
            role: self.role.clone(),
            patterns: TAKES.map(EventPattern::of).to_vec(),
            in_flight: AT_ONCE,
            schedules: Vec::new(),
        }
    }

    async fn handle(&self, event: &Event, _context: &Context) -> Result<ChangeSet, AgentError> {
        match &event.payload {
            Payload::UpdateKept(kept) => self.take_up(kept, event.time).await?,
            Payload::UpdateLeft(left) => self.again(left, event.time).await?,
            _ => {}
        }
        Ok(ChangeSet::new())
    }
}
