//! Names what the doctor does not look at while no configuration holds.

use ropewalk_desk::health::{Finding, Fitness};

use super::GATE;
use crate::project::Project;

/// What is looked at once a configuration holds, for people; the models by one check for each provider.
const OF_CONFIG: [&str; 8] = [
    "repository",
    GATE,
    "state",
    "store",
    "bus",
    "telegram",
    "models",
    "sandbox",
];

/// Names what is looked at where a configuration holds, and was not: neither what stands on a check that failed anyway, nor what
/// the `project`, as far as it is known, has not set up.
pub(super) fn untried(findings: &[Finding], project: Option<&Project>) -> Vec<&'static str> {
    let known = |check: &str| findings.iter().any(|finding| finding.check == check);
    let has_failed = |check: &str| {
        let mut of_check = findings.iter().filter(|finding| finding.check == check);
        of_check.any(|finding| finding.verdict == Fitness::Fail)
    };
    let is_wanted = |check: &str| match check {
        "repository" => !has_failed("git"),
        GATE => !has_failed("git") && !has_failed("repository"),
        "store" => !has_failed("state"),
        "telegram" => project.is_some_and(|project| {
            let telegram = &project.config().telegram;
            telegram.token_variable.is_some()
        }),
        _ => true,
    };
    let untried = OF_CONFIG.into_iter();
    untried
        .filter(|check| !known(check) && is_wanted(check))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_have_been_tried_anyway_is_not_named() {
        let failed = |check: &str| Finding::new(check, Fitness::Fail, "not there");
        let rows: [(&[&str], &[&str]); 4] = [
            (
                &[],
                &[
                    "repository",
                    "gate",
                    "state",
                    "store",
                    "bus",
                    "models",
                    "sandbox",
                ],
            ),
            (&["git"], &["state", "store", "bus", "models", "sandbox"]),
            (
                &["repository"],
                &["state", "store", "bus", "models", "sandbox"],
            ),
            (
                &["state"],
                &["repository", "gate", "bus", "models", "sandbox"],
            ),
        ];
        for (gone, named) in rows {
            let findings: Vec<Finding> = gone.iter().map(|check| failed(check)).collect();
            assert_eq!(untried(&findings, None), named, "{gone:?}");
        }
    }
}
