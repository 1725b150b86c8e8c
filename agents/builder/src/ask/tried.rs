//! Tells what was tried at a task: each attempt that failed, and what its agent said of it.

use std::collections::BTreeMap;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{Attempt, Failure};
use ropewalk_schemas::clip;
use ropewalk_schemas::task::Task;
use ropewalk_store::{Query, ReadError};

use super::class_name;

/// What is told of an attempt of which nothing is kept that failed: a person was asked, it was cut off, or it is long ago.
const NO_FAILURE: &str = "no failure on record";
/// So many letters are told of what an agent said.
const SAID_LETTERS: usize = 400;

/// Returns what the agents of a task said of each try, by its number.
pub(super) async fn said(
    context: &Context,
    task: &Task,
) -> Result<BTreeMap<u32, String>, ReadError> {
    let query = Query::new()
        .equal("build", task.build.to_string())
        .equal("task", task.id.as_str())
        .order_by("number");
    let attempts = context.store.list::<Attempt>(query).await?;
    Ok(attempts.iter().flat_map(|attempt| of(attempt)).collect())
}

fn of(attempt: &Attempt) -> Vec<(u32, String)> {
    let tries = attempt.tries.iter();
    let tries = tries.map(|one| (&one.failure, one.summary.as_ref()));
    let last = attempt.failure.iter();
    let last = last.map(|failure| (failure, attempt.summary.as_ref()));
    let said = tries.chain(last);
    said.filter_map(|(failure, summary)| Some((failure.attempt, summary?.clone())))
        .collect()
}

/// Tells every attempt up to the last that failed, so that their number is that of the attempts.
pub(super) fn every_attempt(failures: &[&Failure], said: &BTreeMap<u32, String>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut before = 0;
    for failure in failures {
        lines.extend(match failure.attempt.saturating_sub(before) {
            0 | 1 => None,
            2 => Some(format!("- attempt {}: {NO_FAILURE}", before + 1)),
            _ => Some(format!(
                "- attempts {} to {}: {NO_FAILURE}",
                before + 1,
                failure.attempt - 1
            )),
        });
        lines.push(told(failure, said.get(&failure.attempt)));
        before = failure.attempt;
    }
    lines
}

fn told(failure: &Failure, said: Option<&String>) -> String {
    let first = failure.error.lines().find(|line| !line.trim().is_empty());
    let told = format!(
        "- attempt {}: {} {}",
        failure.attempt,
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
    use ropewalk_schemas::attempt::FailureClass;

    use super::*;

    fn failure(attempt: u32) -> Failure {
        Failure {
            class: FailureClass::Blocked,
            error: "which colour?".to_owned(),
            fingerprint: String::new(),
            attempt,
        }
    }

    #[test]
    fn every_attempt_up_to_the_last_is_told() {
        for (numbers, expected) in [
            (&[1, 2][..], &["- attempt 1: B", "- attempt 2: B"][..]),
            (&[2], &["- attempt 1: no", "- attempt 2: B"]),
            (&[3], &["- attempts 1 to 2: no", "- attempt 3: B"]),
            (
                &[1, 3],
                &["- attempt 1: B", "- attempt 2: no", "- attempt 3: B"],
            ),
        ] {
            let failures: Vec<Failure> = numbers.iter().copied().map(failure).collect();
            let failures: Vec<&Failure> = failures.iter().collect();
            let told = every_attempt(&failures, &BTreeMap::new());
            assert_eq!(told.len(), expected.len(), "{told:?}");
            for (line, start) in told.iter().zip(expected) {
                assert!(line.starts_with(start), "{told:?}");
            }
        }
    }

    #[test]
    fn what_an_agent_said_of_its_try_is_told_with_it_on_one_line_that_ends() {
        let said = BTreeMap::from([
            (1, format!("Added\na parser. {}", "more ".repeat(200))),
            (2, " \n".to_owned()),
        ]);
        let told = every_attempt(&[&failure(1), &failure(2), &failure(3)], &said);
        let first = told[0].strip_prefix("- attempt 1: BLOCKED which colour?\n");
        let first = first.unwrap();
        assert!(
            first.starts_with("  Its agent said: Added a parser. more"),
            "{first}"
        );
        assert!(first.ends_with('…') && first.chars().count() < SAID_LETTERS + 30);
        let others = [2, 3].map(|number| format!("- attempt {number}: BLOCKED which colour?"));
        assert_eq!(told[1..], others);
    }
}
