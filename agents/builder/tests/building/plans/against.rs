//! A build that follows another one, with which it does not go together.

use ropewalk_schemas::attempt::{AttemptState, FailureClass};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::payload::ChangeDecided;
use ropewalk_schemas::task::{TaskState, WaitReason};
use ropewalk_schemas::{Payload, RepoPath, Subject, TaskId};
use serde_json::json;

use super::two_builds::update;
use crate::world::house::{House, task, writes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_that_do_not_go_together_are_asked_about_at_once_and_no_model_is() {
    let rules = [
        writes("ONE", "a.txt", "ONE\n", None),
        writes("TWO", "a.txt", "TWO\n", None),
    ];
    let house = House::new(&rules.concat()).with_files(&[("a.txt", "a\n")]);
    let open = house.open().await;
    let first = open.approve(json!([update("ONE", "a.txt")])).await;
    let (one, _) = open.ended(first).await;
    assert_eq!(one.state, BuildState::Succeeded, "{:?}", one.reason);
    // The second build begins on what somebody made of the same line meanwhile.
    std::fs::write(house.repo().join("a.txt"), "mine\n").unwrap();
    open.git(&["commit", "-q", "-a", "-m", "mine"]);
    let second = open.approve(json!([update("TWO", "a.txt")])).await;
    let (two, _) = open
        .until(second, |_, tasks| {
            task(tasks, "TWO").waiting_for == Some(WaitReason::Owner)
        })
        .await;
    let decided = ChangeDecided {
        build_id: two.id,
        task_id: TaskId::parse("TWO").unwrap(),
        owner: one.id,
        file: RepoPath::parse("a.txt").unwrap(),
        approved: true,
        reason: "go on".to_owned(),
    };
    let subject = Subject::build(two.id);
    open.emit(subject, Payload::ChangeDecided(decided)).await;
    let (two, tasks) = open
        .until(second, |_, tasks| {
            task(tasks, "TWO").state == TaskState::Failed
        })
        .await;
    let failed = task(&tasks, "TWO");
    assert_eq!((failed.attempts, failed.rebases), (1, 0));
    let attempts = open.attempts(two.id, "TWO").await;
    let [attempt] = attempts.as_slice() else {
        panic!("{attempts:?}")
    };
    assert_eq!(attempt.state, AttemptState::Failed);
    let failure = attempt.failure.as_ref().unwrap();
    assert_eq!(failure.class, FailureClass::Conflict);
    for side in ["a.txt", "mine", "ONE"] {
        assert!(failure.error.contains(side), "{side}: {}", failure.error);
    }
    assert_eq!(house.prompts("TWO"), Vec::<String>::new());
    assert!(two.follows.is_empty(), "{:?}", two.follows);
    let asked = open.open_question("TWO").await.unwrap();
    assert!(asked.text.contains("a.txt"), "{}", asked.text);
    assert!(open.held_locks().await.is_empty());
    open.close().await;
}
