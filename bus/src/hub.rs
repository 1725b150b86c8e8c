//! Keeps the queues of the subscribers that this process consumes, and wakes their inboxes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ropewalk_schemas::ComponentName;
use ropewalk_store::Committed;
use tokio::sync::Notify;

use crate::inbox::queue::{Bounds, Entry, Queue, Wanted};

/// The queue of one subscriber and the signal that something about it changed.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) subscriber: ComponentName,
    queue: Mutex<Queue>,
    pub(crate) changed: Notify,
}

impl Shared {
    pub(crate) fn new(subscriber: ComponentName, bounds: Bounds) -> Self {
        Self {
            subscriber,
            queue: Mutex::new(Queue::new(bounds)),
            changed: Notify::new(),
        }
    }

    /// Locks the queue; never held across an await.
    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a read of the store and wakes the inbox.
    pub(crate) fn want(&self, wanted: Wanted) {
        self.queue().want(wanted);
        self.changed.notify_one();
    }
}

/// The subscribers that this process consumes.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    inboxes: Mutex<HashMap<ComponentName, Arc<Shared>>>,
}

impl Hub {
    /// Adds a subscriber; answers `false` when it is consumed already.
    pub(crate) fn add(&self, shared: Arc<Shared>) -> bool {
        let mut inboxes = self.lock();
        if inboxes.contains_key(&shared.subscriber) {
            return false;
        }
        inboxes.insert(shared.subscriber.clone(), shared);
        true
    }

    pub(crate) fn remove(&self, subscriber: &ComponentName) {
        self.lock().remove(subscriber);
    }

    pub(crate) fn get(&self, subscriber: &ComponentName) -> Option<Arc<Shared>> {
        self.lock().get(subscriber).cloned()
    }

    /// Asks every inbox for a read of the store.
    pub(crate) fn want(&self, wanted: Wanted) {
        for shared in self.lock().values() {
            shared.want(wanted);
        }
    }

    /// Hands the events of a commit to the queues of their subscribers.
    pub(crate) fn dispatch(&self, committed: &Committed) {
        for stored in &committed.events {
            let mut event = None;
            for subscriber in &stored.subscribers {
                let Some(shared) = self.get(subscriber) else {
                    continue;
                };
                let event = event.get_or_insert_with(|| Arc::new(stored.event.clone()));
                let entry = Entry::new(stored.sequence, Arc::clone(event), 0, None);
                shared.queue().offer(entry);
                shared.changed.notify_one();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ComponentName, Arc<Shared>>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
