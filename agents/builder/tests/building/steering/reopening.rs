//! A task that was left out is wanted after all, when its build has succeeded without it.

use ropewalk_schemas::SpecId;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::BuildMerged;
use ropewalk_schemas::question::QuestionState;
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{Payload, Subject};
use ropewalk_store::{DeliveryFilter, DeliveryState};

use super::second_task::{failed, project, retry, retry_as};
use crate::world::project::{OpenProject, request, task};

/// Builds both tasks and leaves the second one out.
async fn succeeded_without(open: &OpenProject) -> (SpecId, Build) {
    let spec = failed(open).await;
    open.answer("T-2", "skip").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(build.reason.as_deref(), Some("1 skipped: `T-2`"));
    assert_eq!(task(&tasks, "T-2").state, TaskState::Skipped);
    (spec, build)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_skipped_task_of_a_succeeded_build_is_tried_again() {
    let project = project();
    let open = project.open().await;
    let (spec, build) = succeeded_without(&open).await;
    retry(&open, &build, Some("write good")).await;
    let (build, tasks) = open
        .until(spec, |build, tasks| {
            build.state == BuildState::Succeeded && task(tasks, "T-2").state == TaskState::Complete
        })
        .await;
    assert_eq!(build.reason, None);
    assert_eq!(task(&tasks, "T-2").guidance, ["write good"]);
    assert_eq!(open.git(&["show", "build/habits:T-2.txt"]), "good");
    let asked = open.questions("build_finished").await;
    let states: Vec<QuestionState> = asked.iter().map(|question| question.state).collect();
    assert_eq!(
        states,
        [QuestionState::Superseded, QuestionState::Pending],
        "it is asked anew what shall become of the branch"
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_skipped_task_of_a_landed_build_is_refused_in_words() {
    let project = project();
    let open = project.open().await;
    let (_, build) = succeeded_without(&open).await;
    let merged = BuildMerged {
        build_id: build.id,
        idea_slug: build.idea.clone(),
        into: "main".to_owned(),
        commit_id: build.head.clone().unwrap(),
        merged_by: "ada".to_owned(),
    };
    open.emit(Subject::build(build.id), Payload::BuildMerged(merged))
        .await;
    open.settled().await;
    retry(&open, &build, Some("write good")).await;
    open.settled().await;
    let filter = DeliveryFilter {
        states: vec![DeliveryState::Dead],
        ..DeliveryFilter::default()
    };
    let dead = open.services.store.deliveries(&filter).await.unwrap();
    let told: Vec<String> = dead.iter().map(|row| format!("{row:?}")).collect();
    assert_eq!(dead.len(), 1, "{told:?}");
    assert!(told[0].contains("ropewalk spec revise"), "{told:?}");
    let tasks = open.tasks(build.id).await;
    assert_eq!(task(&tasks, "T-2").state, TaskState::Skipped);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_that_a_person_stopped_goes_on_for_who_may_let_it_alone() {
    let project = project();
    let open = project.open().await;
    let spec = failed(&open).await;
    let (build, _) = open.until(spec, |_, _| true).await;
    // The stop is done first, though the other try was wanted of a build that still ran.
    let stop = Payload::BuildStop(request(build.id));
    open.emit(Subject::build(build.id), stop).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Stopped);
    retry(&open, &build, Some("write good")).await;
    open.settled().await;
    let stays = open.build(spec).await.unwrap();
    assert_eq!(stays.state, BuildState::Stopped, "{:?}", stays.reason);
    let tasks = open.tasks(build.id).await;
    assert_eq!(task(&tasks, "T-2").guidance, ["write good"], "it is kept");
    retry_as(&open, &build, None, true).await;
    let (_, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    assert_eq!(task(&tasks, "T-2").state, TaskState::Complete);
    open.close().await;
}
