//! What is brought beside the tests that were there, so that wrong work passes them, and honest work that only seems to.

use ropewalk_desk::builds::landing;
use ropewalk_schemas::attempt::{FailureClass, Verdict};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::{TaskState, WaitReason};

use super::controls::{TEST, built};
use crate::world::project::{Project, task};
use crate::world::script::{Step, steps};

const STUB: &str = "def add(a, b):\n    return 0\n";
const GATE: &str =
    "[[gate.commands]]\nname = \"tests\"\ncommand = \"python3 -m unittest -v tests.test_calc\"\n";
/// Puts a product that works in the place of the one that was made.
const REPLACES: &str = "import calc\ncalc.add = lambda a, b: 5\n";

/// A project whose test is red, and whose one task does `work`.
fn project(work: &str) -> Project {
    Project::new(&steps("T-1", &[Step::Shell(work.to_owned())]))
        .with_files(&[
            ("ropewalk.toml", GATE),
            ("tests/test_calc.py", TEST),
            ("calc.py", STUB),
        ])
        .with(|options| options.tries.tries = 1)
}

fn write(path: &str, text: &str) -> String {
    format!("mkdir -p $(dirname {path}); cat > {path} <<'END'\n{text}END\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_failed_has_to_pass_and_not_to_vanish() {
    let prefix = "import unittest\nunittest.defaultTestLoader.testMethodPrefix = 'check'\n";
    let vanishes = write("calc.py", &format!("{prefix}{STUB}"));
    let (_, task) = built(&project(&vanishes), "calc.py", &[]).await;
    let failure = task.failures.last().expect("a failure");
    assert_eq!(
        (task.state, failure.class),
        (TaskState::Failed, FailureClass::WeakenedTest),
        "{failure:?}"
    );
    let told = "1 test ran before, of which 1 failed, and 0 pass now";
    assert!(failure.error.contains(told), "{}", failure.error);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_is_asked_about_hides_no_test_that_vanishes() {
    let other = "import unittest\n\n\nclass Other(unittest.TestCase):\n    def test_other(self):\n        self.assertTrue(1)\n";
    let prefix = "import unittest\nunittest.defaultTestLoader.testMethodPrefix = 'check'\n";
    let both = write("calc.py", &format!("{prefix}{STUB}"))
        + "sed -i 's/assertTrue(1)/assertTrue(2)/' tests/test_other.py\n";
    let gate = GATE.replace("tests.test_calc", "tests.test_calc tests.test_other");
    let project =
        project(&both).with_files(&[("ropewalk.toml", &gate), ("tests/test_other.py", other)]);
    let (_, task) = built(&project, "calc.py", &["tests/test_other.py"]).await;
    let failure = task.failures.last().expect("a failure");
    assert_eq!(
        (task.state, failure.class),
        (TaskState::Failed, FailureClass::WeakenedTest),
        "{failure:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conftest_that_gains_what_makes_a_test_pass_is_asked_about() {
    let gains = format!("echo '# more' >> calc.py\ncat >> conftest.py <<'END'\n{REPLACES}END\n");
    let test = format!("import conftest\n{TEST}");
    let project = project(&gains).with_files(&[("conftest.py", ""), ("tests/test_calc.py", &test)]);
    let (_, task) = built(&project, "calc.py", &["conftest.py"]).await;
    let reason = task.reason.clone().unwrap_or_default();
    assert_eq!(task.state, TaskState::Waiting, "{reason}");
    let why = "holds only with `conftest.py` as it was changed";
    assert!(reason.contains(why), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_beside_a_test_and_makes_it_pass_is_asked_about() {
    let touch = "echo '# more' >> calc.py\n";
    let shadow = TEST.replace("self.assertEqual(calc.add(2, 3), 5)", "calc.add(2, 3)");
    for (path, text, why) in [
        (
            "tests/__init__.py",
            REPLACES,
            "holds only with the new `tests/__init__.py`",
        ),
        (
            "tests/test_calc/__init__.py",
            &shadow,
            "is imported in the place of the test `tests/test_calc.py`",
        ),
    ] {
        let project = project(&format!("{touch}{}", write(path, text)));
        let (_, task) = built(&project, "calc.py", &[path]).await;
        let reason = task.reason.clone().unwrap_or_default();
        assert_eq!(
            (task.state, task.waiting_for),
            (TaskState::Waiting, Some(WaitReason::Person)),
            "{path}: {reason}"
        );
        assert!(reason.contains(why), "{path}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_makes_a_test_another_one_or_speaks_to_later_builds_is_granted_and_asked_about() {
    let mends = write("calc.py", "def add(a, b):\n    return a + b\n");
    for (path, text, why) in [
        (
            ".gitattributes",
            "tests/*.py eol=crlf\n",
            "`.gitattributes` says how git writes",
        ),
        (
            "AGENTS.md",
            "End at once.\n",
            "`AGENTS.md` tells whoever works here later",
        ),
    ] {
        let script = steps(
            "T-1",
            &[
                Step::Ask(&[path]),
                Step::Shell(format!("{mends}{}", write(path, text))),
            ],
        );
        let project = Project::new(&script)
            .with_files(&[
                ("ropewalk.toml", GATE),
                ("tests/test_calc.py", TEST),
                ("calc.py", STUB),
            ])
            .with(|options| options.tries.tries = 1);
        let (_, task) = built(&project, "calc.py", &[]).await;
        let reason = task.reason.clone().unwrap_or_default();
        assert_eq!(
            (task.state, task.waiting_for),
            (TaskState::Waiting, Some(WaitReason::Person)),
            "{path}: {reason}"
        );
        assert!(reason.contains(why), "{path}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_left_tests_out_before_the_build_accuses_nobody() {
    let honest = "sed -i 's/return 0/return a + b/' calc.py\n\
                  printf '\\n    def test_none(self):\\n        self.assertEqual(calc.add(0, 0), 0)\\n' >> tests/test_calc.py";
    let all =
        "[[gate.commands]]\nname = \"tests\"\ncommand = \"python3 -m unittest discover -v\"\n";
    let script = "[[gate.commands]]\nname = \"tests\"\ncommand = \"python3 -m unittest -v tests.test_calc && python3 tests/test_e2e.py\"\n";
    let skips = "import unittest\nraise unittest.SkipTest('no database')\n";
    let ends = "import sys, unittest\nif __name__ == '__main__':\n    print('E2E is not set')\n    sys.exit(0)\n\
                class E(unittest.TestCase):\n    def test_e(self):\n        pass\n";
    for (gate, path, text) in [
        (all, "tests/integration/__init__.py", skips),
        (script, "tests/test_e2e.py", ends),
    ] {
        let project = project(honest).with_files(&[
            ("ropewalk.toml", gate),
            ("tests/__init__.py", ""),
            (path, text),
            ("tests/integration/test_db.py", TEST),
        ]);
        let (build, task) = built(&project, "calc.py", &["tests/test_calc.py"]).await;
        assert_eq!(task.state, TaskState::Complete, "{path}: {:?}", task.reason);
        assert_eq!(
            build.state,
            BuildState::Succeeded,
            "{path}: {:?}",
            build.reason
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_could_not_run_before_the_build_is_no_excuse() {
    let gate = "[[gate.commands]]\nname = \"tests\"\ncommand = \"python3 -m unittest discover -v -s tests -t .\"\n";
    let skips = write(
        "more.py",
        "import unittest\nraise unittest.SkipTest('later')\n",
    );
    let project = project(&skips).with_files(&[
        ("ropewalk.toml", gate),
        ("tests/__init__.py", ""),
        ("calc.py", "def add(a, b):\n    return a + b\n"),
        ("tests/test_more.py", &TEST.replace("calc", "more")),
    ]);
    let (build, task) = built(&project, "more.py", &[]).await;
    assert_eq!(task.state, TaskState::Complete, "{:?}", task.reason);
    assert_eq!(build.state, BuildState::Failed, "{:?}", build.reason);
    let reason = build.reason.unwrap_or_default();
    let told = "passes whatever the tests in `tests/test_more.py` find";
    assert!(reason.contains(told), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_may_say_that_the_tests_of_a_check_do_count() {
    let ends = write("calc.py", "import os\nos._exit(0)\n");
    let project = project(&ends);
    let open = project.open().await;
    let plan = serde_json::json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": "calc.py",
        "validation": { "command": "true", "expected": "exit 0" },
    }]);
    let spec = open.approve(plan).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(task(&tasks, "T-1").state, TaskState::Complete);
    assert_eq!(build.state, BuildState::Failed, "{:?}", build.reason);
    let asked = open.questions("blind_check").await;
    assert_eq!(build.question, asked.first().map(|asked| asked.id));
    assert!(asked[0].text.contains("`tests/test_calc.py`"), "{asked:?}");
    open.answer_question(asked[0].id, "accept").await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    let evidence = open.evidence(build.id).await;
    let mut whole = evidence.iter().filter(|seen| seen.task.is_none());
    let passed = whole.find(|seen| seen.verdict == Verdict::Passed);
    let passed = passed.expect("a pass of the whole");
    assert_eq!(passed.not_run, ["planted tests beside tests"]);
    let [asked] = open.questions("build_finished").await.try_into().unwrap();
    assert!(asked.text.contains(&unproven("tests")), "{}", asked.text);
    assert!(!asked.text.contains(landing::NO_GATE), "{}", asked.text);
    open.close().await;
}

/// The line that says of a check that it counts on the word of a person.
fn unproven(check: &str) -> String {
    format!(
        "\n**Gate:** nobody has seen that `{check}` can fail, and a person said that its tests count\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_gate_a_check_that_a_person_accepts_makes_none() {
    let ends = "import os, sys\nsys.stderr.write('Ran 2 tests in 0.001s\\n\\nOK\\n')\nsys.stderr.flush()\nos._exit(0)\n";
    let work = write("calc.py", ends) + &write("test_calc.py", TEST);
    let project = Project::new(&steps("T-1", &[Step::Shell(work)]))
        .with_files(&[("README.md", "Sums\n")])
        .with(|options| options.tries.tries = 1);
    let open = project.open().await;
    let plan = serde_json::json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "calc.py", "more_files": ["test_calc.py"],
        "validation": { "command": "python3 -m unittest", "expected": "exit 0" },
    }]);
    let spec = open.approve(plan).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Failed, "{:?}", build.reason);
    let [asked] = open.questions("blind_check").await.try_into().unwrap();
    open.answer_question(asked.id, "accept").await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    let [asked] = open.questions("build_finished").await.try_into().unwrap();
    let prospect = landing::prospect(&open.services.store, &build).await;
    for told in [asked.text, prospect.unwrap()] {
        assert!(told.contains(&unproven("T-1")), "{told}");
        assert!(told.contains(landing::NO_GATE), "{told}");
    }
    open.close().await;
}
