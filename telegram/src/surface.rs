//! Holds what every answer of the bot may use.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_desk::builds::landing::Landings;
use ropewalk_desk::people::{People, Person};
use ropewalk_desk::phones;
use ropewalk_orchestrator::notices::Rules;
use ropewalk_orchestrator::{Context, Services};
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::phone::Reply;
use ropewalk_schemas::{ComponentName, CorrelationId, Event, EventPattern, InvalidId, Payload};
use ropewalk_store::EventFilter;
use tokio::sync::{Notify, OnceCell};
use tracing::{debug, warn};

use crate::api::{Api, ApiError, Button, Interaction, Update};
use crate::client::TelegramClient;
use crate::commands;

/// Where the answers of this surface come from.
pub(crate) const CHANNEL: &str = "telegram";

/// What every answer of the bot may use; cheap to clone.
#[derive(Clone)]
pub(crate) struct Surface {
    pub(crate) services: Services,
    pub(crate) people: People,
    /// When people are told what.
    pub(crate) rules: Rules,
    pub(crate) api: Arc<dyn Api>,
    /// Told when there is something to say.
    pub(crate) wake: Arc<Notify>,
    pub(crate) presses: Arc<PressLog>,
    /// The number of the bot.
    pub(crate) bot: i64,
    /// Its name, once somebody said it.
    name: Arc<OnceCell<String>>,
    /// The providers of the models that build.
    pub(crate) builds_with: Vec<String>,
    /// A part of which nothing is heard for so long is silent.
    pub(crate) silent_after: Duration,
    /// The providers of the models that answer people.
    pub(crate) chats_with: Vec<String>,
    /// What landing a build would come to.
    pub(crate) landings: Landings,
    /// The state directory.
    pub(crate) state: PathBuf,
    pub(crate) source: ComponentName,
}

/// Who did something, and where.
#[derive(Debug, Clone)]
pub(crate) struct Whom {
    pub(crate) person: Person,
    pub(crate) chat: i64,
    /// When it was begun by a try that did not come to its end: what was done since then need not be done again.
    pub(crate) begun_before: Option<DateTime<Utc>>,
    /// Whether they asked to stop something since they did it: it sets nothing going that was stopped.
    pub(crate) has_stopped: bool,
    /// Whether they did something else since it was begun: their phone is turned back to nothing.
    pub(crate) has_gone_on: bool,
}

/// What somebody is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    /// What can be pressed below it.
    pub(crate) buttons: Vec<Button>,
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self {
            text,
            buttons: Vec::new(),
        }
    }
}

/// What a press is answered by.
pub(crate) struct PressAnswer {
    /// The line that is shown for it.
    pub(crate) line: String,
    /// What is said in the chat, or put in the place of the message.
    pub(crate) reply: Option<Reply>,
    /// The nonce of the offer that it decided, whose buttons mean nothing from now on.
    pub(crate) decided: Option<String>,
}

impl From<String> for PressAnswer {
    fn from(line: String) -> Self {
        Self {
            line,
            reply: None,
            decided: None,
        }
    }
}

/// Which presses of the updates in hand were answered: each can be, once.
#[derive(Default)]
pub(crate) struct PressLog(Mutex<HashMap<i64, bool>>);

impl PressLog {
    /// Notes that a press is answered without words; returns whether it was not answered before.
    pub(crate) fn put_off(&self, update: i64) -> bool {
        let mut answered = self.answered();
        let is_first = !answered.contains_key(&update);
        answered.entry(update).or_insert(false);
        is_first
    }

    /// Notes what a press came to; returns whether that is still the answer to it.
    pub(crate) fn came_to_something(&self, update: i64) -> bool {
        *self.answered().entry(update).or_insert(true)
    }

    /// Forgets an update that is done.
    pub(crate) fn forget(&self, update: i64) {
        self.answered().remove(&update);
    }

    /// The updates whose press was answered, and whether with what it came to.
    fn answered(&self) -> MutexGuard<'_, HashMap<i64, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a bot works with.
#[derive(Clone)]
pub struct Parts {
    /// How Telegram is asked.
    pub client: TelegramClient,
    /// Everybody who works on the project.
    pub people: People,
    /// When people are told what.
    pub rules: Rules,
    /// What every part works with.
    pub services: Services,
    /// The providers of the models that build.
    pub builds_with: Vec<String>,
    /// A part of which nothing is heard for so long is silent.
    pub silent_after: Duration,
    /// The providers of the models that answer people.
    pub chats_with: Vec<String>,
    /// What landing a build would come to.
    pub landings: Landings,
    /// The state directory, which holds the folders of ideas.
    pub state: PathBuf,
}

impl Surface {
    pub(crate) fn new(parts: Parts) -> Result<Self, InvalidId> {
        Ok(Self {
            services: parts.services,
            people: parts.people,
            rules: parts.rules,
            bot: parts.client.id(),
            name: Arc::default(),
            presses: Arc::default(),
            wake: parts.client.wake(),
            api: Arc::new(parts.client),
            builds_with: parts.builds_with,
            silent_after: parts.silent_after,
            chats_with: parts.chats_with,
            landings: parts.landings,
            state: parts.state,
            source: ComponentName::parse(CHANNEL)?,
        })
    }

    /// Returns a context in which a person begins a chain of events.
    pub(crate) fn context(&self) -> Context {
        Context::new(&self.services, self.source.clone())
    }

    /// Lets those go on with what they talked about whom the configuration calls otherwise by now; of a failure it is told, and the
    /// next start does it.
    pub(crate) async fn rename(&self) {
        if let Err(error) = phones::rename(&self.context(), &self.people).await {
            let why = Words::of(&error);
            warn!("who is called otherwise by now does not go on where they were: {why}");
        }
    }

    /// Lets the phone of a press wait no longer for what that comes to, once; does nothing where it is no press.
    pub(crate) async fn answer_without_words(&self, update: &Update) {
        let Interaction::Pressed { press, .. } = &update.did else {
            return;
        };
        if self.presses.put_off(update.id)
            && let Err(error) = self.api.show(press, "").await
        {
            debug!("a press waits on a phone: {error}");
        }
    }

    /// Says whether a text is a command for another bot: a group may have several.
    pub(crate) async fn is_for_another(&self, text: &str) -> Result<bool, ApiError> {
        let Some(bot) = commands::addressee(text) else {
            return Ok(false);
        };
        let name = self.name.get_or_try_init(|| self.api.name()).await?;
        Ok(!name.eq_ignore_ascii_case(bot))
    }
}

/// Returns whether an earlier try had told this already, by an event of `event_type` in a chain of them.
pub(crate) async fn told_already(
    surface: &Surface,
    whom: &Whom,
    chain: CorrelationId,
    event_type: &str,
    is_it: impl Fn(&Payload) -> bool,
) -> Result<bool, SurfaceError> {
    let Some(begun) = whom.begun_before else {
        return Ok(false);
    };
    let told = EventFilter {
        from: Some(begun),
        pattern: Some(EventPattern::of(event_type)),
        correlation: Some(chain),
        ..EventFilter::default()
    };
    let told = surface.services.store.events(&told).await?.into_iter();
    let mut told = told.filter_map(|stored| Event::try_from(stored.event.as_ref()).ok());
    Ok(told.any(|event| is_it(&event.payload)))
}

/// Says that something of the bot does not work now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SurfaceError {
    /// The store cannot be read.
    #[error("{}", Words::of(.0))]
    Read(#[from] ropewalk_store::ReadError),
    /// The store cannot be written.
    #[error("{}", Words::of(.0))]
    Commit(#[from] ropewalk_store::CommitError),
    /// Telegram does not say what has to be known.
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl SurfaceError {
    /// Returns whether no other try comes to anything else.
    pub(crate) const fn is_permanent(&self) -> bool {
        match self {
            Self::Commit(error) => error.is_permanent(),
            Self::Read(_) | Self::Api(_) => false,
        }
    }
}

impl From<ropewalk_store::CommitOrRead> for SurfaceError {
    fn from(error: ropewalk_store::CommitOrRead) -> Self {
        use ropewalk_store::CommitOrRead;
        match error {
            CommitOrRead::Read(error) => error.into(),
            CommitOrRead::Commit(error) => error.into(),
        }
    }
}
