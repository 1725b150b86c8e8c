//! Decides what is progress: a file that changed, a result that was not seen before, or a part of the code base that
//! is read for the first time. Words are none, nor is a command that ends as one did before.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use crate::tool::{Effect, ToolOutput};

/// Remembers what a job has seen.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    seen: HashSet<u64>,
}

impl Progress {
    /// Takes the next output of a tool; says whether it is a step forward.
    pub(crate) fn made_by(&mut self, output: &ToolOutput) -> bool {
        match &output.effect {
            Effect::Nothing | Effect::Planned(_) => false,
            Effect::Changed => true,
            Effect::Answered => self.is_new(&without_numbers(&output.text)),
            Effect::Showed { path, lines } => {
                // Every line is remembered, so no short cut after the first new one.
                let lines = lines.iter().cloned().flatten();
                let new = lines.filter(|line| self.is_new(&(path, line)));
                new.count() > 0
            }
        }
    }

    fn is_new(&mut self, what: &impl Hash) -> bool {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        self.seen.insert(hasher.finish())
    }
}

/// Leaves out what differs between two runs of the very same thing: times, process ids, addresses.
fn without_numbers(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_ascii_digit())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(effect: Effect, text: &str) -> ToolOutput {
        ToolOutput {
            effect,
            ..ToolOutput::text(text)
        }
    }

    fn answered(text: &str) -> ToolOutput {
        output(Effect::Answered, text)
    }

    fn showed(path: &str, lines: std::ops::RangeInclusive<usize>) -> ToolOutput {
        let path = path.to_owned();
        let lines = vec![lines];
        output(Effect::Showed { path, lines }, "")
    }

    #[test]
    fn only_what_changes_or_is_new_is_a_step_forward() {
        let rows = [
            (answered("ok in 3 ms"), true),
            (answered("ok in 17 ms"), false),
            (answered("failed"), true),
            (answered("failed"), false),
            (answered("ok in 3 ms"), false),
            (showed("a", 1..=20), true),
            (showed("a", 5..=20), false),
            (showed("a", 20..=21), true),
            (showed("b", 1..=20), true),
            (output(Effect::Changed, "wrote `a`"), true),
            (output(Effect::Changed, "wrote `a`"), true),
            (output(Effect::Nothing, "something else"), false),
            (ToolOutput::error("refused"), false),
        ];
        let mut progress = Progress::default();
        for (number, (output, expected)) in rows.iter().enumerate() {
            assert_eq!(progress.made_by(output), *expected, "{number}: {output:?}");
        }
    }
}
