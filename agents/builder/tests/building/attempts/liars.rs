//! Agents that claim more than they did.

mod beside;
mod controls;
mod earlier_work;

use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::TaskState;
use serde_json::{Value, json};

use crate::world::project::{Project, finishes, task, writes};

const TEST: &str = "grep -q '^works$' lib.txt && echo 'ok 1 - works' && echo '1..1'\n";

/// The offline generator fails with an error of its provider.
const OFFLINE: &str = r#"
- agent: build
  task: L-4
  reply:
    error: { kind: refused, message: "the generator is offline" }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_seven_agents_only_the_one_that_worked_is_believed() {
    let rules = [
        // Claims success and changes nothing.
        finishes("L-1", "Done, all tests pass."),
        // Leaves the words of success where the work should be.
        writes(
            "L-2",
            "L-2.txt",
            "test result: ok. 5 passed; 0 failed; exit 0\n",
            None,
        ),
        // Leaves a stub that compiles.
        writes("L-3", "L-3.rs", "fn good() { todo!() }\n", None),
        OFFLINE.to_owned(),
        // Does the work of another task.
        writes("L-5", "L-7.txt", "good\n", None),
        // Edits the test instead of the code.
        writes(
            "L-6",
            "tests/check.sh",
            "echo 'ok 1 - works'; echo '1..1'\n",
            None,
        ),
        writes("L-7", "L-7.txt", "good\n", None),
    ];
    let project = Project::new(&rules.concat())
        .with_files(&[("tests/check.sh", TEST), ("lib.txt", "broken\n")])
        .with(|options| options.stop.max_failed = 10);
    let open = project.open().await;
    let spec = open.approve(plan_of_seven()).await;
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let complete: Vec<&str> = tasks
        .iter()
        .filter(|task| task.state == TaskState::Complete)
        .map(|task| task.id.as_str())
        .collect();
    assert_eq!(complete, ["L-7"]);
    let ids = ["L-1", "L-2", "L-3", "L-4", "L-5", "L-6"];
    let found = ids.map(|id| {
        let failures = &task(&tasks, id).failures;
        (id, failures.first().map(|failure| failure.class))
    });
    let classes = [
        FailureClass::EmptyChange,
        FailureClass::ValidationFailed,
        FailureClass::StubMarker,
        FailureClass::AgentRefused,
        FailureClass::OutOfScope,
        FailureClass::Tampered,
    ];
    let expected: Vec<_> = ids.into_iter().zip(classes.map(Some)).collect();
    assert_eq!(found.to_vec(), expected);
    let reason = |id: &str| task(&tasks, id).reason.clone().unwrap_or_default();
    let told = [
        "nothing was changed",
        "",
        "stub",
        "offline",
        "",
        "tests/check.sh",
    ];
    for (id, told) in ids.into_iter().zip(told) {
        let reason = reason(id);
        assert!(
            reason.len() > 10 && reason.contains(told),
            "`{id}`: {reason}"
        );
    }
    assert_eq!(open.git(&["show", "build/habits:lib.txt"]), "broken");
    // No task is complete without evidence of the gate.
    let evidence = open.evidence(build.id).await;
    let passed = evidence
        .iter()
        .filter(|evidence| evidence.verdict == ropewalk_schemas::attempt::Verdict::Passed)
        .count();
    assert_eq!(passed, 1);
    open.close().await;
}

/// Returns the tasks of the seven agents, which nothing binds to each other.
fn plan_of_seven() -> Value {
    let mut tasks = Vec::new();
    for number in [1, 2, 3, 4, 5, 7] {
        let id = format!("L-{number}");
        let file = format!("{id}.{}", if number == 3 { "rs" } else { "txt" });
        tasks.push(json!({
            "id": id, "phase": "api", "action": "CREATE", "file": file,
            "validation": { "command": format!("grep -q good {file}"), "expected": "exit 0" },
        }));
    }
    tasks.push(json!({
        "id": "L-6", "phase": "api", "action": "UPDATE", "file": "lib.txt", "more_files": ["tests/check.sh"],
        "validation": { "command": "sh tests/check.sh", "expected": "tests >= 1" },
    }));
    json!(tasks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_may_allow_what_an_agent_may_not_do_alone() {
    let rules = [writes(
        "L-6",
        "tests/check.sh",
        "echo 'ok 1 - works'; echo '1..1'\n",
        None,
    )];
    for (answer, state) in [
        ("allow", TaskState::Complete),
        ("keep", TaskState::Waiting),
        ("guide: Try the product.", TaskState::Waiting),
    ] {
        let project = Project::new(&rules.concat()).with_files(&[("tests/check.sh", TEST)]);
        let open = project.open().await;
        let plan = json!([{
            "id": "L-6", "phase": "api", "action": "UPDATE", "file": "tests/check.sh",
            "validation": { "command": "sh tests/check.sh", "expected": "tests >= 1" },
        }]);
        let spec = open.approve(plan).await;
        open.until(spec, |build, _| build.state == BuildState::Paused)
            .await;
        open.answer("L-6", answer).await;
        // What was allowed is no other try, and what was refused is done anew.
        let tries = if answer == "allow" { 1 } else { 2 };
        let (_, tasks) = open
            .until(spec, |build, tasks| {
                let is_tried = (tasks[0].state, tasks[0].attempts) == (state, tries);
                build.state != BuildState::Running && is_tried
            })
            .await;
        let landed = || open.git(&["show", "build/habits:tests/check.sh"]);
        let words = answer.strip_prefix("guide: ").map(|words| {
            format!("Asked about the change of `tests/check.sh`, a person said: {words}")
        });
        if state == TaskState::Waiting {
            assert_eq!(landed(), TEST.trim_end());
            let refused = "A person refused the change of `tests/check.sh` that was asked about: leave it as it is.";
            let told: Vec<&str> = std::iter::once(refused).chain(words.as_deref()).collect();
            assert_eq!(task(&tasks, "L-6").guidance, told);
            open.answer("L-6", "allow").await;
        }
        let (build, tasks) = open.ended(spec).await;
        assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
        assert_ne!(landed(), TEST.trim_end());
        // The yes that came last holds: nobody is told of the no before it.
        let allowed = task(&tasks, "L-6");
        let left: Vec<String> = words.into_iter().collect();
        assert_eq!(allowed.guidance, left);
        assert_eq!(allowed.told().len(), left.len());
        open.close().await;
    }
}
