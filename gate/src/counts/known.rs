//! Knows which commands run tests for certain: by a runner whose output is read, or a file of tests by itself.

use crate::difference::protected::is_test;
use crate::line::{self, DEEPEST, ShellInput, SimpleCommand};

/// Programs that run tests.
const RUNNERS: &[&str] = &["pytest", "py.test", "jest", "vitest", "mocha"];

/// The words by which a tool that does more runs tests.
const VERBS: &[(&str, &[&str])] = &[
    ("cargo", &["test", "t", "nextest"]),
    ("go", &["test"]),
    ("dotnet", &["test"]),
    ("node", &["--test"]),
    ("bun", &["test"]),
    ("mvn", &["test", "verify"]),
    ("mvnw", &["test", "verify"]),
    ("gradle", &["test"]),
    ("gradlew", &["test"]),
];

/// As [`VERBS`], where what is run may be something else than a runner, or fail in a step that runs no tests.
const STEPS: &[(&str, &[&str])] = &[
    ("npm", &["test", "t", "tst"]),
    ("pnpm", &["test", "t"]),
    ("yarn", &["test"]),
    ("mvn", &["package", "install"]),
    ("mvnw", &["package", "install"]),
    ("gradle", &["check", "build"]),
    ("gradlew", &["check", "build"]),
];

/// Modules of Python that run tests.
const MODULES: &[&str] = &["unittest", "pytest"];
/// How code that is given to Python has them do so.
const CALLS: &[&str] = &["unittest.main", "unittest.TextTestRunner", "pytest.main"];

/// Interpreters that say why a file failed which they run, and what such files are called.
const INTERPRETERS: &[&str] = &["python", "pypy", "node", "bun", "tsx", "ts-node"];
const CODE: &[&str] = &[".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"];

/// Says whether a shell line has tests run by a runner that is known, whatever stands before it.
pub(crate) fn has_known_runner(command: &str) -> bool {
    runs_some(command, 0, &is_known_runner)
}

/// Says whether a shell line has tests run by what says itself why it failed: an interpreter runs a file of tests by itself, or a
/// tool the step of a project that is called after them.
pub(crate) fn may_run_tests(command: &str) -> bool {
    runs_some(command, 0, &|name, arguments| {
        is_file_of_tests(name, arguments) || has_verb(STEPS, name, arguments)
    })
}

/// Says whether something holds for a command of a line that lies in so many others, or of a line that one of them runs.
fn runs_some(line: &str, depth: usize, holds: &dyn Fn(&str, &[String]) -> bool) -> bool {
    line::simple_commands(line).iter().any(|simple| {
        let program = simple.program();
        program.is_some_and(|(program, arguments)| holds(line::plain_name(program), arguments))
            || depth < DEEPEST
                && inner_lines(simple)
                    .iter()
                    .any(|inner| runs_some(inner, depth + 1, holds))
    })
}

/// Lists the lines that a command has a shell run: those that make its words, and what it is given itself.
fn inner_lines(simple: &SimpleCommand) -> Vec<String> {
    let words = simple.words.iter();
    let made = words.flat_map(|word| line::substitutions(word));
    let given = simple.program().and_then(|(program, arguments)| {
        let name = line::name_of(program);
        if name == "eval" {
            return Some(arguments.join(" "));
        }
        if !line::SHELLS.contains(&name) {
            return None;
        }
        match line::shell_input(arguments)? {
            ShellInput::Line(code) => Some(code.to_owned()),
            ShellInput::File(_) => None,
        }
    });
    made.map(str::to_owned).chain(given).collect()
}

fn is_known_runner(name: &str, arguments: &[String]) -> bool {
    let by_module = arguments
        .windows(2)
        .any(|pair| pair[0] == "-m" && MODULES.contains(&pair[1].as_str()));
    RUNNERS.contains(&name)
        || by_module
        || has_verb(VERBS, name, arguments)
        || matches!(name, "python" | "pypy") && is_given_to_python(arguments)
}

/// Says whether a tool is given one of its verbs.
fn has_verb(of: &[(&str, &[&str])], name: &str, arguments: &[String]) -> bool {
    // What stands behind is for whoever is run by it.
    let mut words = arguments.iter().take_while(|word| *word != "--");
    let verbs = of.iter().find(|(tool, _)| *tool == name);
    verbs.is_some_and(|(_, verbs)| words.any(|word| verbs.contains(&word.as_str())))
}

/// Says whether Python is given code, or a module in a bundle of flags, that runs tests.
fn is_given_to_python(arguments: &[String]) -> bool {
    match line::behind_flag(arguments, ("cm", &[]), line::PYTHON_VALUES) {
        Some(('m', module)) => MODULES.contains(&module),
        Some((_, code)) => CALLS.iter().any(|call| code.contains(call)),
        None => false,
    }
}

fn is_file_of_tests(name: &str, arguments: &[String]) -> bool {
    let file = arguments.iter().find(|word| !word.starts_with('-'));
    let is_code = |file: &&String| CODE.iter().any(|end| file.ends_with(end));
    INTERPRETERS.contains(&name) && file.filter(is_code).is_some_and(|file| is_test(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_runner_is_found_behind_whatever_stands_before_it() {
        for command in [
            "python3 -m unittest test_a",
            "test -f test_a.py && python3.11 -Bm unittest test_a",
            "grep -q 'def a' a.py && timeout 60 pytest -q | tail -1",
            "[ -f a ] || { echo missing; exit 1; }; cd web && npx jest --run",
            "python3 -m coverage run -m pytest",
            "python3 -c 'import unittest; unittest.main(\"test_a\")'",
            "cargo +nightly nextest run",
            "go test ./...",
            "node --test tests",
            "uv run pytest",
            "npx vitest run",
            "./gradlew -q test",
            "out=$(python3 -m unittest 2>&1) && echo \"$out\"",
            "sh -ec 'test -f a && python3 -m unittest'",
            "eval \"cargo test\"",
        ] {
            assert!(has_known_runner(command), "{command}");
        }
        for command in [
            "",
            "true",
            "grep -q unittest a.py",
            "test -f test_a.py",
            "python3 -c 'import app; assert app.double'",
            "python3 test_a.py",
            "cargo build --tests",
            "cargo run -- test",
            "python3 -c 'from unittest import mock; import app; assert app.double'",
            "npm run lint",
            "npm test",
            "mvn -q package",
            "./gradlew check",
            "make test",
            "sh tests/check.sh",
            "echo pytest",
        ] {
            assert!(!has_known_runner(command), "{command}");
        }
    }

    #[test]
    fn a_line_that_lies_in_too_many_others_is_not_looked_into() {
        for (depth, found) in [(DEEPEST, true), (DEEPEST + 1, false), (10_000, false)] {
            let command = format!("{}cargo test", "eval ".repeat(depth));
            assert_eq!(has_known_runner(&command), found, "{depth}");
        }
    }

    #[test]
    fn what_says_itself_why_its_tests_failed_is_told_from_other_commands() {
        for command in [
            "test -f test_a.py && python3 -B test_a.py",
            "node tests/a.js",
            "bash -c 'node a.test.mjs'",
            "[ -f a ] || { echo missing; exit 1; }; cd web && npm test -- --run",
            "./gradlew -q check",
            "mvn -q package",
        ] {
            assert!(may_run_tests(command), "{command}");
        }
        for command in [
            "python3 a.py test_a.py",
            "sh tests/check.sh",
            "python3 -m unittest tests/test_a.py",
            "test -f test_a.py",
            "npm run lint",
            "npm run lint -- test",
        ] {
            assert!(!may_run_tests(command), "{command}");
        }
    }
}
