//! Lets go of whoever only waits once a process stops, so that the stop need not.
//!
//! A piece of work that is asked to stop finishes what it has in hand. While it waits at a [`Brake`](crate::Brake), or
//! until a provider takes calls again, it has nothing in hand: code far below says so by [`waiting`], and whoever runs
//! the work by [`unless_idle`] drops it then, as a crash would. What it was to do is left to the next start. Who waits for
//! a model that was asked is laid [aside](crate::in_hand::aside), but not idle: the answer is paid for.

use std::future::Future;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

tokio::task_local! {
    /// How much of the work around this waits with nothing in hand.
    static IDLE: watch::Sender<usize>;
}

/// Waits for `wait`, with nothing in hand: the work around this may be dropped meanwhile, once its process stops.
pub async fn waiting<T>(wait: impl Future<Output = T>) -> T {
    let _idle = IDLE.try_with(IdleMark::begin).ok();
    wait.await
}

/// Runs `work`; once `stop` has fired it is dropped as soon as it waits with nothing in hand, and there is no result.
pub async fn unless_idle<T>(stop: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    let (idle, mut waits) = watch::channel(0_usize);
    let let_go = async {
        stop.cancelled().await;
        // The sender lives as long as the work does.
        waits.wait_for(|waits| *waits > 0).await.ok();
    };
    tokio::select! {
        biased;
        done = IDLE.scope(idle, work) => Some(done),
        () = let_go => None,
    }
}

/// One wait in the count, for as long as it lasts.
struct IdleMark(watch::Sender<usize>);

impl IdleMark {
    fn begin(idle: &watch::Sender<usize>) -> Self {
        idle.send_modify(|waits| *waits += 1);
        Self(idle.clone())
    }
}

impl Drop for IdleMark {
    fn drop(&mut self) {
        self.0.send_modify(|waits| *waits -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_who_waits_with_nothing_in_hand_is_let_go_and_only_after_the_stop() {
        let stop = CancellationToken::new();
        let hour = Duration::from_hours(1);
        let wait = || waiting(tokio::time::sleep(hour));
        assert!(unless_idle(&stop, wait()).await.is_some());
        stop.cancel();
        let in_hand = tokio::time::sleep(hour);
        assert!(unless_idle(&stop, in_hand).await.is_some());
        let began = tokio::time::Instant::now();
        let first_in_hand = async {
            tokio::time::sleep(hour).await;
            wait().await;
        };
        assert!(unless_idle(&stop, first_in_hand).await.is_none());
        assert_eq!(began.elapsed(), hour, "what was in hand was finished");
        wait().await;
    }
}
