//! Finds tests that ran at the parent and are gone, ignored or failing now.

use std::collections::HashMap;

use ropewalk_schemas::amount::{and_more, counted};
use ropewalk_schemas::attempt::TestCounts;

/// No finding lists more tests than this.
const LISTED: usize = 10;

/// Says whether two counts have names by which to compare them; without names on both sides only the numbers can be compared.
pub(super) fn are_named(parent: &TestCounts, candidate: &TestCounts) -> bool {
    !parent.names.is_empty() && !candidate.names.is_empty()
}

/// Returns what is weaker now, a line each. Tests that are named and stand in the files `allowed`, given as they were at the
/// parent, may go: a person saw how those change, and said yes.
///
/// A test that failed before may get another name when it is mended, so that those are only counted.
pub(super) fn find(parent: &TestCounts, candidate: &TestCounts, allowed: &[String]) -> Vec<String> {
    let lost = passed_before(parent, candidate, allowed);
    if lost.is_empty() && allowed.is_empty() {
        return fewer(parent, candidate).into_iter().collect();
    }
    lost
}

/// Says that fewer tests pass now than ran at the parent, if they do.
pub(super) fn fewer(parent: &TestCounts, candidate: &TestCounts) -> Option<String> {
    let ran = parent.passed.saturating_add(parent.failed);
    let (failed, passed) = (parent.failed, candidate.passed);
    (passed < ran).then(|| {
        let ran = counted(ran, "test");
        format!(
            "{ran} ran before, of which {failed} failed, and {passed} pass now: one that failed is gone or left out"
        )
    })
}

fn passed_before(parent: &TestCounts, candidate: &TestCounts, allowed: &[String]) -> Vec<String> {
    if !are_named(parent, candidate) {
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
            _ if allowed.iter().any(|file| holds(file, bare(name))) => {}
            _ => lost.push(name),
        }
    }
    let listed = lost.iter().take(LISTED);
    let listed = listed
        .map(|name| format!("test `{name}`, which passed before, is gone, ignored or failing"));
    let more = and_more(lost.len(), LISTED);
    let more = more.map(|more| format!("{more} tests that passed before"));
    listed.chain(more).collect()
}

/// Returns the name of a test as its file writes it: without where it stands, and what it is given.
fn bare(name: &str) -> &str {
    if let Some((_, title)) = name.rsplit_once(['>', '›']) {
        return title.trim();
    }
    let alone = match name.split_once([' ', '[']) {
        Some((alone, given)) if given.ends_with([')', ']']) => alone,
        _ => name,
    };
    alone.rsplit([':', '.']).next().unwrap_or(alone)
}

/// Says whether a file holds a name, and not just as a part of another one.
fn holds(file: &str, name: &str) -> bool {
    let of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut places = file.match_indices(name).map(|(at, _)| at);
    !name.is_empty()
        && places.any(|at| {
            let behind = &file[at + name.len()..];
            !file[..at].ends_with(of_name) && !behind.starts_with(of_name)
        })
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
        assert_eq!(
            find(&parent, &counts(4, &["a", "b", "b", "c"]), &[]),
            [""; 0]
        );
        assert_eq!(find(&parent, &counts(3, &["a", "b", "c"]), &[]).len(), 1);
        assert_eq!(find(&parent, &counts(2, &["b", "b"]), &[]).len(), 1);
    }

    #[test]
    fn without_names_the_numbers_are_compared() {
        assert_eq!(find(&counts(3, &[]), &counts(3, &["a"]), &[]), [""; 0]);
        assert_eq!(
            find(&counts(3, &[]), &counts(2, &[]), &[]),
            ["3 tests passed before, 2 pass now"]
        );
        assert_eq!(find(&counts(1, &["a"]), &counts(0, &[]), &[]).len(), 1);
    }

    #[test]
    fn a_test_that_failed_has_to_pass_and_not_to_vanish() {
        let red = |passed, failed, names: &[&str]| TestCounts {
            failed,
            ..counts(passed, names)
        };
        for (before, now, is_found) in [
            (red(1, 1, &[]), counts(2, &[]), false),
            (red(1, 1, &[]), counts(1, &[]), true),
            (red(0, 1, &[]), counts(0, &[]), true),
            (red(1, 1, &["a"]), counts(1, &["a"]), true),
            // Mended it may be called otherwise.
            (red(1, 1, &["a"]), counts(2, &["a", "c"]), false),
        ] {
            assert_eq!(
                find(&before, &now, &[]).len(),
                usize::from(is_found),
                "{now:?}"
            );
        }
        let allowed = ["a file".to_owned()];
        assert_eq!(find(&red(1, 1, &[]), &counts(1, &[]), &allowed), [""; 0]);
    }

    #[test]
    fn tests_of_a_file_that_a_person_allowed_to_change_may_go() {
        let allowed =
            ["def test_old(self):\n  pass\nit('adds 1.5 and 2')\nfn drops() {}".to_owned()];
        for name in [
            "test_old (tests.test_a.T.test_old)",
            "tests/test_a.py::T::test_old[1-2]",
            "sums > adds 1.5 and 2",
            "rope::tests::drops",
        ] {
            let (parent, now) = (counts(2, &[name, "kept"]), counts(1, &["kept"]));
            assert_eq!(find(&parent, &now, &allowed), [""; 0], "{name}");
            assert_eq!(find(&parent, &now, &[]).len(), 1, "{name}");
        }
        // Of another file, though this one holds a name that begins so.
        for name in ["other", "tests.test_b.T.test_o", "rope::drop"] {
            let (parent, now) = (counts(2, &[name, "kept"]), counts(1, &["kept"]));
            assert_eq!(find(&parent, &now, &allowed).len(), 1, "{name}");
        }
    }
}
