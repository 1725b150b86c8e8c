//! A build that follows another one, with which it does not go together.

use ropewalk_schemas::attempt::{AttemptState, FailureClass};
use ropewalk_schemas::build::{Build, BuildState, Predecessor};
use ropewalk_schemas::payload::{ChangeDecided, DecisionMade, TaskRetry, Verdict};
use ropewalk_schemas::task::{TaskState, WaitReason};
use ropewalk_schemas::{Payload, RepoPath, SpecId, Subject, TaskId};
use serde_json::json;

use super::two_builds::update;
use crate::world::project::{OpenProject, Project, git, task, writes};
use crate::world::script::{meet, steps};

/// What a task makes of both sides, and what the second build makes of that.
const JOINED: &str = "mine\nONE\n";
const DONE: &str = "mine\nONE\nTWO\n";

/// A project whose builds change one file, one after the other.
fn project() -> Project {
    let rules = [
        writes("ONE", "a.txt", "ONE\n", None),
        writes("MERGE-1", "a.txt", JOINED, None),
        writes("TWO", "a.txt", DONE, None),
    ];
    Project::new(&rules.concat()).with_files(&[("a.txt", "a\n")])
}

/// Changes the line as somebody does beside the builds.
fn change(project: &Project, open: &OpenProject) {
    std::fs::write(project.repo().join("a.txt"), "mine\n").unwrap();
    open.git(&["commit", "-q", "-a", "-m", "mine"]);
}

/// Removes the file, as somebody does beside the builds.
fn remove(_: &Project, open: &OpenProject) {
    open.git(&["rm", "-q", "a.txt"]);
    open.git(&["commit", "-q", "-m", "away with it"]);
}

/// Builds until a person is asked about the second build, which begins after `meanwhile` and has to go on from the first one.
/// Returns that one, with the specification of the second.
async fn asked(
    project: &Project,
    open: &OpenProject,
    meanwhile: fn(&Project, &OpenProject),
) -> (Build, SpecId) {
    let first = open.approve(json!([update("ONE", "a.txt")])).await;
    let (one, _) = open.ended(first).await;
    assert_eq!(one.state, BuildState::Succeeded, "{:?}", one.reason);
    meanwhile(project, open);
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
    open.until(second, |_, tasks| {
        task(tasks, "TWO").state == TaskState::Failed
    })
    .await;
    (one, second)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_that_do_not_go_together_are_asked_about_at_once_and_no_model_is() {
    let project = project();
    let open = project.open().await;
    let (_, second) = asked(&project, &open, change).await;
    let two = open.build(second).await.unwrap();
    let tasks = open.tasks(two.id).await;
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
    assert_eq!(project.prompts("TWO"), Vec::<String>::new());
    assert!(two.follows.is_empty(), "{:?}", two.follows);
    let asked = open.open_question("TWO").await.unwrap();
    assert!(asked.text.contains("a.txt"), "{}", asked.text);
    assert!(open.held_locks().await.is_empty());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_joins_them_under_the_gate_once_somebody_wants_it_tried_again() {
    let project = project();
    let open = project.open().await;
    let (one, second) = asked(&project, &open, change).await;
    let ours = open.build(second).await.unwrap().head.unwrap();
    open.answer("TWO", "guide: Keep the lines of both.").await;
    let (two, tasks) = open.ended(second).await;
    assert_eq!(two.state, BuildState::Succeeded, "{:?}", two.reason);
    let theirs = one.head.unwrap();
    let merge = task(&tasks, "MERGE-1");
    assert_eq!(merge.state, TaskState::Complete);
    assert_eq!(merge.joins.as_ref(), Some(&theirs));
    let commit = merge.commit.as_ref().unwrap().as_str();
    let clone = project.state().join("repository.git");
    let shown = git(&clone, &["show", "-s", "--format=%P%n%s", commit]);
    let subject = format!("Merge branch '{}' into {}", one.branch, two.branch);
    assert_eq!(shown, format!("{ours} {theirs}\n{subject}"));
    let [told] = project.prompts("MERGE-1").try_into().unwrap();
    let told_branch = format!("`{}`", one.branch);
    for part in [
        "<<<<<<<",
        "mine",
        "ONE",
        "a.txt",
        &told_branch,
        "Keep the lines of both.",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // What waited for it goes on from there, and knows of it.
    let waited = task(&tasks, "TWO");
    assert_eq!(waited.state, TaskState::Complete);
    assert_eq!(waited.block.depends_on, std::slice::from_ref(&merge.id));
    let [told] = project.prompts("TWO").try_into().unwrap();
    assert!(told.contains("MERGE-1"), "{told}");
    let head = two.head.as_ref().unwrap();
    let left = git(&clone, &["show", &format!("{head}:a.txt")]);
    assert_eq!(left, DONE.trim_end());
    let followed = Predecessor {
        build: one.id,
        commit: theirs,
    };
    assert_eq!(two.follows, [followed]);
    assert!(open.held_locks().await.is_empty());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waited_for_a_task_that_joins_them_asks_again_where_somebody_leaves_that_out() {
    let signals = tempfile::tempdir().unwrap();
    let rules = [
        writes("ONE", "a.txt", "ONE\n", None),
        steps("MERGE-1", &[meet(&signals.path().join("never"))]),
        writes("MERGE-2", "a.txt", JOINED, None),
        writes("TWO", "a.txt", DONE, None),
    ];
    let project = Project::new(&rules.concat()).with_files(&[("a.txt", "a\n")]);
    let open = project.open().await;
    let (_, second) = asked(&project, &open, change).await;
    let two = joining(&open, second).await;
    leave_out_joining(&open, &two).await;
    let (_, tasks) = open
        .until(second, |_, tasks| {
            task(tasks, "TWO").state == TaskState::Failed
        })
        .await;
    let failed = task(&tasks, "TWO");
    let failure = failed.failures.last().unwrap();
    assert_eq!(failure.class, FailureClass::Conflict, "{}", failure.error);
    assert!(failed.block.depends_on.is_empty(), "{failed:?}");
    assert_eq!(task(&tasks, "MERGE-1").state, TaskState::Skipped);
    assert_eq!(tasks.len(), 2, "nothing joins them unasked");
    assert_eq!(project.prompts("TWO"), Vec::<String>::new());
    // Whoever wants it tried again has them joined once more.
    open.answer("TWO", "guide: Keep them after all.").await;
    let (two, tasks) = open.ended(second).await;
    assert_eq!(two.state, BuildState::Succeeded, "{:?}", two.reason);
    for id in ["MERGE-2", "TWO"] {
        assert_eq!(task(&tasks, id).state, TaskState::Complete, "{id}");
    }
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_marks_can_show_is_asked_about_again() {
    let project = project();
    let open = project.open().await;
    let (_, second) = asked(&project, &open, remove).await;
    open.answer("TWO", "guide: Try it.").await;
    let (two, tasks) = open
        .until(second, |_, tasks| {
            let task = task(tasks, "TWO");
            (task.state, task.attempts) == (TaskState::Failed, 2)
        })
        .await;
    assert_eq!(tasks.len(), 1, "no task could join them");
    assert_eq!(
        project.calls(),
        2,
        "no model is asked but that of the first"
    );
    assert!(open.open_question("TWO").await.is_some());
    assert!(two.follows.is_empty(), "{:?}", two.follows);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_joined_by_hand_is_joined_by_no_task() {
    let project = project();
    let open = project.open().await;
    let (one, second) = asked(&project, &open, change).await;
    open.answer("TWO", "manual").await;
    let (two, _) = open
        .until(second, |build, _| {
            build.state == BuildState::Failed && build.published == build.head
        })
        .await;
    let theirs = join_by_hand(&open, &one, &two);
    let calls = project.calls();
    let id = TaskId::parse("TWO").unwrap();
    let wish = TaskRetry {
        build_id: two.id,
        task_id: id.clone(),
        requested_by: "ada".to_owned(),
        may_resume: false,
        guidance: None,
    };
    let subject = Subject::task(two.id, &id);
    open.emit(subject, Payload::TaskRetry(wish)).await;
    let (_, tasks) = open
        .until(second, |build, _| build.state == BuildState::Succeeded)
        .await;
    let [done] = tasks.as_slice() else {
        panic!("{tasks:?}")
    };
    assert_eq!(done.commit.as_ref().unwrap().as_str(), theirs);
    assert_eq!(project.calls(), calls, "no model is asked");
    open.close().await;
}

/// Waits until a task is at joining the branches, which somebody wants tried again.
async fn joining(open: &OpenProject, second: SpecId) -> Build {
    open.answer("TWO", "guide: Keep the lines of both.").await;
    let (two, _) = open
        .until(second, |_, tasks| {
            let mut joining = tasks.iter().filter(|task| task.joins.is_some());
            joining.any(|task| task.state == TaskState::Working)
        })
        .await;
    two
}

async fn leave_out_joining(open: &OpenProject, two: &Build) {
    let joining = TaskId::parse("MERGE-1").unwrap();
    let left_out = DecisionMade {
        build_id: two.id,
        task_id: Some(joining.clone()),
        verdict: Verdict::Skip,
        reason: "nobody wants it".to_owned(),
        file: None,
        decided_by: Some("ada".to_owned()),
    };
    let subject = Subject::task(two.id, &joining);
    open.emit(subject, Payload::DecisionMade(left_out)).await;
}

/// Joins both branches as a person, with what the second task is to do, and returns the commit.
fn join_by_hand(open: &OpenProject, one: &Build, two: &Build) -> String {
    let aside = tempfile::tempdir().unwrap();
    let tree = aside.path().join("tree");
    let place = tree.to_str().unwrap();
    open.git(&["worktree", "add", "-q", "--detach", place, &two.branch]);
    let other = one.branch.as_str();
    git(&tree, &["merge", "-q", "-X", "ours", "-m", "Join", other]);
    std::fs::write(tree.join("a.txt"), DONE).unwrap();
    git(&tree, &["commit", "-q", "-a", "-m", "Do the rest"]);
    let theirs = git(&tree, &["rev-parse", "HEAD"]);
    let branch = format!("refs/heads/{}", two.branch);
    open.git(&["update-ref", &branch, &theirs]);
    theirs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_joins_by_hand_and_leaves_out_the_task_that_was_to_is_not_asked_again() {
    let signals = tempfile::tempdir().unwrap();
    let rules = [
        writes("ONE", "a.txt", "ONE\n", None),
        steps("MERGE-1", &[meet(&signals.path().join("never"))]),
        writes("TWO", "a.txt", DONE, None),
    ];
    let project = Project::new(&rules.concat()).with_files(&[("a.txt", "a\n")]);
    let open = project.open().await;
    let (one, second) = asked(&project, &open, change).await;
    let two = joining(&open, second).await;
    let theirs = join_by_hand(&open, &one, &two);
    leave_out_joining(&open, &two).await;
    let (_, tasks) = open
        .until(second, |build, _| build.state == BuildState::Succeeded)
        .await;
    let done = task(&tasks, "TWO");
    assert_eq!(done.commit.as_ref().unwrap().as_str(), theirs);
    assert_eq!(task(&tasks, "MERGE-1").state, TaskState::Skipped);
    assert_eq!(project.prompts("TWO"), Vec::<String>::new());
    open.close().await;
}
