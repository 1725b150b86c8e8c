//! Whether something is known already.

use ropewalk_schemas::knowledge::KnowledgeItem;

use crate::similarity::{normalise, says_the_same, similarity};

/// Says how a new item relates to what is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicate {
    /// Nothing like it is known.
    New,
    /// The known item at this position says the same and is as strong: it was seen once more.
    SeenAgain(usize),
    /// The known item at this position says the same and is weaker: the new one takes its place.
    Supersedes(usize),
}

/// Compares a new item with known ones; of several that say the same, the most similar counts.
pub fn duplicate(new: &KnowledgeItem, known: &[KnowledgeItem]) -> Duplicate {
    let closest = known
        .iter()
        .enumerate()
        .filter(|(_, item)| item.kind == new.kind && item.is_usable())
        .filter(|(_, item)| says_the_same(&item.content, &new.content))
        .max_by(|(_, a), (_, b)| closeness(new, a).total_cmp(&closeness(new, b)));
    match closest {
        None => Duplicate::New,
        Some((index, item)) if new.confidence > item.confidence => Duplicate::Supersedes(index),
        Some((index, _)) => Duplicate::SeenAgain(index),
    }
}

fn closeness(new: &KnowledgeItem, known: &KnowledgeItem) -> f64 {
    if normalise(&new.content) == normalise(&known.content) {
        2.0
    } else {
        similarity(&new.content, &known.content)
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::knowledge::{KnowledgeKind, KnowledgeState};

    use super::*;
    use crate::draft::tests::item;

    const LESSON: &str = "SQLite has no DATETIME type; store dates as TEXT";

    fn with(content: &str, confidence: f64) -> KnowledgeItem {
        let mut item = item(1);
        item.content = content.to_owned();
        item.confidence = confidence;
        item
    }

    #[test]
    fn a_weaker_duplicate_counts_and_a_stronger_one_takes_over() {
        let other = with("Foreign keys are off by default in SQLite", 0.9);
        let near = with("SQLite has no DATETIME type, so store dates as TEXT", 0.7);
        let mut deprecated = with(LESSON, 0.9);
        deprecated.state = KnowledgeState::Deprecated;
        let mut pattern = with(LESSON, 0.9);
        pattern.kind = KnowledgeKind::Pattern;
        let cases = [
            (0.7, vec![], Duplicate::New),
            (
                0.7,
                vec![other.clone(), deprecated, pattern],
                Duplicate::New,
            ),
            (
                0.7,
                vec![other.clone(), with(LESSON, 0.7)],
                Duplicate::SeenAgain(1),
            ),
            (0.7, vec![with(LESSON, 0.9)], Duplicate::SeenAgain(0)),
            (
                0.71,
                vec![other, with(LESSON, 0.7)],
                Duplicate::Supersedes(1),
            ),
            (
                0.7,
                vec![near.clone(), with(LESSON, 0.7)],
                Duplicate::SeenAgain(1),
            ),
            (0.8, vec![near], Duplicate::Supersedes(0)),
        ];
        for (confidence, known, expected) in cases {
            assert_eq!(
                duplicate(&with(LESSON, confidence), &known),
                expected,
                "{known:?}"
            );
        }
    }
}
