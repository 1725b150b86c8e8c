//! Moves an item along its life: confirm, reinforce, promote, deprecate.

use chrono::{DateTime, Utc};
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeState};
use ropewalk_schemas::payload::{KnowledgeDeprecated, KnowledgePromoted, KnowledgeReinforced};
use ropewalk_schemas::{IllegalTransition, Payload};
use ropewalk_store::{ChangeSet, Versioned};

use crate::decide::{self, Effect};

/// Is a step in the life of an item.
#[derive(Debug, Clone)]
pub struct Change {
    /// What is to be written; empty when nothing changes.
    pub changes: ChangeSet,
    /// The item afterwards.
    pub item: KnowledgeItem,
    /// The events that belong to it.
    pub payloads: Vec<Payload>,
}

/// Confirms a candidate; one that was confirmed before only gains what it has earned since.
pub fn confirm(
    item: &Versioned<KnowledgeItem>,
    now: DateTime<Utc>,
) -> Result<Change, IllegalTransition> {
    let mut after = item.record.clone();
    match after.state {
        KnowledgeState::Confirmed | KnowledgeState::Promoted => {}
        state => after.state = state.to(KnowledgeState::Confirmed)?,
    }
    after.confidence = decide::after_confirmation(&after);
    let reason = format!("confirmed, seen in {} executions", after.occurrences());
    Ok(weighed(item, after, &reason, now))
}

/// Weighs an item by the effect of its use; `reason` names the task.
pub fn reinforce(
    item: &Versioned<KnowledgeItem>,
    effect: Effect,
    reason: &str,
    now: DateTime<Utc>,
) -> Change {
    let mut after = item.record.clone();
    after.confidence = decide::after_effect(after.confidence, effect);
    weighed(item, after, reason, now)
}

/// Notes that an item is now part of the conventions file, after a person said yes.
pub fn promote(
    item: &Versioned<KnowledgeItem>,
    file: &str,
    approved_by: &str,
    now: DateTime<Utc>,
) -> Result<Change, IllegalTransition> {
    let mut after = item.record.clone();
    after.state = after.state.to(KnowledgeState::Promoted)?;
    let payload = Payload::KnowledgePromoted(KnowledgePromoted {
        item_id: after.id,
        file: file.to_owned(),
        approved_by: approved_by.to_owned(),
    });
    Ok(written(item, after, vec![payload], now))
}

/// Puts an item out of use.
pub fn deprecate(
    item: &Versioned<KnowledgeItem>,
    reason: &str,
    by: &str,
    now: DateTime<Utc>,
) -> Result<Change, IllegalTransition> {
    let mut after = item.record.clone();
    after.state = after.state.to(KnowledgeState::Deprecated)?;
    let payload = Payload::KnowledgeDeprecated(KnowledgeDeprecated {
        item_id: after.id,
        reason: reason.to_owned(),
        by: by.to_owned(),
    });
    Ok(written(item, after, vec![payload], now))
}

fn weighed(
    item: &Versioned<KnowledgeItem>,
    after: KnowledgeItem,
    reason: &str,
    now: DateTime<Utc>,
) -> Change {
    let payload = Payload::KnowledgeReinforced(KnowledgeReinforced {
        item_id: after.id,
        from: item.record.confidence,
        to: after.confidence,
        reason: reason.to_owned(),
    });
    written(item, after, vec![payload], now)
}

/// Writes nothing, and says nothing, when the item stays as it is.
fn written(
    item: &Versioned<KnowledgeItem>,
    mut after: KnowledgeItem,
    payloads: Vec<Payload>,
    now: DateTime<Utc>,
) -> Change {
    let mut changes = ChangeSet::new();
    if after == item.record {
        return Change {
            changes,
            item: after,
            payloads: Vec::new(),
        };
    }
    after.updated_at = now;
    changes.update(item, &after);
    Change {
        changes,
        item: after,
        payloads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::tests::item;

    fn row(state: KnowledgeState, executions: usize) -> Versioned<KnowledgeItem> {
        let mut record = item(1);
        record.state = state;
        record.executions = (0..executions).map(|number| number.to_string()).collect();
        Versioned { version: 3, record }
    }

    fn now() -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }

    #[test]
    fn a_candidate_is_confirmed_and_gains_when_it_was_seen_twice() {
        for (executions, confidence) in [(1, 0.7), (2, 0.85)] {
            let change = confirm(&row(KnowledgeState::Candidate, executions), now()).unwrap();
            assert_eq!(change.item.state, KnowledgeState::Confirmed);
            assert!((change.item.confidence - confidence).abs() < 1e-9);
            assert_eq!(change.payloads.len(), 1);
            assert_eq!(change.changes.written::<KnowledgeItem>(), [change.item]);
        }
    }

    #[test]
    fn confirming_again_changes_nothing() {
        let change = confirm(&row(KnowledgeState::Confirmed, 1), now()).unwrap();
        assert!(change.changes.is_empty() && change.payloads.is_empty());
    }

    #[test]
    fn an_item_out_of_use_comes_back_by_no_step() {
        for state in [KnowledgeState::Deprecated, KnowledgeState::Superseded] {
            let row = row(state, 1);
            assert!(confirm(&row, now()).is_err());
            assert!(promote(&row, "CLAUDE.md", "ada", now()).is_err());
            assert!(deprecate(&row, "old", "ada", now()).is_err());
        }
    }

    #[test]
    fn a_candidate_is_not_promoted_unreviewed() {
        assert!(
            promote(
                &row(KnowledgeState::Candidate, 3),
                "CLAUDE.md",
                "ada",
                now()
            )
            .is_err()
        );
        let change = promote(
            &row(KnowledgeState::Confirmed, 3),
            "CLAUDE.md",
            "ada",
            now(),
        )
        .unwrap();
        assert_eq!(change.item.state, KnowledgeState::Promoted);
    }

    #[test]
    fn an_effect_says_from_where_to_where() {
        let change = reinforce(
            &row(KnowledgeState::Confirmed, 1),
            Effect::PreventedFailure,
            "T-001 passed",
            now(),
        );
        assert_eq!(
            change.payloads,
            [Payload::KnowledgeReinforced(KnowledgeReinforced {
                item_id: change.item.id,
                from: 0.7,
                to: 0.95,
                reason: "T-001 passed".to_owned(),
            })]
        );
    }
}
