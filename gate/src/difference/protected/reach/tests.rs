//! Tries what is reached through lines in lines, other directories and scripts of Python.

mod unwritten;

use super::super::tests::{Repository, task, with_rules};
use super::super::{Change, Rules};
use super::{Contents, Reach};

/// A repository.
type Files<'a> = &'a [(&'a str, &'a str)];

const MAKEFILE: &str =
    "test: app\n\t./app | grep -q good\n\napp: app.c\n\tcc -o app app.c\n\nlint:\n\t./lint\n";
const PACKAGE: &str = r#"{ "scripts": { "test": "jest --ci", "lint": "eslint ." } }"#;

/// Asks the rules about a change of a file that was there.
fn why(rules: &Rules<'_>, path: &str, before: &str, after: &str) -> Option<String> {
    rules.why(&Change {
        path,
        before: Some(before),
        after: Some(after),
    })
}

/// Says whether a person is asked where a task that declares none of it changes a file.
fn asks(gate: &str, files: Files<'_>, path: &str) -> bool {
    let text = files.iter().find(|(known, _)| *known == path);
    let (_, text) = text.unwrap_or(&("", "old\n"));
    with_rules(files, gate, &task(&["product.txt"], "true"), |rules| {
        why(rules, path, text, "new\n").is_some()
    })
}

#[test]
fn what_a_gate_runs_is_found_in_other_directories_and_in_lines() {
    let web: Files<'_> = &[
        ("gate.sh", "cd web && make -s test\n"),
        ("npm.sh", "npm --prefix web test\n"),
        ("Makefile", "sub:\n\t$(MAKE) -C web test\n"),
        ("web/Makefile", MAKEFILE),
        ("web/package.json", PACKAGE),
    ];
    for gate in [
        "sh gate.sh",
        "make -s sub",
        "make -Cweb test",
        "make --directory=web test",
    ] {
        assert!(asks(gate, web, "web/Makefile"), "{gate}");
    }
    for gate in ["sh npm.sh", "npm test -w web", "sh -c 'cd web; npm test'"] {
        assert!(asks(gate, web, "web/package.json"), "{gate}");
    }
    let inner: Files<'_> = &[
        ("outer.sh", "#!/bin/sh -e\nsh inner.sh\n"),
        ("just.mk", "check:\n\tsh -c \"sh inner.sh\"\n"),
        ("Makefile", "include rules.mk\nall: check\n"),
        ("rules.mk", "check:\n\tsh inner.sh\n"),
    ];
    for gate in [
        "sh -c 'sh inner.sh'",
        "bash -c 'set -e; sh outer.sh'",
        "bash -euo pipefail -c './outer.sh'",
        "bash -euo pipefail outer.sh",
        "sh -ce 'sh inner.sh'",
        "make -f just.mk check",
        "make check",
        "eval 'sh inner.sh'",
        "test \"$(sh inner.sh)\" = good",
        "cd $(sh inner.sh) && true",
        "cd \"$(sh inner.sh)\"",
        "test `sh -c 'sh inner.sh'` = good",
    ] {
        assert!(asks(gate, inner, "inner.sh"), "{gate}");
    }
}

#[test]
fn what_a_gate_runs_is_found_in_scripts_of_python() {
    let starts = "import subprocess\nsubprocess.run(['sh', 'inner.sh'], check=True)\n";
    let files: Files<'_> = &[
        ("check.py", starts),
        ("run", &format!("#!/usr/bin/env python3\n{starts}")),
        ("checks/__main__.py", "from . import rules\nrules.run()\n"),
        ("judge.py", "from lib import rules\nrules.run()\n"),
        (
            "tools/judge.py",
            "import sys\nsys.path.insert(0, 'lib')\nimport rules\n",
        ),
        ("tools/load.py", "exec(open(HERE / 'part.py').read())\n"),
        (
            "tools/make.py",
            "import os\nos.chdir('web')\nos.system('make test')\n",
        ),
        ("web/Makefile", MAKEFILE),
    ];
    for (gate, path) in [
        ("python3 -m checks", "checks/__main__.py"),
        ("python3 -m checks", "checks/__init__.py"),
        ("python3 -m checks", "checks/rules.py"),
        ("python3 -Bm lib.rules", "lib/rules.py"),
        ("PYTHONPATH=lib python3 -m rules", "lib/rules.py"),
        ("python3 check.py", "inner.sh"),
        (".venv/bin/python check.py", "inner.sh"),
        ("./run", "inner.sh"),
        (
            "python3 -c 'import os; os.system(\"sh inner.sh\")'",
            "inner.sh",
        ),
        ("python3 -c 'import checks; checks.run()'", "checks.py"),
        ("python3 judge.py", "lib/rules.py"),
        ("python3 judge.py", "lib/__init__.py"),
        ("python3 tools/judge.py", "lib/rules.py"),
        ("python3 tools/load.py", "tools/part.py"),
        ("python3 tools/make.py", "web/Makefile"),
    ] {
        assert!(asks(gate, files, path), "{gate} {path}");
    }
}

#[test]
fn a_product_that_is_merely_imported_or_tested_stays_one() {
    let imports = "from app import add\nassert add(1, 2) == 3\n";
    let django = "import os\nfrom django.core.management import execute_from_command_line\n\
                  os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'site.settings')\n";
    let files: Files<'_> = &[
        ("test_app.py", imports),
        ("tests/test_app.py", imports),
        (
            "tools/check.py",
            &format!("import sys\nsys.path.insert(0, ROOT)\n{imports}"),
        ),
        ("check.py", "assert 'usage' in open('README.md').read()\n"),
        ("manage.py", django),
        ("package.json", PACKAGE),
    ];
    for (gate, path) in [
        ("python3 -m unittest", "app.py"),
        ("python3 -m unittest -v test_app", "app.py"),
        ("python -m pytest -q", "app.py"),
        ("python -m pytest tests/test_app.py", "app.py"),
        ("python3 tests/test_app.py", "app.py"),
        ("python3 test_app.py", "app.py"),
        ("python3 tools/check.py", "app.py"),
        (
            "python3 -c 'import app; assert app.add(1, 2) == 3'",
            "app.py",
        ),
        ("python3 check.py", "README.md"),
        ("python3 manage.py test", "site/settings.py"),
        ("npm test", "src/app.js"),
        ("npm test", "web/package.json"),
        ("sh -c 'cargo test'", "src/lib.rs"),
        ("bash -c 'cd web && cargo test --offline'", "web/src/lib.rs"),
    ] {
        assert!(!asks(gate, files, path), "{gate} {path}");
    }
}

#[test]
fn what_a_task_declares_is_free_where_the_gate_merely_runs_or_imports_it() {
    let document = "cat > expected <<'END'\nsh and app.py don't say so\nEND\npython3 app.py | diff - expected\n";
    let files: Files<'_> = &[
        ("gate.sh", document),
        (
            "check.py",
            "from validation import is_valid\nassert is_valid('a')\n",
        ),
        ("app.py", "import core\ncore.run()\n"),
        ("sub/Makefile", MAKEFILE),
    ];
    for (gate, declared, path) in [
        ("sh gate.sh", &["app.py"][..], "app.py"),
        ("python3 check.py", &["validation.py"], "validation.py"),
        ("make -C sub test", &["sub/app.c"], "sub/app.c"),
        ("cd sub && make test", &["sub/app.c"], "sub/app.c"),
        // The packages that a program lies in are imported before it.
        (
            "python3 -m pkg.selftest",
            &["pkg/__init__.py"],
            "pkg/__init__.py",
        ),
        // What imports it is the product that the task is to make.
        ("python3 app.py --selftest", &["app.py"], "core.py"),
    ] {
        let own = task(declared, "true");
        let found = with_rules(files, gate, &own, |rules| why(rules, path, "1\n", "2\n"));
        assert_eq!(found, None, "{gate} {path}");
        let own = task(&["other.py"], "true");
        let found = with_rules(files, gate, &own, |rules| why(rules, path, "1\n", "2\n"));
        assert!(found.is_some(), "{gate} {path}");
    }
    // A script that judges is none, though the task declares it.
    let own = task(&["check.py"], "true");
    let found = with_rules(files, "python3 check.py", &own, |rules| {
        why(rules, "validation.py", "1\n", "2\n")
    });
    assert!(found.is_some_and(|why| why.contains("`check.py` uses")));
    // What only the task's own check imports is what the task is to make.
    let own = task(&["other.py"], "python3 check.py");
    let found = with_rules(files, "true", &own, |rules| {
        why(rules, "validation.py", "1\n", "2\n")
    });
    assert_eq!(found, None);
}

#[test]
fn a_new_module_that_what_judges_would_import_is_not_free() {
    let files: Files<'_> = &[
        ("check.py", "import requests\nimport app\n"),
        (
            "judge.py",
            "import sys\nsys.path[:0] = ['tools', 'lib']\nimport rules\n",
        ),
        ("lib/rules.py", "def run(): ...\n"),
        ("pkg/selftest.py", "import json\n"),
    ];
    for (gate, path, expected) in [
        ("python3 check.py", "requests.py", true),
        ("python3 check.py", "requests/__init__.py", true),
        ("python3 judge.py", "tools/rules.py", true),
        ("python3 -m pkg.selftest", "pkg/__init__.py", true),
        ("python3 check.py", "other.py", false),
        ("python3 check.py", "lib/requests.py", false),
        ("python3 -m unittest", "requests.py", false),
    ] {
        let new = |declared: &str| {
            with_rules(files, gate, &task(&[declared], "true"), |rules| {
                rules.why(&Change {
                    path,
                    before: None,
                    after: Some("x = 1\n"),
                })
            })
        };
        assert_eq!(new("product.txt").is_some(), expected, "{gate} {path}");
        assert_eq!(new(path), None, "{gate} {path}");
    }
}

#[test]
fn in_a_file_with_entries_what_the_gate_does_not_run_is_free_wherever_it_lies() {
    let root = r#"{ "scripts": { "test": "npm --prefix web test", "start": "node ." } }"#;
    let makefile = "include rules.mk\n\ntest: check\n\nclean:\n\trm -f out\n";
    let rules_of_make = "check:\n\t$(MAKE) -C sub test\n\ndist:\n\ttar c .\n";
    let files: Files<'_> = &[
        ("package.json", root),
        ("web/package.json", PACKAGE),
        ("Makefile", makefile),
        ("rules.mk", rules_of_make),
        ("sub/Makefile", MAKEFILE),
    ];
    for (gate, path, (from, to), expected) in [
        (
            "npm test",
            "web/package.json",
            ("eslint .", "eslint src"),
            false,
        ),
        ("npm test", "web/package.json", ("jest --ci", "true"), true),
        ("npm test", "package.json", ("node .", "node app"), false),
        ("make test", "Makefile", ("rm -f", "rm -rf"), false),
        ("make test", "Makefile", ("test: check", "test:"), true),
        (
            "make -C sub test",
            "sub/Makefile",
            ("./lint", "./lint -q"),
            false,
        ),
        (
            "make -C sub test",
            "sub/Makefile",
            ("-q good", "-q ''"),
            true,
        ),
        ("make check", "sub/Makefile", ("./lint", "./lint -q"), false),
        ("make check", "sub/Makefile", ("-q good", "-q ''"), true),
    ] {
        let (_, text) = files.iter().find(|(known, _)| *known == path).unwrap();
        let own = task(&[path], "true");
        let found = with_rules(files, gate, &own, |rules| {
            why(rules, path, text, &text.replace(from, to))
        });
        assert_eq!(found.is_some(), expected, "{gate} {path}: {found:?}");
    }
}

#[test]
fn what_a_bound_cuts_off_is_not_free() {
    // Nothing is known of a file with entries that was not read.
    let files: Files<'_> = &[("gate.sh", "cd web && make -s test\n")];
    assert!(asks("sh gate.sh", files, "web/Makefile"));
    let runs = |line: &str, path: &str| {
        let mut reach = Reach::default();
        reach.add("gate", line, true, &Repository::of(&[]));
        reach.of(path).is_some_and(|used| used.runs)
    };
    let deep = "eval ".repeat(50);
    assert!(runs(&format!("{deep} sh inner.sh"), "inner.sh"));
    assert!(runs(&format!("{deep} 'sh inner.sh'"), "inner.sh"));
    assert!(runs(&format!("{deep} 'sh checks/*.sh'"), "checks/a.sh"));
    assert!(!runs("echo inner.sh", "inner.sh"));
}

#[test]
fn what_the_files_of_one_round_name_is_read_in_the_next() {
    let files: Files<'_> = &[
        ("gate.sh", "cd web && make -s test\n"),
        ("web/Makefile", "test:\n\tmake -C more\n"),
    ];
    let mut contents = Contents::default();
    let mut rounds: Vec<Vec<String>> = Vec::new();
    loop {
        let mut reach = Reach::default();
        reach.add("gate", "sh gate.sh", true, &contents);
        let wanted = contents.wanted();
        if wanted.is_empty() {
            assert_eq!(reach.entries("web/Makefile").count(), 1);
            break;
        }
        for path in &wanted {
            let text = files.iter().find(|(known, _)| *known == path.as_str());
            if let Some((_, text)) = text {
                contents.add(path, text.as_bytes());
            }
        }
        rounds.push(wanted.iter().map(|path| path.as_str().to_owned()).collect());
    }
    let candidates = ["web/GNUmakefile", "web/Makefile", "web/makefile"];
    assert_eq!(rounds, [&["gate.sh"][..], &candidates]);
}

#[test]
fn a_package_in_the_place_of_a_module_that_counts_is_told_from_others() {
    let files: Files<'_> = &[("judge.py", "from lib import rules\n")];
    let new = "lib/rules/__init__.py";
    for (gate, declared, module, expected) in [
        ("python3 judge.py", "a", "lib/rules.py", true),
        ("python3 judge.py", new, "lib/rules.py", false),
        ("python3 judge.py", "a", "lib/more.py", false),
        ("true", "a", "lib/rules.py", false),
        ("true", new, "tests/test_a.py", true),
    ] {
        let found = with_rules(files, gate, &task(&[declared], "true"), |rules| {
            rules.is_stood_in_for(module, new)
        });
        assert_eq!(found, expected, "{gate} {module}");
    }
}
