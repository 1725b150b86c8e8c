//! Reads `go test`, plain, with `-v`, and with `-json`.

use ropewalk_schemas::attempt::TestCounts;

/// Counts the `---` lines; packages alone do not tell how many tests ran.
pub(super) fn count(output: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = false;
    for line in output.lines() {
        let line = line.trim();
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

/// Reads an event of `-json` that ends a test.
fn json(line: &str) -> Option<(String, String)> {
    if !line.starts_with("{\"Time\"") && !line.starts_with("{\"Action\"") {
        return None;
    }
    let event: serde_json::Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| event.get(key).and_then(serde_json::Value::as_str);
    let name = text("Test")?;
    let package = text("Package").unwrap_or_default();
    Some((text("Action")?.to_owned(), format!("{package}/{name}")))
}
