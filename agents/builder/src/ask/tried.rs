//! Tells what was tried at a task: each try that failed, and what its agent said of it.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_orchestrator::Context;
use ropewalk_schemas::amount::counted_as;
use ropewalk_schemas::attempt::{Attempt, Failure, FailureClass};
use ropewalk_schemas::clip;
use ropewalk_schemas::task::Task;
use ropewalk_store::ReadError;

use super::class_name;
use crate::context::attempts_at;

/// So many letters are told of what an agent said.
const SAID_LETTERS: usize = 400;

/// What the attempts at a task show of its tries; one that only waited for an answer, or was cut off, was none.
pub(super) struct Tries {
    /// What the agents said of each, by its number.
    said: BTreeMap<u32, String>,
    /// The numbers of those that failed.
    failed: BTreeSet<u32>,
}

impl Tries {
    /// Reads them.
    pub(super) async fn load(context: &Context, task: &Task) -> Result<Self, ReadError> {
        let attempts = attempts_at(&context.store, task.build, &task.id).await?;
        let failures = attempts.iter().flat_map(|attempt| attempt.failures());
        // What a person allowed afterwards did not fail.
        let failures = failures.filter(|failure| failure.class != FailureClass::Tampered);
        Ok(Self {
            failed: failures.map(|failure| failure.attempt).collect(),
            said: attempts.iter().flat_map(|attempt| said(attempt)).collect(),
        })
    }

    /// Adds what the agent of a try said that is written down only now.
    pub(super) fn add(&mut self, number: u32, summary: Option<String>) {
        self.said.extend(summary.map(|summary| (number, summary)));
    }

    /// Counts the tries that failed before those of which `failures` are kept: it is long ago.
    fn older(&self, failures: &[&Failure]) -> usize {
        let first = failures.iter().map(|failure| failure.attempt).min();
        self.failed.range(..first.unwrap_or_default()).count()
    }

    /// Counts those that failed.
    pub(super) fn count(&self, failures: &[&Failure]) -> usize {
        self.older(failures) + failures.len()
    }

    /// Tells each that failed, by its place among them.
    pub(super) fn told(&self, failures: &[&Failure]) -> Vec<String> {
        let older = self.older(failures);
        // What counts as met anew stands behind what came after it.
        let mut failures = failures.to_vec();
        failures.sort_by_key(|failure| failure.attempt);
        let older_told = (older > 0).then(|| {
            let count = counted_as(older as u64, "try", "tries");
            format!("- {count} long before")
        });
        let each = failures.iter().zip(older + 1..);
        let each =
            each.map(|(failure, number)| told(number, failure, self.said.get(&failure.attempt)));
        older_told.into_iter().chain(each).collect()
    }
}

fn said(attempt: &Attempt) -> Vec<(u32, String)> {
    let tries = attempt.tries.iter();
    let tries = tries.map(|one| (&one.failure, one.summary.as_ref()));
    let last = attempt.failure.iter();
    let last = last.map(|failure| (failure, attempt.summary.as_ref()));
    let said = tries.chain(last);
    said.filter_map(|(failure, summary)| Some((failure.attempt, summary?.clone())))
        .collect()
}

fn told(number: usize, failure: &Failure, said: Option<&String>) -> String {
    let first = failure.error.lines().find(|line| !line.trim().is_empty());
    let told = format!(
        "- try {number}: {} {}",
        class_name(failure.class),
        first.unwrap_or_default().trim()
    );
    let said = said.map(|said| clip::line(said, SAID_LETTERS));
    match said.filter(|said| !said.is_empty()) {
        Some(said) => format!("{told}\n  Its agent said: {said}"),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(attempt: u32) -> Failure {
        Failure {
            class: FailureClass::Blocked,
            error: "which colour?".to_owned(),
            fingerprint: String::new(),
            attempt,
        }
    }

    fn tries(failed: &[u32], said: BTreeMap<u32, String>) -> Tries {
        let failed = failed.iter().copied().collect();
        Tries { said, failed }
    }

    #[test]
    fn each_try_that_failed_is_counted_and_told_and_no_other() {
        for (kept, failed, expected) in [
            (&[1, 2][..], &[1][..], &["- try 1: B", "- try 2: B"][..]),
            // The first attempt only waited for an answer.
            (&[2], &[], &["- try 1: B"]),
            (&[1, 3], &[1], &["- try 1: B", "- try 2: B"]),
            // The first counts as met anew.
            (
                &[2, 1, 3],
                &[1, 2, 3],
                &["- try 1: B", "- try 2: B", "- try 3: B"],
            ),
            // Of the first two nothing is kept any more.
            (
                &[4, 5],
                &[1, 3, 4],
                &["- 2 tries long before", "- try 3: B", "- try 4: B"],
            ),
        ] {
            let failures: Vec<Failure> = kept.iter().copied().map(failure).collect();
            let failures: Vec<&Failure> = failures.iter().collect();
            let tries = tries(failed, BTreeMap::new());
            let told = tries.told(&failures);
            assert_eq!(told.len(), expected.len(), "{told:?}");
            for (line, start) in told.iter().zip(expected) {
                assert!(line.starts_with(start), "{told:?}");
            }
            let last = told.last().unwrap();
            let count = format!("- try {}: ", tries.count(&failures));
            assert!(last.starts_with(&count), "{told:?}");
        }
    }

    #[test]
    fn what_an_agent_said_of_its_try_is_told_with_it_on_one_line_that_ends() {
        let said = BTreeMap::from([
            (1, format!("Added\na parser. {}", "more ".repeat(200))),
            (2, " \n".to_owned()),
        ]);
        let told = tries(&[1, 2], said).told(&[&failure(1), &failure(2), &failure(3)]);
        let first = told[0].strip_prefix("- try 1: BLOCKED which colour?\n");
        let first = first.unwrap();
        assert!(
            first.starts_with("  Its agent said: Added a parser. more"),
            "{first}"
        );
        assert!(first.ends_with('…') && first.chars().count() < SAID_LETTERS + 30);
        let others = [2, 3].map(|number| format!("- try {number}: BLOCKED which colour?"));
        assert_eq!(told[1..], others);
    }
}
