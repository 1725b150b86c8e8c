//! Hears what people do in Telegram, in one process at a time: it asks for it, or lets Telegram bring it, see `bot/hook.rs`.

pub(crate) mod hook;
mod presses;
pub(crate) mod settling;

use std::time::Duration;

use ropewalk_orchestrator::notices::Turn;
use ropewalk_runtime::Supervisor;
use ropewalk_schemas::InvalidId;
use settling::REST;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};
use url::Url;

use crate::api::ApiError;
use crate::surface::{CHANNEL, Parts, Surface};
use crate::{commands, replies, talk};

/// How long whoever is not the poller waits to become it.
const WAIT: Duration = Duration::from_secs(5);
/// So long it rests after a crash.
const CRASHED: Duration = Duration::from_mins(1);

/// The bot: what people say and press becomes verbs.
pub struct Bot {
    surface: Surface,
    secret: String,
    turn: Turn,
    /// Where Telegram brings what people do; without it the bot asks for it.
    webhook: Option<Url>,
}

impl Bot {
    /// Returns a bot that does nothing yet; `turn` is the duty of hearing, which one process at a time has.
    pub fn new(parts: Parts, turn: Turn, webhook: Option<Url>) -> Result<Self, InvalidId> {
        Ok(Self {
            secret: parts.client.secret(),
            surface: Surface::new(parts)?,
            turn,
            webhook,
        })
    }

    /// Serves until the process stops.
    pub fn serve(self, supervisor: &Supervisor) {
        let stop = supervisor.shutdown().soft().clone();
        supervisor.spawn(CHANNEL, async move {
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
                let replies = replies::deliver(self.surface.clone(), stop.clone());
                let served = async {
                    self.surface.rename().await;
                    tokio::join!(self.hear(&stop), follows, replies)
                };
                let served = Box::pin(served);
                // Losing the phones changes nothing about the work.
                let Err(crash) = Supervisor::guard(CHANNEL, served).await else {
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

    /// Says to Telegram how the bot hears, and asks for what people do where nobody brings it.
    async fn hear(&self, stop: &CancellationToken) {
        let surface = &self.surface;
        let said = tokio::select! {
            () = stop.cancelled() => return,
            () = self.say_how() => surface.api.offer(&commands::menu()).await,
        };
        match &self.webhook {
            Some(_) => offer(surface, said, stop).await,
            None => poll(surface, said.is_ok(), stop).await,
        }
    }

    /// Says where Telegram brings what people do, or that it is asked for; again until Telegram knows it.
    async fn say_how(&self) {
        let api = &self.surface.api;
        let mut away = Away::default();
        loop {
            let said = match &self.webhook {
                Some(address) => api.hook(address, &self.secret).await,
                None => api.unhook().await,
            };
            let Err(error) = said else {
                return;
            };
            let rest = away.rest(&error);
            self.surface.services.clock.sleep(rest).await;
        }
    }
}

/// Why nobody is heard; told once for as long as it lasts.
#[derive(Default)]
struct Away(Option<String>);

impl Away {
    /// Tells it where it is new; returns how long to rest.
    fn rest(&mut self, error: &ApiError) -> Duration {
        let reason = error.to_string();
        if self.0.as_ref() != Some(&reason) {
            warn!("nobody is heard over Telegram: {reason}");
            self.0 = Some(reason);
        }
        error.rest(REST)
    }
}

/// Says which commands there are, until Telegram knows them.
async fn offer(surface: &Surface, mut said: Result<(), ApiError>, stop: &CancellationToken) {
    while let Err(error) = said {
        tokio::select! {
            () = stop.cancelled() => return,
            () = surface.services.clock.sleep(error.rest(REST)) => {}
        }
        said = surface.api.offer(&commands::menu()).await;
    }
}

async fn poll(surface: &Surface, mut offered: bool, stop: &CancellationToken) {
    let mut offset = 0;
    let mut away = Away::default();
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
                away = Away::default();
                for (place, update) in updates.iter().enumerate() {
                    if !presses::settle_first(surface, &updates[place..], stop).await {
                        return;
                    }
                    // Asked for from here on, Telegram forgets what is done or kept.
                    offset = update.id + 1;
                }
                continue;
            }
            Err(error) => away.rest(&error),
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = surface.services.clock.sleep(rest) => {}
        }
    }
}
