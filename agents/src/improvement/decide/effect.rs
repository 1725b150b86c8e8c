//! Decides what the use of a lesson did.

use std::collections::BTreeMap;

use ropewalk_knowledge::Effect;
use ropewalk_schemas::KnowledgeId;

/// How often a lesson was carried by tasks of one build, and what it did for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Use {
    /// Tasks that it kept from a failure.
    pub helped: usize,
    /// Tasks that made its mistake all the same.
    pub failed: usize,
}

/// Counts what lessons did, by lesson; a use that proves nothing is counted as neither.
pub fn uses(
    effects: impl IntoIterator<Item = (KnowledgeId, Option<Effect>)>,
) -> BTreeMap<KnowledgeId, Use> {
    let mut uses: BTreeMap<KnowledgeId, Use> = BTreeMap::new();
    for (item, effect) in effects {
        let counted = uses.entry(item).or_default();
        match effect {
            Some(Effect::PreventedFailure) => counted.helped += 1,
            Some(Effect::DidNotHelp) => counted.failed += 1,
            None => {}
        }
    }
    uses
}

/// Decides the effect of a lesson in one build: it counts once, by what most of its tasks show.
pub fn prevailing(seen: Use) -> Option<Effect> {
    match seen {
        Use {
            helped: 0,
            failed: 0,
        } => None,
        Use { helped, failed } if helped >= failed => Some(Effect::PreventedFailure),
        Use { .. } => Some(Effect::DidNotHelp),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_use_that_proves_nothing_counts_as_neither() {
        use Effect::{DidNotHelp, PreventedFailure};
        let item = KnowledgeId(Uuid::from_u128(1));
        let effects = [
            Some(PreventedFailure),
            None,
            Some(DidNotHelp),
            Some(DidNotHelp),
        ];
        let counted = uses(effects.map(|effect| (item, effect)));
        let expected = Use {
            helped: 1,
            failed: 2,
        };
        assert_eq!(counted[&item], expected);
    }

    #[test]
    fn a_lesson_counts_once_by_what_most_tasks_show() {
        let rows = [
            (0, 0, None),
            (1, 0, Some(Effect::PreventedFailure)),
            (2, 2, Some(Effect::PreventedFailure)),
            (1, 2, Some(Effect::DidNotHelp)),
        ];
        for (helped, failed, expected) in rows {
            assert_eq!(
                prevailing(Use { helped, failed }),
                expected,
                "{helped} {failed}"
            );
        }
    }
}
