//! What the owner of a file decides as the task that asked for it ends.

use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::{ChangeDecided, DecisionMade, Verdict};
use ropewalk_schemas::task::{ChangeRequestState, TaskState, WaitReason};
use ropewalk_schemas::wait::Wait;
use ropewalk_schemas::{Payload, RepoPath, SpecId, Subject, TaskId};
use ropewalk_store::{ChangeSet, Query};
use serde_json::json;

use super::two_builds::{create, owner, update};
use crate::world::project::{OpenProject, Project, request, task, writes};

fn project() -> Project {
    let rules = [
        writes("ONE", "a.txt", "ONE\n", None),
        writes("OTHER", "b.txt", "OTHER\n", None),
        writes("TWO", "a.txt", "TWO\n", None),
    ];
    Project::new(&rules.concat()).with_files(&[("a.txt", "a\n")])
}

/// Builds until nothing is left of the second build but a task that asked the first one for a file.
async fn asked(open: &OpenProject) -> (Build, SpecId, Build) {
    let first = open.approve(json!([update("ONE", "a.txt")])).await;
    let (one, _) = open.ended(first).await;
    assert_eq!(one.state, BuildState::Succeeded, "{:?}", one.reason);
    let plan = json!([create("OTHER", "b.txt"), update("TWO", "a.txt")]);
    let second = open.approve(plan).await;
    let (two, _) = open
        .until(second, |_, tasks| {
            let asks = task(tasks, "TWO").waiting_for == Some(WaitReason::Owner);
            asks && task(tasks, "OTHER").state == TaskState::Complete
        })
        .await;
    (one, second, two)
}

/// The task that asked is left out.
fn left_out(two: &Build) -> (Subject, Payload) {
    let id = TaskId::parse("TWO").unwrap();
    let subject = Subject::task(two.id, &id);
    let decided = DecisionMade {
        build_id: two.id,
        task_id: Some(id),
        verdict: Verdict::Skip,
        reason: "nobody wants it".to_owned(),
        file: None,
        decided_by: Some("ada".to_owned()),
    };
    (subject, Payload::DecisionMade(decided))
}

/// The task that asked gets another try, by who answered what PM asked.
fn tried_again(two: &Build) -> (Subject, Payload) {
    let id = TaskId::parse("TWO").unwrap();
    let why = "its answer says so".to_owned();
    let mut decided = DecisionMade::of_task((two.id, &id), Verdict::Retry, why);
    decided.decided_by = Some("ada".to_owned());
    (Subject::task(two.id, &id), Payload::DecisionMade(decided))
}

/// The owner gives the file.
fn given(one: &Build, two: &Build) -> (Subject, Payload) {
    let decided = ChangeDecided {
        build_id: two.id,
        task_id: TaskId::parse("TWO").unwrap(),
        owner: one.id,
        file: RepoPath::parse("a.txt").unwrap(),
        approved: true,
        reason: "go on".to_owned(),
    };
    (Subject::build(two.id), Payload::ChangeDecided(decided))
}

/// Checks that nothing of the task is left: no wait, no lock, no request that anybody would have to decide about.
async fn check_nothing_is_left(open: &OpenProject, second: SpecId) {
    let (build, tasks) = open.ended(second).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let left = task(&tasks, "TWO");
    assert_eq!(left.state, TaskState::Skipped);
    let mut requests = left.change_requests.iter();
    let open_one = requests.find(|request| request.state == ChangeRequestState::Requested);
    assert_eq!(open_one, None);
    let waits = open.services.store.count::<Wait>(Query::new()).await;
    assert_eq!(waits.unwrap(), 0);
    assert!(open.held_locks().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_given_after_its_task_was_left_out_stays_with_its_owner() {
    let project = project();
    let open = project.open().await;
    let (one, second, two) = asked(&open).await;
    let (subject, payload) = left_out(&two);
    open.emit(subject, payload).await;
    check_nothing_is_left(&open, second).await;
    let (subject, payload) = given(&one, &two);
    open.emit(subject, payload).await;
    open.settled().await;
    assert_eq!(owner(&open, "a.txt").await.unwrap().build, one.id);
    check_nothing_is_left(&open, second).await;
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_given_as_its_task_is_left_out_revives_nothing() {
    let project = project();
    let open = project.open().await;
    let (one, second, two) = asked(&open).await;
    // In whichever order they are handled.
    let mut changes = ChangeSet::new();
    for (subject, payload) in [given(&one, &two), left_out(&two)] {
        changes.emit(open.context.event(subject, payload));
    }
    open.services.store.commit(changes).await.unwrap();
    check_nothing_is_left(&open, second).await;
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_answered_after_a_person_stopped_the_build_sets_nothing_going() {
    let project = project();
    let open = project.open().await;
    let (_, second, two) = asked(&open).await;
    let stop = Payload::BuildStop(request(two.id));
    open.emit(Subject::build(two.id), stop).await;
    let (stopped, _) = open.ended(second).await;
    assert_eq!(stopped.state, BuildState::Stopped);
    let (subject, payload) = tried_again(&two);
    open.emit(subject, payload).await;
    open.settled().await;
    let (build, tasks) = open.ended(second).await;
    assert_eq!(build.state, BuildState::Stopped, "{:?}", build.reason);
    assert_eq!(task(&tasks, "TWO").commit, None);
    open.close().await;
}
