//! One task, every step in order.

use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::TaskState;
use serde_json::json;

use crate::house::{House, task};

const SCRIPT: &str = r#"
- agent: build
  task: T-1
  turn: 1
  contains: "Indent with two spaces."
  reply:
    tools:
      - name: write
        input: { path: src/helper.txt, content: "help\n" }
- agent: build
  task: T-1
  turn: 2
  reply:
    tools:
      - name: finish
        input: { summary: "Wrote the helper." }
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_plan_becomes_a_published_branch() {
    let house = House::new(SCRIPT);
    let open = house.open().await;
    let spec = open
        .approve(json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "src/helper.txt",
            "requirements": [{ "id": "FR-1", "text": "help" }],
            "validation": { "command": "grep -q help src/helper.txt", "expected": "exit 0" },
        }]))
        .await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let done = task(&tasks, "T-1");
    assert_eq!((done.state, done.attempts), (TaskState::Complete, 1));
    let head = open.git(&["rev-parse", "build/habits"]);
    assert_eq!(build.head.as_ref().unwrap().as_str(), head);
    assert_eq!(done.commit.as_ref().unwrap().as_str(), head);
    let log = open.git(&["log", "-1", "--format=%s%n%b", "build/habits"]);
    assert_eq!(
        log,
        format!(
            "T-1: create src/helper.txt\n- help\n\nRopewalk-Task: T-1\nRopewalk-Requirement: FR-1\nRopewalk-Execution: {}",
            build.id
        )
    );
    let files = open.git(&["diff", "--name-only", "build/habits~1", "build/habits"]);
    assert_eq!(files, "src/helper.txt");
    let first = open.git(&["diff", "--name-only", "main", "build/habits~1"]);
    assert_eq!(first, "ideas/habits/README.md");
    assert_eq!(open.git(&["log", "--format=%s", "main"]), "begin");
    let types: Vec<String> = open
        .events()
        .await
        .into_iter()
        .map(|(event_type, _)| event_type)
        .collect();
    assert_eq!(
        types,
        [
            "spec.approved",
            "build.started",
            "task.started",
            "task.completed",
            "lock.released",
            "build.completed",
            "question.asked",
        ]
    );
    open.close().await;
}
