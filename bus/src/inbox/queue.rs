//! Orders the open deliveries of one subscriber: pure, without clock, store or tasks.
//!
//! The queue holds a prefix, by sequence, of what is open in the store, so that the head of an entity's
//! lane is the earliest open delivery of that entity. Bodies of events are kept while there is room.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ropewalk_schemas::{CloudEvent, EventId, Slug, Subject};
use ropewalk_store::DeliveryPosition;

/// Bounds what one queue keeps in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// How many deliveries may be handed out and unfinished.
    pub(crate) in_flight: usize,
    /// How many deliveries are known at once; the rest stays in the store until there is room.
    pub(crate) entries: usize,
    /// How many bytes of event bodies are kept; an event beyond is read again when its turn comes.
    pub(crate) body_bytes: usize,
}

/// One open delivery as the queue knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) sequence: i64,
    pub(crate) event_id: EventId,
    pub(crate) subject: Subject,
    pub(crate) priority: u8,
    pub(crate) attempts: u32,
    pub(crate) due: Option<DateTime<Utc>>,
    pub(crate) body: Option<Arc<CloudEvent>>,
}

impl Entry {
    /// Returns the entry of a delivery that carries its event.
    pub(crate) fn new(
        sequence: i64,
        event: Arc<CloudEvent>,
        attempts: u32,
        due: Option<DateTime<Utc>>,
    ) -> Self {
        // Large data that was not fetched is read when its turn comes.
        let whole = event.dataref.is_none() || !event.data.is_null();
        Self {
            sequence,
            event_id: event.id,
            subject: event.subject.clone(),
            priority: event.priority.get(),
            attempts,
            due,
            body: whole.then_some(event),
        }
    }

    fn body_bytes(&self) -> usize {
        self.body.as_deref().map_or(0, body_bytes)
    }

    /// Says whether it may be about `idea`: what names no idea may be about any.
    fn may_be_about(&self, idea: &Slug) -> bool {
        let data = self.body.as_deref().map(|event| &event.data);
        let named = data.and_then(|data| data.get("idea_slug"));
        named.is_none_or(|named| named.as_str() == Some(idea.as_str()))
    }
}

/// The deliveries of one entity, earliest first.
#[derive(Debug, Default)]
struct Lane {
    entries: BTreeMap<i64, Entry>,
    /// The delivery that is handed out, which stays the head until it is settled.
    busy: Option<i64>,
}

/// What a queue wants read from the store before it can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReadScope {
    /// What lies behind the highest known sequence.
    Newer,
    /// Everything that is open.
    All,
}

/// Orders the open deliveries of one subscriber.
#[derive(Debug)]
pub(crate) struct Queue {
    bounds: Bounds,
    /// The idea whose deliveries are handed out; those of others stay open in the store.
    only: Option<Slug>,
    lanes: HashMap<Subject, Lane>,
    subjects: HashMap<i64, Subject>,
    /// Heads of idle lanes that may be handed out now, the most urgent first.
    ready: BTreeSet<(u8, i64)>,
    /// Heads of idle lanes whose time has not come.
    delayed: BTreeSet<(DateTime<Utc>, i64)>,
    in_flight: usize,
    body_bytes: usize,
    highest: i64,
    wanted: Option<ReadScope>,
    /// Set when an offer was refused, so that the reader knows it must look again.
    refused: bool,
    reading: bool,
    /// What was settled since the current read began: the read may still show it as open.
    settled_while_reading: HashSet<i64>,
    /// What was known when the current read began: gone from the store if the read does not show it.
    known_before_reading: HashSet<i64>,
    /// What another process has, or what waits for something that another process has.
    contested: BTreeSet<i64>,
    /// Whether something about the contested ones may have changed.
    look: bool,
}

impl Queue {
    /// Returns an empty queue that wants to be filled.
    pub(crate) fn new(bounds: Bounds, only: Option<Slug>) -> Self {
        Self {
            bounds,
            only,
            lanes: HashMap::new(),
            subjects: HashMap::new(),
            ready: BTreeSet::new(),
            delayed: BTreeSet::new(),
            in_flight: 0,
            body_bytes: 0,
            highest: 0,
            wanted: Some(ReadScope::All),
            refused: false,
            reading: false,
            settled_while_reading: HashSet::new(),
            known_before_reading: HashSet::new(),
            contested: BTreeSet::new(),
            look: false,
        }
    }

    /// Takes a delivery that was just committed. While something must be read from the store first,
    /// it is left to that read, so that the queue stays a prefix.
    pub(crate) fn offer(&mut self, entry: Entry) {
        if entry.sequence <= self.highest {
            // A read was faster; what it found may even be settled already.
            return;
        }
        if self.wanted.is_some() || self.subjects.len() >= self.bounds.entries {
            self.refused = true;
            self.want(ReadScope::Newer);
        } else {
            self.admit(entry);
        }
    }

    /// Hands out the deliveries of every idea from the next read on.
    pub(crate) fn attend_to_all(&mut self) {
        self.only = None;
    }

    /// Asks for a read of the store.
    pub(crate) fn want(&mut self, wanted: ReadScope) {
        self.refused = true;
        self.wanted = self.wanted.max(Some(wanted));
    }

    /// Says what must be read before the queue can be trusted, if there is room for it.
    pub(crate) fn wanted(&self) -> Option<ReadScope> {
        // A backlog beyond the bound is read on when half of the queue has drained.
        let room = self.subjects.len() <= self.bounds.entries / 2;
        self.wanted
            .filter(|wanted| room || *wanted == ReadScope::All)
    }

    /// Begins a read; answers the sequence after which to read.
    pub(crate) fn begin_read(&mut self, wanted: ReadScope) -> i64 {
        self.refused = false;
        self.reading = true;
        self.settled_while_reading.clear();
        self.known_before_reading = match wanted {
            ReadScope::Newer => HashSet::new(),
            ReadScope::All => self.subjects.keys().copied().collect(),
        };
        match wanted {
            ReadScope::Newer => self.highest,
            ReadScope::All => 0,
        }
    }

    /// Adds one page of a read; answers whether there is room for another.
    pub(crate) fn add_page(&mut self, page: Vec<Entry>) -> bool {
        for entry in page {
            self.known_before_reading.remove(&entry.sequence);
            if self.settled_while_reading.contains(&entry.sequence) {
                continue;
            }
            if self.subjects.contains_key(&entry.sequence) {
                self.refresh(&entry);
            } else {
                self.admit(entry);
            }
        }
        self.subjects.len() < self.bounds.entries
    }

    /// Ends a read that came to the end of what is open (`complete`) or to the queue's bound.
    pub(crate) fn end_read(&mut self, complete: bool) {
        if complete {
            // Closed by somebody else in the meantime: discarded, or its subscriber was changed.
            for sequence in std::mem::take(&mut self.known_before_reading) {
                if !self.is_in_flight(sequence) {
                    self.remove(sequence);
                }
            }
        }
        self.reading = false;
        self.known_before_reading.clear();
        self.settled_while_reading.clear();
        self.wanted = (self.refused || !complete).then_some(ReadScope::Newer);
    }

    /// Hands out the next delivery: of the entities that are idle and due the most urgent, then the oldest.
    pub(crate) fn take(&mut self, now: DateTime<Utc>) -> Option<Entry> {
        if self.in_flight >= self.bounds.in_flight {
            return None;
        }
        self.wake_due(now);
        let (_, sequence) = self.ready.pop_first()?;
        self.hand_out(sequence)
    }

    /// Hands out one delivery before all others, if its entity is idle and it is due.
    pub(crate) fn take_one(&mut self, sequence: i64, now: DateTime<Utc>) -> Option<Entry> {
        self.wake_due(now);
        let subject = self.subjects.get(&sequence)?;
        let priority = self.lanes.get(subject)?.entries.get(&sequence)?.priority;
        self.ready
            .remove(&(priority, sequence))
            .then(|| self.hand_out(sequence))?
    }

    fn hand_out(&mut self, sequence: i64) -> Option<Entry> {
        self.contested.remove(&sequence);
        let lane = self.lanes.get_mut(self.subjects.get(&sequence)?)?;
        lane.busy = Some(sequence);
        self.in_flight += 1;
        lane.entries.get(&sequence).cloned()
    }

    /// Says when the next delayed delivery comes due, unless the queue is at its bound anyway.
    pub(crate) fn next_due(&self) -> Option<DateTime<Utc>> {
        let (due, _) = self.delayed.first()?;
        (self.in_flight < self.bounds.in_flight).then_some(*due)
    }

    /// Forgets a delivery that is closed in the store.
    pub(crate) fn settle(&mut self, sequence: i64) {
        if self.reading {
            self.settled_while_reading.insert(sequence);
        }
        self.hand_back(sequence);
        self.remove(sequence);
    }

    /// Takes a delivery back: tried `attempts` times, not to be handed out before `due`.
    pub(crate) fn put_back(&mut self, sequence: i64, attempts: u32, due: Option<DateTime<Utc>>) {
        self.hand_back(sequence);
        let Some(subject) = self.subjects.get(&sequence).cloned() else {
            return;
        };
        self.unschedule(&subject);
        if let Some(entry) = self.entry_mut(&subject, sequence) {
            entry.attempts = attempts;
            entry.due = due;
        }
        self.schedule(&subject);
    }

    /// Takes a delivery back that this process may not handle now; how it stands is to be looked at.
    pub(crate) fn contest(&mut self, sequence: i64, attempts: u32, until: DateTime<Utc>) {
        self.put_back(sequence, attempts, Some(until));
        self.contested.insert(sequence);
        self.look = true;
    }

    /// Notes that other processes committed something: there may be more, and what they had may be free.
    pub(crate) fn others_committed(&mut self) {
        self.look = true;
        self.want(ReadScope::Newer);
    }

    /// Lists the contested deliveries, once after each time that something about them may have changed.
    pub(crate) fn take_contested(&mut self) -> Vec<i64> {
        if std::mem::take(&mut self.look) {
            self.contested.iter().copied().collect()
        } else {
            Vec::new()
        }
    }

    /// Takes a delivery over as it stands; one that still waits for another process does so until `until` at most.
    pub(crate) fn stands(&mut self, standing: &DeliveryPosition, until: Option<DateTime<Utc>>) {
        let sequence = standing.sequence;
        if until.is_none() {
            self.contested.remove(&sequence);
        }
        let due = until.map_or(standing.due, |until| until.max(standing.due));
        self.put_back(sequence, standing.attempts, Some(due));
    }

    /// Says up to which sequence everything open is known.
    pub(crate) fn highest(&self) -> i64 {
        self.highest
    }

    /// Returns whether the delivery is known and open.
    pub(crate) fn knows(&self, sequence: i64) -> bool {
        self.subjects.contains_key(&sequence)
    }

    /// Says how many deliveries are handed out and unfinished.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Says how many entities could be worked on now and are not.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Says how many deliveries are known, in flight ones included.
    pub(crate) fn len(&self) -> usize {
        self.subjects.len()
    }

    fn is_in_flight(&self, sequence: i64) -> bool {
        self.subjects
            .get(&sequence)
            .and_then(|subject| self.lanes.get(subject))
            .is_some_and(|lane| lane.busy == Some(sequence))
    }

    fn admit(&mut self, mut entry: Entry) {
        self.highest = self.highest.max(entry.sequence);
        let is_of_another = |idea| !entry.may_be_about(idea);
        if self.subjects.contains_key(&entry.sequence)
            || self.only.as_ref().is_some_and(is_of_another)
        {
            return;
        }
        let bytes = entry.body_bytes();
        if self.body_bytes + bytes > self.bounds.body_bytes {
            entry.body = None;
        } else {
            self.body_bytes += bytes;
        }
        let subject = entry.subject.clone();
        self.unschedule(&subject);
        self.subjects.insert(entry.sequence, subject.clone());
        let lane = self.lanes.entry(subject.clone()).or_default();
        lane.entries.insert(entry.sequence, entry);
        self.schedule(&subject);
    }

    /// Takes over what a read says of a delivery that is known and idle.
    fn refresh(&mut self, read: &Entry) {
        if !self.is_in_flight(read.sequence) {
            let subject = read.subject.clone();
            self.unschedule(&subject);
            if let Some(entry) = self.entry_mut(&subject, read.sequence)
                && read.attempts >= entry.attempts
            {
                entry.attempts = read.attempts;
                entry.due = entry.due.max(read.due);
            }
            self.schedule(&subject);
        }
    }

    fn entry_mut(&mut self, subject: &Subject, sequence: i64) -> Option<&mut Entry> {
        self.lanes.get_mut(subject)?.entries.get_mut(&sequence)
    }

    fn hand_back(&mut self, sequence: i64) {
        let Some(subject) = self.subjects.get(&sequence) else {
            return;
        };
        if let Some(lane) = self.lanes.get_mut(subject)
            && lane.busy == Some(sequence)
        {
            lane.busy = None;
            self.in_flight -= 1;
        }
    }

    fn remove(&mut self, sequence: i64) {
        let Some(subject) = self.subjects.remove(&sequence) else {
            return;
        };
        self.contested.remove(&sequence);
        // Unscheduling needs the head that was scheduled, so it comes before the removal.
        self.unschedule(&subject);
        let Some(lane) = self.lanes.get_mut(&subject) else {
            return;
        };
        if let Some(entry) = lane.entries.remove(&sequence) {
            self.body_bytes -= entry.body_bytes();
        }
        if lane.entries.is_empty() {
            self.lanes.remove(&subject);
        } else {
            self.schedule(&subject);
        }
    }

    fn head(&self, subject: &Subject) -> Option<&Entry> {
        let lane = self.lanes.get(subject)?;
        match lane.busy {
            Some(_) => None,
            None => lane.entries.first_key_value().map(|(_, entry)| entry),
        }
    }

    fn unschedule(&mut self, subject: &Subject) {
        let Some(head) = self.head(subject) else {
            return;
        };
        let (priority, sequence, due) = (head.priority, head.sequence, head.due);
        self.ready.remove(&(priority, sequence));
        if let Some(due) = due {
            self.delayed.remove(&(due, sequence));
        }
    }

    fn schedule(&mut self, subject: &Subject) {
        let Some(head) = self.head(subject) else {
            return;
        };
        let (priority, sequence, due) = (head.priority, head.sequence, head.due);
        match due {
            Some(due) => self.delayed.insert((due, sequence)),
            None => self.ready.insert((priority, sequence)),
        };
    }

    fn wake_due(&mut self, now: DateTime<Utc>) {
        while let Some((due, sequence)) = self.delayed.first().copied() {
            if due > now {
                return;
            }
            self.delayed.remove(&(due, sequence));
            let Some(subject) = self.subjects.get(&sequence).cloned() else {
                continue;
            };
            if let Some(entry) = self.entry_mut(&subject, sequence) {
                entry.due = None;
                let priority = entry.priority;
                self.ready.insert((priority, sequence));
            }
        }
    }
}

/// Estimates the memory of an event's payload.
fn body_bytes(event: &CloudEvent) -> usize {
    256 + value_bytes(&event.data)
}

fn value_bytes(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 32,
        Value::String(text) => 32 + text.len(),
        Value::Array(items) => 32 + items.iter().map(value_bytes).sum::<usize>(),
        Value::Object(fields) => {
            32 + fields
                .iter()
                .map(|(name, value)| name.len() + value_bytes(value))
                .sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests;
