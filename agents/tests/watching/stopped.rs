//! A build that a person stopped: what its review costs, and what it holds against it.

use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::payload::ReviewCompleted;
use ropewalk_schemas::task::{Action, Task, TaskState};
use ropewalk_schemas::{Payload, TaskId};

use crate::workshop::{FINDINGS, Workshop, landed};
use crate::world::{attempt_at, task};

/// A build of two tasks that a person stopped before the second was begun; the first was, if `is_begun`.
async fn stopped(is_begun: bool) -> (Workshop, Vec<Payload>) {
    let workshop = Workshop::open(FINDINGS).await;
    let attempts = if is_begun {
        vec![landed(1)]
    } else {
        Vec::new()
    };
    let first = workshop.built(&attempts).await;
    let pending = |task: Task| Task {
        state: TaskState::Pending,
        attempts: 0,
        reason: Some("pending; the build was stopped before it".to_owned()),
        ..task
    };
    let first = if is_begun { first } else { pending(first) };
    let second = pending(task(1, "T-002", "src/flat.rs", Action::Create));
    let done = workshop.world.list::<Build>().await.remove(0);
    let ended = Build {
        state: BuildState::Stopped,
        stop: Some(StopCause::Person),
        ..done
    };
    workshop.world.lay(&ended, &[first, second]).await;
    let told = workshop.review().await;
    (workshop, told)
}

#[tokio::test]
async fn a_stop_before_any_task_had_begun_costs_no_call_and_misses_nothing() {
    let (workshop, told) = stopped(false).await;
    assert_eq!(workshop.world.list::<ModelCall>().await, []);
    let review = workshop.only_review().await;
    assert_eq!(review.missed(), 0, "{:?}", review.divergences);
    assert_eq!(review.patterns, []);
    let [
        Payload::ReviewCompleted(ReviewCompleted {
            requirements_missed: 0,
            deviations: 0,
            ..
        }),
    ] = told.as_slice()
    else {
        panic!("{told:?}");
    };
    assert_eq!(workshop.review().await, [], "once all the same");
}

#[tokio::test]
async fn what_was_done_before_a_stop_is_reviewed_and_what_was_not_begun_is_no_miss() {
    let (workshop, _) = stopped(true).await;
    assert_ne!(workshop.world.list::<ModelCall>().await, []);
    let review = workshop.only_review().await;
    assert_eq!(review.patterns.len(), 1);
    let second = TaskId::parse("T-002").unwrap();
    let of_second = |task: &Option<TaskId>| task.as_ref() == Some(&second);
    let mut divergences = review.divergences.iter();
    assert!(!divergences.any(|one| of_second(&one.task)), "{review:?}");
}

#[tokio::test]
async fn what_a_build_gave_up_on_is_missed_though_nobody_began_it() {
    for cause in [StopCause::Failures, StopCause::WorkingTime] {
        let workshop = Workshop::open("[]").await;
        let first = workshop.built(&[]).await;
        let failed = Task {
            state: TaskState::Failed,
            attempts: 1,
            ..first
        };
        workshop.world.put(&attempt_at(&failed, 1, "loop-1")).await;
        let second = Task {
            state: TaskState::Pending,
            ..task(1, "T-002", "src/flat.rs", Action::Create)
        };
        let done = workshop.world.list::<Build>().await.remove(0);
        let ended = Build {
            state: BuildState::Stopped,
            stop: Some(cause),
            ..done
        };
        workshop.world.lay(&ended, &[failed, second]).await;
        workshop.review().await;
        assert_eq!(workshop.only_review().await.missed(), 2, "{cause:?}");
    }
}
