//! A task of the build resolves what stands against landing it.

use std::collections::BTreeSet;
use std::time::Duration;

use ropewalk_builder::Shape;
use ropewalk_builder::land::LandRequest;
use ropewalk_desk::builds::landing::{self, Landing, LandingError};
use ropewalk_desk::people::Person;
use ropewalk_runtime::Clock;
use ropewalk_schemas::advice::Advice;
use ropewalk_schemas::attempt::{FailureClass, Verdict};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::person::Right;
use ropewalk_schemas::task::{Action, Task, TaskState};
use ropewalk_schemas::{TaskId, UserSlug};
use ropewalk_store::ChangeSet;
use serde_json::{Value, json};

use crate::world::house::{House, OpenHouse, task, writes};
use crate::world::script::{append_and_meet, steps};

const MARKS: &str = "<<<<<<< ours\ngood\n=======\nmine\n>>>>>>> theirs\n";

/// A house whose builder writes `a.txt`, and `resolved` into it where it is to resolve a conflict.
fn house(resolved: &str) -> House {
    let rules = [
        writes("T-1", "a.txt", "good\n", None),
        writes("MERGE-1", "a.txt", resolved, None),
    ];
    House::new(&rules.concat()).with(|options| options.tries.tries = 1)
}

/// A task that writes `a.txt`.
fn plan() -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
        "validation": { "command": "grep -q good a.txt", "expected": "exit 0" },
    }])
}

/// A build that has succeeded, whose target holds another `a.txt` meanwhile, and a file beside it.
async fn in_conflict(house: &House) -> (OpenHouse, Build) {
    let open = house.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    std::fs::write(house.repo().join("a.txt"), "mine\n").unwrap();
    std::fs::write(house.repo().join("beside.txt"), "beside\n").unwrap();
    open.git(&["add", "."]);
    open.git(&["commit", "-q", "-m", "mine"]);
    (open, build)
}

/// Answers that the branch be merged, and that a task resolve what stands against it.
async fn let_it_be_resolved(open: &OpenHouse, build: &Build) {
    open.answer_about_build("merge").await;
    open.until(build.spec, |build, _| {
        let reason = build.reason.as_deref().unwrap_or_default();
        reason.starts_with("not landed") && build.question.is_some()
    })
    .await;
    open.answer_about_build("resolve").await;
}

/// Waits until the task that resolves is in a state and the build rests.
async fn resolved(open: &OpenHouse, build: &Build, wanted: TaskState) -> (Build, Task) {
    let (build, tasks) = open
        .until(build.spec, |build, tasks| {
            let rests = matches!(build.state, BuildState::Succeeded | BuildState::Paused);
            rests
                && tasks
                    .iter()
                    .any(|task| task.joins.is_some() && task.state == wanted)
        })
        .await;
    (build, task(&tasks, "MERGE-1").clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_resolves_a_conflict_under_the_gate_and_the_branch_lands() {
    let house = house("good\nmine\n");
    let (open, build) = in_conflict(&house).await;
    let (ours, theirs) = (
        build.head.clone().unwrap(),
        open.git(&["rev-parse", "main"]),
    );
    let_it_be_resolved(&open, &build).await;
    let (build, merge) = resolved(&open, &build, TaskState::Complete).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let commit = merge.commit.unwrap();
    let parents = open.git(&["show", "-s", "--format=%P", commit.as_str()]);
    assert_eq!(parents, format!("{ours} {theirs}"));
    let seen = open.evidence(build.id).await;
    let of_merge = seen.iter().find(|seen| seen.commit == commit).unwrap();
    assert_eq!(of_merge.verdict, Verdict::Passed);
    let told = house.prompts("MERGE-1").concat();
    let theirs_told = format!("- {} mine", &theirs[..12]);
    for part in ["<<<<<<<", "good", "mine", "a.txt", &theirs_told] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let notes = merge.block.notes.unwrap();
    let (_, sides) = notes.split_once("\n\n").unwrap();
    assert!(
        sides.find("good") < sides.find("mine"),
        "ours above theirs, as in the checkout: {notes}"
    );
    open.answer_about_build("merge").await;
    let (build, _) = open
        .until(build.spec, |build, _| build.merged.is_some())
        .await;
    assert_eq!(
        open.git(&["rev-parse", "main"]),
        build.merged.unwrap().as_str()
    );
    assert_eq!(open.git(&["show", "main:a.txt"]), "good\nmine");
    assert_eq!(open.git(&["show", "main:beside.txt"]), "beside");
    assert_eq!(open.git(&["status", "--porcelain"]), "");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_allows_of_a_joined_test_lands_as_it_was_shown() {
    let (good, mine) = ("test -f a.txt\ngood\n", "test -f a.txt\nmine\n");
    let rules = [
        writes("T-1", "tests/check.sh", good, None),
        writes(
            "MERGE-1",
            "tests/check.sh",
            "test -f a.txt\ngood mine\n",
            None,
        ),
    ];
    let clock = Clock::manual(Clock::system().now());
    let house = House::new(&rules.concat())
        .with_files(&[("tests/check.sh", "test -f a.txt\n")])
        .at_the_time_of(&clock);
    let open = house.open().await;
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": "tests/check.sh",
        "validation": { "command": "grep -q good tests/check.sh", "expected": "exit 0" },
    }]);
    let spec = open.approve(plan).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    std::fs::write(house.repo().join("tests/check.sh"), mine).unwrap();
    open.git(&["commit", "-q", "-a", "-m", "mine"]);
    let_it_be_resolved(&open, &build).await;
    let (build, _) = resolved(&open, &build, TaskState::Waiting).await;
    clock.advance(Duration::from_mins(5));
    open.answer("MERGE-1", "allow").await;
    let (_, merge) = resolved(&open, &build, TaskState::Complete).await;
    assert_eq!(merge.attempts, 1, "the try that was shown");
    assert_eq!(house.prompts("MERGE-1").len(), 1, "no model is asked again");
    let landed = open.git(&["show", "build/habits:tests/check.sh"]);
    assert_eq!(landed, "test -f a.txt\ngood mine");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_come_in_by_another_way_is_no_models_to_join() {
    let place = tempfile::tempdir().unwrap();
    let (begun, go) = (place.path().join("begun"), place.path().join("go"));
    let script = steps("T-1", &[append_and_meet("good", "a.txt", &begun, &go)]);
    let house = House::new(&script);
    let open = house.open().await;
    let spec = open.approve(plan()).await;
    let (build, tasks) = open
        .until(spec, |_, tasks| tasks[0].state == TaskState::Working)
        .await;
    // What it is to join, its branch stands on already.
    let mut block = task(&tasks, "T-1").block.clone();
    block.id = TaskId::parse("MERGE-1").unwrap();
    block.action = Action::Update;
    let merge = Task {
        joins: build.base.clone(),
        ..Task::planned(build.id, 2, block)
    };
    let mut changes = ChangeSet::new();
    changes.insert(&merge);
    open.services.store.commit(changes).await.unwrap();
    std::fs::write(&go, "").unwrap();
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let merge = task(&tasks, "MERGE-1");
    assert_eq!((merge.state, merge.tries), (TaskState::Complete, 0));
    assert!(house.prompts("MERGE-1").is_empty(), "no model was asked");
    assert!(merge.failures.is_empty(), "{:?}", merge.failures);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflict_marks_that_are_left_behind_never_land() {
    let house = house(MARKS);
    let (open, build) = in_conflict(&house).await;
    let (head, main) = (build.head.clone(), open.git(&["rev-parse", "main"]));
    let_it_be_resolved(&open, &build).await;
    let (build, merge) = resolved(&open, &build, TaskState::Failed).await;
    let failure = merge.failures.last().unwrap();
    assert_eq!(
        failure.class,
        FailureClass::ValidationFailed,
        "{}",
        failure.error
    );
    assert_eq!((build.head, merge.commit), (head, None));
    assert_eq!(open.git(&["rev-parse", "main"]), main);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verb_that_meets_a_conflict_offers_the_same() {
    let house = house("good\nmine\n");
    let (open, build) = in_conflict(&house).await;
    let lander = house.lander().await;
    let request = LandRequest {
        build: build.id,
        into: None,
        push: None,
        shape: Shape::default(),
        by: "ada".to_owned(),
    };
    let refused = lander.land(&open.context, &request).await.unwrap_err();
    let offer = format!("`ropewalk build land {} --resolve`", build.id);
    let next = refused.next().unwrap_or_default();
    assert!(next.contains(&offer), "{next}");
    let ada = Person {
        name: UserSlug::parse("ada").unwrap(),
        roles: BTreeSet::new(),
        rights: BTreeSet::from([Right::Land]),
    };
    landing::land(&open.context, &build, Landing::Resolve, &ada)
        .await
        .unwrap();
    let (build, _) = resolved(&open, &build, TaskState::Complete).await;
    lander.land(&open.context, &request).await.unwrap();
    assert_eq!(open.git(&["show", "main:a.txt"]), "good\nmine");
    let build = open.build(build.spec).await.unwrap();
    let late = landing::land(&open.context, &build, Landing::Resolve, &ada).await;
    assert!(
        matches!(late, Err(LandingError::Already { .. })),
        "{late:?}"
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_marks_can_show_is_not_offered_to_a_task() {
    let house = house("good\n").with_files(&[("a.txt", "before\n")]);
    let (open, build) = in_conflict(&house).await;
    open.git(&["rm", "-q", "a.txt"]);
    open.git(&["commit", "-q", "-m", "away with it"]);
    open.answer_about_build("merge").await;
    open.until(build.spec, |build, _| {
        let reason = build.reason.as_deref().unwrap_or_default();
        reason.starts_with("not landed") && build.question.is_some()
    })
    .await;
    let [question] = open.questions("landing_refused").await.try_into().unwrap();
    let choices = question.choices.iter().map(|choice| choice.id.as_str());
    assert_eq!(choices.collect::<Vec<_>>(), ["try-again", "leave"]);
    open.close().await;
}
