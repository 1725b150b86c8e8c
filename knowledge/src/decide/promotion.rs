//! When an item may become a rule of the project.

use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind, KnowledgeState};

use crate::similarity::normalise;

/// The least confidence.
const CONFIDENCE: f64 = 0.9;
/// The fewest executions it was seen in.
const OCCURRENCES: usize = 3;
/// The fewest ideas it was seen in: a rule of one idea is no rule of the project.
const IDEAS: usize = 2;

/// Says whether a person may be asked to make an item part of the conventions, which do not say it yet.
pub fn may_be_promoted(item: &KnowledgeItem, conventions: &str) -> bool {
    let is_rule = matches!(
        item.kind,
        KnowledgeKind::Gotcha | KnowledgeKind::Pattern | KnowledgeKind::Convention
    );
    is_rule
        && item.state == KnowledgeState::Confirmed
        && item.confidence >= CONFIDENCE
        && item.occurrences() >= OCCURRENCES
        && item.ideas.len() >= IDEAS
        && !normalise(conventions).contains(&normalise(&item.content))
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::Slug;

    use super::*;
    use crate::draft::tests::item;

    #[test]
    fn only_sure_and_universal_lessons_may_be_promoted() {
        let cases = [
            (0.9, 3, 2, KnowledgeState::Confirmed, "", true),
            (0.89, 3, 2, KnowledgeState::Confirmed, "", false),
            (0.9, 2, 2, KnowledgeState::Confirmed, "", false),
            (0.9, 3, 1, KnowledgeState::Confirmed, "", false),
            (0.9, 3, 2, KnowledgeState::Candidate, "", false),
            (0.9, 3, 2, KnowledgeState::Promoted, "", false),
            (
                0.9,
                3,
                2,
                KnowledgeState::Confirmed,
                "# Rules\n- SQLite has no `DATETIME` type; store dates as TEXT.\n",
                false,
            ),
        ];
        for (confidence, seen, ideas, state, conventions, expected) in cases {
            let mut item = item(1);
            item.confidence = confidence;
            item.executions = (0..seen).map(|number| number.to_string()).collect();
            item.ideas = (0..ideas)
                .filter_map(|number| Slug::parse(&format!("idea-{number}")).ok())
                .collect();
            item.state = state;
            assert_eq!(
                may_be_promoted(&item, conventions),
                expected,
                "{confidence} {seen} {ideas} {state}"
            );
        }
    }
}
