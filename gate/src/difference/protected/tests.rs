//! Tries the rules on what agents do.

use ropewalk_schemas::task::{Expectation, Task};
use serde_json::json;

use super::*;

/// What a repository holds.
const MAKEFILE: &str = "PY = python3\n\n.PHONY: test\nall: build\n\ntest: prepare\n\t@$(PY) tools/run.py --all\n\nprepare:\n\tmkdir -p out\n\nbuild:\n\tcc -o app app.c\n";
const PACKAGE: &str = r#"{ "name": "a", "scripts": { "pretest": "node prepare.js", "test": "sh scripts/t.sh", "start": "node .", "unit": "jest --ci" } }"#;
const GATE: &str = "#!/bin/sh\nset -e\npython3 app.py --help | grep -q usage\ngrep -q good product.txt\nsh inner.sh\n";
const FILES: &[(&str, &str)] = &[
    ("Makefile", MAKEFILE),
    ("package.json", PACKAGE),
    ("gate.sh", GATE),
    (
        "justfile",
        "default: test\ntest arg='':\n    ./checks/all.sh {{arg}}\nother:\n    echo\n",
    ),
    ("inner.sh", "sh deeper.sh\n"),
    (
        "lint.mk",
        "-include local.mk\ninclude rules.mk\nlint:\n\t./lint.sh\nall:\n\t@$(MAKE) test\n",
    ),
    ("all.sh", "cargo fmt --check && make test\n"),
];

pub(super) fn task(files: &[&str], validation: &str) -> Task {
    let block = json!({
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": files[0], "more_files": files[1..],
        "validation": { "command": validation, "expected": "exit 0" },
    });
    let build = "00000000-0000-7000-8000-000000000001".parse().unwrap();
    Task::planned(build, 1, serde_json::from_value(block).unwrap())
}

/// Asks the rules about a change of what was there, with one command in the gate.
fn why(gate: &str, task: &Task, path: &str, before: &str, after: &str) -> Option<String> {
    why_not(gate, task, (path, Some(before), after))
}

/// Asks the rules about a change; what was not there before is new.
fn why_not(
    gate: &str,
    task: &Task,
    (path, before, after): (&str, Option<&str>, &str),
) -> Option<String> {
    let after = Some(after);
    with_rules(FILES, gate, task, |rules| {
        rules.why(&Change {
            path,
            before,
            after,
        })
    })
}

/// A repository that holds these files.
pub(super) struct Repository<'a> {
    files: &'a [(&'a str, &'a str)],
    paths: Vec<String>,
}

impl<'a> Repository<'a> {
    pub(super) fn of(files: &'a [(&'a str, &'a str)]) -> Self {
        let paths = files.iter().map(|(path, _)| (*path).to_owned());
        Self {
            files,
            paths: paths.collect(),
        }
    }
}

impl Tree for Repository<'_> {
    fn text(&self, path: &str, _: bool) -> Option<String> {
        let found = self.files.iter().find(|(known, _)| *known == path);
        found.map(|(_, text)| (*text).to_owned())
    }

    fn paths(&self) -> &[String] {
        &self.paths
    }
}

/// Asks the rules of a task in a repository that holds these files, with one command in the gate.
pub(super) fn with_rules<T>(
    files: &[(&str, &str)],
    gate: &str,
    task: &Task,
    ask: impl FnOnce(&Rules<'_>) -> T,
) -> T {
    let validation = &task.block.validation;
    let own = Check {
        expected: Some(&Expectation::ExitZero),
        ..Check::alone("validation", &validation.command, std::time::Duration::ZERO)
    };
    let checks = [own, Check::alone("gate", gate, std::time::Duration::ZERO)];
    ask(&Rules {
        reach: &reach(&checks, &Repository::of(files)),
        by_project: &[GlobPattern::parse("contracts/**").unwrap()],
        task,
        gained: &[],
    })
}

#[test]
fn what_a_gate_runs_is_nobodys_to_change_unasked() {
    let rows = [
        // On its own line, declared or not.
        ("sh gate.sh", "gate.sh", true),
        ("sh gate.sh", "product.txt", false),
        ("sh gate.sh", "app.py", false),
        ("sh gate.sh", "inner.sh", true),
        ("sh gate.sh", "deeper.sh", false),
        ("cd web && ./run.py", "web/run.py", true),
        ("python3 ./tools/judge.py", "tools/judge.py", true),
        ("timeout 60 bash -e run.sh | tail -1", "run.sh", true),
        // One level further in.
        ("make test", "tools/run.py", true),
        ("npm test", "scripts/t.sh", true),
        ("npm run --silent test", "prepare.js", true),
        ("just", "checks/all.sh", true),
        ("make build", "app.c", true),
        ("make -f lint.mk lint", "rules.mk", true),
        // Nothing to do with it.
        ("cargo test", "src/lib.rs", false),
        ("make test", "app.c", false),
    ];
    for (gate, path, expected) in rows {
        let files = ["product.txt", "app.py", "src/lib.rs", path];
        let own = task(
            if path == "product.txt" || path == "app.py" || path == "src/lib.rs" {
                &files[..3]
            } else {
                &files[..2]
            },
            "true",
        );
        let found = why(gate, &own, path, "1\n", "2\n");
        assert_eq!(found.is_some(), expected, "{gate} {path}: {found:?}");
    }
}

#[test]
fn a_product_that_a_task_declares_is_free_where_its_check_merely_runs_it() {
    let rows = [
        ("app.py", "python3 app.py --help", false),
        ("run.sh", "sh run.sh | grep -q hello", false),
        ("index.js", "node index.js", false),
        ("a.sql", "sqlite3 :memory: < a.sql", false),
        ("check.sh", "sh check.sh", true),
        ("ci/build.sh", "./ci/build.sh", true),
        ("run_tests.py", "python3 run_tests.py", true),
    ];
    for (path, validation, expected) in rows {
        let own = task(&[path], validation);
        assert_eq!(
            why("true", &own, path, "1\n", "2\n").is_some(),
            expected,
            "{path}"
        );
        // Who has not declared what the check runs has to ask.
        let other = task(&["other"], validation);
        let reads = path == "a.sql";
        let found = why("true", &other, path, "1\n", "2\n");
        assert_eq!(found.is_none(), reads, "{path}: {found:?}");
    }
}

#[test]
fn a_file_with_entries_is_protected_entry_by_entry() {
    let own = task(&["Makefile", "package.json", "justfile"], "true");
    let made = |from: &str, to: &str| MAKEFILE.replace(from, to);
    let rows = [
        ("make test", made("tools/run.py --all", "-c pass"), true),
        ("make test", made("mkdir -p out", "true"), true),
        ("make test", made("PY = python3", "PY = true"), true),
        (
            "make test",
            made("cc -o app app.c", "cc -O2 -o app app.c"),
            false,
        ),
        (
            "make test",
            format!("{MAKEFILE}\nclean:\n\trm -rf out\n"),
            false,
        ),
        (
            "make test",
            format!("{MAKEFILE}\nSHELL = /bin/true\n"),
            true,
        ),
        ("make", made("cc -o app app.c", "true"), true),
        (
            "make -C . test",
            made("tools/run.py --all", "-c pass"),
            true,
        ),
        ("cargo test", made("tools/run.py --all", "-c pass"), false),
        ("sh all.sh", made("tools/run.py --all", "-c pass"), true),
        (
            "make -f lint.mk all",
            made("tools/run.py --all", "-c pass"),
            true,
        ),
    ];
    for (gate, after, expected) in rows {
        let found = why(gate, &own, "Makefile", MAKEFILE, &after);
        assert_eq!(found.is_some(), expected, "{gate}: {after}: {found:?}");
    }
    let scripts = |from: &str, to: &str| PACKAGE.replace(from, to);
    let rows = [
        ("npm test", scripts("sh scripts/t.sh", "true"), true),
        ("npm test", scripts("node prepare.js", "true"), true),
        ("npm test", scripts("node .", "node app"), false),
        (
            "npm test",
            scripts("\"name\": \"a\"", "\"name\": \"b\""),
            false,
        ),
        (
            "cargo test",
            scripts("\"name\"", "\"jest\": {}, \"name\""),
            true,
        ),
    ];
    for (gate, after, expected) in rows {
        assert_eq!(
            why(gate, &own, "package.json", PACKAGE, &after).is_some(),
            expected,
            "{after}"
        );
    }
}

#[test]
fn what_the_task_itself_makes_is_free() {
    let own = task(&["Makefile"], "make test");
    let reach = Reach::default();
    let rules = Rules {
        reach: &reach,
        by_project: &[GlobPattern::parse("**").unwrap()],
        task: &own,
        gained: &[],
    };
    let new = |path, after| {
        rules.why(&Change {
            path,
            before: None,
            after: Some(after),
        })
    };
    for path in [
        "Makefile",
        "tests/a.rs",
        "check.sh",
        "jest.config.js",
        "contracts/a",
        "conftest.py",
    ] {
        assert_eq!(new(path, "x = 1\n"), None, "{path}");
    }
    assert!(new("conftest.py", "collect_ignore = ['a.py']\n").is_some());
}

#[test]
fn what_stands_in_for_what_judges_is_not_free_though_it_is_new() {
    let unittest = "python3 -m unittest discover";
    let rows = [
        (unittest, "unittest.py", true),
        (unittest, "unittest/__init__.py", true),
        (unittest, "signal.py", true),
        (unittest, "traceback.cpython-311-x86_64-linux-gnu.so", true),
        ("cd app && python3 -m pytest -q", "app/pluggy.py", true),
        ("python3 tools/judge.py", "tools/json.py", true),
        ("sh all.sh", "GNUmakefile", true),
        ("make test", "makefile", true),
        ("cargo test", ".cargo/config.toml", true),
        ("npm test", ".npmrc", true),
        ("pytest", "pytest.ini", true),
        ("pytest", "setup.cfg", true),
        ("python3 -m pytest", "sitecustomize.py", true),
        ("coverage run -m pytest", "unittest.py", true),
        ("PYTHONPATH=lib:src pytest", "src/json.py", true),
        ("cargo test", "build.rs", true),
        ("cargo test", "crates/a/build.rs", true),
        ("sh all.sh", "build.rs", true),
        ("npx vitest run", "vite.config.ts", true),
        ("npm run unit", "babel.config.js", true),
        ("pytest", ".coveragerc", true),
        ("make -f lint.mk lint", "lint", true),
        ("make -f lint.mk lint", "lint/a.txt", true),
        ("sh tools/gone.sh", "tools/gone.sh", true),
        ("make -f lint.mk lint", "local.mk", true),
        // What is a file like any other.
        (unittest, "habits.py", false),
        (unittest, "app/signal.py", false),
        (unittest, "signal.txt", false),
        ("python3 -I -m unittest", "signal.py", false),
        ("python3 tools/judge.py", "json.py", false),
        ("cargo test", "signal.py", false),
        ("make test", "web/makefile", false),
        ("cargo test", "GNUmakefile", false),
        ("pytest", ".github/workflows/ci.yml", false),
        ("pytest", "conftest.py", false),
        ("pytest", "tests/test_new.py", false),
        ("pytest", "src/json.py", false),
        ("cargo test", "src/machine/build.rs", false),
        ("pytest", "build.rs", false),
        ("npm run unit", "vite.config.ts", false),
        ("make test", "test/a.txt", false),
        ("cargo test", "other.mk", false),
    ];
    let content = "[tool:pytest]\naddopts = --co\n";
    for (gate, path, expected) in rows {
        let found = why_not(gate, &task(&["a"], "true"), (path, None, content));
        assert_eq!(found.is_some(), expected, "{gate} {path}: {found:?}");
        // Who approved the task approved that file.
        let found = why_not(gate, &task(&["a", path], "true"), (path, None, content));
        assert_eq!(found, None, "{gate} {path}");
    }
}

#[test]
fn without_a_command_of_the_gate_the_tasks_own_check_is_stood_in_for_as_well() {
    let own = task(&["a"], "pytest test_a.py");
    let check = Check {
        expected: Some(&own.block.validation.expected),
        ..Check::alone("validation", "pytest test_a.py", std::time::Duration::ZERO)
    };
    let reach = reach(&[check], &Repository::of(&[]));
    let rules = Rules {
        reach: &reach,
        by_project: &[],
        task: &own,
        gained: &[],
    };
    for (path, expected) in [
        ("pytest.ini", true),
        (".cargo/config.toml", true),
        ("pluggy.py", true),
        ("test_a.py", false),
        ("src/a.py", false),
    ] {
        let change = Change {
            path,
            before: None,
            after: Some("a\n"),
        };
        let found = rules.why(&change);
        assert_eq!(found.is_some(), expected, "{path}: {found:?}");
    }
}

#[test]
fn a_new_conftest_is_looked_at_line_by_line() {
    let own = task(&["a"], "true");
    let rows = [
        (
            "import pytest\n\n@pytest.fixture\ndef pytest_dir():\n    return 1\n",
            true,
        ),
        (
            "@pytest.fixture\ndef client():\n    return pytest_asyncio\n",
            false,
        ),
        (
            "def pytest_configure(config):\n    config.addinivalue_line('markers', 'slow')\n",
            false,
        ),
        (
            "@pytest.hookimpl\ndef pytest_runtest_makereport(item):\n    ...\n",
            true,
        ),
        (
            "class A:\n    async def pytest_pyfunc_call(self):\n        ...\n",
            true,
        ),
        ("pytest_runtest_call = lambda item: None\n", true),
        ("pytest_plugins == 1\n", false),
    ];
    for (content, expected) in rows {
        for (path, before) in [("conftest.py", None), ("tests/conftest.py", None)] {
            let found = why_not("pytest", &own, (path, before, content));
            assert_eq!(found.is_some(), expected, "{content}: {found:?}");
        }
    }
}

#[test]
fn what_an_earlier_task_made_is_kept_from_those_that_declare_it_too() {
    let why = |gate: &str, own: &Task, (path, before, after): (&str, &str, &str)| {
        let check = Check::alone("gate", gate, std::time::Duration::ZERO);
        let reach = reach(&[check], &Repository::of(&[(path, before)]));
        let rules = Rules {
            reach: &reach,
            by_project: &[],
            task: own,
            gained: &[],
        };
        rules.why(&Change {
            path,
            before: Some(before),
            after: Some(after),
        })
    };
    let made = MAKEFILE.replace("mkdir -p out", "true");
    let other = MAKEFILE.replace("cc -o app", "cc -O2 -o app");
    let rows = [
        ("make test", ("Makefile", MAKEFILE, made.as_str()), true),
        ("make test", ("Makefile", MAKEFILE, other.as_str()), false),
        ("sh gate.sh", ("gate.sh", "sh a\n", "true\n"), true),
        (
            "pytest",
            (
                "pyproject.toml",
                "[tool.pytest]\na = 1\n",
                "[tool.pytest]\na = 2\n",
            ),
            true,
        ),
        (
            "pytest",
            (
                "pyproject.toml",
                "[tool.pytest]\na = 1\n",
                "[tool.pytest]\na = 1\n[b]\n",
            ),
            false,
        ),
    ];
    for (gate, change, expected) in rows {
        let found = why(gate, &task(&["a"], "true"), change);
        assert_eq!(found.is_some(), expected, "{gate}: {change:?}: {found:?}");
        let found = why(gate, &task(&[change.0], "true"), change);
        assert_eq!(found.is_some(), expected, "{gate}: {change:?}: {found:?}");
    }
}

#[test]
fn tests_of_rust_beside_their_product_go_only_where_the_task_says_so() {
    let before = "fn a() {}\n\n#[test]\nfn b() {\n    assert!(true);\n}\n";
    let ignored = before.replace("#[test]", "#[test]\n#[ignore]");
    let own = task(&["src/a.rs"], "cargo test");
    assert_eq!(
        why(
            "true",
            &own,
            "src/a.rs",
            before,
            &before.replace("true", "1 > 0")
        ),
        None
    );
    assert!(why("true", &own, "src/a.rs", before, &ignored).is_some());
    let mut deletes = task(&["src/a.rs"], "cargo test");
    deletes.block.action = Action::Delete;
    for (own, expected) in [(&own, true), (&deletes, false)] {
        let rules = Rules {
            reach: &Reach::default(),
            by_project: &[],
            task: own,
            gained: &[],
        };
        let found = rules.why(&Change {
            path: "src/a.rs",
            before: Some(before),
            after: None,
        });
        assert_eq!(found.is_some(), expected, "{found:?}");
    }
}

#[test]
fn whatever_steers_the_checks_or_is_protected_is_a_persons_business() {
    let own = task(&["a"], "true");
    for path in [
        ".github/workflows/ci.yml",
        ".cargo/config.toml",
        "web/jest.config.js",
        "ropewalk.toml",
        "conftest.py",
        "contracts/api.json",
    ] {
        assert!(why("true", &own, path, "1\n", "2\n").is_some(), "{path}");
    }
    assert_eq!(why("true", &own, "src/check", "1\n", "2\n"), None);
    let setup = "[metadata]\nname = a\n[tool:pytest]\naddopts = -q\n";
    let other = setup.replace("name = a", "name = b");
    assert_eq!(why("true", &own, "setup.cfg", setup, &other), None);
    let less = setup.replace("-q", "--ignore=tests");
    assert!(why("true", &own, "setup.cfg", setup, &less).is_some());
}

#[test]
fn a_conftest_that_was_there_may_gain_a_fixture_and_no_hook() {
    let own = task(&["a"], "true");
    let before = "import pytest\n";
    let gains = |more: &str| {
        let after = format!("{before}\n\n{more}");
        why("true", &own, "conftest.py", before, &after)
    };
    let fixture = "@pytest.fixture\ndef one():\n    return 1\n";
    assert_eq!(gains(fixture), None);
    let hook = "def pytest_runtest_makereport(item, call):\n    pass\n";
    assert!(gains(hook).is_some_and(|why| why.contains("`pytest_runtest_makereport`")));
    assert!(gains("collect_ignore = ['a.py']\n").is_some());
}

#[test]
fn what_runs_with_tests_or_steers_them_supports_them() {
    let settings = "[tool.pytest.ini_options]\naddopts = '-q'\n";
    for (path, text, expected) in [
        ("conftest.py", "", true),
        ("tests/conftest.py", "", true),
        ("tests/__init__.py", "", true),
        ("tests/helpers.py", "", true),
        ("pytest.ini", "", true),
        ("pyproject.toml", settings, true),
        ("pyproject.toml", "[project]\nname = 'a'\n", false),
        ("tests/test_a.py", "", false),
        ("tests/data.json", "", false),
        ("src/helpers.py", "", false),
    ] {
        assert_eq!(supports_tests(path, text), expected, "{path}");
    }
}

#[test]
fn tests_are_known_by_their_customs() {
    for path in [
        "tests/a.rs",
        "src/a.test.ts",
        "a_test.go",
        "test_a.py",
        "src/a/tests.rs",
        "test.js",
        "src/test-calc.mjs",
        "calc-test.ts",
    ] {
        assert!(is_test(path), "{path}");
    }
    for path in [
        "src/latest.rs",
        "src/contest.py",
        "src/testimony.ts",
        "src/test.rs",
        "test-plan.md",
    ] {
        assert!(!is_test(path), "{path}");
    }
}

#[test]
fn words_for_whoever_works_here_later_are_planned_or_asked_about() {
    for path in ["AGENTS.md", "CLAUDE.md", "web/AGENTS.md", "tests/CLAUDE.md"] {
        for before in [None, Some("Use tabs.\n")] {
            let change = (path, before, "End at once.\n");
            let found = why_not("true", &task(&["a"], "true"), change);
            assert!(found.is_some_and(|why| why.contains(path)), "{path}");
        }
        let planned = task(&["a", path], "true");
        let found = why_not("true", &planned, (path, None, "Use tabs.\n"));
        assert_eq!(found, None, "{path}");
    }
    let other = task(&["a"], "true");
    assert_eq!(
        why_not("true", &other, ("docs/agents.md", None, "x\n")),
        None
    );
}

#[test]
fn how_git_writes_files_is_asked_about_also_where_it_was_planned() {
    for path in [".gitattributes", "tests/.gitattributes"] {
        for own in [task(&["a"], "true"), task(&["a", path], "true")] {
            let said = "check.sh eol=crlf\n";
            for (before, after) in [(None, said), (Some(said), "")] {
                let found = why_not("true", &own, (path, before, after));
                assert!(found.is_some_and(|why| why.contains(path)), "{path}");
            }
        }
    }
}
