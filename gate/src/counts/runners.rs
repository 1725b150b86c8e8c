//! Knows which commands can report tests at all.

use crate::line::{self, ShellInput, SimpleCommand};

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
    "gawk",
    "mawk",
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

/// An interpreter that runs a line which stands in the command itself.
struct Inline {
    name: &'static str,
    /// The letters of the flags behind which that line stands, and those flags written out.
    letters: &'static str,
    long: &'static [&'static str],
    /// Flags that take the word behind them.
    with_value: &'static [&'static str],
    /// What such a line has tests run by: what another one says, whoever wrote the command says.
    runners: &'static [&'static str],
}

const INLINE: &[Inline] = &[
    Inline {
        name: "python",
        letters: "c",
        long: &[],
        with_value: line::PYTHON_VALUES,
        runners: &[
            "unittest",
            "pytest",
            "doctest",
            "runpy",
            "subprocess",
            "os.system",
            "import test",
            "from test",
        ],
    },
    Inline {
        name: "node",
        letters: "ep",
        long: &["--eval", "--print"],
        with_value: &["-r", "--require", "-C", "--conditions"],
        runners: &["node:test", "child_process", "require(", "import("],
    },
    Inline {
        name: "ruby",
        letters: "e",
        long: &[],
        with_value: &["-I", "-r"],
        runners: &["minitest", "test/unit", "system", "require", "load"],
    },
    Inline {
        name: "perl",
        letters: "eE",
        long: &[],
        with_value: &["-I", "-M"],
        runners: &["Test::", "system", "require", "do "],
    },
    Inline {
        name: "php",
        letters: "r",
        long: &[],
        with_value: &["-d", "-c"],
        runners: &["PHPUnit", "require", "include", "exec"],
    },
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
    let (program, plain) = (line::name_of(program), line::plain_name(program));
    if SILENT.contains(&program) {
        return true;
    }
    let verb = arguments.iter().find(|word| !word.starts_with(['-', '+']));
    let of_tool = SILENT_VERBS.iter().find(|(tool, _)| *tool == program);
    if let (Some((_, verbs)), Some(verb)) = (of_tool, verb) {
        return verbs.contains(&verb.as_str());
    }
    only_says(plain, arguments) || line::only_looks(plain, arguments)
}

/// Says whether an interpreter runs a line that stands in the command and has no tests run.
fn only_says(interpreter: &str, arguments: &[String]) -> bool {
    if interpreter == "eval" {
        return !can_count(&arguments.join(" "));
    }
    if line::SHELLS.contains(&interpreter) {
        let input = line::shell_input(arguments);
        return matches!(input, Some(ShellInput::Line(code)) if !can_count(code));
    }
    let known = INLINE.iter().find(|inline| inline.name == interpreter);
    known.is_some_and(|inline| {
        let flags = (inline.letters, inline.long);
        let given = line::behind_flag(arguments, flags, inline.with_value);
        given.is_some_and(|(_, code)| !inline.runners.iter().any(|runner| code.contains(runner)))
    })
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
            "python3 -c 'import test_calc; test_calc.main()'",
            "sh -c 'cd web && npm test'",
            "sh tests/check.sh -c",
            "ruby -Itest test/calc_test.rb",
            "perl -MTest::More t/a.t",
            "python3 -Xtracemalloc -m unittest",
            "node -e 'require(\"./calc.test.js\")'",
            "python3 -c 'from test_calc import main; main()'",
            "bash -euo pipefail -c 'npm test'",
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
            "python3 -X utf8 -Bc 'print(1)'",
            "node -pe '1'",
            "bash -euo pipefail -c \"echo 'Ran 9 tests in 0.1s'\"",
            "eval \"echo 'Ran 9 tests in 0.1s'\"",
            "sh -ec \"echo 'Ran 9 tests in 0.1s'; echo; echo OK\"",
            "node -e 'console.log(\"# pass 9\")'",
            "",
        ];
        for command in silent {
            assert!(!can_count(command), "{command}");
        }
    }
}
