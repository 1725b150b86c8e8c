//! Keeps the messages of one subscriber until the store has their deliveries closed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_nats::jetstream::{AckKind, message::Acker};
use ropewalk_runtime::failpoint;
use tokio::sync::Notify;
use tracing::debug;

/// So many deliveries are remembered at a time that were settled without a message; one beyond is looked up.
const REMEMBERED: usize = 10_000;

/// The messages of one subscriber that are not acknowledged yet.
#[derive(Default)]
pub(super) struct PendingMessages {
    messages: Mutex<Messages<Arc<Acker>>>,
    /// Asks whether the consumer still hands out what it has.
    pub(super) doubt: Notify,
}

impl std::fmt::Debug for PendingMessages {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("PendingMessages")
            .field(&self.sequences())
            .finish()
    }
}

impl PendingMessages {
    /// Acknowledges the message of a delivery, now or when it comes.
    ///
    /// A lost acknowledgement only brings the message once more.
    pub(super) async fn settle(&self, sequence: i64) {
        let acker = self.lock().settle(sequence);
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
    pub(super) fn keep(&self, sequence: i64, acker: Acker) -> KeepOutcome<Arc<Acker>> {
        self.lock().keep(sequence, Arc::new(acker))
    }

    /// Tells the server that the messages are still worked on; called again and again.
    pub(super) async fn in_progress(&self) {
        let ackers: Vec<Arc<Acker>> = {
            let mut messages = self.lock();
            messages.age();
            messages.waiting.values().cloned().collect()
        };
        for acker in ackers {
            acknowledge(&acker, AckKind::Progress).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Messages<Arc<Acker>>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers a message; the server sends it once more where that fails.
pub(super) async fn acknowledge(acker: &Acker, kind: AckKind) {
    if let Err(error) = acker.ack_with(kind).await {
        debug!("cannot acknowledge a message, it will come again: {error}");
    }
}

/// What becomes of a message that comes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeepOutcome<Message> {
    /// It waits until its delivery is settled.
    Alone,
    /// It waits in the place of an earlier one, which is to be acknowledged.
    Instead(Message),
    /// Its delivery was settled before it came, so that it is to be acknowledged.
    Settled(Message),
}

/// The messages by the sequence of their delivery, and the deliveries that were settled without one.
///
/// An inbox reads all that is open, so many deliveries are settled just before their message comes, and that needs no
/// look at the store then. It may also be that none will come, since a delivery that is tried again is settled each
/// time; what is opened once more later must not be taken for settled. So each of them accounts for one message, and
/// is forgotten when it has aged twice.
#[derive(Debug)]
struct Messages<Message> {
    waiting: HashMap<i64, Message>,
    settled: HashSet<i64>,
    settled_earlier: HashSet<i64>,
}

impl<Message> Default for Messages<Message> {
    fn default() -> Self {
        Self {
            waiting: HashMap::new(),
            settled: HashSet::new(),
            settled_earlier: HashSet::new(),
        }
    }
}

impl<Message> Messages<Message> {
    /// Returns the message to acknowledge, if it has come.
    fn settle(&mut self, sequence: i64) -> Option<Message> {
        let message = self.waiting.remove(&sequence);
        if message.is_none() && self.settled.len() < REMEMBERED {
            self.settled.insert(sequence);
        }
        message
    }

    fn keep(&mut self, sequence: i64, message: Message) -> KeepOutcome<Message> {
        if self.settled.remove(&sequence) || self.settled_earlier.remove(&sequence) {
            return KeepOutcome::Settled(message);
        }
        match self.waiting.insert(sequence, message) {
            Some(replaced) => KeepOutcome::Instead(replaced),
            None => KeepOutcome::Alone,
        }
    }

    fn age(&mut self) {
        self.settled_earlier = std::mem::take(&mut self.settled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_waits_until_its_delivery_is_settled() {
        let mut messages = Messages::default();
        assert_eq!(messages.keep(7, "first"), KeepOutcome::Alone);
        assert_eq!(messages.keep(7, "again"), KeepOutcome::Instead("first"));
        assert_eq!(messages.settle(7), Some("again"));
        assert_eq!(messages.keep(7, "once more"), KeepOutcome::Alone);
    }

    #[test]
    fn a_delivery_settled_without_a_message_accounts_for_one() {
        let mut messages = Messages::default();
        assert_eq!(messages.settle(7), None);
        messages.age();
        assert_eq!(messages.keep(8, "of another"), KeepOutcome::Alone);
        assert_eq!(messages.keep(7, "late"), KeepOutcome::Settled("late"));
        // The same delivery may have been opened again.
        assert_eq!(messages.keep(7, "once more"), KeepOutcome::Alone);
    }

    #[test]
    fn what_was_settled_long_ago_may_have_been_opened_again() {
        let mut messages = Messages::default();
        messages.keep(7, "first");
        messages.settle(7);
        // Tried again, and settled again.
        messages.settle(7);
        messages.age();
        messages.age();
        assert_eq!(messages.keep(7, "replayed"), KeepOutcome::Alone);
    }

    #[test]
    fn no_more_are_remembered_than_the_bound() {
        let mut messages = Messages::default();
        let beyond = i64::try_from(REMEMBERED).unwrap();
        for sequence in 0..=beyond {
            assert_eq!(messages.settle(sequence), None);
        }
        assert_eq!(messages.keep(0, "late"), KeepOutcome::Settled("late"));
        assert_eq!(messages.keep(beyond, "looked up"), KeepOutcome::Alone);
    }
}
