//! What a pass of the gate proves.

use ropewalk_schemas::attempt::{Evidence, FailureClass, Proof, Verdict};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::fulfilment::Fulfilment;
use ropewalk_schemas::task::{Task, TaskState};
use serde_json::{Value, json};

use crate::world::project::{Project, task, writes};
use crate::world::script::{Step, append_and_meet, steps};

/// Plans a change of `a.txt`, for a requirement.
fn plan(validation: &str, preserves: bool) -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": "a.txt", "preserves": preserves,
        "requirements": [{ "id": "FR-1", "text": "good" }],
        "validation": { "command": validation, "expected": "exit 0" },
    }])
}

/// Plans a new file.
fn new_file() -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "new.txt",
        "validation": { "command": "test -s new.txt", "expected": "exit 0" },
    }])
}

/// Writes a file with one test.
fn test_case(import: &str, assertion: &str) -> String {
    format!(
        "import unittest\n{import}\nclass A(unittest.TestCase):\n    def test_a(self):\n        {assertion}\n"
    )
}

fn of_task(evidence: &[Evidence]) -> &Evidence {
    evidence.iter().rfind(|seen| seen.task.is_some()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pass_is_worth_what_the_tree_before_shows() {
    let rows = [
        ("grep -q good a.txt", false, Proof::AssertionFailed),
        (
            "sh missing.sh || grep -q good a.txt",
            false,
            Proof::CouldNotRun,
        ),
        ("true", false, Proof::PassedBefore),
        ("grep -q kept a.txt", true, Proof::Preserved),
    ];
    for (validation, preserves, expected) in rows {
        let project = Project::new(&writes("T-1", "a.txt", "kept\ngood\n", None))
            .with_files(&[("a.txt", "kept\n")]);
        let open = project.open().await;
        let spec = open.approve(plan(validation, preserves)).await;
        let (build, _) = open.ended(spec).await;
        assert_eq!(
            build.state,
            BuildState::Succeeded,
            "{validation}: {:?}",
            build.reason
        );
        let evidence = open.evidence(build.id).await;
        assert_eq!(of_task(&evidence).proof, Some(expected), "{validation}");
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_that_nobody_counted_before_are_weak_evidence() {
    let counted = "Ran 5 tests in 0.1s\n\nOK\n";
    let project =
        Project::new(&writes("T-1", "a.txt", counted, None)).with_files(&[("a.txt", "all good\n")]);
    let open = project.open().await;
    let mut plan = plan("cat a.txt", false);
    plan[0]["validation"]["expected"] = json!("tests >= 5");
    let spec = open.approve(plan).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let evidence = open.evidence(build.id).await;
    assert_eq!(of_task(&evidence).proof, Some(Proof::TooFewTests));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_only_verifies_is_worth_what_the_tree_before_its_build_shows() {
    let rows = [
        ("true", Proof::PassedBefore, Fulfilment::Unverified),
        (
            "grep -q good new.txt",
            Proof::CouldNotRun,
            Fulfilment::WeaklyMet,
        ),
    ];
    for (validation, proof, expected) in rows {
        let project = Project::new(&writes("T-1", "new.txt", "good\n", None));
        let open = project.open().await;
        let requirement = |id: &str| json!({ "id": id, "text": "good" });
        let plan = json!([
            {
                "id": "T-1", "phase": "api", "action": "CREATE", "file": "new.txt",
                "requirements": [requirement("FR-1")],
                "validation": { "command": "test -s new.txt", "expected": "exit 0" },
            },
            {
                "id": "T-2", "phase": "api", "action": "VERIFY", "file": "new.txt", "depends_on": ["T-1"],
                "requirements": [requirement("FR-1"), requirement("FR-2")],
                "validation": { "command": validation, "expected": "exit 0" },
            },
        ]);
        let spec = open.approve(plan).await;
        let (build, tasks) = open.ended(spec).await;
        assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
        let evidence = open.evidence(build.id).await;
        assert_eq!(of_task(&evidence).proof, Some(proof), "{validation}");
        let found = Fulfilment::of_all([], &tasks, &evidence);
        let found: Vec<_> = found.iter().map(|(id, is)| (id.as_str(), *is)).collect();
        assert_eq!(found, [("FR-1", Fulfilment::Met), ("FR-2", expected)]);
        let doubts = build.reason.unwrap_or_default();
        assert_eq!(
            doubts.contains("unverified"),
            expected == Fulfilment::Unverified
        );
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_tests_are_worth_what_they_show_without_the_work() {
    let case = |import: &str, assertion: &str| {
        format!(
            "import os, unittest\n{import}\nclass A(unittest.TestCase):\n    def test_a(self):\n        {assertion}\n"
        )
    };
    let made = ["a.py", "test_a.py"];
    let one = "printf 'def one():\\n    return 1\\n' > a.py";
    let nothing = case("", "self.assertTrue(True)");
    let exists = case("", "self.assertTrue(os.path.exists(\"a.py\"))");
    let uses = case("import a", "self.assertEqual(a.one(), 1)");
    let rows = [
        (made, one, &nothing, Proof::PassedWithoutWork),
        (made, one, &exists, Proof::NewTestsFailed),
        (made, one, &uses, Proof::CouldNotRun),
        // No work is worth no more than work that nothing looks at.
        (made, "true", &nothing, Proof::PassedWithoutWork),
        // Where a test is what the task makes, there is no work for it to be without.
        (["test_a.py", "a.py"], one, &nothing, Proof::CouldNotRun),
    ];
    for ([file, more], work, test, expected) in rows {
        let write = format!("{work}; printf '%s' '{test}' > test_a.py");
        let project = Project::new(&steps("T-1", &[Step::Shell(write)]));
        let open = project.open().await;
        let spec = open
            .approve(json!([{
                "id": "T-1", "phase": "api", "action": "CREATE", "file": file, "more_files": [more],
                "requirements": [{ "id": "FR-1", "text": "good" }],
                "validation": { "command": "python3 -m unittest test_a", "expected": "tests >= 1" },
            }]))
            .await;
        let (build, tasks) = open.ended(spec).await;
        assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
        let evidence = open.evidence(build.id).await;
        assert_eq!(of_task(&evidence).proof, Some(expected), "{test}");
        let found = Fulfilment::of_all([], &tasks, &evidence);
        let is_unverified = expected == Proof::PassedWithoutWork;
        assert_eq!(
            found[0].1 == Fulfilment::Unverified,
            is_unverified,
            "{test}"
        );
        assert_eq!(
            build.reason.unwrap_or_default().contains("unverified"),
            is_unverified
        );
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_that_come_where_there_are_enough_already_are_tried_without_the_work() {
    let there = test_case("", "self.assertTrue(True)");
    let nothing = test_case("", "self.assertTrue(1)");
    let fails = test_case("import a", "self.assertTrue(hasattr(a, \"one\"))");
    let is_not_loaded = test_case("from a import one", "self.assertEqual(one(), 1)");
    let unshown = (Proof::PassedWithoutWork, Fulfilment::Unverified);
    let rows = [
        ("test_a.py", &nothing, unshown),
        (
            "test_a.py",
            &fails,
            (Proof::NewTestsFailed, Fulfilment::MetByNewTests),
        ),
        (
            "test_a.py",
            &is_not_loaded,
            (Proof::CouldNotRun, Fulfilment::WeaklyMet),
        ),
        // Work without a test has none to be tried by.
        (
            "notes.py",
            &nothing,
            (Proof::PassedBefore, Fulfilment::Unverified),
        ),
    ];
    for (file, text, (proof, expected)) in rows {
        let write =
            format!("printf 'def one():\\n    return 1\\n' >> a.py; printf '%s' '{text}' > {file}");
        let project = Project::new(&steps("T-1", &[Step::Shell(write)])).with_files(&[
            ("a.py", "def zero():\n    return 0\n\n\n"),
            ("test_there.py", &there),
        ]);
        let open = project.open().await;
        let spec = open
            .approve(json!([{
                "id": "T-1", "phase": "api", "action": "UPDATE", "file": "a.py", "more_files": [file],
                "requirements": [{ "id": "FR-1", "text": "good" }],
                "validation": { "command": "python3 -m unittest", "expected": "tests >= 1" },
            }]))
            .await;
        let (build, tasks) = open.ended(spec).await;
        assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
        let evidence = open.evidence(build.id).await;
        assert_eq!(of_task(&evidence).proof, Some(proof), "{text}");
        let found = Fulfilment::of_all([], &tasks, &evidence);
        assert_eq!(found[0].1, expected, "{text}");
        let [question] = open.questions("build_finished").await.try_into().unwrap();
        let told = Fulfilment::summed_up(&found, &tasks);
        assert!(question.text.contains(&told), "{}", question.text);
        open.close().await;
    }
}

/// A script of the project that runs one test, and says so where there is none.
const RUN: &str =
    "[ -f test_a.py ] || { echo 'there is no test_a.py'; exit 1; }\npython3 -m unittest test_a\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_before_tests_shows_no_more_than_they_do() {
    let nothing = test_case("", "self.assertTrue(True)");
    let fails = test_case("import a", "self.assertTrue(hasattr(a, \"one\"))");
    let guarded = "test -f test_a.py && python3 -m unittest test_a";
    let rows = [
        (
            guarded,
            &nothing,
            (Proof::PassedWithoutWork, Fulfilment::Unverified),
        ),
        (
            guarded,
            &fails,
            (Proof::NewTestsFailed, Fulfilment::MetByNewTests),
        ),
        // It need not stand in the line, and may say why it stops.
        (
            "sh run.sh",
            &nothing,
            (Proof::PassedWithoutWork, Fulfilment::Unverified),
        ),
        (
            "sh run.sh",
            &fails,
            (Proof::NewTestsFailed, Fulfilment::MetByNewTests),
        ),
        // What stands before them looks at the work, and keeps them from being tried without it.
        (
            "grep -q 'def one' a.py && python3 -m unittest",
            &nothing,
            (Proof::FailedUncounted, Fulfilment::MetUnseen),
        ),
        (
            "grep -q 'def one' a.py",
            &nothing,
            (Proof::AssertionFailed, Fulfilment::Met),
        ),
    ];
    for (validation, text, (proof, expected)) in rows {
        let write = format!(
            "printf 'def one():\\n    return 1\\n' >> a.py; printf '%s' '{text}' > test_a.py"
        );
        let project = Project::new(&steps("T-1", &[Step::Shell(write)]))
            .with_files(&[("a.py", "def zero():\n    return 0\n\n\n"), ("run.sh", RUN)]);
        let open = project.open().await;
        let mut plan = plan(validation, false);
        plan[0]["file"] = json!("a.py");
        plan[0]["more_files"] = json!(["test_a.py"]);
        let spec = open.approve(plan).await;
        let (build, tasks) = open.ended(spec).await;
        assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
        let evidence = open.evidence(build.id).await;
        assert_eq!(of_task(&evidence).proof, Some(proof), "{validation} {text}");
        let found = Fulfilment::of_all([], &tasks, &evidence);
        assert_eq!(found[0].1, expected, "{validation} {text}");
        let [question] = open.questions("build_finished").await.try_into().unwrap();
        let told = Fulfilment::summed_up(&found, &tasks);
        assert!(question.text.contains(&told), "{}", question.text);
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_everything_still_passes_shows_nothing_of_what_another_task_did() {
    let rows = [
        (
            test_case("", "self.assertTrue(True)"),
            Fulfilment::Unverified,
        ),
        (
            test_case("import a", "self.assertTrue(hasattr(a, \"one\"))"),
            Fulfilment::MetByNewTests,
        ),
    ];
    for (text, expected) in rows {
        let write = format!(
            "printf 'def one():\\n    return 1\\n' > a.py; printf '%s' '{text}' > test_a.py"
        );
        let script = steps("T-1", &[Step::Shell(write)])
            + &steps("T-2", &[Step::Shell("echo one >> README.md".to_owned())]);
        let there = test_case("", "self.assertTrue(1)");
        let project = Project::new(&script).with_files(&[
            ("a.py", "def zero():\n    return 0\n"),
            ("test_there.py", &there),
        ]);
        let open = project.open().await;
        let named = |id: &str| json!({ "id": id, "text": "good" });
        let spec = open
            .approve(json!([
                {
                    "id": "T-1", "phase": "api", "action": "UPDATE", "file": "a.py", "more_files": ["test_a.py"],
                    "requirements": [named("FR-1")],
                    "validation": { "command": "python3 -m unittest test_a", "expected": "tests >= 1" },
                },
                {
                    "id": "T-2", "phase": "api", "action": "UPDATE", "file": "README.md", "preserves": true,
                    "depends_on": ["T-1"], "requirements": [named("FR-1"), named("FR-2")],
                    "validation": { "command": "python3 -m unittest", "expected": "exit 0" },
                },
            ]))
            .await;
        let (build, tasks) = open.ended(spec).await;
        assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
        let evidence = open.evidence(build.id).await;
        assert_eq!(of_task(&evidence).proof, Some(Proof::Preserved), "{text}");
        let found = Fulfilment::of_all([], &tasks, &evidence);
        let found: Vec<_> = found.iter().map(|(id, is)| (id.as_str(), *is)).collect();
        // What asks for nothing but that is shown by it.
        assert_eq!(found, [("FR-1", expected), ("FR-2", Fulfilment::Met)]);
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_of_it_shows_nothing_of_what_another_task_built() {
    let rows = [
        ("true", "0 met, 1 unverified (FR-1)\n"),
        ("grep -q good a.txt", "1 met\n"),
    ];
    for (validation, told) in rows {
        let script = writes("T-1", "a.txt", "kept\ngood\n", None)
            + &writes("T-2", "README.md", "It is good.\n", None);
        let project =
            Project::new(&script).with_files(&[("a.txt", "kept\n"), ("README.md", "Read it.\n")]);
        let open = project.open().await;
        let mut both = plan(validation, false);
        both.as_array_mut().unwrap().push(json!({
            "id": "T-2", "phase": "api", "action": "UPDATE", "file": "README.md", "depends_on": ["T-1"],
            "requirements": [{ "id": "FR-1", "text": "good" }],
            "validation": { "command": "grep -q good README.md", "expected": "exit 0" },
        }));
        let spec = open.approve(both).await;
        let (build, _) = open.ended(spec).await;
        assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
        let evidence = open.evidence(build.id).await;
        let words = of_task(&evidence);
        assert_eq!(words.proof, Some(Proof::AssertionFailed), "{words:?}");
        let [question] = open.questions("build_finished").await.try_into().unwrap();
        assert!(question.text.contains(told), "{}", question.text);
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_before_is_checked_once_however_many_tasks_stand_on_it() {
    // Counts its runs where neither file is there yet, which is on the tree before alone.
    let aside = tempfile::tempdir().unwrap();
    let [count, one, two] = ["count", "one", "two"].map(|name| aside.path().join(name));
    let validation = format!(
        "test -e a.txt || test -e b.txt || {{ echo run >> {}; false; }}",
        count.display()
    );
    let script = steps("T-1", &[append_and_meet("good", "a.txt", &one, &two)])
        + &steps("T-2", &[append_and_meet("good", "b.txt", &two, &one)]);
    let project = Project::new(&script);
    let open = project.open().await;
    let plan = ["a.txt", "b.txt"]
        .into_iter()
        .zip(["T-1", "T-2"])
        .map(|(file, id)| {
            json!({
                "id": id, "phase": "api", "action": "CREATE", "file": file,
                "requirements": [{ "id": "FR-1", "text": "good" }],
                "validation": { "command": validation, "expected": "exit 0" },
            })
        });
    let spec = open.approve(plan.collect()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let first = open.attempts(build.id, "T-1").await.remove(0);
    let second = open.attempts(build.id, "T-2").await.remove(0);
    assert_eq!(first.base, second.base, "both stand on one tree");
    let evidence = open.evidence(build.id).await;
    let strong = evidence
        .iter()
        .filter(|seen| seen.proof == Some(Proof::AssertionFailed));
    assert!(strong.count() >= 1);
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "run\n");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_to_be_preserved_has_to_pass_before() {
    let project =
        Project::new(&writes("T-1", "a.txt", "good\n", None)).with_files(&[("a.txt", "kept\n")]);
    let open = project.open().await;
    let spec = open.approve(plan("grep -q good a.txt", true)).await;
    let (build, tasks) = open
        .until(spec, |_, tasks| tasks[0].state == TaskState::Failed)
        .await;
    let failed = task(&tasks, "T-1");
    assert_eq!(failed.failures[0].class, FailureClass::Unknown);
    assert!(
        failed.failures[0].error.contains("preserves"),
        "{}",
        failed.failures[0].error
    );
    assert_eq!(
        of_task(&open.evidence(build.id).await).verdict,
        Verdict::Failed
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_whose_test_passed_before_runs_once_more_and_is_marked() {
    // Whoever runs it a second time on the work of the task fails once; the count lies outside of any checkout.
    let counter = tempfile::tempdir().unwrap();
    let at = counter.path().join("count").display().to_string();
    let script = format!(
        "if test -e new.txt && ! test -e {at}; then\n\
         touch {at}; echo 'not ok 1 - slow'; echo 1..1; exit 1\nfi\n\
         echo 'ok 1 - slow'; echo 1..1\n"
    );
    let gate = "[[gate.commands]]\nname = \"unit\"\ncommand = \"sh unit.sh\"\n";
    let project = Project::new(&writes("T-1", "new.txt", "good\n", None))
        .with_files(&[("ropewalk.toml", gate), ("unit.sh", &script)])
        .with(|options| options.tries.tries = 1);
    let open = project.open().await;
    let spec = open.approve(new_file()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let evidence = open.evidence(build.id).await;
    let unit = of_task(&evidence)
        .checks
        .iter()
        .find(|run| run.name == "unit")
        .unwrap();
    assert_eq!(unit.flaky, ["slow"]);
    assert_eq!(unit.exit_code, Some(0));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_fails_without_the_work_too_says_so_and_one_that_the_work_breaks_does_not() {
    for (unit, before) in [("exit 3", true), ("! test -e new.txt", false)] {
        let gate = format!(
            "[[gate.commands]]\nname = \"unit\"\ncommand = {}\n",
            json!(unit)
        );
        let project = Project::new(&writes("T-1", "new.txt", "good\n", None))
            .with_files(&[("ropewalk.toml", &gate)])
            .with(|options| options.tries.tries = 1);
        let open = project.open().await;
        let spec = open.approve(new_file()).await;
        let failed = |_: &Build, tasks: &[Task]| task(tasks, "T-1").state == TaskState::Failed;
        let (build, _) = open.until(spec, failed).await;
        let evidence = open.evidence(build.id).await;
        let told = "`unit` fails without this work, too: no task passes before that is mended";
        let findings = &of_task(&evidence).findings;
        assert_eq!(
            findings.iter().any(|line| line == told),
            before,
            "{unit}: {findings:?}"
        );
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_requirement_that_no_check_shows_is_named_where_its_build_is_summed_up_and_asked_about() {
    let unverified = "unverified, since their checks pass without the work: FR-1";
    let rows = [
        ("grep -q good a.txt", None, "1 met\n"),
        ("true", Some(unverified), "0 met, 1 unverified (FR-1)\n"),
    ];
    for (validation, told, asked) in rows {
        let project = Project::new(&writes("T-1", "a.txt", "kept\ngood\n", None))
            .with_files(&[("a.txt", "kept\n")]);
        let open = project.open().await;
        let spec = open.approve(plan(validation, false)).await;
        let (build, _) = open.ended(spec).await;
        assert_eq!(build.reason.as_deref(), told, "{validation}");
        let completed: Vec<Value> = open
            .events()
            .await
            .into_iter()
            .filter(|(of, _)| of == "build.completed")
            .map(|(_, data)| data["reason"].clone())
            .collect();
        assert_eq!(completed, [json!(told)], "{validation}");
        let [question] = open.questions("build_finished").await.try_into().unwrap();
        assert!(question.text.contains(asked), "{}", question.text);
        // What nobody saw with evidence is looked at first.
        let best = if told.is_some() { "leave" } else { "merge" };
        let recommended = question.choices.iter().filter(|choice| choice.recommended);
        let recommended: Vec<&str> = recommended.map(|choice| choice.id.as_str()).collect();
        assert_eq!(recommended, [best], "{validation}");
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_requirement_that_no_task_is_for_is_named_where_its_build_is_summed_up_and_asked_about() {
    let project = Project::new(&writes("T-1", "a.txt", "kept\ngood\n", None))
        .with_files(&[("a.txt", "kept\n")]);
    let open = project.open().await;
    let text = serde_json::from_value(json!({
        "title": "Habits", "objective": "Keep them",
        "requirements": [requirement("FR-1")], "quality": [requirement("NFR-1")],
    }));
    let spec = open
        .approve_whole(text.unwrap(), plan("grep -q good a.txt", false))
        .await;
    let (build, _) = open.ended(spec).await;
    let told = build.reason.unwrap_or_default();
    assert!(told.ends_with("since no task is for it: NFR-1"), "{told}");
    let [question] = open.questions("build_finished").await.try_into().unwrap();
    let asked = "1 met, 1 open (NFR-1)\n";
    assert!(question.text.contains(asked), "{}", question.text);
    open.close().await;
}

fn requirement(id: &str) -> Value {
    json!({ "id": id, "text": "good", "priority": "must", "acceptance": "seen", "source": "" })
}
