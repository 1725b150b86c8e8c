//! Tries what is run without being written out: by directories, globs, lists and variables.

use super::super::super::tests::{task, with_rules};
use super::super::super::{Change, Rules};
use super::super::{Contents, Reach};
use super::{Files, asks, why};

/// Scripts, programs and rules of make of a gate.
const CHECKS: Files<'static> = &[
    ("checks/a.sh", ". lib/common.sh\n"),
    ("checks/__main__.py", "import rules\nrules.run()\n"),
    ("checks/index.js", "1\n"),
    ("checks/x.mk", "check:\n\tsh lib/more.sh\n"),
    (
        "all.sh",
        "for s in checks/*.sh\ndo\n  sh \"$s\" || exit 1\ndone\n",
    ),
    ("by_variable.sh", "D=checks\nsh $D/a.sh\n"),
    (
        "from_here.sh",
        "HERE=$(dirname \"$0\")\nsh \"$HERE/checks/a.sh\"\n",
    ),
    ("each.sh", "for s in \"$@\"; do\n  sh \"$s\"\ndone\n"),
    (
        "found.sh",
        "find checks -name '*.sh' |\n  while read -r s; do\n    sh \"$s\"\n  done\n",
    ),
    ("there.sh", "(cd web && true)\nsh checks/a.sh\n"),
    ("maybe.sh", "if true; then cd web; fi\nsh checks/a.sh\n"),
    (
        "tools/node/package.json",
        r#"{ "main": "./lib/run.js", "version": "1" }"#,
    ),
    ("web/Makefile", "test:\n\tsh t.sh\n"),
    ("tests/t.sh", "sh src/run.sh\n"),
];

/// Makefiles that run `checks/a.sh`, each in another way.
const MAKEFILES: &[&str] = &[
    "SCRIPT := checks/a.sh\nt:\n\t@sh $(SCRIPT)\n",
    "SCRIPT = $(DIR)/$(NAME).sh # the script\nDIR = checks\nNAME = a\nt:\n\tsh ${SCRIPT}\n",
    "DIR = other\nDIR = checks\nt:\n\tsh $(DIR)/a.sh\n",
    "t: SCRIPT = checks/a.sh\nt:\n\tsh $(SCRIPT)\n",
    "define RUN\nset -e\nsh checks/a.sh\nendef\nt:\n\t$(RUN)\n",
    "t:\n\tfor s in checks/*.sh; do sh $$s || exit 1; done\n",
    "t: checks/a.sh\n\tsh $<\n",
    "t: $(wildcard checks/*.sh)\n\tfor s in $^; do sh $$s; done\n",
    "ALL := $(shell find checks -name '*.sh')\nt:\n\techo $(ALL) | xargs -n1 sh\n",
    "OUT := $(shell sh checks/a.sh)\nt:\n\techo $(OUT)\n",
    "t:\n\tcd web && true\n\tsh checks/a.sh\n",
    "t:\n\tsh $(ELSEWHERE)/checks/a.sh\n",
];

#[test]
fn a_file_of_a_directory_that_is_run_is_what_the_gate_runs() {
    for (gate, path) in [
        ("python3 checks", "checks/__main__.py"),
        ("python3 -B ./checks/ --all", "checks/__main__.py"),
        ("python3 checks", "checks/rules.py"),
        ("cd web && python3 judge", "web/judge/__main__.py"),
        ("node checks", "checks/index.js"),
        ("node checks", "checks/index.mjs"),
        ("node tools/node", "tools/node/lib/run.js"),
        ("node tools/node", "tools/node/package.json"),
        ("node .", "index.js"),
        ("go run ./cmd/judge --all", "cmd/judge/main.go"),
        ("go run -race -tags x ./cmd/judge", "cmd/judge/rules.go"),
        ("go run -C tools .", "tools/main.go"),
        ("go run cmd/main.go cmd/rules.go -v", "cmd/rules.go"),
        ("run-parts checks", "checks/a.sh"),
        ("run-parts --regex . checks", "checks/a.sh"),
        (
            "python3 -c 'import subprocess; subprocess.run([\"run-parts\", \"checks\"])'",
            "checks/a.sh",
        ),
    ] {
        assert!(asks(gate, CHECKS, path), "{gate} {path}");
    }
}

#[test]
fn of_a_package_that_is_run_the_main_file_is_told_from_the_rest() {
    let path = "tools/node/package.json";
    let (_, text) = CHECKS.iter().find(|(known, _)| *known == path).unwrap();
    for (from, to, expected) in [
        ("./lib/run.js", "./lib/other.js", true),
        ("\"version\": \"1\"", "\"version\": \"2\"", false),
    ] {
        let own = task(&[path], "true");
        let found = with_rules(CHECKS, "node tools/node", &own, |rules| {
            why(rules, path, text, &text.replace(from, to))
        });
        assert_eq!(found.is_some(), expected, "{to}: {found:?}");
    }
}

#[test]
fn what_a_list_or_a_glob_stands_for_is_what_the_gate_runs() {
    for gate in [
        "bash checks/*",
        "sh checks/?.sh",
        "sh checks/{a,b}.sh",
        ". checks/*.sh",
        "for f in checks/*.sh; do sh $f; done",
        "for f in checks/*.sh; do sh \"$f\" || exit 1; done",
        "for f in checks/*; do ./$f; done",
        "for f in a b; do sh checks/$f.sh; done",
        "for f in $(find checks -name '*.sh'); do sh $f; done",
        "for f in $(ls checks); do sh checks/$f; done",
        "for f in checks/*.sh; do sh checks/$(basename $f); done",
        "for d in checks web; do (cd $d && sh a.sh); done",
        "for d in */; do (cd $d && sh a.sh); done",
        "sh -c 'for f in checks/*.sh; do sh $f; done'",
        "sh -c 'for f; do sh $f; done' sh checks/*.sh",
        "ls checks/*.sh | xargs -n1 sh",
        "printf '%s\\n' checks/*.sh | sort | xargs -I{} sh {}",
        "find checks -name '*.sh' -exec sh {} \\;",
        "find checks -name '*.sh' -exec sh -c 'sh \"$1\"' _ {} ';'",
        "find . -type f -name '*.sh' -print0 | xargs -0 bash",
        "find checks -name '*.sh' | while read -r f; do sh \"$f\"; done",
        "git ls-files '*.sh' | xargs -n1 sh",
        "cat checks/*.sh | sh",
        "sh < checks/a.sh",
        "sh -e < checks/a.sh",
        "ruby -rspec_helper < checks/a.sh",
        "perl -Ispec < checks/a.sh",
        "sh all.sh",
        "sh each.sh checks/*.sh",
        "sh found.sh",
        "(cd web && true); sh checks/a.sh",
        "(cd web); (sh checks/a.sh)",
        "pushd web && true && popd && sh checks/a.sh",
        "sh there.sh",
        "sh maybe.sh",
    ] {
        assert!(asks(gate, CHECKS, "checks/a.sh"), "{gate}");
    }
    // What these run is followed as if it was written out.
    for gate in ["for f in checks/*.sh; do sh $f; done", "bash checks/*"] {
        assert!(asks(gate, CHECKS, "lib/common.sh"), "{gate}");
    }
    for gate in [
        "for d in */; do make -C $d test; done",
        "make -C $X/web test",
    ] {
        assert!(asks(gate, CHECKS, "web/Makefile"), "{gate}");
    }
}

#[test]
fn what_a_variable_stands_for_is_what_the_gate_runs() {
    for gate in [
        "D=checks; sh $D/a.sh",
        "D=checks && sh \"${D}/a.sh\"",
        "export D=checks; sh $D/a.sh",
        "sh ${D:-checks}/a.sh",
        "sh $D/a.sh",
        "sh \"$(git rev-parse --show-toplevel)/checks/a.sh\"",
        "SH=sh; $SH checks/a.sh",
        "D=checks sh -c 'sh $D/a.sh'",
        "sh by_variable.sh",
        "sh from_here.sh",
        "eval \"sh $D/a.sh\"",
    ] {
        assert!(asks(gate, CHECKS, "checks/a.sh"), "{gate}");
    }
    assert!(asks("P=python3; $P checks", CHECKS, "checks/__main__.py"));
    for makefile in MAKEFILES {
        let files = with_file(("Makefile", makefile));
        assert!(asks("make t", &files, "checks/a.sh"), "{makefile}");
    }
    let files: Files<'_> = &[("Makefile", "t:\n\tsh $(SCRIPT)\n")];
    assert!(asks("make t SCRIPT=checks/a.sh", files, "checks/a.sh"));
    let files: Files<'_> = &[("justfile", "dir := 'checks'\nt:\n    sh {{ dir }}/a.sh\n")];
    assert!(asks("just t", files, "checks/a.sh"));
}

/// Returns the files of a gate with one more.
fn with_file<'a>(file: (&'a str, &'a str)) -> Vec<(&'a str, &'a str)> {
    std::iter::once(file)
        .chain(CHECKS.iter().copied())
        .collect()
}

#[test]
fn what_a_makefile_includes_by_a_glob_is_a_part_of_it() {
    for includes in [
        "include checks/*.mk",
        "-include $(wildcard checks/*.mk)",
        "DIR = checks\n-include $(wildcard $(DIR)/*.mk)",
    ] {
        let makefile = format!("{includes}\nall: check\n");
        let files = with_file(("Makefile", &makefile));
        for path in ["checks/x.mk", "checks/new.mk", "lib/more.sh"] {
            assert!(asks("make check", &files, path), "{includes} {path}");
        }
    }
}

#[test]
fn what_others_only_look_at_is_not_what_the_gate_runs() {
    for (gate, path) in [
        ("pytest tests", "src/app.py"),
        ("python3 -m pytest src/*.py", "src/app.py"),
        ("python3 -m unittest discover tests", "app.py"),
        ("ruff check src", "src/app.py"),
        ("ruff check src/*.py && mypy src", "src/app.py"),
        ("tsc -p .", "src/a.ts"),
        ("eslint src 'src/**/*.js'", "src/a.js"),
        ("go test ./... && go vet ./cmd/x", "cmd/x/main.go"),
        ("node --test src", "src/index.js"),
        ("bun test src", "src/index.ts"),
        ("cp -r src out", "src/a.sh"),
        ("ls src", "src/a.sh"),
        ("ls src/*.py | wc -l", "src/a.py"),
        ("grep -r x src", "src/a.sh"),
        ("cat src/*.py | grep -q x", "src/a.py"),
        ("shellcheck scripts/*.sh", "scripts/a.sh"),
        ("bash -n scripts/*.sh", "scripts/a.sh"),
        (
            "for f in scripts/*.sh; do bash -n \"$f\"; done",
            "scripts/a.sh",
        ),
        (
            "for f in src/*.py; do python3 -m py_compile $f; done",
            "src/a.py",
        ),
        (
            "find src -name '*.py' | xargs python3 -m py_compile",
            "src/a.py",
        ),
        ("find . -name '*.py' -exec grep -q x {} +", "src/a.py"),
        ("find . -name '*.js' | xargs -n1 node --check", "src/a.js"),
        (
            "for d in web api; do (cd $d && npm test); done",
            "web/src/a.js",
        ),
        (
            "case $f in src/*.py) ruff check $f;; docs/*|lib/*) true;; esac",
            "src/a.py",
        ),
        ("case $f in docs/*|lib/*) true;; esac", "lib/a.sh"),
        ("FILES=(src/*.py lib/*.sh)", "src/a.py"),
        ("for t in tests/*.sh; do bash \"$t\"; done", "src/run.sh"),
        ("cat data/*.json | node -e 'read()'", "data/a.json"),
        ("cat data/*.json | php -r 'read();'", "data/a.json"),
        ("cat data/*.json | php -fread.php", "data/a.json"),
        ("cat data/*.json | perl -Ilib -lane'read()'", "data/a.json"),
        ("cat scripts/*.sh | bash -n", "scripts/a.sh"),
        (
            "for f in scripts/*.pl; do perl -Ilib -c $f; done",
            "scripts/a.pl",
        ),
        (
            "for f in scripts/*.sh; do bash --norc -n $f; done",
            "scripts/a.sh",
        ),
        ("deno test src/*.ts", "src/a.ts"),
        ("bun test 'src/**/*.ts'", "src/a.ts"),
        ("node --test 'src/**/*.js'", "src/a.js"),
        // What is run lies elsewhere, or is called something else.
        ("for f in checks/*.sh; do sh $f; done", "checks/deep/a.sh"),
        ("for f in checks/*.sh; do sh $f; done", "checks/notes.txt"),
        (
            "find checks -name '*.sh' -exec sh {} ';'",
            "checks/notes.txt",
        ),
        ("python3 checks", "checks/data.txt"),
        ("python3 app.py", "lib/__main__.py"),
        ("sh $D/a.sh", "checks/b.sh"),
    ] {
        assert!(!asks(gate, CHECKS, path), "{gate} {path}");
    }
}

#[test]
fn nothing_is_said_of_what_nothing_is_known_of() {
    for (gate, path) in [
        ("sh \"$1\"", "a.sh"),
        ("\"$@\"", "a.sh"),
        ("for f in $FILES; do sh $f; done", "a.sh"),
        ("sh $D/$F", "a.sh"),
        ("python3 \"$NAME.py\"", "a.py"),
        ("python3 $D", "lib/__main__.py"),
        ("git diff --name-only | xargs sh", "a.sh"),
    ] {
        assert!(!asks(gate, CHECKS, path), "{gate} {path}");
    }
}

#[test]
fn a_product_that_the_task_declares_is_free_where_the_gate_runs_it_further_in_by_a_glob() {
    let files: Files<'_> = &[("gate.sh", "for f in examples/*.py; do python3 $f; done\n")];
    let asked = |gate: &str, declared: &str, path: &str| {
        let own = task(&[declared], "true");
        with_rules(files, gate, &own, |rules| why(rules, path, "1\n", "2\n"))
    };
    let path = "examples/a.py";
    assert_eq!(asked("sh gate.sh", path, path), None);
    assert!(asked("sh gate.sh", "other.py", path).is_some());
    // On its own line the file says how the gate ends, unless it is not known to be that one.
    let each = "for f in examples/*.py; do python3 $f; done";
    let found = asked(each, path, path);
    assert!(found.is_some_and(|why| why.contains("`gate` runs")));
    assert_eq!(asked("python3 $D/a.py", path, path), None);
    assert!(asked("sh $D/check.sh", "lib/check.sh", "lib/check.sh").is_some());
    // What only the task's own check runs is what the task is to make.
    let own = task(&[path], each);
    let found = with_rules(files, "true", &own, |rules| why(rules, path, "1\n", "2\n"));
    assert_eq!(found, None);
}

#[test]
fn a_new_file_that_is_run_by_a_glob_is_asked_about_unless_it_is_a_test_or_declared() {
    let new = |gate: &str, declared: &str, path: &str| {
        let ask = |rules: &Rules<'_>| {
            rules.why(&Change {
                path,
                before: None,
                after: Some("exit 0\n"),
            })
        };
        with_rules(CHECKS, gate, &task(&[declared], "true"), ask).is_some()
    };
    let gate = "for f in checks/*.sh tests/*.sh; do sh $f; done";
    assert!(new(gate, "a", "checks/new.sh"));
    assert!(!new(gate, "checks/new.sh", "checks/new.sh"));
    assert!(!new(gate, "a", "tests/new.sh"));
    assert!(!new(gate, "a", "other/new.sh"));
    assert!(new("python3 judge", "a", "judge/__main__.py"));
    assert!(new("python3 checks", "a", "checks/json.py"));
    assert!(new("node judge", "a", "judge/package.json"));
}

#[test]
fn what_the_check_of_a_task_uses_up_is_none_of_what_the_gate_has() {
    let values = ["a", "b", "c", "d", "e", "f", "g"].map(|name| format!("{name}=0; {name}=1\n"));
    let script = "sh $a$b$c$d$e$f$g/*.sh\n".repeat(2_000);
    let script = format!("{}{script}", values.concat());
    let files: Files<'_> = &[("own.sh", &script)];
    let own = task(&["a"], "sh own.sh");
    let gate = "for f in checks/*.sh; do sh $f; done";
    let found = with_rules(files, gate, &own, |rules| {
        why(rules, "checks/a.sh", "1\n", "2\n")
    });
    assert!(found.is_some());
}

#[test]
fn what_is_followed_of_files_is_bounded_and_not_what_the_line_itself_runs() {
    let script = "sh a.sh\n".repeat(5_000);
    let files: Files<'_> = &[("big.sh", &script), ("more.sh", "sh inner.sh\n")];
    // The same script again costs nothing.
    let same = "sh big.sh; ".repeat(99);
    assert!(asks(&format!("{same} sh more.sh"), files, "inner.sh"));
    let others = (0..9).map(|number| format!("sh big.sh {number}; "));
    let others = others.collect::<Vec<_>>().concat();
    let beyond = format!("{others} sh more.sh; sh checks/*.sh");
    assert!(!asks(&beyond, files, "inner.sh"));
    assert!(asks(&beyond, files, "more.sh"));
    assert!(asks(&beyond, files, "checks/a.sh"));
}

#[test]
fn the_paths_of_a_tree_are_read_where_something_is_run_that_is_not_written_out() {
    for (gate, lacks, read) in [
        ("sh checks/a.sh", false, &["checks/a.sh"][..]),
        ("ruff check src/*.py", false, &[]),
        (
            "for f in checks/*.sh; do sh $f; done",
            true,
            &["checks/a.sh"],
        ),
    ] {
        let look = |contents: &Contents| {
            Reach::default().add("gate", gate, true, contents);
        };
        let mut contents = Contents::default();
        look(&contents);
        assert_eq!(contents.lacks_paths(), lacks, "{gate}");
        contents.list(vec!["checks/a.sh".to_owned(), "src/a.py".to_owned()]);
        look(&contents);
        assert!(!contents.lacks_paths(), "{gate}");
        let wanted = contents.wanted();
        let wanted = wanted.iter().map(|path| path.as_str().to_owned());
        assert_eq!(wanted.collect::<Vec<String>>(), read, "{gate}");
    }
}
