//! The check of a build as a whole: alone with its products, and ended with whoever asked for it.

use std::time::Duration;

use ropewalk_builder::Shape;
use ropewalk_builder::land::{LandRequest, Way};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::WaitReason;
use ropewalk_schemas::{Payload, Subject};
use serde_json::json;

use crate::plans::two_builds::{create, land, update};
use crate::world::meeting::MeetingGate;
use crate::world::project::{Project, request, writes};
use crate::world::script::{Step, append, steps};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_checks_of_one_build_leave_each_others_products_alone() {
    let rules = writes("T-1", "a.txt", "T-1\n", None);
    let gate = MeetingGate::new();
    let project_file = gate.project_file(
        "mkdir -p $CARGO_TARGET_DIR && touch $CARGO_TARGET_DIR/made",
        "test -e $CARGO_TARGET_DIR/made",
    );
    let project = Project::new(&rules).with_files(&[("ropewalk.toml", &project_file)]);
    let open = project.open().await;
    let spec = open.approve(json!([update("T-1", "a.txt")])).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    // Two branches that each need a merge of their own.
    for branch in ["stable", "main"] {
        if branch == "stable" {
            open.git(&["checkout", "-q", "-b", branch]);
        } else {
            open.git(&["checkout", "-q", branch]);
        }
        std::fs::write(project.repo().join(format!("{branch}.txt")), "other\n").unwrap();
        open.git(&["add", "."]);
        open.git(&["commit", "-q", "-m", "other work"]);
    }
    let lander = project.lander().await;
    let into = |branch: &str| LandRequest {
        build: build.id,
        into: Some(branch.to_owned()),
        push: None,
        shape: Shape::default(),
        by: "ada".to_owned(),
    };
    let (main, stable) = (into("main"), into("stable"));
    gate.hold();
    let first = async {
        let outcome = lander.land(&open.context, &main).await;
        // Only now, that the first has tidied up, does the second look for what it made.
        gate.release();
        outcome
    };
    let second = async {
        gate.until_begun(1).await;
        lander.land(&open.context, &stable).await
    };
    let meeting = async {
        gate.until_begun(2).await;
        gate.let_go(1);
    };
    let (first, second, ()) = tokio::join!(first, second, meeting);
    assert_eq!(first.unwrap().way, Way::Merge);
    assert_eq!(second.unwrap().way, Way::Merge);
    open.close().await;
}

/// Makes the rules of a task that leaves something beside what it builds, and tells what it found there.
fn leaves(task: &str, file: &str) -> String {
    let look = format!("mkdir -p $CARGO_TARGET_DIR && ls $CARGO_TARGET_DIR > {file}");
    let leave = format!("touch $CARGO_TARGET_DIR/of-{task}; echo {task} >> {file}");
    steps(task, &[Step::Shell(look), Step::Shell(leave)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_build_finds_what_the_commands_of_another_one_left() {
    let rules = [
        leaves("A", "a.txt"),
        leaves("B", "b.txt"),
        leaves("C", "c.txt"),
    ];
    let project = Project::new(&rules.concat()).with(|options| options.loops = 1);
    let open = project.open().await;
    let first = json!([create("A", "a.txt"), create("B", "b.txt")]);
    let spec = open.approve(first).await;
    let (first, _) = open.ended(spec).await;
    assert_eq!(first.state, BuildState::Succeeded, "{:?}", first.reason);
    assert_eq!(open.git(&["show", "build/habits:b.txt"]), "of-A\nB");
    let spec = open.approve(json!([create("C", "c.txt")])).await;
    let (second, _) = open.ended(spec).await;
    assert_eq!(second.state, BuildState::Succeeded, "{:?}", second.reason);
    let shown = open.git(&["show", &format!("{}:c.txt", second.branch)]);
    assert_eq!(shown, "C", "nothing was there");
    open.close().await;
    // What was built for a build that has ended is gone once another one is worked on.
    let loops = std::fs::read_dir(project.state().join("work")).unwrap();
    let built = loops.flat_map(|entry| {
        let place = entry.unwrap().path().join("target");
        std::fs::read_dir(place).into_iter().flatten()
    });
    let built = built.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(built.collect::<Vec<_>>(), [second.id.to_string()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_ends_the_check_of_a_head_that_is_joined() {
    let gate = MeetingGate::new();
    let project_file = gate.project_file("true", "true");
    let script = [
        steps("A", &[append("A", "a.ts")]),
        steps("B", &[append("B", "a.ts")]),
    ];
    let project = Project::new(&script.concat())
        .with(|options| options.lease = Duration::from_hours(9))
        .with_files(&[("a.ts", "a\n"), ("ropewalk.toml", &project_file)]);
    let open = project.open().await;
    let first = open.approve(json!([update("A", "a.ts")])).await;
    let (one, _) = open.ended(first).await;
    let second = open.approve(json!([update("B", "a.ts")])).await;
    let (two, _) = open
        .until(second, |_, tasks| {
            tasks
                .iter()
                .any(|task| task.waiting_for == Some(WaitReason::Owner))
        })
        .await;
    gate.hold();
    land(&open, &project, &one).await;
    gate.until_begun(1).await;
    let stop = Payload::BuildStop(request(two.id));
    open.emit(Subject::build(two.id), stop).await;
    let (two, _) = open.ended(second).await;
    assert_eq!(two.state, BuildState::Stopped);
    assert!(two.follows.is_empty(), "nothing was joined");
    open.close().await;
}
