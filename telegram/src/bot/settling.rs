//! Lets what somebody did in a chat be done before Telegram forgets it; what cannot be done is handed on, see `left.rs`.

use std::time::Duration;

use ropewalk_runtime::Supervisor;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::api::Update;
use crate::left;
use crate::surface::{CHANNEL, Surface};
use crate::updates::take;

/// How long the bot rests when Telegram or the store does not answer.
pub(crate) const REST: Duration = Duration::from_secs(3);
/// How often an update is tried that cannot be done, before it is handed on.
const TRIES: u32 = 5;

/// Does what somebody did, again while that fails, and hands it on when it fails on. Returns whether Telegram may forget
/// it: not where the process stops before one or the other is committed.
pub(crate) async fn settle(surface: &Surface, update: &Update, stop: &CancellationToken) -> bool {
    let mut why = String::new();
    for _ in 0..TRIES {
        match Supervisor::guard(CHANNEL, Box::pin(take(surface, update))).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => {
                warn!("update {} waits: {error}", update.id);
                why = error.to_string();
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
    while let Err(error) = left::hand_on(surface, update, &why).await {
        warn!("update {} waits: {error}", update.id);
        if !rest(surface, stop).await {
            return false;
        }
    }
    true
}

/// Rests; returns whether the process goes on.
async fn rest(surface: &Surface, stop: &CancellationToken) -> bool {
    tokio::select! {
        () = stop.cancelled() => false,
        () = surface.services.clock.sleep(REST) => true,
    }
}
