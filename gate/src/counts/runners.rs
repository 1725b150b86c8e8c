//! Knows which commands can report tests at all.

use crate::line::{self, SimpleCommand};

/// Programs that report no tests, whatever they are asked to do.
const SILENT: &[&str] = &[
    "true",
    "false",
    ":",
    "test",
    "[",
    "[[",
    "exit",
    "cd",
    // What these say, whoever wrote the line says.
    "echo",
    "printf",
    "cat",
    "tee",
    "sed",
    "awk",
    "seq",
    "yes",
    "export",
    "set",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "diff",
    "cmp",
    "ls",
    "head",
    "tail",
    "wc",
    "sort",
    "uniq",
    "tr",
    "cut",
    "find",
    "mkdir",
    "rm",
    "cp",
    "mv",
    "touch",
    "chmod",
    "stat",
    "sleep",
    "sqlite3",
    "psql",
    "tsc",
    "eslint",
    "prettier",
    "biome",
    "ruff",
    "flake8",
    "pylint",
    "mypy",
    "pyright",
    "black",
    "isort",
    "gofmt",
    "golangci-lint",
    "shellcheck",
    "rustfmt",
    "rustc",
    "gcc",
    "cc",
    "clang",
    "jq",
    "yamllint",
    "hadolint",
    "curl",
];

/// What of a tool that also runs tests reports none.
const SILENT_VERBS: &[(&str, &[&str])] = &[
    (
        "cargo",
        &[
            "check",
            "build",
            "clippy",
            "fmt",
            "metadata",
            "doc",
            "tree",
            "verify-project",
        ],
    ),
    ("go", &["build", "vet", "fmt", "mod", "list"]),
    ("dotnet", &["build", "format", "restore"]),
    ("npm", &["ci", "install", "ls"]),
];

/// Flags by which an interpreter only looks at its argument.
const LOOKS: &[(&str, &[&str])] = &[
    ("node", &["--check", "-c"]),
    ("sh", &["-n"]),
    ("bash", &["-n"]),
    (
        "python",
        &[
            "-m py_compile",
            "-m compileall",
            "-m json.tool",
            "-m mypy",
            "-m ruff",
            "-m flake8",
        ],
    ),
];

/// Flags by which an interpreter runs a line that stands in the command, and what such a line has tests run by: what another
/// one says, whoever wrote the command says.
const RUNS: &[(&str, &[&str], &[&str])] = &[
    (
        "python",
        &["-c"],
        &[
            "unittest",
            "pytest",
            "doctest",
            "runpy",
            "subprocess",
            "os.system",
        ],
    ),
    (
        "node",
        &["-e", "--eval", "-p", "--print"],
        &["node:test", "child_process"],
    ),
    ("ruby", &["-e"], &["minitest", "test/unit", "system"]),
    ("perl", &["-e", "-E"], &["Test::", "system"]),
];

/// Says whether a shell line may report tests; what is not known may, for it can be a script that runs some.
pub fn can_count(command: &str) -> bool {
    line::simple_commands(command)
        .iter()
        .any(|simple| !is_silent(simple))
}

fn is_silent(simple: &SimpleCommand) -> bool {
    let Some((program, arguments)) = simple.program() else {
        return true;
    };
    let program = line::name_of(program);
    if SILENT.contains(&program) {
        return true;
    }
    let verb = arguments.iter().find(|word| !word.starts_with(['-', '+']));
    let of_tool = SILENT_VERBS.iter().find(|(tool, _)| *tool == program);
    if let (Some((_, verbs)), Some(verb)) = (of_tool, verb) {
        return verbs.contains(&verb.as_str());
    }
    let plain = program.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    if only_says(plain, arguments) {
        return true;
    }
    let told = arguments.join(" ");
    LOOKS
        .iter()
        .filter(|(interpreter, _)| *interpreter == plain)
        .any(|(_, flags)| flags.iter().any(|flag| told.starts_with(flag)))
}

/// Says whether an interpreter runs a line that stands in the command and has no tests run.
fn only_says(interpreter: &str, arguments: &[String]) -> bool {
    let known = RUNS.iter().find(|(name, ..)| *name == interpreter);
    let Some((_, flags, runners)) = known else {
        return false;
    };
    // What stands behind the name of a file is said to that.
    let mut options = arguments.iter().take_while(|word| word.starts_with('-'));
    let at = options.position(|word| flags.contains(&word.as_str()));
    let code = at.and_then(|at| arguments.get(at + 1));
    code.is_some_and(|code| !runners.iter().any(|runner| code.contains(runner)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_report_tests_is_told_from_what_never_does() {
        let counts = [
            "cargo test --offline habits",
            "cd web && npm test",
            "python3 -m unittest",
            "pytest -q | tail -1",
            "./check",
            "sh tests/check.sh",
            "make test",
            "cargo check && cargo nextest run",
            "npx vitest run",
            "FOO=1 mvn -q test",
            "cargo +nightly test",
            "node app.test.js",
            "python3 -c 'import unittest; unittest.main(\"test_a\")'",
            "node -e 'require(\"node:test\").run()'",
            "python3 tests.py -c fast",
        ];
        for command in counts {
            assert!(can_count(command), "{command}");
        }
        let silent = [
            "true",
            "grep -q good a.txt",
            "cargo check --offline",
            "cargo +nightly build",
            "npx tsc --noEmit",
            "test -f a && test -s b",
            "sqlite3 :memory: < a.sql",
            "python3 -m py_compile a.py",
            "go vet ./...",
            "sh -n a.sh",
            "node --check a.js",
            "test -f a.py && echo 'Ran 9 tests in 0.1s' && printf 'OK\\n'",
            "test -f a.py && python3 -c \"print('Ran 9 tests in 0.1s'); print(); print('OK')\"",
            "/usr/bin/python3 -B -c 'print(1)'",
            "node -e 'console.log(\"# pass 9\")'",
            "",
        ];
        for command in silent {
            assert!(!can_count(command), "{command}");
        }
    }
}
