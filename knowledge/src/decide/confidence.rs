//! How sure we are of an item, step by step.

use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeState};

use crate::similarity::says_the_same;
use crate::telling::telling_line;

/// What a mistake has of which a failure was seen.
pub const FAILURE_SEEN: f64 = 0.7;
/// What a mistake has that somebody tells of, and no failure showed: it goes into no task until it is seen again.
pub const MERELY_TOLD: f64 = 0.5;
/// What an item has at least when it was seen in two executions and confirmed.
const SEEN_TWICE: f64 = 0.85;
/// What an item has at least when it prevented a failure.
const PREVENTED: f64 = 0.95;
/// What an item loses when it did not help.
const LOSS: f64 = 0.1;

/// Says what the use of an item did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A task passed at its first try with it, of the kind that had failed without it.
    PreventedFailure,
    /// The mistake that it tells of was made again with it.
    DidNotHelp,
}

/// Returns the confidence of an item that a review confirms.
pub fn after_confirmation(item: &KnowledgeItem) -> f64 {
    if item.occurrences() >= 2 {
        item.confidence.max(SEEN_TWICE)
    } else {
        item.confidence
    }
}

/// Returns the confidence of an item that was seen again; a candidate waits for its review.
pub fn after_sighting(item: &KnowledgeItem) -> f64 {
    match item.state {
        KnowledgeState::Confirmed | KnowledgeState::Promoted => after_confirmation(item),
        KnowledgeState::Candidate | KnowledgeState::Deprecated | KnowledgeState::Superseded => {
            item.confidence
        }
    }
}

/// Returns the confidence of an item whose use had an effect.
pub fn after_effect(confidence: f64, effect: Effect) -> f64 {
    match effect {
        Effect::PreventedFailure => confidence.max(PREVENTED),
        Effect::DidNotHelp => rounded((confidence - LOSS).max(0.0)),
    }
}

/// How a task fared that carried an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskOutcome<'a> {
    /// Whether it was complete at its first try.
    pub passed_first: bool,
    /// What its failed tries showed.
    pub failures: &'a [&'a str],
}

/// Returns what an item did for a task that carried it; `learned_of` is what the failures showed that taught it.
///
/// A mere pass proves nothing where no failure taught the item, and neither does a failure of another kind (design §12).
pub fn effect(learned_of: &[&str], fared: TaskOutcome<'_>) -> Option<Effect> {
    let came_back = |failure: &&str| {
        let failure = telling_line(failure);
        let mut before = learned_of.iter().map(|error| telling_line(error));
        before.any(|error| says_the_same(&error, &failure))
    };
    if fared.failures.iter().any(came_back) {
        return Some(Effect::DidNotHelp);
    }
    let failed_without = !learned_of.is_empty();
    (fared.passed_first && failed_without).then_some(Effect::PreventedFailure)
}

/// Keeps 0.85 - 0.1 at 0.75, so that a boundary is where it looks to be.
fn rounded(confidence: f64) -> f64 {
    (confidence * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::tests::item;

    fn seen(times: usize, confidence: f64, state: KnowledgeState) -> KnowledgeItem {
        let mut item = item(1);
        item.executions = (0..times).map(|number| format!("build-{number}")).collect();
        item.confidence = confidence;
        item.state = state;
        item
    }

    /// What taught the lesson, whether the task passed at once, how it failed, and what that shows.
    type Row<'a> = (&'a [&'a str], bool, &'a [&'a str], Option<Effect>);

    #[test]
    fn only_the_failure_that_taught_it_says_what_a_lesson_did() {
        let taught = "`validation` failed\n\nParse error near line 1: near \"DATEE\"";
        let other = "`validation` failed\n\nassertion failed: three columns expected";
        let rows: [Row<'_>; 6] = [
            (&[taught], true, &[], Some(Effect::PreventedFailure)),
            (&[], true, &[], None),
            (&[taught], false, &[taught], Some(Effect::DidNotHelp)),
            (&[taught], false, &[other], None),
            (&[taught], false, &[other, taught], Some(Effect::DidNotHelp)),
            (&[taught], false, &[], None),
        ];
        for (learned_of, passed_first, failures, expected) in rows {
            let fared = TaskOutcome {
                passed_first,
                failures,
            };
            assert_eq!(
                effect(learned_of, fared),
                expected,
                "{learned_of:?} {fared:?}"
            );
        }
    }

    #[test]
    fn confidence_goes_up_and_down_in_steps() {
        use KnowledgeState::{Candidate, Confirmed, Promoted};
        let confirmed = [
            (1, 0.7, 0.7),
            (2, 0.7, 0.85),
            (2, 0.84, 0.85),
            (2, 0.95, 0.95),
            (3, 0.9, 0.9),
        ];
        for (times, before, after) in confirmed {
            let confidence = after_confirmation(&seen(times, before, Candidate));
            assert!((confidence - after).abs() < 1e-9, "{times} {before}");
        }
        let sighted = [(Candidate, 0.7), (Confirmed, 0.85), (Promoted, 0.85)];
        for (state, after) in sighted {
            let confidence = after_sighting(&seen(2, 0.7, state));
            assert!((confidence - after).abs() < 1e-9, "{state}");
        }
        let effects = [
            (0.7, Effect::PreventedFailure, 0.95),
            (0.99, Effect::PreventedFailure, 0.99),
            (0.85, Effect::DidNotHelp, 0.75),
            (0.7, Effect::DidNotHelp, 0.6),
            (0.05, Effect::DidNotHelp, 0.0),
        ];
        for (before, effect, after) in effects {
            assert_eq!(
                after_effect(before, effect).to_bits(),
                f64::to_bits(after),
                "{before} {effect:?}"
            );
        }
    }
}
