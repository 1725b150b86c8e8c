//! Keeps the messages of one subscriber until the store has their deliveries closed.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::jetstream::{AckKind, message::Acker};
use ropewalk_runtime::failpoint;
use tokio::sync::Notify;
use tracing::debug;

/// So many deliveries are remembered that were settled before their message came; one beyond is looked up in the store.
const REMEMBERED: usize = 10_000;

/// The messages of one subscriber that are not acknowledged yet, by the sequence of their delivery.
#[derive(Default)]
pub(super) struct Held {
    messages: Mutex<Messages>,
    /// Asks whether the consumer still hands out what it has.
    pub(super) doubt: Notify,
}

#[derive(Default)]
struct Messages {
    waiting: HashMap<i64, Arc<Acker>>,
    settled: Settled,
}

/// What became of a message that came.
pub(super) enum Kept {
    /// It waits until its delivery is settled.
    Alone,
    /// It waits in the place of an earlier one, which is to be acknowledged.
    Instead(Arc<Acker>),
    /// Its delivery was settled before it came, so that it is to be acknowledged.
    Settled(Arc<Acker>),
}

impl std::fmt::Debug for Held {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("Held")
            .field(&self.sequences())
            .finish()
    }
}

impl Held {
    /// Acknowledges the message of a delivery, or remembers that it is done with before it comes.
    ///
    /// A lost acknowledgement only brings the message once more.
    pub(super) async fn settle(&self, sequence: i64) {
        let acker = {
            let mut messages = self.lock();
            let acker = messages.waiting.remove(&sequence);
            if acker.is_none() {
                messages.settled.note(sequence);
            }
            acker
        };
        if let Some(acker) = acker {
            failpoint!("bus.acknowledge.before");
            acknowledge(&acker, AckKind::Ack).await;
            failpoint!("bus.acknowledge.after");
        }
    }

    pub(super) fn sequences(&self) -> Vec<i64> {
        self.lock().waiting.keys().copied().collect()
    }

    /// Keeps a message until its delivery is settled, unless it is.
    pub(super) fn keep(&self, sequence: i64, acker: Acker) -> Kept {
        let acker = Arc::new(acker);
        let mut messages = self.lock();
        if messages.settled.take(sequence) {
            return Kept::Settled(acker);
        }
        match messages.waiting.insert(sequence, acker) {
            Some(replaced) => Kept::Instead(replaced),
            None => Kept::Alone,
        }
    }

    /// Tells the server that the messages are still worked on.
    pub(super) async fn in_progress(&self) {
        let ackers: Vec<Arc<Acker>> = self.lock().waiting.values().cloned().collect();
        for acker in ackers {
            acknowledge(&acker, AckKind::Progress).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers a message; the server sends it once more where that fails.
pub(super) async fn acknowledge(acker: &Acker, kind: AckKind) {
    if let Err(error) = acker.ack_with(kind).await {
        debug!("cannot acknowledge a message, it will come again: {error}");
    }
}

/// Deliveries that were settled before their message came: each accounts for one message, which needs no look at the
/// store.
#[derive(Debug, Default)]
struct Settled(BTreeSet<i64>);

impl Settled {
    fn note(&mut self, sequence: i64) {
        self.0.insert(sequence);
        if self.0.len() > REMEMBERED {
            self.0.pop_first();
        }
    }

    fn take(&mut self, sequence: i64) -> bool {
        self.0.remove(&sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_settled_delivery_accounts_for_one_message() {
        let mut settled = Settled::default();
        assert!(!settled.take(7), "nothing was settled");
        settled.note(7);
        assert!(settled.take(7));
        assert!(
            !settled.take(7),
            "the same delivery may have been opened again"
        );
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut settled = Settled::default();
        let newest = i64::try_from(REMEMBERED).unwrap();
        for sequence in 0..=newest {
            settled.note(sequence);
        }
        assert_eq!(settled.0.len(), REMEMBERED);
        assert!(!settled.take(0));
        assert!(settled.take(1) && settled.take(newest));
    }
}
