//! Holds what is about to begin, as long as people have stopped everything.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::idle;

/// A brake for a whole process: whatever begins a model call or a command passes it first. Cheap to clone; off at first.
#[derive(Debug, Clone)]
pub struct Brake(watch::Sender<bool>);

impl Default for Brake {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Brake {
    /// Puts it on, or lets it go.
    pub fn set(&self, on: bool) {
        self.0
            .send_if_modified(|is| std::mem::replace(is, on) != on);
    }

    /// Returns whether it is on.
    pub fn is_on(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is off, or until `cancel` fires; with nothing in hand, so that a stop need not wait for it.
    pub async fn pass(&self, cancel: &CancellationToken) {
        if self.is_on() {
            idle::waiting(async {
                tokio::select! {
                    () = self.is(false) => {}
                    () = cancel.cancelled() => {}
                }
            })
            .await;
        }
    }

    /// Waits until it is on.
    pub async fn pulled(&self) {
        self.is(true).await;
    }

    async fn is(&self, on: bool) {
        let mut changes = self.0.subscribe();
        // The sender lives as long as this does.
        changes.wait_for(|is| *is == on).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_while_it_is_on_waits_until_it_is_off_or_is_cancelled() {
        let (brake, cancel) = (Brake::default(), CancellationToken::new());
        brake.pass(&cancel).await;
        brake.set(true);
        brake.pulled().await;
        let hour = Duration::from_hours(1);
        assert!(
            tokio::time::timeout(hour, brake.pass(&cancel))
                .await
                .is_err()
        );
        let let_go = async { brake.set(false) };
        tokio::join!(brake.pass(&cancel), let_go);
        brake.set(true);
        cancel.cancel();
        brake.pass(&cancel).await;
        assert!(brake.is_on());
    }
}
