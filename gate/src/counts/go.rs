//! Reads `go test`, plain, with `-v`, and with `-json`, and what gotestsum makes of it.

mod gotestsum;

use std::collections::{BTreeMap, HashMap};

use ropewalk_schemas::attempt::TestCounts;
use serde_json::Value;

use super::sum;

/// Adds up the runs. Where gotestsum ran again what had failed, the last run of a test counts.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let lines: Vec<&str> = output.lines().map(str::trim).collect();
    let mut all: Option<TestCounts> = None;
    for run in gotestsum::runs(&lines) {
        let Some(counts) = count_run(run.lines, run.is_closed) else {
            continue;
        };
        all = Some(match all {
            Some(before) if run.is_again => {
                sum(without(before, &counts.names, &counts.failed_names), counts)
            }
            Some(before) => sum(before, counts),
            None => counts,
        });
    }
    all
}

/// Counts a run, and in one that gotestsum ended what it tells itself.
fn count_run(lines: &[&str], is_closed: bool) -> Option<TestCounts> {
    let told = is_closed.then(|| gotestsum::count(lines)).flatten();
    match (count_points(lines), told) {
        // It repeats the failures that it passes on.
        (Some(counts), Some(told)) => Some(sum(without(told, &counts.failed_names, &[]), counts)),
        (counts, told) => counts.or(told),
    }
}

/// Leaves out of what failed as many tests of a name as two lists have.
fn without(mut counts: TestCounts, one: &[String], other: &[String]) -> TestCounts {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for name in one.iter().chain(other) {
        *left.entry(name.as_str()).or_default() += 1;
    }
    counts
        .failed_names
        .retain(|name| match left.get_mut(name.as_str()) {
            Some(number) if *number > 0 => {
                *number -= 1;
                false
            }
            _ => true,
        });
    counts.failed = u32::try_from(counts.failed_names.len()).unwrap_or(u32::MAX);
    counts
}

/// Counts the `---` lines; packages alone do not tell how many tests ran.
fn count_points(lines: &[&str]) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
    for line in lines {
        if let Some(event) = json(line) {
            seen = true;
            add(&mut counts, &event.0, &event.1);
        } else if let Some((word, name)) = point(line) {
            seen = true;
            let name = name.split(' ').next().unwrap_or(name);
            add(&mut counts, &word.to_lowercase(), name);
        } else if line.contains("[no test files]") || line.contains("[no tests to run]") {
            seen = true;
        }
    }
    seen.then_some(counts)
}

/// How a package fared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// It did not compile, or could not be set up.
    Unbuilt,
}

/// Counts the packages that failed, be it that they did not compile.
pub(super) fn failed_packages(output: &str) -> u32 {
    packages(output, |outcome| outcome != Outcome::Passed)
}

/// Counts the packages of which nothing could run.
pub(super) fn unbuilt_packages(output: &str) -> u32 {
    packages(output, |outcome| outcome == Outcome::Unbuilt)
}

/// Counts the packages that fared so in the end.
fn packages(output: &str, fared_so: impl Fn(Outcome) -> bool) -> u32 {
    let mut last: BTreeMap<String, Outcome> = BTreeMap::new();
    for (package, outcome) in output.lines().filter_map(|line| of_package(line.trim())) {
        let known = last.entry(package).or_insert(outcome);
        // What failed may be run again and pass; a package that did not compile is never run again.
        if *known != Outcome::Unbuilt {
            *known = outcome;
        }
    }
    let such = last.into_values().filter(|outcome| fared_so(*outcome));
    u32::try_from(such.count()).unwrap_or(u32::MAX)
}

/// Reads what a line says of a whole package.
fn of_package(line: &str) -> Option<(String, Outcome)> {
    let Some(event) = event(line) else {
        let (package, outcome) = summary(line)?;
        return Some((package.to_owned(), outcome));
    };
    if text(&event, "Test").is_some() {
        return None;
    }
    let outcome = match text(&event, "Action")? {
        "pass" => Outcome::Passed,
        "fail" => Outcome::Failed,
        // Why it failed stands in what is written of it alone.
        "output" => summary(text(&event, "Output")?.trim())?.1,
        _ => return None,
    };
    Some((text(&event, "Package")?.to_owned(), outcome))
}

/// Reads `ok  \thabits\t0.002s`, `FAIL\thabits\t0.002s`, and `FAIL\thabits [build failed]`.
fn summary(line: &str) -> Option<(&str, Outcome)> {
    if let Some(rest) = line.strip_prefix("ok") {
        let package = rest.trim_start_matches(' ').strip_prefix('\t')?;
        return Some((package.split('\t').next()?, Outcome::Passed));
    }
    let rest = line.strip_prefix("FAIL\t")?;
    let unbuilt = rest
        .strip_suffix(" [build failed]")
        .or_else(|| rest.strip_suffix(" [setup failed]"));
    if let Some(package) = unbuilt {
        return Some((package, Outcome::Unbuilt));
    }
    let (package, time) = rest.rsplit_once('\t')?;
    is_time(time).then_some((package, Outcome::Failed))
}

/// Knows `0.002s`; by a letter begin `infs` and `nans`, which are numbers too.
fn is_time(text: &str) -> bool {
    let seconds = text.strip_suffix('s');
    text.starts_with(|letter: char| letter.is_ascii_digit())
        && seconds.is_some_and(|seconds| seconds.parse::<f64>().is_ok())
}

/// Reads `--- PASS: TestAdds (0.00s)`; a difference of files begins with dashes too.
fn point(line: &str) -> Option<(&str, &str)> {
    let (word, name) = line.strip_prefix("--- ")?.split_once(": ")?;
    matches!(word, "PASS" | "FAIL" | "SKIP").then_some((word, name))
}

fn add(counts: &mut TestCounts, outcome: &str, name: &str) {
    match outcome {
        "pass" => {
            counts.passed += 1;
            counts.names.push(name.to_owned());
        }
        "fail" => {
            counts.failed += 1;
            counts.failed_names.push(name.to_owned());
        }
        "skip" => counts.ignored += 1,
        _ => {}
    }
}

/// Says whether a line is one of go itself.
fn is_told(line: &str) -> bool {
    point(line).is_some() || event(line).is_some() || of_package(line).is_some()
}

/// Reads an event of `-json`.
fn event(line: &str) -> Option<Value> {
    if !line.starts_with("{\"Time\"") && !line.starts_with("{\"Action\"") {
        return None;
    }
    serde_json::from_str(line).ok()
}

fn text<'a>(event: &'a Value, key: &str) -> Option<&'a str> {
    event.get(key).and_then(Value::as_str)
}

/// Reads an event of `-json` that ends a test.
fn json(line: &str) -> Option<(String, String)> {
    let event = event(line)?;
    let name = text(&event, "Test")?;
    let package = text(&event, "Package").unwrap_or_default();
    let action = text(&event, "Action")?;
    Some((action.to_owned(), format!("{package}/{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_tells_a_package_that_failed_from_one_of_which_nothing_could_run() {
        let json = "{\"Action\":\"output\",\"Package\":\"more\",\"Output\":\"FAIL\\tmore [build failed]\\n\"}\n\
            {\"Action\":\"fail\",\"Package\":\"more\",\"Elapsed\":0}\n";
        for (output, failed, unbuilt) in [
            ("FAIL\tmore [build failed]\n", 1, 1),
            ("  FAIL\tmore [setup failed]\r\n", 1, 1),
            (json, 1, 1),
            ("FAIL\tmore\t0.002s\nFAIL\tmore\t0.002s\n", 1, 0),
            ("FAIL\tmore\t0.002s\nok  \tmore\t(cached)\n", 0, 0),
            (
                "{\"Action\":\"output\",\"Package\":\"a\",\"Test\":\"TestA\",\"Output\":\"FAIL\\tb [build failed]\\n\"}",
                0,
                0,
            ),
        ] {
            let found = (failed_packages(output), unbuilt_packages(output));
            assert_eq!(found, (failed, unbuilt), "{output}");
        }
    }
}
