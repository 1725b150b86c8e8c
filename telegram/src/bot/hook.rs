//! Takes what people do in Telegram where Telegram brings it: one update after the other, each until it is done or kept.

use std::slice;
use std::time::Duration;

use ropewalk_runtime::Supervisor;
use ropewalk_schemas::{ContentHash, InvalidId};
use tokio::sync::{mpsc, oneshot};

use super::presses::settle_first;
use crate::api::Update;
use crate::client;
use crate::surface::{Parts, Surface};

/// How many updates wait for the one in hand; Telegram brings one at a time, and again what was not taken in time.
const WAITING: usize = 16;
/// How long whoever brings an update waits for it to be done or kept.
const PATIENCE: Duration = Duration::from_secs(20);

/// Says why an update was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// It is none.
    #[error("this is no update: {0}")]
    Unreadable(String),
    /// It is not done yet; whoever brings it again finds it done.
    #[error("the update is not done yet")]
    Late,
}

struct BroughtUpdate {
    update: Update,
    done: oneshot::Sender<()>,
}

/// Takes updates of somebody who knows the secret of the bot; cheap to clone.
#[derive(Clone)]
pub struct UpdateHook {
    queue: mpsc::Sender<BroughtUpdate>,
    /// Of the secret: comparing these tells nothing of it, however long that takes.
    secret: ContentHash,
}

impl UpdateHook {
    /// Begins to do what is brought, until the process stops.
    pub fn serve(parts: Parts, supervisor: &Supervisor) -> Result<Self, InvalidId> {
        let secret = ContentHash::of(parts.client.secret().as_bytes());
        let surface = Surface::new(parts)?;
        let (queue, mut brought) = mpsc::channel::<BroughtUpdate>(WAITING);
        let stop = supervisor.shutdown().soft().clone();
        supervisor.spawn("telegram.hook", async move {
            surface.rename().await;
            loop {
                let next = tokio::select! {
                    () = stop.cancelled() => return,
                    next = brought.recv() => next,
                };
                let Some(BroughtUpdate { update, done }) = next else {
                    return;
                };
                if !settle_first(&surface, slice::from_ref(&update), &stop).await {
                    return;
                }
                // Who has gone meanwhile brings it again and finds it done.
                done.send(()).ok();
            }
        });
        Ok(Self { queue, secret })
    }

    /// Returns whether `secret` is that of the bot.
    pub fn admits(&self, secret: &[u8]) -> bool {
        ContentHash::of(secret) == self.secret
    }

    /// Takes an update as Telegram writes it; returns once what it came to, or that it is kept, is committed.
    pub async fn take(&self, written: &[u8]) -> Result<(), UpdateError> {
        let update = client::parse(written);
        let update = update.map_err(|error| UpdateError::Unreadable(error.to_string()))?;
        let (done, is_done) = oneshot::channel();
        let brought = BroughtUpdate { update, done };
        self.queue
            .try_send(brought)
            .map_err(|_| UpdateError::Late)?;
        match tokio::time::timeout(PATIENCE, is_done).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(UpdateError::Late),
        }
    }
}
