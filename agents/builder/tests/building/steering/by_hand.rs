//! A task that failed is fixed by a person, on the branch of its build.

use ropewalk_schemas::SpecId;
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_store::Query;
use serde_json::json;

use super::second_task::{failed, project, retry};
use crate::world::project::{OpenProject, Project, git, task, writes};

/// Builds until the second task has failed, and a person says that they fix it, on a branch that has what landed.
async fn left_to_a_person(open: &OpenProject) -> (SpecId, Build) {
    let spec = failed(open).await;
    open.answer("T-2", "manual").await;
    let (build, _) = open
        .until(spec, |build, _| {
            build.state == BuildState::Failed && build.published == build.head
        })
        .await;
    (spec, build)
}

/// Commits files on the branch of the build as a person, and returns the commit.
fn commit(open: &OpenProject, files: &[(&str, &str)]) -> String {
    commit_with(open, "Fix it myself", files)
}

fn commit_with(open: &OpenProject, message: &str, files: &[(&str, &str)]) -> String {
    let aside = tempfile::tempdir().unwrap();
    let aside = aside.path().join("tree");
    let tree = aside.to_str().unwrap();
    open.git(&["worktree", "add", "-q", "--detach", tree, "build/habits"]);
    for (file, content) in files {
        std::fs::write(aside.join(file), content).unwrap();
    }
    git(&aside, &["add", "."]);
    git(&aside, &["commit", "-q", "-m", message]);
    let theirs = git(&aside, &["rev-parse", "HEAD"]);
    open.git(&["update-ref", "refs/heads/build/habits", &theirs]);
    theirs
}

async fn succeeded(open: &OpenProject, spec: SpecId) -> (Build, Vec<Task>) {
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    assert_eq!(task(&tasks, "T-2").state, TaskState::Complete);
    let head = build.head.as_ref().unwrap().as_str();
    assert_eq!(open.git(&["show", "build/habits:T-2.txt"]), "good");
    assert_eq!(open.git(&["rev-parse", "build/habits"]), head);
    (build, tasks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fix_by_hand_lands_without_a_model_once_its_task_is_tried_again() {
    let project = project();
    let open = project.open().await;
    let (spec, build) = left_to_a_person(&open).await;
    let theirs = commit(&open, &[("T-2.txt", "good\n")]);
    let calls = project.calls();
    retry(&open, &build, None).await;
    let (build, tasks) = succeeded(&open, spec).await;
    assert_eq!(project.calls(), calls, "no model was asked");
    assert_eq!(
        task(&tasks, "T-2").commit.as_ref().unwrap().as_str(),
        theirs
    );
    let attempts = open.attempts(build.id, "T-2").await;
    let told = attempts.last().unwrap().summary.as_deref();
    assert_eq!(told, Some("Made by hand: Fix it myself"));
    let evidence = open.evidence(build.id).await;
    let seen = evidence.iter().any(|one| one.commit.as_str() == theirs);
    assert!(seen, "the gate saw it");
    assert!(open.questions("branch_moved").await.is_empty());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fix_by_hand_that_does_not_pass_is_asked_about_and_built_on() {
    let project = project();
    let open = project.open().await;
    let (spec, build) = left_to_a_person(&open).await;
    let theirs = commit(&open, &[("T-2.txt", "still bad\n")]);
    let calls = project.calls();
    retry(&open, &build, None).await;
    let (paused, tasks) = open
        .until(spec, |build, tasks| {
            let told = task(tasks, "T-2").reason.is_some();
            build.pause_reason == Some(PauseReason::Conflict) && told
        })
        .await;
    assert_eq!(paused.state, BuildState::Paused);
    let told = task(&tasks, "T-2").reason.clone().unwrap();
    assert!(told.contains("does not pass its check yet"), "{told}");
    assert_eq!(project.calls(), calls, "a person decides first");
    open.answer_about_build("build-on-top").await;
    let (build, _) = succeeded(&open, spec).await;
    assert!(project.calls() > calls, "a model went on from it");
    let head = build.head.as_ref().unwrap().as_str();
    open.git(&["merge-base", "--is-ancestor", &theirs, head]);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_task_puts_on_the_branch_is_no_fix_by_hand() {
    let project = project();
    let open = project.open().await;
    let (spec, build) = left_to_a_person(&open).await;
    // What a task leaves there that lands while this one begins.
    let message = format!("Do more\n\nRopewalk-Execution: {}", build.id);
    commit_with(&open, &message, &[("T-3.txt", "good\n")]);
    let calls = project.calls();
    retry(&open, &build, None).await;
    open.until(spec, |_, tasks| {
        task(tasks, "T-2").state == TaskState::Complete
    })
    .await;
    assert!(project.calls() > calls, "a model was asked");
    let attempts = open.attempts(build.id, "T-2").await;
    let told = attempts.last().unwrap().summary.as_deref();
    assert!(
        told.is_none_or(|told| !told.starts_with("Made by hand")),
        "{told:?}"
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fix_that_the_build_went_on_upon_already_needs_no_model_either() {
    let project = project();
    let open = project.open().await;
    let (spec, build) = left_to_a_person(&open).await;
    let theirs = commit(&open, &[("T-2.txt", "good\n")]);
    // What another landing finds on the branch, and what a person says of it.
    open.change_build(build.id, |build| {
        build.head = Some(theirs.parse().unwrap());
        build.published.clone_from(&build.head);
    })
    .await;
    let calls = project.calls();
    retry(&open, &build, None).await;
    let (_, tasks) = succeeded(&open, spec).await;
    assert_eq!(project.calls(), calls, "no model was asked");
    assert_eq!(
        task(&tasks, "T-2").commit.as_ref().unwrap().as_str(),
        theirs
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fix_by_hand_of_what_judges_is_asked_about_and_lands_as_it_is() {
    let lesson = "check.sh of this repository greps for good alone";
    let input = json!({ "summary": "Done.", "lesson": { "text": lesson } });
    let rules = writes("T-2", "T-2.txt", "fine\n", None)
        .replace("input: { summary: \"Done.\" }", &format!("input: {input}"));
    let project = Project::new(&rules)
        .with(|options| options.tries.tries = 1)
        .with_files(&[("check.sh", "grep -q good T-2.txt\n")]);
    let open = project.open().await;
    let plan = json!([{
        "id": "T-2", "phase": "api", "action": "CREATE", "file": "T-2.txt",
        "validation": { "command": "sh check.sh", "expected": "exit 0" },
    }]);
    let spec = open.approve(plan).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    open.answer("T-2", "manual").await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Failed)
        .await;
    let check = ("check.sh", "grep -q fine T-2.txt\n");
    let theirs = commit(&open, &[("T-2.txt", "fine\n"), check]);
    let calls = project.calls();
    retry(&open, &build, None).await;
    open.until(spec, |_, tasks| {
        task(tasks, "T-2").state == TaskState::Waiting && task(tasks, "T-2").question.is_some()
    })
    .await;
    let asked = open.questions("protected_files").await;
    assert!(asked[0].text.contains("+grep -q fine"), "{}", asked[0].text);
    open.answer("T-2", "allow").await;
    let (_, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    let landed = task(&tasks, "T-2").commit.as_ref();
    assert_eq!(landed.map(ToString::to_string), Some(theirs));
    assert_eq!(project.calls(), calls, "no model was asked");
    let learned = open.services.store.list::<KnowledgeItem>(Query::new());
    let learned = learned.await.unwrap();
    let is_of_model = learned.iter().any(|item| item.content == lesson);
    assert!(!is_of_model, "a model learned nothing from it: {learned:?}");
    open.close().await;
}
