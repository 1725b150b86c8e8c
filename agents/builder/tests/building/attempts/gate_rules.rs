//! What a gate takes for work, and what it lets nobody do to it.

use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::{Task, TaskState, WaitReason};
use serde_json::{Value, json};

use crate::world::project::{Project, task, writes};
use crate::world::script::{Step, steps};

const GATE: &str = "[[gate.commands]]\nname = \"gate\"\ncommand = \"sh gate.sh\"\n";

/// Plans one task with a validation that expects exit code 0.
fn plan(action: &str, file: &str, more: &[&str], validation: &str) -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": action, "file": file, "more_files": more,
        "validation": { "command": validation, "expected": "exit 0" },
    }])
}

/// Builds a plan whose one task gets a single try, until that try is over.
async fn tried(project: Project, plan: Value) -> Task {
    let project = project.with(|options| options.tries.tries = 1);
    let open = project.open().await;
    let spec = open.approve(plan).await;
    let (_, tasks) = open
        .until(spec, |build, tasks| {
            build.completed_at.is_some()
                || matches!(tasks[0].state, TaskState::Failed | TaskState::Waiting)
        })
        .await;
    let tried = task(&tasks, "T-1").clone();
    if tried.state == TaskState::Waiting {
        let events = open.events().await;
        let failed = events.iter().find(|(name, _)| name == "task.failed");
        assert_eq!(failed, None, "what waits has not failed");
    }
    open.close().await;
    tried
}

fn class(task: &Task) -> Option<FailureClass> {
    task.failures.last().map(|failure| failure.class)
}

/// Asserts that a task was not granted a file that it asked for.
fn assert_not_granted(task: &Task, path: &str) {
    assert_eq!(
        class(task),
        Some(FailureClass::OutOfScope),
        "{path}: {:?}",
        task.reason
    );
    let error = &task.failures.last().unwrap().error;
    assert!(error.contains(&format!("`{path}`")), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_script_of_a_gate_is_not_granted_and_not_changed_unasked() {
    let disarm = "echo 'exit 0' > gate.sh; echo bad > product.txt";
    let script = steps(
        "T-1",
        &[Step::Ask(&["gate.sh"]), Step::Shell(disarm.to_owned())],
    );
    let files = [
        ("ropewalk.toml", GATE),
        ("gate.sh", "grep -q good product.txt\n"),
        ("product.txt", "good\n"),
    ];
    let project = Project::new(&script).with_files(&files);
    let asked = tried(project, plan("UPDATE", "product.txt", &[], "true")).await;
    assert_eq!(
        class(&asked),
        Some(FailureClass::OutOfScope),
        "{:?}",
        asked.reason
    );
    // Declared it is allowed to write, and a person decides about the change.
    let project = Project::new(&script).with_files(&files);
    let declared = tried(project, plan("UPDATE", "product.txt", &["gate.sh"], "true")).await;
    assert_eq!(class(&declared), Some(FailureClass::Tampered));
    assert_eq!(
        (declared.state, declared.waiting_for),
        (TaskState::Waiting, Some(WaitReason::Person))
    );
    let reason = declared.reason.unwrap();
    assert!(
        reason.contains("`gate.sh` is what the check `gate` runs"),
        "{reason}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_is_granted_and_what_it_loses_is_asked_about() {
    let test = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(open('product.txt').read(), 'good\\n')\n";
    let gate =
        "[[gate.commands]]\nname = \"gate\"\ncommand = \"python3 -m unittest tests.test_a\"\n";
    let gains = "echo '    def test_b(self): pass' >> tests/test_a.py; echo more > more.txt";
    let loses = "sed -i s/good/bad/ tests/test_a.py; echo bad > product.txt";
    for (work, state) in [(gains, TaskState::Complete), (loses, TaskState::Waiting)] {
        let script = steps(
            "T-1",
            &[
                Step::Ask(&["tests/test_a.py"]),
                Step::Shell(work.to_owned()),
            ],
        );
        let project = Project::new(&script).with_files(&[
            ("ropewalk.toml", gate),
            ("tests/test_a.py", test),
            ("product.txt", "good\n"),
        ]);
        let tried = tried(
            project,
            plan("UPDATE", "product.txt", &["more.txt"], "true"),
        )
        .await;
        assert_eq!(tried.state, state, "{:?}", tried.reason);
        if state == TaskState::Waiting {
            assert_eq!(class(&tried), Some(FailureClass::Tampered));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_asked_about_what_fails_for_something_else() {
    let both = "echo 'exit 0' > gate.sh; echo bad > product.txt";
    let script = steps("T-1", &[Step::Shell(both.to_owned())]);
    let project = Project::new(&script).with_files(&[
        ("ropewalk.toml", GATE),
        ("gate.sh", "grep -q good product.txt\n"),
        ("product.txt", "good\n"),
    ]);
    let check = "grep -q better product.txt";
    let ended = tried(project, plan("UPDATE", "product.txt", &["gate.sh"], check)).await;
    assert_eq!(
        (ended.state, class(&ended)),
        (TaskState::Failed, Some(FailureClass::ValidationFailed)),
        "{:?}",
        ended.reason
    );
    let told = &ended.failures.last().unwrap().error;
    let next =
        "`gate.sh` is what the check `gate` runs: a person is asked about it once the rest holds";
    assert!(told.contains(next), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_plan_that_is_worked_off_is_not_granted() {
    let plans = "ideas/habits/build/spec.md";
    let forge =
        format!("mkdir -p ideas/habits/build; echo forged > {plans}; echo good > product.txt");
    let script = steps("T-1", &[Step::Ask(&[plans]), Step::Shell(forge)]);
    let project = Project::new(&script);
    let asked = tried(project, plan("CREATE", "product.txt", &[], "true")).await;
    assert_eq!(class(&asked), Some(FailureClass::OutOfScope));
    let told = &asked.failures.last().unwrap().error;
    assert!(told.contains(plans), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_file_that_stands_in_for_the_runner_of_tests_is_asked_about() {
    let gate = "[[gate.commands]]\nname = \"gate\"\ncommand = \"python3 -m unittest\"\n";
    let test = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        assert open('product.txt').read() == 'good\\n'\n";
    let fakes =
        "echo \"print('Ran 9 tests in 0.1s'); print('OK')\" > unittest.py; echo bad > product.txt";
    let script = steps(
        "T-1",
        &[Step::Ask(&["unittest.py"]), Step::Shell(fakes.to_owned())],
    );
    let project = Project::new(&script).with_files(&[
        ("ropewalk.toml", gate),
        ("test_a.py", test),
        ("product.txt", "good\n"),
    ]);
    let ended = tried(project, plan("UPDATE", "product.txt", &[], "true")).await;
    assert_eq!(
        (ended.state, class(&ended)),
        (TaskState::Waiting, Some(FailureClass::Tampered)),
        "{:?}",
        ended.reason
    );
    let reason = ended.reason.unwrap();
    assert!(
        reason.contains("stands in for the module `unittest`"),
        "{reason}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_the_gate_makes_is_protected_and_another_is_not() {
    let gate = "[[gate.commands]]\nname = \"gate\"\ncommand = \"make test\"\n";
    let makefile = "test:\n\tgrep -q good product.txt\n\nclean:\n\trm -f out\n";
    for (from, to, state) in [
        ("grep -q good product.txt", "true", TaskState::Waiting),
        ("rm -f out", "rm -rf out", TaskState::Complete),
    ] {
        let script = writes("T-1", "Makefile", &makefile.replace(from, to), None);
        let files = [
            ("ropewalk.toml", gate),
            ("Makefile", makefile),
            ("product.txt", "good\n"),
        ];
        let project = Project::new(&script).with_files(&files);
        let ended = tried(project, plan("UPDATE", "Makefile", &[], "true")).await;
        assert_eq!(ended.state, state, "{to}: {:?}", ended.reason);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_gate_runs_further_in_is_not_granted_or_asked_about() {
    // The target of a Makefile in another directory, whose other targets anybody may change.
    let makefile = "test:\n\tgrep -q good ../product.txt\n\nclean:\n\trm -f out\n";
    let work = "sed -i 's/grep.*/true/' web/Makefile; echo bad > product.txt";
    let asks = [Step::Ask(&["web/Makefile"]), Step::Shell(work.to_owned())];
    let project = Project::new(&steps("T-1", &asks)).with_files(&[
        ("ropewalk.toml", GATE),
        ("gate.sh", "cd web && make -s test\n"),
        ("web/Makefile", makefile),
        ("product.txt", "good\n"),
    ]);
    let asked = tried(project, plan("UPDATE", "product.txt", &[], "true")).await;
    assert_eq!(
        (asked.state, asked.waiting_for, class(&asked)),
        (
            TaskState::Waiting,
            Some(WaitReason::Person),
            Some(FailureClass::Tampered)
        ),
        "{:?}",
        asked.reason
    );
    let reason = asked.reason.unwrap();
    let why = "`web/Makefile` changes `test`, which the check `gate` runs";
    assert!(reason.contains(why), "{reason}");
    // What a script of Python is made of.
    let gate = GATE.replace("sh gate.sh", "python3 judge.py");
    let work = "echo 'def run(): return 1' > lib/rules.py; echo bad > product.txt";
    let asks = [Step::Ask(&["lib/rules.py"]), Step::Shell(work.to_owned())];
    let project = Project::new(&steps("T-1", &asks)).with_files(&[
        ("ropewalk.toml", &gate),
        ("judge.py", "from lib import rules\nrules.run()\n"),
        (
            "lib/rules.py",
            "def run():\n    assert 'good' in open('product.txt').read()\n",
        ),
        ("product.txt", "good\n"),
    ]);
    let refused = tried(project, plan("UPDATE", "product.txt", &[], "true")).await;
    assert_not_granted(&refused, "lib/rules.py");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_gate_runs_without_writing_it_out_is_not_granted_and_what_it_looks_at_is() {
    let adds = "import app\nassert app.add(1, 2) == 3\n";
    let wrong = "def add(a, b):\n    return 0\n";
    for (gate, path) in [
        ("python3 checks", "checks/__main__.py"),
        (
            "for f in checks/*.py; do python3 $f || exit 1; done",
            "checks/add.py",
        ),
        ("D=checks; python3 $D/add.py", "checks/add.py"),
    ] {
        let work = format!("echo > {path}; printf '{wrong}' > app.py");
        let script = steps("T-1", &[Step::Ask(&[path]), Step::Shell(work)]);
        let project_file = format!(
            "[[gate.commands]]\nname = \"gate\"\ncommand = {}\n",
            json!(format!("export PYTHONPATH=.; {gate}"))
        );
        let project = Project::new(&script).with_files(&[
            ("ropewalk.toml", &project_file),
            (path, adds),
            ("app.py", "def add(a, b):\n    return a + b\n"),
        ]);
        let refused = tried(project, plan("UPDATE", "app.py", &[], "true")).await;
        assert_not_granted(&refused, path);
    }
    // Who only has a look at all of them keeps nobody from one.
    let gate = GATE.replace("sh gate.sh", "for f in tools/*.sh; do sh -n $f; done");
    let work = "echo 'echo more' >> tools/a.sh; echo better > product.txt";
    let asks = [Step::Ask(&["tools/a.sh"]), Step::Shell(work.to_owned())];
    let project = Project::new(&steps("T-1", &asks)).with_files(&[
        ("ropewalk.toml", &gate),
        ("tools/a.sh", "echo one\n"),
        ("product.txt", "good\n"),
    ]);
    let granted = tried(project, plan("UPDATE", "product.txt", &[], "true")).await;
    assert_eq!(granted.state, TaskState::Complete, "{:?}", granted.failures);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_product_that_a_script_of_the_gate_tries_is_its_tasks_to_make() {
    let imports = "import subprocess, sys\nfrom app import add\nassert add(1, 2) == 3\n\
                   subprocess.run([sys.executable, 'app.py', '--help'], check=True)\n";
    let gate = GATE.replace("sh gate.sh", "python3 check.py");
    let before = "def add(a, b):\n    return a + b\n";
    let after = "def add(a, b):\n    return sum((a, b))\n";
    let project = Project::new(&writes("T-1", "app.py", after, None)).with_files(&[
        ("ropewalk.toml", &gate),
        ("check.py", imports),
        ("app.py", before),
    ]);
    let ended = tried(project, plan("UPDATE", "app.py", &[], "true")).await;
    assert_eq!(ended.state, TaskState::Complete, "{:?}", ended.failures);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_cannot_be_talked_into_passing() {
    let summary = "printf 'test result: FAILED. 1 passed; 2 failed; 0 ignored;\\n'";
    let rows = [
        ("false | cat", Some(FailureClass::ValidationFailed)),
        (summary, Some(FailureClass::ValidationFailed)),
        (
            "echo 'test result: ok. 0 passed; 0 failed; 5 ignored;'",
            Some(FailureClass::ValidationFailed),
        ),
        ("yes | head -1 && grep -q good a.txt", None),
    ];
    for (validation, expected) in rows {
        let project = Project::new(&writes("T-1", "a.txt", "good\n", None));
        let ended = tried(project, plan("CREATE", "a.txt", &[], validation)).await;
        assert_eq!(class(&ended), expected, "{validation}: {:?}", ended.reason);
    }
    let project = Project::new(&writes("T-1", "a.txt", "good\n", None));
    let held = tried(
        project,
        plan("CREATE", "a.txt", &[], "nosuchtool a.txt | cat"),
    )
    .await;
    assert_eq!(
        (held.state, held.waiting_for),
        (TaskState::Waiting, Some(WaitReason::Check)),
        "{:?}",
        held.reason
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_check_sees_what_another_left_behind() {
    // The task's own check, which runs what the agent wrote, rewrites the next one.
    let files = [
        ("ropewalk.toml", GATE),
        ("gate.sh", "grep -q good product.txt\n"),
    ];
    let script = writes("T-1", "product.txt", "bad\n", None);
    let project = Project::new(&script).with_files(&files);
    let validation = "echo 'exit 0' > gate.sh; echo good > product.txt";
    let ended = tried(project, plan("CREATE", "product.txt", &[], validation)).await;
    assert_eq!(
        class(&ended),
        Some(FailureClass::ValidationFailed),
        "{:?}",
        ended.reason
    );
    // In the check of the whole, the leftover of one task's check is none of the other's business.
    let script = [
        writes("T-1", "1.txt", "1\n", None),
        writes("T-2", "2.txt", "2\n", None),
    ]
    .concat();
    let project = Project::new(&script);
    let open = project.open().await;
    let of = |id: &str, file: &str| {
        json!({
            "id": id, "phase": "api", "action": "CREATE", "file": file,
            "validation": { "command": format!("test -f {file} && test ! -e left && touch left"), "expected": "exit 0" },
        })
    };
    let spec = open
        .approve(json!([of("T-1", "1.txt"), of("T-2", "2.txt")]))
        .await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_looks_like_work_does_not_land() {
    let rows = [
        ("CREATE", "a.rs", "", FailureClass::EmptyChange),
        ("CREATE", "a.rs", " \n\n", FailureClass::EmptyChange),
        (
            "CREATE",
            "a.py",
            "# todo: all of it\n",
            FailureClass::StubMarker,
        ),
        (
            "CREATE",
            "a.py",
            "def habits():\n    ...\n",
            FailureClass::StubMarker,
        ),
        (
            "UPDATE",
            "old.rs",
            "fn a() {\n}\n\n\n",
            FailureClass::EmptyChange,
        ),
    ];
    for (action, file, content, expected) in rows {
        let project = Project::new(&writes("T-1", file, content, None))
            .with_files(&[("old.rs", "fn a() {\n}\n")]);
        let ended = tried(project, plan(action, file, &[], "true")).await;
        assert_eq!(
            class(&ended),
            Some(expected),
            "{content:?}: {:?}",
            ended.reason
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_leads_out_of_the_repository_never_lands_and_one_within_does() {
    for (link, lands) in [
        ("/etc/hostname", false),
        ("../../state", false),
        (".git/config", false),
        ("README.md", true),
    ] {
        let script = steps("T-1", &[Step::Shell(format!("ln -s {link} a.txt"))]);
        let landed = tried(
            Project::new(&script),
            plan("CREATE", "a.txt", &[], "test -L a.txt"),
        )
        .await;
        let wanted = if lands {
            (TaskState::Complete, None)
        } else {
            (TaskState::Failed, Some(FailureClass::OutOfScope))
        };
        assert_eq!((landed.state, class(&landed)), wanted, "{link}");
        if let Some(failure) = landed.failures.last() {
            assert!(failure.error.contains(link), "{}", failure.error);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_declared_file_that_no_commit_takes_is_named_with_the_reason() {
    let large = "head -c 70000000 /dev/zero > a.txt";
    let script = steps("T-1", &[Step::Shell(large.to_owned())]);
    let failed = tried(Project::new(&script), plan("CREATE", "a.txt", &[], "true")).await;
    let error = &failed.failures.last().unwrap().error;
    assert!(
        error.contains("`a.txt`") && error.contains("64 MiB"),
        "{error}"
    );
    let script = steps("T-1", &[Step::Shell("echo good > a.txt".to_owned())]);
    let project = Project::new(&script).with_files(&[(".gitignore", "*.txt\n")]);
    let failed = tried(project, plan("CREATE", "a.txt", &[], "true")).await;
    let error = &failed.failures.last().unwrap().error;
    assert!(
        error.contains("`a.txt`") && error.contains("ignore"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_before_is_run_on_again_only_where_tests_are_counted() {
    let counted = "printf 'Ran 1 test in 0.1s\\n\\nOK\\n'";
    for (says, expected) in [("true", ""), (counted, "run\n")] {
        // Counts its runs on the tree before, which alone does not hold that word; the count lies outside of any checkout.
        let aside = tempfile::tempdir().unwrap();
        let count = aside.path().join("count");
        let script = format!(
            "grep -q good a.txt || echo run >> {}\n{says}\n",
            count.display()
        );
        let project = Project::new(&writes("T-1", "a.txt", "kept\ngood\n", None)).with_files(&[
            ("ropewalk.toml", GATE),
            ("gate.sh", &script),
            ("a.txt", "kept\n"),
        ]);
        let ended = tried(project, plan("UPDATE", "a.txt", &[], "true")).await;
        assert_eq!(ended.state, TaskState::Complete, "{:?}", ended.failures);
        let runs = std::fs::read_to_string(&count).unwrap_or_default();
        assert_eq!(runs, expected, "{says}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_own_check_of_a_task_earns_no_second_run() {
    // Its test passes on the tree before, fails on the work once, and would pass the second time.
    let aside = tempfile::tempdir().unwrap();
    let at = aside.path().join("count");
    let script = format!(
        "if test -e new.txt; then\n\
         echo run >> {at}\n\
         test $(grep -c run {at}) = 1 && echo 'not ok 1 - slow' && echo 1..1 && exit 1\nfi\n\
         echo 'ok 1 - slow'; echo 1..1\n",
        at = at.display()
    );
    let project =
        Project::new(&writes("T-1", "new.txt", "good\n", None)).with_files(&[("unit.sh", &script)]);
    let failed = tried(project, plan("CREATE", "new.txt", &[], "sh unit.sh")).await;
    assert_eq!(
        (failed.state, class(&failed)),
        (TaskState::Failed, Some(FailureClass::ValidationFailed)),
        "{:?}",
        failed.reason
    );
    assert_eq!(std::fs::read_to_string(&at).unwrap(), "run\n");
}
