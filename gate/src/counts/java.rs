//! Reads what maven's surefire and failsafe print, and gradle.

use ropewalk_schemas::attempt::TestCounts;

use super::number_before;

/// Reads whichever of the two it is.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    maven(output).or_else(|| gradle(output))
}

/// Adds up the totals of modules; the lines of single classes tell a time, the totals do not.
fn maven(output: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
    for line in output.lines() {
        let text = line.split_once("] ").map_or(line, |(_, text)| text);
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
        counts.failed += failures + errors;
        counts.ignored += skipped;
        counts.passed += ran.saturating_sub(failures + errors + skipped);
    }
    seen.then_some(counts)
}

/// Counts `HabitsTest > adds() PASSED` where the build logs it, else reads `3 tests completed, 1 failed`.
fn gradle(output: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
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
            _ => continue,
        }
        seen = true;
    }
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
        // What is logged one by one is counted already, and says more.
        if !seen {
            counts.failed += failed;
            counts.ignored += skipped;
            counts.passed += all.saturating_sub(failed + skipped);
        }
    }
    let counted = counts.passed + counts.failed + counts.ignored > 0;
    counted.then_some(counts)
}
