//! Finds changes that only a person may accept: existing tests, and files that steer the checks themselves.

use std::collections::HashMap;

use ropewalk_workspace::{ChangeKind, ChangedFile};

/// Files that steer a test runner, a linter or a build, by name, anywhere in the tree.
const STEERING: &[&str] = &[
    "ropewalk.toml",
    "clippy.toml",
    "rustfmt.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "nextest.toml",
    "pytest.ini",
    "tox.ini",
    "conftest.py",
    ".gitlab-ci.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
];

/// The beginnings of configuration files of JavaScript runners.
const STEERING_BEGINNINGS: &[&str] = &[
    "jest.config.",
    "vitest.config.",
    "playwright.config.",
    "karma.conf.",
];

/// Directories that hold nothing but such files.
const STEERING_DIRECTORIES: &[&str] = &[".github", ".circleci", ".ci", ".cargo", ".config"];

/// Returns what of `changed` a person has to accept, a line each.
///
/// `commands` are the command lines of the gate; a file that one of them runs is part of the gate. `shrinks` says
/// whether a file loses or changes lines: adding to a test is always welcome.
pub fn find(
    changed: &[ChangedFile],
    commands: &[&str],
    shrinks: impl Fn(&str) -> bool,
) -> Vec<String> {
    changed
        .iter()
        .filter_map(|file| {
            let path = &file.path;
            if is_steering(path) || is_run_by(path, commands) {
                Some(format!("`{path}` steers the checks"))
            } else if is_test(path) && file.kind != ChangeKind::Added && shrinks(path) {
                Some(format!("`{path}` is an existing test"))
            } else {
                None
            }
        })
        .collect()
}

fn is_steering(path: &str) -> bool {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    STEERING.contains(&name)
        || STEERING_BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
        || directory
            .split('/')
            .any(|part| STEERING_DIRECTORIES.contains(&part))
}

/// Says whether a gate command names the file as a program, for example `./check`.
fn is_run_by(path: &str, commands: &[&str]) -> bool {
    commands.iter().any(|command| {
        command
            .split(|letter: char| {
                letter.is_whitespace() || matches!(letter, ';' | '&' | '|' | '(' | ')')
            })
            .any(|word| word.strip_prefix("./") == Some(path))
    })
}

/// Returns the scripts of a package.json that were changed or taken away, a line each; a new one is welcome.
pub fn changed_scripts(path: &str, before: &str, after: &str) -> Vec<String> {
    if path.rsplit('/').next() != Some("package.json") {
        return Vec::new();
    }
    let scripts = |text: &str| -> serde_json::Map<String, serde_json::Value> {
        serde_json::from_str::<serde_json::Value>(text)
            .ok()
            .and_then(|manifest| manifest.get("scripts")?.as_object().cloned())
            .unwrap_or_default()
    };
    let now = scripts(after);
    scripts(before)
        .into_iter()
        .filter(|(name, command)| now.get(name) != Some(command))
        .map(|(name, _)| format!("`{path}` changes the script `{name}`"))
        .collect()
}

/// Says whether a path is a test by the customs of its language.
pub fn is_test(path: &str) -> bool {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let in_folder = directory
        .split('/')
        .any(|part| matches!(part, "tests" | "test" | "__tests__" | "spec" | "e2e"));
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let named = stem.starts_with("test_")
        || ["_test", "_tests", ".test", ".spec", "_spec"]
            .iter()
            .any(|end| stem.ends_with(end))
        || stem == "tests";
    in_folder || named
}

/// Says whether lines of `before` are not in `after`; a changed line is a lost one and a new one.
pub fn loses_lines(before: &str, after: &str) -> bool {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for line in after.lines() {
        *left.entry(line.trim()).or_default() += 1;
    }
    before.lines().any(|line| match left.get_mut(line.trim()) {
        Some(number) if *number > 0 => {
            *number -= 1;
            false
        }
        _ => !line.trim().is_empty(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ChangeKind::{Added, Deleted, Modified};

    fn found(path: &str, kind: ChangeKind, shrinks: bool) -> bool {
        let changed = [ChangedFile {
            path: path.to_owned(),
            kind,
        }];
        !find(&changed, &["./check && cargo test"], |_| shrinks).is_empty()
    }

    #[test]
    fn existing_tests_may_grow_but_not_change() {
        assert!(!found("tests/cli.rs", Added, false));
        assert!(!found("tests/cli.rs", Modified, false));
        assert!(found("tests/cli.rs", Modified, true));
        assert!(found("tests/cli.rs", Deleted, true));
        assert!(!found("src/lib.rs", Modified, true));
    }

    #[test]
    fn whatever_steers_the_checks_is_a_persons_business() {
        for path in [
            "check",
            ".github/workflows/ci.yml",
            ".cargo/config.toml",
            "web/jest.config.js",
            "ropewalk.toml",
            "conftest.py",
        ] {
            assert!(found(path, Added, false), "{path}");
        }
        assert!(!found("src/check", Added, false));
    }

    #[test]
    fn a_script_may_be_added_but_not_changed() {
        let before = r#"{"scripts": {"test": "node --test"}}"#;
        let more = r#"{"scripts": {"test": "node --test", "start": "node ."}}"#;
        let less = r#"{"scripts": {"test": "echo ok"}}"#;
        assert!(changed_scripts("web/package.json", before, more).is_empty());
        assert_eq!(changed_scripts("package.json", before, less).len(), 1);
        assert_eq!(changed_scripts("package.json", before, "").len(), 1);
        assert!(changed_scripts("other.json", before, less).is_empty());
    }

    #[test]
    fn tests_are_known_by_their_customs() {
        for path in [
            "tests/a.rs",
            "src/a.test.ts",
            "a_test.go",
            "test_a.py",
            "src/a/tests.rs",
        ] {
            assert!(is_test(path), "{path}");
        }
        for path in ["src/latest.rs", "src/contest.py", "src/testimony.ts"] {
            assert!(!is_test(path), "{path}");
        }
    }

    #[test]
    fn a_changed_line_is_told_from_an_added_one() {
        assert!(!loses_lines("a\nb\n", "a\nnew\nb\n"));
        assert!(!loses_lines("a\n\n", "a\n"));
        assert!(loses_lines("a\nb\n", "a\nB\n"));
        assert!(loses_lines("a\na\n", "a\n"));
    }
}
