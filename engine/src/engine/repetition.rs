//! Notices a model that goes round in circles (LOOP-10 of the capability list).
//!
//! The call that closes the third round is left to a person, whatever rules allow. Who goes on in the circle after it was
//! refused, again and again, is lost.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use ropewalk_llm::ToolUse;
use serde_json::Value;

/// So many repetitions are a circle.
const REPETITIONS: usize = 3;
/// The longest circle that is noticed, in calls.
const LONGEST: usize = 3;

/// So many calls in a row that were refused as circles end a job.
const REFUSALS: u32 = 3;

/// Remembers the last calls of a job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repetition {
    recent: Vec<u64>,
    /// So many of the last calls were refused because they closed a circle.
    refused: u32,
}

impl Repetition {
    /// Takes the next call; says whether it closes the third round of a circle of one, two or three calls.
    pub(crate) fn repeats(&mut self, call: &ToolUse) -> bool {
        if self.recent.len() == REPETITIONS * LONGEST {
            self.recent.remove(0);
        }
        self.recent.push(fingerprint(call));
        (1..=LONGEST).any(|length| self.is_circle_of(length))
    }

    /// Takes whether a call was refused because it closed a circle; says whether the model minds no refusal.
    pub(crate) fn is_lost(&mut self, was_refused: bool) -> bool {
        self.refused = if was_refused { self.refused + 1 } else { 0 };
        self.refused >= REFUSALS
    }

    fn is_circle_of(&self, length: usize) -> bool {
        let Some(start) = self.recent.len().checked_sub(length * REPETITIONS) else {
            return false;
        };
        let tail = &self.recent[start..];
        tail.iter().skip(length).zip(tail).all(|(a, b)| a == b)
    }
}

fn fingerprint(call: &ToolUse) -> u64 {
    let mut hasher = DefaultHasher::new();
    call.name.to_lowercase().hash(&mut hasher);
    hash_value(&call.input, &mut hasher);
    hasher.finish()
}

/// Hashes a value without regard to the order of its keys.
fn hash_value(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(object) => {
            let mut entries: Vec<_> = object.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            for (key, value) in entries {
                key.hash(hasher);
                hash_value(value, hasher);
            }
            hasher.write_u8(1);
        }
        Value::Array(items) => {
            for item in items {
                hash_value(item, hasher);
            }
            hasher.write_u8(2);
        }
        plain => plain.to_string().hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the position, from 1, of the first call that is one too many.
    fn stops_at(calls: &[&str]) -> Option<usize> {
        let mut repetition = Repetition::default();
        calls
            .iter()
            .position(|arguments| repetition.repeats(&ToolUse::parse("t", "grep", arguments)))
            .map(|index| index + 1)
    }

    #[test]
    fn the_third_round_of_a_circle_is_one_too_many() {
        let (a, b, c) = (r#"{"x":1,"y":2}"#, r#"{"x":2}"#, r#"{"x":3}"#);
        let permuted = r#"{"y":2,"x":1}"#;
        let cases: [(&[&str], Option<usize>); 7] = [
            (&[a, a], None),
            (&[a, a, a], Some(3)),
            (&[a, permuted, a], Some(3)),
            (&[a, a, b, a, a], None),
            (&[a, b, a, b, a, b], Some(6)),
            (&[a, b, c, a, b, c, a, b, c], Some(9)),
            (&[a, b, c, a, b, c, a, b], None),
        ];
        for (calls, expected) in cases {
            assert_eq!(stops_at(calls), expected, "{calls:?}");
        }
    }
}
