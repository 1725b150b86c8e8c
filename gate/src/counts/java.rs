//! Reads what maven's surefire and failsafe print, and gradle.

use ropewalk_schemas::attempt::TestCounts;

use super::{add, most, number_before};

/// Adds up the totals of modules; the lines of single classes tell a time, the totals do not.
pub(super) fn maven(output: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
    for line in output.lines() {
        // The name of a module may stand before the level.
        let text = line.rsplit_once("] ").map_or(line, |(_, text)| text);
        let Some(rest) = text.trim().strip_prefix("Tests run: ") else {
            continue;
        };
        if rest.contains("Time elapsed") {
            continue;
        }
        let of = |label: &str| {
            let part = rest.split(", ").find_map(|part| part.strip_prefix(label));
            part.and_then(|number| number.trim().parse::<u32>().ok())
        };
        let ran = rest
            .split(',')
            .next()
            .and_then(|number| number.trim().parse::<u32>().ok());
        let (Some(ran), Some(failures), Some(errors)) = (ran, of("Failures: "), of("Errors: "))
        else {
            continue;
        };
        let skipped = of("Skipped: ").unwrap_or(0);
        seen = true;
        let failed = failures.saturating_add(errors);
        add(&mut counts.failed, failed);
        add(&mut counts.ignored, skipped);
        let others = failed.saturating_add(skipped);
        add(&mut counts.passed, ran.saturating_sub(others));
    }
    seen.then_some(counts)
}

/// Takes of each number the higher one of what gradle logs and what it sums up: it logs what the build has it log, and sums up a task
/// alone of which a test failed.
pub(super) fn gradle(output: &str) -> Option<TestCounts> {
    let counts = most(logged(output), &summed_up(output));
    let counted = counts.passed > 0 || counts.failed > 0 || counts.ignored > 0;
    counted.then_some(counts)
}

/// Counts `HabitsTest > adds() PASSED`.
fn logged(output: &str) -> TestCounts {
    let mut counts = TestCounts::default();
    for line in output.lines().map(str::trim) {
        let Some((name, outcome)) = line.rsplit_once(' ') else {
            continue;
        };
        if !name.contains(" > ") {
            continue;
        }
        match outcome {
            "PASSED" => {
                counts.passed += 1;
                counts.names.push(name.to_owned());
            }
            "FAILED" => {
                counts.failed += 1;
                counts.failed_names.push(name.to_owned());
            }
            "SKIPPED" => counts.ignored += 1,
            _ => {}
        }
    }
    counts
}

/// Adds up `3 tests completed, 1 failed`, one for each task.
fn summed_up(output: &str) -> TestCounts {
    let mut counts = TestCounts::default();
    let completed = output
        .lines()
        .map(str::trim)
        .filter(|line| line.contains(" completed, ") && line.contains(" test"));
    for line in completed {
        let Some(all) = number_before(line, " test") else {
            continue;
        };
        let failed = number_before(line, " failed").unwrap_or(0);
        let skipped = number_before(line, " skipped").unwrap_or(0);
        add(&mut counts.failed, failed);
        add(&mut counts.ignored, skipped);
        let others = failed.saturating_add(skipped);
        add(&mut counts.passed, all.saturating_sub(others));
    }
    counts
}
