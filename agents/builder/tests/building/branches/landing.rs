//! Landing a build in a branch of the user: after the builds that it builds on, and checked once.

use ropewalk_builder::land::{LandError, LandRequest, Way};
use ropewalk_schemas::build::{Build, BuildState, Followed};
use ropewalk_schemas::{BuildId, SpecId};
use serde_json::{Value, json};

use crate::world::house::{House, Open, writes};
use crate::world::meeting::MeetingGate;

fn create(id: &str, file: &str) -> Value {
    json!([{
        "id": id, "phase": "api", "action": "CREATE", "file": file,
        "validation": { "command": format!("test -s {file}"), "expected": "exit 0" },
    }])
}

async fn built(open: &Open, plan: Value) -> (SpecId, Build) {
    let spec = open.approve(plan).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    (spec, build)
}

fn by_ada(build: BuildId) -> LandRequest {
    LandRequest {
        build,
        into: None,
        push: None,
        by: "ada".to_owned(),
    }
}

/// Two builds, of which the second one builds on the first.
async fn follower(open: &Open) -> (Build, Build) {
    let (_, first) = built(open, create("T-1", "a.txt")).await;
    let (_, second) = built(open, create("T-2", "b.txt")).await;
    let followed = Followed {
        build: first.id,
        commit: first.head.clone().unwrap(),
    };
    open.change_build(second.id, |build| build.follows = vec![followed.clone()])
        .await;
    (first, second)
}

fn three_files() -> String {
    [
        writes("T-1", "a.txt", "good\n", None),
        writes("T-2", "b.txt", "good\n", None),
        writes("T-3", "c.txt", "good\n", None),
    ]
    .concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_is_landed_after_the_build_that_it_builds_on() {
    let house = House::new(&three_files());
    let open = house.open().await;
    let (first, second) = follower(&open).await;
    let lander = house.lander().await;
    let main = open.git(&["rev-parse", "main"]);
    let refused = lander.land(&open.context, &by_ada(second.id)).await;
    match refused {
        Err(LandError::Follows { build, .. }) => assert_eq!(build, first.id),
        other => panic!("its forerunner is not landed: {other:?}"),
    }
    assert_eq!(open.git(&["rev-parse", "main"]), main);
    lander.land(&open.context, &by_ada(first.id)).await.unwrap();
    let second = lander.land(&open.context, &by_ada(second.id)).await;
    assert_eq!(second.unwrap().way, Way::Merge);
    assert_eq!(open.git(&["show", "main:b.txt"]), "good");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_can_land_where_the_work_that_it_builds_on_is_already() {
    let house = House::new(&three_files());
    let open = house.open().await;
    let (first, second) = follower(&open).await;
    // The row of the first build never says that it was landed: a later revision went on from it.
    open.git(&[
        "merge",
        "-q",
        "--no-ff",
        "-m",
        "by other ways",
        &first.branch,
    ]);
    let lander = house.lander().await;
    let second = lander.land(&open.context, &by_ada(second.id)).await;
    assert_eq!(second.unwrap().way, Way::Merge);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_lands_a_follower_too_early_is_told_of_the_revision_that_goes_on() {
    let house = House::new(&three_files());
    let open = house.open().await;
    let (first, second) = follower(&open).await;
    let (_, later) = built(&open, create("T-3", "c.txt")).await;
    open.change_build(first.id, |build| build.continued_by = Some(later.id))
        .await;
    let lander = house.lander().await;
    match lander.land(&open.context, &by_ada(second.id)).await {
        Err(LandError::Follows { build, .. }) => assert_eq!(build, later.id),
        other => panic!("its forerunner is not landed: {other:?}"),
    }
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_gate_saw_of_a_merge_is_kept_though_the_build_changed_meanwhile() {
    let gate = MeetingGate::new();
    let project_file = gate.project_file("true", "true");
    let house = House::new(&three_files()).with_files(&[("ropewalk.toml", &project_file)]);
    let open = house.open().await;
    let (spec, build) = built(&open, create("T-1", "a.txt")).await;
    std::fs::write(house.repo().join("other.txt"), "other\n").unwrap();
    open.git(&["add", "."]);
    open.git(&["commit", "-q", "-m", "other work"]);
    gate.hold();
    open.answer_about_build("merge").await;
    gate.until_begun(1).await;
    open.change_build(build.id, |_| {}).await;
    gate.release();
    let (build, _) = open.until(spec, |build, _| build.merged.is_some()).await;
    let merge = build.merged.unwrap();
    let seen = open.evidence(build.id).await;
    assert!(
        seen.iter().any(|seen| seen.commit == merge),
        "the merge was seen by the gate"
    );
    open.close().await;
}
