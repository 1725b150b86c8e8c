//! What an earlier task of the same build landed is judged like all that was there before it.

use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::task::{TaskState, WaitReason};
use serde_json::json;

use crate::world::project::{Project, task};
use crate::world::script::{Step, steps};

const MAKEFILE: &str = "check:\n\tpython3 -m unittest test_a\n";
const TEST: &str = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(open('product.txt').read(), 'good\\n')\n";

/// Lets one task land a Makefile, a test and a product, and another one write over a file that it was granted or declares;
/// returns how it stood when the second one was over, or asked.
async fn second(
    overwrite: &str,
    more: &[&str],
    file: &'static str,
) -> ropewalk_schemas::task::Task {
    let first = [
        ("Makefile", MAKEFILE),
        ("test_a.py", TEST),
        ("product.txt", "good\n"),
    ];
    let lines = first.map(|(path, content)| {
        Step::Shell(format!(
            "printf '%s' '{}' > {path}",
            content.replace('\'', "'\\''")
        ))
    });
    let asked = [file];
    let script = [
        steps("T-1", &lines),
        steps(
            "T-2",
            &[Step::Ask(&asked), Step::Shell(overwrite.to_owned())],
        ),
    ]
    .concat();
    let project = Project::new(&script);
    let open = project.open().await;
    let check = json!({ "command": "make check", "expected": "exit 0" });
    let spec = open
        .approve(json!([
            { "id": "T-1", "phase": "api", "action": "CREATE", "file": "product.txt",
              "more_files": ["Makefile", "test_a.py"], "validation": check },
            { "id": "T-2", "phase": "api", "action": "UPDATE", "file": "product.txt",
              "more_files": more, "depends_on": ["T-1"], "validation": check },
        ]))
        .await;
    let (_, tasks) = open
        .until(spec, |build, tasks| {
            let second = task(tasks, "T-2");
            build.completed_at.is_some()
                || matches!(second.state, TaskState::Failed | TaskState::Waiting)
        })
        .await;
    open.close().await;
    task(&tasks, "T-2").clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_task_landed_the_next_one_weakens_only_with_a_yes() {
    let fakes = "printf 'check:\\n\\t@echo Ran 1 test in 0.1s; echo; echo OK\\n' > Makefile";
    let empties = "sed -i 's/assertEqual(.*/assertTrue(True)/' test_a.py";
    let rows = [
        (fakes, "Makefile", &[][..]),
        (fakes, "Makefile", &["Makefile"]),
        (empties, "test_a.py", &["test_a.py"]),
    ];
    for (weakens, file, declared) in rows {
        let ended = second(
            &format!("echo bad > product.txt; {weakens}"),
            declared,
            file,
        )
        .await;
        let class = ended.failures.last().map(|failure| failure.class);
        let reason = ended.reason;
        assert_eq!(
            class,
            Some(FailureClass::Tampered),
            "{declared:?}: {reason:?}"
        );
        assert_eq!(
            (ended.state, ended.waiting_for),
            (TaskState::Waiting, Some(WaitReason::Person)),
            "{declared:?}: {reason:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_task_landed_may_gain_in_the_next_one_unasked() {
    let gains = [
        ("printf 'lint:\\n\\ttrue\\n' >> Makefile", "Makefile"),
        (
            "printf '    def test_b(self):\\n        self.assertIn(\"o\", open(\"product.txt\").read())\\n' >> test_a.py",
            "test_a.py",
        ),
    ];
    for (gains, file) in gains {
        let ended = second(gains, &[file], file).await;
        assert_eq!(
            ended.state,
            TaskState::Complete,
            "{file}: {:?}",
            ended.failures
        );
    }
}
