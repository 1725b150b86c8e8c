//! One task, every step in order.

use std::time::Duration;

use ropewalk_schemas::SpecId;
use ropewalk_schemas::attempt::Verdict;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::document::tasks_md::{self, Journal, PlanStatus, TasksPlan};
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::task::{TaskBlock, TaskState};
use ropewalk_store::Query;
use serde_json::json;

use crate::world::project::{Project, task, writes};

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
    let project = Project::new(SCRIPT);
    let open = project.open().await;
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
            "T-1: create src/helper.txt\nWrote the helper.\n\n- help\n\nRopewalk-Task: T-1\nRopewalk-Requirement: FR-1\nRopewalk-Execution: {}",
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

/// Writes the tasks.md of a plan into the folder of its idea.
pub(crate) fn write_tasks(project: &Project, blocks: &[TaskBlock]) {
    let text = tasks_md::render(&TasksPlan {
        id: SpecId(uuid::Uuid::from_u128(1)),
        title: "Habits",
        spec_version: 1,
        context: &[],
        tasks: blocks,
    });
    let folder = project.state().join("users/ada/ideas/habits/build");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("tasks.md"), text).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_waited_for_a_person_began_when_it_was_first_worked_on() {
    let files = [
        ("tests/check.sh", "grep -q good a.txt\n"),
        ("a.txt", "bad\n"),
    ];
    let project = Project::new(&writes("T-1", "tests/check.sh", "true\n", None)).with_files(&files);
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": "tests/check.sh",
        "validation": { "command": "sh tests/check.sh", "expected": "exit 0" },
    }]);
    write_tasks(
        &project,
        &serde_json::from_value::<Vec<TaskBlock>>(plan.clone()).unwrap(),
    );
    let open = project.open().await;
    let spec = open.approve(plan).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    // Times are written by the second.
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    open.answer("T-1", "allow").await;
    let (build, _) = open.ended(spec).await;
    let attempts = open.attempts(build.id, "T-1").await;
    assert_eq!(attempts.len(), 2);
    let landed = open.git(&["show", "build/habits:ideas/habits/build/tasks.md"]);
    let landed = tasks_md::parse(&landed).unwrap();
    let began = landed.entries()[0].progress.started_at.unwrap();
    let late = began - attempts[0].started_at;
    assert!(late.num_milliseconds() < 1_000, "{late}");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tasks_that_travel_with_the_code_say_what_became_of_them() {
    // What was wrong first, and mended, leaves a lesson.
    let rules = [
        writes("T-1", "a.txt", "good\n", Some("Not taken")),
        writes("T-1", "a.txt", "type DATEE is unknown\n", None),
    ];
    let project = Project::new(&rules.concat());
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
        "validation": { "command": "cat a.txt; grep -q good a.txt", "expected": "exit 0" },
    }]);
    let blocks: Vec<TaskBlock> = serde_json::from_value(plan.clone()).unwrap();
    write_tasks(&project, &blocks);
    let open = project.open().await;
    let spec = open.approve(plan).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let landed = open.git(&["show", "build/habits:ideas/habits/build/tasks.md"]);
    let landed = tasks_md::parse(&landed).unwrap();
    assert_eq!(
        (landed.header().completed, landed.header().status),
        (1, PlanStatus::Complete)
    );
    let entry = &landed.entries()[0];
    assert_eq!(entry.block, blocks[0], "what was approved is as it was");
    assert_eq!(
        (entry.progress.status, entry.progress.completed_at.is_some()),
        (TaskState::Complete, true)
    );
    let told = landed.journal(Journal::ExecutionLog);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].ends_with(" T-1: Done."), "{told:?}");
    let learned = open.services.store.list::<KnowledgeItem>(Query::new());
    let learned = learned.await.unwrap();
    assert_eq!(learned.len(), 1, "{learned:?}");
    let found = landed.journal(Journal::Discoveries);
    assert_eq!(found, [learned[0].content.as_str()]);
    let head = open.git(&["rev-parse", "build/habits"]);
    assert_eq!(build.head.as_ref().unwrap().as_str(), head);
    let done = task(&tasks, "T-1").commit.as_ref().unwrap();
    assert_eq!(open.git(&["rev-parse", "build/habits~1"]), done.as_str());
    let whole = open.evidence(build.id).await;
    let whole = whole.iter().find(|evidence| evidence.task.is_none());
    assert_eq!(
        whole.unwrap().commit.as_str(),
        head,
        "the check saw it with the code"
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_of_a_task_is_what_its_commit_holds() {
    let rules = [
        writes("T-1", "src/one.txt", "good\n", None),
        writes("T-2", "src/two.txt", "good\n", None),
    ];
    let project = Project::new(&rules.concat()).with(|options| options.loops = 2);
    let open = project.open().await;
    let plan = |id: &str, file: &str| {
        json!({
            "id": id, "phase": "api", "action": "CREATE", "file": file,
            "validation": { "command": format!("touch left-over; grep -q good {file}"), "expected": "exit 0" },
        })
    };
    let spec = open
        .approve(json!([
            plan("T-1", "src/one.txt"),
            plan("T-2", "src/two.txt")
        ]))
        .await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let evidence = open.evidence(build.id).await;
    for (id, file) in [("T-1", "src/one.txt"), ("T-2", "src/two.txt")] {
        let done = task(&tasks, id);
        let commit = done.commit.as_ref().unwrap();
        let changed = open.git(&["show", "--format=", "--name-status", commit.as_str()]);
        assert_eq!(changed, format!("A\t{file}"));
        let attempts = open.attempts(build.id, id).await;
        assert_eq!(attempts.last().unwrap().candidate.as_ref(), Some(commit));
        let tree = open.git(&["rev-parse", &format!("{commit}^{{tree}}")]);
        let passed = evidence.iter().any(|evidence| {
            evidence.commit == *commit
                && evidence.tree == tree
                && evidence.verdict == Verdict::Passed
        });
        assert!(passed, "the gate saw this very tree of `{id}`");
        let trailer = "--format=%(trailers:key=Ropewalk-Task,valueonly)";
        assert_eq!(open.git(&["log", "-1", trailer, commit.as_str()]), id);
    }
    open.close().await;
}
