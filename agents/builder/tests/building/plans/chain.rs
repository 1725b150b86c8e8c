//! A chain of tasks: each waits for the one before it, by name, and starts by itself.

use std::time::Duration;

use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::lease::{Lease, LeaseState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_store::Query;
use serde_json::{Value, json};

use crate::world::project::{OpenProject, Project, task, writes, writes_after, writes_slowly};

fn plan(id: &str, needs: &[&str]) -> Value {
    json!({
        "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
        "validation": { "command": format!("grep -q good {id}.txt"), "expected": "exit 0" },
        "depends_on": needs,
    })
}

/// Asserts that no task which waits for another one holds a lock.
async fn no_lock_while_pending(open: &OpenProject, tasks: impl AsyncFn() -> Vec<Task>) {
    // The locks are read first: a task that is pending after that was pending while it held them.
    let held = open.held_locks().await;
    let pending: Vec<Task> = tasks()
        .await
        .into_iter()
        .filter(|task| task.state == TaskState::Pending)
        .collect();
    for lock in &held {
        assert!(
            pending.iter().all(|task| task.id != lock.holder.task),
            "{lock:?}"
        );
    }
}

/// Asserts that `after` started and locked its file only when `before` was complete.
async fn comes_after(open: &OpenProject, tasks: &[Task], before: &str, after: &str) {
    let finished = task(tasks, before).completed_at.unwrap();
    let attempts = open.attempts(task(tasks, after).build, after).await;
    assert!(attempts[0].started_at >= finished, "`{after}` starts early");
    let leases = open
        .services
        .store
        .list::<Lease>(Query::new())
        .await
        .unwrap();
    let lease = leases
        .iter()
        .find(|lease| lease.holder.task.as_str() == after)
        .unwrap();
    assert!(lease.granted_at >= finished, "`{after}` locks early");
    assert_eq!(lease.state, LeaseState::Released);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_starts_link_by_link_and_nobody_locks_ahead() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let rules = [
        writes_after("A", "A.txt", "good\n", &go),
        writes_slowly("B", "B.txt", "good\n", 300),
        writes("C", "C.txt", "good\n", None),
    ];
    let project = Project::new(&rules.concat()).with(|options| options.loops = 3);
    let open = project.open().await;
    let spec = open
        .approve(json!([
            plan("A", &[]),
            plan("B", &["A"]),
            plan("C", &["B"])
        ]))
        .await;
    let (build, tasks) = open
        .until(spec, |_, tasks| {
            tasks
                .first()
                .is_some_and(|task| task.state == TaskState::Working)
        })
        .await;
    for (id, needed) in [("B", "waits for `A`"), ("C", "waits for `B`")] {
        let waiting = task(&tasks, id);
        assert_eq!(waiting.state, TaskState::Pending);
        assert_eq!(waiting.reason.as_deref(), Some(needed));
        assert_eq!(waiting.attempts, 0);
    }
    let held = open.held_locks().await;
    let locked: Vec<String> = held.iter().map(|lock| lock.path.to_string()).collect();
    assert_eq!(locked, ["A.txt"], "two loops are idle and lock nothing");
    std::fs::write(&go, "").unwrap();

    let mut feed = open.services.store.feed();
    while open
        .build(spec)
        .await
        .is_some_and(|build| build.completed_at.is_none())
    {
        no_lock_while_pending(&open, async || open.tasks(build.id).await).await;
        drop(tokio::time::timeout(Duration::from_millis(20), feed.next()).await);
    }

    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let events = open.events().await;
    let unblocked: Vec<&Value> = events
        .iter()
        .filter(|(event_type, _)| event_type == "task.completed")
        .map(|(_, data)| &data["unblocked"])
        .collect();
    assert_eq!(
        unblocked,
        [&json!(["B"]), &json!(["C"]), &Value::Null],
        "who was unblocked by whom"
    );
    let steps: Vec<String> = events
        .into_iter()
        .filter(|(event_type, _)| event_type == "task.started" || event_type == "task.completed")
        .map(|(event_type, data)| format!("{event_type} {}", data["task_id"].as_str().unwrap()))
        .collect();
    assert_eq!(
        steps,
        [
            "task.started A",
            "task.completed A",
            "task.started B",
            "task.completed B",
            "task.started C",
            "task.completed C",
        ]
    );
    for (before, after) in [("A", "B"), ("B", "C")] {
        comes_after(&open, &tasks, before, after).await;
    }
    open.close().await;
}
