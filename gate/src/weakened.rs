//! Finds tests that passed at the parent and are gone, ignored or failing now.

use std::collections::HashMap;

use ropewalk_schemas::attempt::TestCounts;

/// No finding lists more tests than this.
const LISTED: usize = 10;

/// Returns what is weaker now, a line each.
pub fn find(parent: &TestCounts, candidate: &TestCounts) -> Vec<String> {
    if parent.names.is_empty() || candidate.names.is_empty() {
        // Without names on both sides only the numbers can be compared.
        if candidate.passed < parent.passed {
            return vec![format!(
                "{} tests passed before, {} pass now",
                parent.passed, candidate.passed
            )];
        }
        return Vec::new();
    }
    let mut left: HashMap<&str, usize> = HashMap::new();
    for name in &candidate.names {
        *left.entry(name).or_default() += 1;
    }
    let mut lost: Vec<&str> = Vec::new();
    for name in &parent.names {
        match left.get_mut(name.as_str()) {
            Some(number) if *number > 0 => *number -= 1,
            _ => lost.push(name),
        }
    }
    let more = lost.len().saturating_sub(LISTED);
    let mut findings: Vec<String> = lost
        .iter()
        .take(LISTED)
        .map(|name| format!("test `{name}`, which passed before, is gone, ignored or failing"))
        .collect();
    if more > 0 {
        findings.push(format!("and {more} more tests that passed before"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u32, names: &[&str]) -> TestCounts {
        TestCounts {
            passed,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..TestCounts::default()
        }
    }

    #[test]
    fn a_test_that_passed_must_still_pass() {
        let parent = counts(3, &["a", "b", "b"]);
        assert_eq!(find(&parent, &counts(4, &["a", "b", "b", "c"])), [""; 0]);
        assert_eq!(find(&parent, &counts(3, &["a", "b", "c"])).len(), 1);
        assert_eq!(find(&parent, &counts(2, &["b", "b"])).len(), 1);
    }

    #[test]
    fn without_names_the_numbers_are_compared() {
        assert_eq!(find(&counts(3, &[]), &counts(3, &["a"])), [""; 0]);
        assert_eq!(
            find(&counts(3, &[]), &counts(2, &[])),
            ["3 tests passed before, 2 pass now"]
        );
        assert_eq!(find(&counts(1, &["a"]), &counts(0, &[])).len(), 1);
    }
}
