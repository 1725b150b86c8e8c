//! Keeps the queues of the subscribers that this process consumes, and wakes their inboxes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ropewalk_schemas::ComponentName;
use ropewalk_store::CommitOutcome;
use tokio::sync::Notify;

use crate::inbox::queue::{Entry, Queue, ReadScope};

/// With more than so many entities to work on, those who yield wait.
const PRESSED: usize = 1_000;
/// With no more than so many they go on.
const EASED: usize = 500;

/// The queue of one subscriber and the signal that something about it changed.
#[derive(Debug)]
pub(crate) struct SubscriberQueue {
    pub(crate) subscriber: ComponentName,
    queue: Mutex<Queue>,
    pub(crate) changed: Notify,
    /// Whether it waits while others have too much to do.
    pub(crate) yields: bool,
}

impl SubscriberQueue {
    pub(crate) fn new(subscriber: ComponentName, queue: Queue, yields: bool) -> Self {
        Self {
            subscriber,
            queue: Mutex::new(queue),
            changed: Notify::new(),
            yields,
        }
    }

    /// Locks the queue; never held across an await.
    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a read of the store and wakes the inbox.
    pub(crate) fn want(&self, wanted: ReadScope) {
        self.queue().want(wanted);
        self.changed.notify_one();
    }
}

/// The subscribers that this process consumes.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    inboxes: Mutex<HashMap<ComponentName, Arc<SubscriberQueue>>>,
    /// Whether those who yield wait.
    pressed: AtomicBool,
    eased: Notify,
}

impl Hub {
    /// Adds a subscriber; answers `false` when it is consumed already.
    pub(crate) fn add(&self, shared: Arc<SubscriberQueue>) -> bool {
        let mut inboxes = self.lock();
        if inboxes.contains_key(&shared.subscriber) {
            return false;
        }
        inboxes.insert(shared.subscriber.clone(), shared);
        true
    }

    pub(crate) fn remove(&self, subscriber: &ComponentName) {
        self.lock().remove(subscriber);
        self.ease();
    }

    /// Waits while those who do not yield have too much to do.
    pub(crate) async fn relief(&self) {
        loop {
            let eased = self.eased.notified();
            if !self.is_pressed() {
                return;
            }
            eased.await;
        }
    }

    fn is_pressed(&self) -> bool {
        let inboxes = self.lock();
        // Said before it is counted: whoever finishes something after the count sees that somebody waits.
        let was_pressed = self.pressed.swap(true, Ordering::SeqCst);
        let limit = if was_pressed { EASED } else { PRESSED };
        let pressed = to_do(&inboxes) > limit;
        self.pressed.store(pressed, Ordering::SeqCst);
        pressed
    }

    /// Lets those who yield go on once little is left to do; called whenever something was finished.
    pub(crate) fn ease(&self) {
        if !self.pressed.load(Ordering::SeqCst) {
            return;
        }
        let inboxes = self.lock();
        if to_do(&inboxes) <= EASED {
            self.pressed.store(false, Ordering::SeqCst);
            self.eased.notify_waiters();
        }
    }

    pub(crate) fn get(&self, subscriber: &ComponentName) -> Option<Arc<SubscriberQueue>> {
        self.lock().get(subscriber).cloned()
    }

    /// Asks every inbox for a read of the store.
    pub(crate) fn want(&self, wanted: ReadScope) {
        for shared in self.lock().values() {
            shared.want(wanted);
        }
    }

    /// Asks every inbox for a read of the store, and for what it left to others so far.
    pub(crate) fn attend_to_all(&self) {
        for shared in self.lock().values() {
            shared.queue().attend_to_all();
            shared.want(ReadScope::All);
        }
    }

    /// Tells every inbox that other processes committed something.
    pub(crate) fn others_committed(&self) {
        for shared in self.lock().values() {
            shared.queue().others_committed();
            shared.changed.notify_one();
        }
    }

    /// Hands the events of a commit to the queues of their subscribers.
    pub(crate) fn dispatch(&self, committed: &CommitOutcome) {
        for stored in &committed.events {
            for subscriber in &stored.subscribers {
                let Some(shared) = self.get(subscriber) else {
                    continue;
                };
                let entry = Entry::new(stored.sequence, Arc::clone(&stored.event), 0, None);
                shared.queue().offer(entry);
                shared.changed.notify_one();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ComponentName, Arc<SubscriberQueue>>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the entities that those who do not yield could work on now.
fn to_do(inboxes: &HashMap<ComponentName, Arc<SubscriberQueue>>) -> usize {
    let working = inboxes.values().filter(|shared| !shared.yields);
    working.map(|shared| shared.queue().ready()).sum()
}
