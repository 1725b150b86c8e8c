//! Gathers several steps of one item into one write: a change set may write a row once.

use std::collections::BTreeMap;

use ropewalk_knowledge::{Change, RecordResult};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::{KnowledgeId, Payload, Subject};
use ropewalk_store::{ChangeSet, Versioned};

/// Holds knowledge items while steps are applied to them.
#[derive(Default)]
pub(super) struct Ledger {
    before: BTreeMap<KnowledgeId, Versioned<KnowledgeItem>>,
    after: BTreeMap<KnowledgeId, KnowledgeItem>,
    recorded: ChangeSet,
    payloads: Vec<Payload>,
    new: usize,
}

impl Ledger {
    /// Takes up items as they were read.
    pub(super) fn open<'a>(rows: impl IntoIterator<Item = &'a Versioned<KnowledgeItem>>) -> Self {
        let mut ledger = Self::default();
        for row in rows {
            ledger.after.insert(row.id, row.record.clone());
            ledger.before.insert(row.id, row.clone());
        }
        ledger
    }

    /// Applies a step to an item as the steps before left it.
    pub(super) fn step(
        &mut self,
        id: KnowledgeId,
        step: impl FnOnce(&Versioned<KnowledgeItem>) -> Option<Change>,
    ) {
        let (Some(before), Some(record)) = (self.before.get(&id), self.after.get(&id)) else {
            return;
        };
        let row = Versioned {
            version: before.version,
            record: record.clone(),
        };
        if let Some(change) = step(&row) {
            self.payloads.extend(change.payloads);
            self.after.insert(id, change.item);
        }
    }

    /// Takes what was recorded anew. Something that is in the ledger already is not written a second time.
    pub(super) fn record(&mut self, recorded: RecordResult) {
        let written = recorded.changes.written::<KnowledgeItem>();
        if written.iter().any(|item| self.after.contains_key(&item.id)) {
            return;
        }
        for item in written {
            self.new += 1;
            self.after.insert(item.id, item);
        }
        self.recorded.merge(recorded.changes);
        self.payloads.extend(recorded.payloads);
    }

    /// Writes what the steps came to, and returns how many items changed.
    pub(super) fn close(self, changes: &mut ChangeSet, context: &Context) -> usize {
        let mut count = self.new;
        for (id, before) in &self.before {
            if let Some(after) = self.after.get(id)
                && *after != before.record
            {
                changes.update(before, after);
                count += 1;
            }
        }
        changes.merge(self.recorded);
        for payload in self.payloads {
            let id = match &payload {
                Payload::KnowledgeRecorded(recorded) => recorded.item_id,
                Payload::KnowledgeReinforced(reinforced) => reinforced.item_id,
                Payload::KnowledgeDeprecated(deprecated) => deprecated.item_id,
                Payload::KnowledgePromoted(promoted) => promoted.item_id,
                _ => continue,
            };
            changes.emit(context.event(Subject::knowledge(id), payload));
        }
        count
    }
}
