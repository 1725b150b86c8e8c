//! Lets go of whoever only waits once a process stops, so that the stop need not.
//!
//! A piece of work that is asked to stop finishes what it has in hand. While it waits at a [`Brake`](crate::Brake), or
//! until a provider takes calls again, it has nothing in hand: code far below says so by [`waiting`], and whoever runs
//! the work by [`unless_idle`] drops it then, as a crash would. What it was to do is left to the next start.
//!
//! Who waits for a model is laid [aside](crate::in_hand::aside), but not idle: the answer is paid for. It may come for
//! [`GRACE`] more, which [`cut_off`] tells, and what comes after that is not waited for: a model may think for minutes. Who
//! has written down what was heard so far goes no further, nor does anybody ask anew: both [`end_here`].

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// For so long after a stop an answer is waited for that a model was asked for before.
pub const GRACE: Duration = Duration::from_secs(1);

tokio::task_local! {
    /// The work around this.
    static WORK: Work;
}

/// A piece of work that is let go of once its process stops.
struct Work {
    /// How much of it waits with nothing in hand.
    idle: watch::Sender<usize>,
    stop: CancellationToken,
}

/// Waits for `wait`, with nothing in hand: the work around this may be dropped meanwhile, once its process stops.
pub async fn waiting<T>(wait: impl Future<Output = T>) -> T {
    let _idle = WORK.try_with(|work| IdleMark::begin(&work.idle)).ok();
    wait.await
}

/// Waits until whoever waits for a model waits no more, since the process around this stops; for ever, where none does.
pub async fn cut_off() {
    match WORK.try_with(|work| work.stop.clone()) {
        Ok(stop) => {
            stop.cancelled().await;
            tokio::time::sleep(GRACE).await;
        }
        Err(_) => std::future::pending().await,
    }
}

/// Ends the work around this here once its process stops; goes on while it does not.
pub async fn end_here() {
    let stops = WORK.try_with(|work| work.stop.is_cancelled());
    if stops.unwrap_or_default() {
        waiting(std::future::pending::<()>()).await;
    }
}

/// Runs `work`; once `stop` has fired it is dropped as soon as it waits with nothing in hand, and there is no result.
pub async fn unless_idle<T>(stop: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    let (idle, mut waits) = watch::channel(0_usize);
    let around = Work {
        idle,
        stop: stop.clone(),
    };
    let let_go = async {
        stop.cancelled().await;
        // The sender lives as long as the work does.
        waits.wait_for(|waits| *waits > 0).await.ok();
    };
    tokio::select! {
        biased;
        done = WORK.scope(around, work) => Some(done),
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

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_waited_for_a_little_longer_and_nobody_asks_anew() {
        let stop = CancellationToken::new();
        let asks = |takes: Duration| async move {
            end_here().await;
            let answered = tokio::select! {
                biased;
                () = cut_off() => false,
                () = tokio::time::sleep(takes) => true,
            };
            if !answered {
                end_here().await;
            }
            answered
        };
        let soon = GRACE / 2;
        assert_eq!(unless_idle(&stop, asks(GRACE * 9)).await, Some(true));
        let stopping = async {
            tokio::task::yield_now().await;
            stop.cancel();
        };
        let (answered, ()) = tokio::join!(unless_idle(&stop, asks(soon)), stopping);
        assert_eq!(answered, Some(true));
        assert_eq!(unless_idle(&stop, asks(soon)).await, None, "asked anew");
        let stop = CancellationToken::new();
        let began = tokio::time::Instant::now();
        let stopping = async {
            tokio::task::yield_now().await;
            stop.cancel();
        };
        let (answered, ()) = tokio::join!(unless_idle(&stop, asks(GRACE * 9)), stopping);
        assert_eq!((answered, began.elapsed()), (None, GRACE));
        assert!(asks(GRACE * 9).await, "nothing stops here");
    }
}
