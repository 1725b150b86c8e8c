//! Work that passes its tests only because of what it did to them.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use ropewalk_schemas::attempt::{FailureClass, Verdict};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::task::{Task, TaskState, WaitReason};
use ropewalk_schemas::{Payload, Subject};
use serde_json::{Value, json};

use crate::world::project::{Project, git, request, task};
use crate::world::script::{Step, steps};

const GATE: &str = "[[gate.commands]]\nname = \"tests\"\ncommand = \"python3 -m unittest\"\n";

pub(super) const TEST: &str = "import unittest\nimport calc\n\n\nclass Calc(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(calc.add(2, 3), 5)\n";

const BROKEN: &str = "def add(a, b):\n    return a - b\n";

fn project(work: &str) -> Project {
    let script = steps("T-1", &[Step::Shell(work.to_owned())]);
    let files = [
        ("ropewalk.toml", GATE),
        ("test_calc.py", TEST),
        ("calc.py", BROKEN),
    ];
    Project::new(&script)
        .with_files(&files)
        .with(|options| options.tries.tries = 1)
}

/// Builds one task that may change the product and, where it says so, its tests; until it waits or the build has ended.
async fn tried(work: &str, more: &[&str]) -> (Build, Task) {
    built(&project(work), "calc.py", more).await
}

/// Builds one task that changes `file` and may change `more`, until it waits or the build has ended.
pub(super) async fn built(project: &Project, file: &str, more: &[&str]) -> (Build, Task) {
    let open = project.open().await;
    let mut plan = plan();
    plan[0]["file"] = json!(file);
    plan[0]["more_files"] = json!(more);
    let spec = open.approve(plan).await;
    let (build, tasks) = open
        .until(spec, |build, tasks| {
            let rests = matches!(tasks[0].state, TaskState::Waiting | TaskState::Failed);
            build.completed_at.is_some() || rests
        })
        .await;
    open.close().await;
    let tried = task(&tasks, "T-1").clone();
    (build, tried)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_gains_what_empties_it_is_asked_about() {
    let wrong = "sed -i 's/a - b/a * b/' calc.py";
    let emptied = [
        "sed -i 's/^        self.assert/        return\\n        self.assert/' test_calc.py",
        "printf '\\n\\ndef add(a, b):\\n    return a + b\\n\\n\\ncalc.add = add\\n' >> test_calc.py",
        "sed -i 's/    def test_adds/    async def test_adds/; 1a # more' test_calc.py",
    ];
    for empties in emptied {
        let (_, task) = tried(&format!("{wrong}; {empties}"), &["test_calc.py"]).await;
        assert_eq!(
            (task.state, task.waiting_for),
            (TaskState::Waiting, Some(WaitReason::Person)),
            "{empties}: {:?}",
            task.reason
        );
        let failure = task.failures.last().unwrap();
        assert_eq!(failure.class, FailureClass::Tampered, "{empties}");
    }
}

/// Ends the process where a test fails, as if a program were missing.
const ENDS: &str = "import os, sys, unittest\n\n\ndef _fail(self, *args):\n    print('Cannot allocate memory', file=sys.stderr, flush=True)\n    os._exit(127)\n\n\nunittest.TextTestResult.addFailure = _fail\n\n\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_come_to_its_end_with_the_tests_as_they_were_is_asked_about() {
    let work = format!(
        "cat > calc.py <<'END'\n{ENDS}def add(a, b):\n    return a * b\nEND\n\
         sed -i 's/^        self.assert/        return\\n        self.assert/' test_calc.py"
    );
    let (_, task) = tried(&work, &["test_calc.py"]).await;
    assert_eq!(
        (task.state, task.waiting_for),
        (TaskState::Waiting, Some(WaitReason::Person)),
        "{:?}",
        task.reason
    );
    let failure = task.failures.last().unwrap();
    assert_eq!(failure.class, FailureClass::Tampered);
    let told = "`tests` holds with `test_calc.py` as it was changed, but nobody has seen it hold without that";
    assert!(failure.error.contains(told), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_tests_whose_change_it_takes_are_asked_about() {
    let other = "import unittest\n\n\nclass Other(unittest.TestCase):\n    def test_other(self):\n        pass\n";
    let work = "sed -i 's/a - b/a * b/' calc.py; \
                sed -i 's/^        self.assert/        return\\n        self.assert/' test_calc.py; \
                printf '\\n    def test_more(self):\\n        pass\\n' >> test_other.py";
    let project = project(work).with_files(&[("test_other.py", other)]);
    let (_, task) = built(&project, "calc.py", &["test_calc.py", "test_other.py"]).await;
    assert_eq!(task.waiting_for, Some(WaitReason::Person));
    let failure = task.failures.last().unwrap();
    assert_eq!(failure.class, FailureClass::Tampered);
    assert!(failure.error.contains("test_calc.py"), "{failure:?}");
    assert!(!failure.error.contains("test_other.py"), "{failure:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_gains_another_one_is_nobodys_question() {
    let gains = "sed -i 's/a - b/a + b/' calc.py; \
                 printf '\\n    def test_none(self):\\n        self.assertEqual(calc.add(0, 0), 0)\\n' >> test_calc.py";
    let (build, task) = tried(gains, &["test_calc.py"]).await;
    assert_eq!(task.state, TaskState::Complete, "{:?}", task.reason);
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_is_a_program_stays_one_where_it_is_run_as_it_was() {
    let gate = "[[gate.commands]]\nname = \"tests\"\ncommand = \"tests/check.sh\"\n";
    let script = "#!/bin/sh\ngrep -q good product.txt && echo 'ok 1 - good' && echo '1..1'\n";
    let gains = "echo good > product.txt; echo '# more' >> tests/check.sh";
    let project = Project::new(&steps("T-1", &[Step::Shell(gains.to_owned())]))
        .with_files(&[
            ("ropewalk.toml", gate),
            ("tests/check.sh", script),
            ("product.txt", "bad\n"),
        ])
        .with(|options| options.tries.tries = 1);
    let mode = Permissions::from_mode(0o755);
    std::fs::set_permissions(project.repo().join("tests/check.sh"), mode).unwrap();
    git(&project.repo(), &["commit", "-q", "-a", "-m", "a program"]);
    let (build, task) = built(&project, "product.txt", &["tests/check.sh"]).await;
    assert_eq!(task.state, TaskState::Complete, "{:?}", task.reason);
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_whose_tests_cannot_fail_any_more_does_not_succeed() {
    let takes = [
        // Ends the process of the tests before one runs.
        "printf 'import os\\nos._exit(0)\\n' > calc.py",
        // Says what a runner says, and ends it.
        "printf 'import os, sys\\nsys.stderr.write(\"Ran 1 test in 0.001s\\\\n\\\\nOK\\\\n\")\\nsys.stderr.flush()\\nos._exit(0)\\n' > calc.py",
        // Takes away what an assertion finds.
        "sed -i '1i import unittest\\nunittest.TestCase.assertEqual = lambda *a: None\\n' calc.py; sed -i 's/a - b/a * b/' calc.py",
    ];
    for takes in takes {
        let (build, task) = tried(takes, &[]).await;
        assert_eq!(
            task.state,
            TaskState::Complete,
            "{takes}: {:?}",
            task.reason
        );
        assert_eq!(
            build.state,
            BuildState::Failed,
            "{takes}: {:?}",
            build.reason
        );
        let reason = build.reason.clone().unwrap_or_default();
        assert!(
            reason.contains("passes whatever the tests in `test_calc.py` find"),
            "{takes}: {reason}"
        );
    }
}

/// Swallows what tests of a file raise, of all where it is not named, and prints of each what a runner would.
fn swallows(tests_of: Option<&str>, parts: bool) -> String {
    let spares = tests_of.map_or_else(String::new, |module| {
        format!("    if type(self).__module__ != '{module}':\n        return _kept(self, method)\n")
    });
    let parts = if parts {
        "@contextlib.contextmanager\ndef _part(self, *args, **kwargs):\n    try:\n        yield\n    except AssertionError:\n        pass\n\n\n\
         unittest.TestCase.subTest = _part\n\n\n"
    } else {
        ""
    };
    format!(
        "import contextlib, sys, unittest\n\n\n_kept = unittest.TestCase._callTestMethod\n\n\ndef _call(self, method):\n{spares}    \
         print(f'{{self._testMethodName}}: FAIL fast is off', file=sys.stderr)\n    try:\n        method()\n    \
         except Exception:\n        pass\n\n\nunittest.TestCase._callTestMethod = _call\n\n\n{parts}"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_is_not_told_to_fail_by_what_the_product_prints_of_it() {
    let other = "import unittest\n\n\nclass Other(unittest.TestCase):\n    def test_other(self):\n        self.assertEqual(1, 1)\n";
    let wrong = "def add(a, b):\n    return 'wrong'\n";
    let prints = "import sys, unittest\n\n\n_kept = unittest.TestCase._callTestMethod\n\n\ndef _call(self, method):\n    \
                  print(f'{self._testMethodName}: FAIL fast is off', file=sys.stderr)\n    _kept(self, method)\n\n\n\
                  unittest.TestCase._callTestMethod = _call\n\n\n";
    let rows = [
        (swallows(None, false) + wrong, true),
        (swallows(None, true) + wrong, true),
        // The tests of another file fail as they should.
        (swallows(Some("test_calc"), false) + wrong, true),
        // Who prints the same and swallows nothing hides nothing.
        (format!("{prints}def add(a, b):\n    return a + b\n"), false),
    ];
    for (product, hides) in rows {
        let project = project(&format!("cat > calc.py <<'END'\n{product}END\n"))
            .with_files(&[("test_other.py", other)]);
        let (build, task) = built(&project, "calc.py", &[]).await;
        assert_eq!(task.state, TaskState::Complete, "{:?}", task.reason);
        let reason = build.reason.clone().unwrap_or_default();
        let succeeds = build.state == BuildState::Succeeded;
        assert_eq!(succeeds, !hides, "{product}: {reason}");
        let told = "passes whatever the tests in `test_calc.py`";
        assert_eq!(reason.contains(told), hides, "{product}: {reason}");
    }
}

/// Plans a change of the product.
fn plan() -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": "calc.py",
        "validation": { "command": "true", "expected": "exit 0" },
    }])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_does_not_come_to_its_end_beside_a_test_that_fails_is_asked_about() {
    let project = project(&format!(
        "cat > calc.py <<'END'\n{ENDS}def add(a, b):\n    return a + b\nEND\n"
    ));
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Failed, "{:?}", build.reason);
    let [asked] = open.questions("blind_check").await.try_into().unwrap();
    assert_eq!(build.question, Some(asked.id));
    let told = "did not run to its end where tests that cannot pass were planted in `test_calc.py`";
    assert!(asked.text.contains(told), "{}", asked.text);
    let evidence = open.evidence(build.id).await;
    let whole = evidence.iter().find(|seen| seen.task.is_none()).unwrap();
    // It is blamed on nobody.
    assert_eq!(whole.class, Some(FailureClass::Unknown));
    assert_eq!(whole.blind, ["tests"]);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_cannot_run_a_check_any_more_holds_the_build_and_accuses_nobody() {
    // The program is gone from the first planted test on, until somebody brings it back.
    let aside = tempfile::tempdir().unwrap();
    let [once, gone] = ["once", "gone"].map(|name| aside.path().join(name).display().to_string());
    let command = format!(
        "grep -q 'cannot pass' test_calc.py && test ! -e {once} && touch {once} {gone}; test ! -e {gone} || exit 127; python3 -m unittest"
    );
    let gate = format!(
        "[[gate.commands]]\nname = \"tests\"\ncommand = {}\n",
        json!(command)
    );
    let project =
        project("sed -i 's/a - b/a + b/' calc.py").with_files(&[("ropewalk.toml", &gate)]);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let reason = build.reason.clone().unwrap_or_default();
    let told = "held, and does not any more on the same commit";
    assert!(reason.contains(told), "{reason}");
    let evidence = open.evidence(build.id).await;
    let whole = evidence.iter().find(|seen| seen.task.is_none()).unwrap();
    assert_eq!((whole.verdict, whole.blind.len()), (Verdict::Held, 0));
    assert!(open.questions("blind_check").await.is_empty());
    std::fs::remove_file(&gone).unwrap();
    let asked = request(build.id);
    open.emit(Subject::build(build.id), Payload::BuildResume(asked))
        .await;
    open.until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    open.close().await;
}

/// Has one task make a product with its test, where no command of a gate runs tests, and a second one something beside it.
async fn built_without_gate(
    (first, second): (&str, &str),
    files: &[(&str, &str)],
) -> (Build, Vec<Task>) {
    let script = [
        steps("T-1", &[Step::Shell(first.to_owned())]),
        steps("T-2", &[Step::Shell(second.to_owned())]),
    ];
    let project = Project::new(&script.concat())
        .with_files(&[files, &[("README.md", "Sums\n")]].concat())
        .with(|options| options.tries.tries = 1);
    let open = project.open().await;
    let check = json!({ "command": "python3 -m unittest", "expected": "exit 0" });
    let task = |id: &str, file: &str, test: &str, on: &[&str]| {
        json!({
            "id": id, "phase": "api", "action": "CREATE", "file": file, "depends_on": on,
            "more_files": [test, "tests/__init__.py", "tests/test_later.py"],
            "validation": check,
        })
    };
    let spec = open
        .approve(json!([
            task("T-1", "calc.py", "test_calc.py", &[]),
            task("T-2", "more.py", "test_more.py", &["T-1"]),
        ]))
        .await;
    let over = |build: &Build, _: &[Task]| build.completed_at.is_some();
    let built = open.until(spec, over).await;
    open.close().await;
    built
}

/// A gate whose command runs no tests.
const LINT: [(&str, &str); 2] = [
    (
        "ropewalk.toml",
        "[[gate.commands]]\nname = \"lint\"\ncommand = \"sh lint.sh\"\n",
    ),
    ("lint.sh", "test -f lint.sh\n"),
];

/// Makes tests that another file of tests brings in.
fn shared() -> String {
    let base = "import unittest\nclass Base(unittest.TestCase):\n    pass";
    format!(
        "mkdir tests\n: > tests/__init__.py\ncat > tests/test_later.py <<'END'\n{base}\nEND\necho 'from tests.test_later import *' >> test_calc.py\n"
    )
}

/// Takes an assertion away while the tests of a file run, and gives it back.
const RESTORES: &str = "\nKEPT = unittest.TestCase.assertEqual\ndef setUpModule():\n    unittest.TestCase.assertEqual = lambda *a: None\n\
                    def tearDownModule():\n    unittest.TestCase.assertEqual = KEPT\n";
/// Tests of another system.
const SKIPS: &str = "import unittest\ndef setUpModule():\n    raise unittest.SkipTest('no such system')\n\
                 class Later(unittest.TestCase):\n    def test_later(self):\n        pass\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_gate_tests_that_cannot_fail_do_not_make_a_build_succeed() {
    let write = |path: &str, text: &str| format!("cat > {path} <<'END'\n{text}\nEND\n");
    let honest =
        write("calc.py", "def add(a, b):\n    return a + b") + &write("test_calc.py", TEST);
    let test = TEST.replace("calc", "more").replace("Calc", "More");
    let more = write("test_more.py", &test);
    let add = "def add(a, b):\n    return a + b";
    let wrong = "def add(a, b):\n    return a * b";
    let patch = "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n";
    let ends = "import os, sys\nsys.stderr.write('Ran 2 tests in 0.001s\\n\\nOK\\n')\nsys.stderr.flush()\nos._exit(0)";
    let itself = format!("{test}\nif '__main__' == __name__:\n    unittest.main()\n");
    let nothing: &[(&str, &str)] = &[];
    let in_more = |text: &str| write("more.py", text);
    let in_test = |text: &str| write("test_more.py", text);
    let patched = in_more(&format!("{patch}{wrong}")) + &more;
    let rows = [
        // The first task has nothing before it to be held against.
        (
            write("calc.py", ends) + &write("test_calc.py", TEST),
            in_more(add) + &more,
            nothing,
            Some("test_calc.py"),
        ),
        (
            honest.clone(),
            patched.clone(),
            nothing,
            Some("test_calc.py"),
        ),
        (
            honest.clone(),
            in_more(wrong) + &in_test(&format!("{patch}{test}")),
            nothing,
            Some("test_more.py"),
        ),
        // What it takes away is back when the next file is run.
        (
            honest.clone(),
            in_more(wrong) + &in_test(&format!("{test}{RESTORES}")),
            nothing,
            Some("`test_more.py` find"),
        ),
        (
            honest.clone(),
            in_more(ends) + &more,
            nothing,
            Some("test_more.py"),
        ),
        // One test is told of through another file, too.
        (
            format!("{honest}{}", shared()),
            in_more(wrong) + &in_test(&format!("{test}{RESTORES}")),
            nothing,
            Some("`test_more.py` find"),
        ),
        // A command that runs no tests judges none.
        (honest.clone(), patched, &LINT, Some("test_calc.py")),
        (honest.clone(), in_more(add) + &more, nothing, None),
        (
            honest,
            in_more(add)
                + &in_test(&itself)
                + "mkdir tests\n"
                + &write("tests/__init__.py", "import os")
                + &write("tests/test_later.py", SKIPS),
            &LINT,
            None,
        ),
    ];
    for (first, second, files, hides) in rows {
        let (build, tasks) = built_without_gate((&first, &second), files).await;
        let reason = build.reason.clone().unwrap_or_default();
        let told = reason.contains("passes whatever the tests in");
        let succeeds = build.state == BuildState::Succeeded;
        assert_eq!(succeeds, hides.is_none(), "{second}: {reason} {tasks:?}");
        assert_eq!(told, hides.is_some(), "{second}: {reason}");
        assert!(reason.contains(hides.unwrap_or_default()), "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_changes_how_the_gate_is_run_is_asked_about() {
    let makefile = "include checks.mk\n\n.PHONY: test\ntest:\n\t$(PYTHON) -m unittest\n";
    let rust = "#[test]\nfn adds() {\n    assert_eq!(2 + 3, 5);\n}\n";
    let tricks = [
        ("Makefile", "echo '.IGNORE:' >> Makefile"),
        (
            "Makefile",
            "sed -i '1i export PATH := ./bin:$(PATH)' Makefile",
        ),
        ("checks.mk", "echo 'PYTHON = true' > checks.mk"),
        (
            "pyproject.toml",
            "echo 'tool.pytest.ini_options.addopts = \"--co\"' >> pyproject.toml",
        ),
        ("sum.rs", "sed -i '1a #[ignore]' sum.rs"),
    ];
    for (file, trick) in tricks {
        let work = format!("sed -i 's/a - b/a + b/' calc.py; {trick}");
        let project = Project::new(&steps("T-1", &[Step::Shell(work)]))
            .with_files(&[
                (
                    "ropewalk.toml",
                    "[[gate.commands]]\nname = \"tests\"\ncommand = \"make test\"\n",
                ),
                ("Makefile", makefile),
                ("checks.mk", "PYTHON = python3\n"),
                ("pyproject.toml", "\n"),
                ("sum.rs", rust),
                ("test_calc.py", TEST),
                ("calc.py", BROKEN),
            ])
            .with(|options| options.tries.tries = 1);
        let (_, task) = built(&project, "calc.py", &[file]).await;
        assert_eq!(
            (task.state, task.waiting_for),
            (TaskState::Waiting, Some(WaitReason::Person)),
            "{trick}: {:?}",
            task.reason
        );
        let failure = task.failures.last().unwrap();
        assert_eq!(failure.class, FailureClass::Tampered, "{trick}");
    }
}
