//! Landing a build in a branch of the user: after the builds that it builds on, and checked once.

use ropewalk_builder::Shape;
use ropewalk_builder::land::{LandError, LandRequest, Way};
use ropewalk_desk::builds::landing::comes_along;
use ropewalk_schemas::build::{Build, BuildState, Predecessor, StopCause};
use ropewalk_schemas::task::{ChangeRequest, ChangeRequestState, Task};
use ropewalk_schemas::{BuildId, CommitId, RepoPath, SpecId};
use ropewalk_store::{ChangeSet, Query};
use serde_json::{Value, json};

use crate::world::meeting::MeetingGate;
use crate::world::project::{OpenProject, Project, writes};

fn create(id: &str, file: &str) -> Value {
    json!([{
        "id": id, "phase": "api", "action": "CREATE", "file": file,
        "validation": { "command": format!("test -s {file}"), "expected": "exit 0" },
    }])
}

async fn built(open: &OpenProject, plan: Value) -> (SpecId, Build) {
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
        shape: Shape::default(),
        by: "ada".to_owned(),
    }
}

/// Two builds, of which the second one builds on the first.
async fn follower(open: &OpenProject) -> (Build, Build) {
    let (_, first) = built(open, create("T-1", "a.txt")).await;
    let (_, second) = built(open, create("T-2", "b.txt")).await;
    let followed = Predecessor {
        build: first.id,
        commit: first.head.clone().unwrap(),
    };
    open.change_build(second.id, |build| build.follows = vec![followed.clone()])
        .await;
    (first, second)
}

/// Tries to land a build too early; returns what has to be landed first.
async fn forerunner(project: &Project, open: &OpenProject, build: BuildId) -> BuildId {
    let lander = project.lander().await;
    match lander.land(&open.context, &by_ada(build)).await {
        Err(LandError::Follows { build, .. }) => build,
        other => panic!("its forerunner is not landed: {other:?}"),
    }
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
    let project = Project::new(&three_files());
    let open = project.open().await;
    let (first, second) = follower(&open).await;
    let lander = project.lander().await;
    let main = open.git(&["rev-parse", "main"]);
    assert_eq!(forerunner(&project, &open, second.id).await, first.id);
    assert_eq!(open.git(&["rev-parse", "main"]), main);
    let store = &open.services.store;
    let followed = store.get::<Build>(&second.id.to_string()).await;
    let followed = followed.unwrap().unwrap().into_inner();
    let along = || comes_along(store, &followed);
    assert_eq!(along().await.unwrap(), std::slice::from_ref(&first.branch));
    lander.land(&open.context, &by_ada(first.id)).await.unwrap();
    assert_eq!(along().await.unwrap(), Vec::<String>::new());
    let second = lander.land(&open.context, &by_ada(second.id)).await;
    assert_eq!(second.unwrap().way, Way::Merge);
    assert_eq!(open.git(&["show", "main:b.txt"]), "good");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_builds_that_wait_for_each_other_whichever_is_wanted_is_landed_first() {
    let project = Project::new(&three_files());
    let open = project.open().await;
    let (first, second) = follower(&open).await;
    let (_, third) = built(&open, create("T-3", "c.txt")).await;
    let lander = project.lander().await;
    // The first build waits for a file of a third one, which builds on nobody.
    let asked = |owner| ChangeRequest {
        file: RepoPath::parse("b.txt").unwrap(),
        owner,
        state: ChangeRequestState::Requested,
        reason: None,
        requested_at: first.created_at,
        decided_at: None,
        commit: None,
    };
    let store = &open.services.store;
    let of_first = Query::new().equal("build", first.id);
    let task = store.list::<Task>(of_first).await.unwrap().remove(0);
    let mut waiting = task.record.clone();
    waiting.change_requests = vec![asked(third.id)];
    let mut changes = ChangeSet::new();
    changes.update(&task, &waiting);
    store.commit(changes).await.unwrap();
    assert_eq!(forerunner(&project, &open, second.id).await, first.id);
    // The third one builds on the second: now each waits for the next.
    let followed = Predecessor {
        build: second.id,
        commit: second.head.clone().unwrap(),
    };
    open.change_build(third.id, |build| build.follows = vec![followed.clone()])
        .await;
    lander
        .land(&open.context, &by_ada(second.id))
        .await
        .unwrap();
    assert_eq!(open.git(&["show", "main:b.txt"]), "good");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_can_land_where_the_work_that_it_builds_on_is_already() {
    let project = Project::new(&three_files());
    let open = project.open().await;
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
    let lander = project.lander().await;
    let second = lander.land(&open.context, &by_ada(second.id)).await;
    assert_eq!(second.unwrap().way, Way::Merge);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_of_a_build_that_was_given_up_waits_for_nobody() {
    let project = Project::new(&three_files());
    let open = project.open().await;
    let (first, second) = follower(&open).await;
    for (cause, waits) in [(StopCause::Person, true), (StopCause::Abandoned, false)] {
        open.change_build(first.id, |build| {
            build.state = BuildState::Stopped;
            build.stop = Some(cause);
        })
        .await;
        if waits {
            assert_eq!(forerunner(&project, &open, second.id).await, first.id);
        }
    }
    let lander = project.lander().await;
    let merged = lander.land(&open.context, &by_ada(second.id)).await;
    assert_eq!(merged.unwrap().way, Way::FastForward);
    assert_eq!(open.git(&["show", "main:b.txt"]), "good");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_lands_a_follower_too_early_is_told_of_the_revision_that_goes_on() {
    let project = Project::new(&three_files());
    let open = project.open().await;
    let (first, second) = follower(&open).await;
    let (_, later) = built(&open, create("T-3", "c.txt")).await;
    open.change_build(first.id, |build| build.continued_by = Some(later.id))
        .await;
    assert_eq!(forerunner(&project, &open, second.id).await, later.id);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_gate_saw_of_a_merge_is_kept_though_the_build_changed_meanwhile() {
    let gate = MeetingGate::new();
    let project_file = gate.project_file("true", "true");
    let project = Project::new(&three_files()).with_files(&[("ropewalk.toml", &project_file)]);
    let open = project.open().await;
    let (spec, build) = built(&open, create("T-1", "a.txt")).await;
    std::fs::write(project.repo().join("other.txt"), "other\n").unwrap();
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

/// Lands a build of two tasks in a shape, where `main` went on meanwhile if that is wanted.
async fn shaped(shape: Shape, moved: bool) -> (Project, OpenProject, Build, Way) {
    let project = Project::new(&three_files().replacen("Done.", "Said it in a.txt.", 1));
    let open = project.open().await;
    let mut plan = create("T-1", "a.txt");
    plan.as_array_mut()
        .unwrap()
        .extend(create("T-2", "b.txt").as_array().unwrap().clone());
    let (_, build) = built(&open, plan).await;
    if moved {
        std::fs::write(project.repo().join("other.txt"), "other\n").unwrap();
        open.git(&["add", "."]);
        open.git(&["commit", "-q", "-m", "other work"]);
    }
    let request = LandRequest {
        shape,
        ..by_ada(build.id)
    };
    let landed = project.lander().await.land(&open.context, &request).await;
    let way = landed.unwrap().way;
    (project, open, build, way)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_squashed_landing_is_one_commit_of_all_tasks() {
    for moved in [false, true] {
        let shape = Shape {
            squash: true,
            ..Shape::default()
        };
        let (_project, open, build, way) = shaped(shape, moved).await;
        assert_eq!(way, Way::Squash);
        let log = open.git(&["log", "--format=%s", "main"]);
        assert_eq!(log.lines().next(), Some("Habits"));
        assert_eq!(log.lines().count(), 2 + usize::from(moved), "{log}");
        let message = open.git(&["log", "-1", "--format=%B", "main"]);
        let told =
            "T-1: create a.txt\n\nSaid it in a.txt.\n\nT-2: create b.txt\n\nDone.\n\nRopewalk-";
        assert!(message.contains(told), "{message}");
        assert!(message.contains(&build.id.to_string()));
        for file in ["a.txt", "b.txt", "ideas/habits/README.md"] {
            open.git(&["cat-file", "-e", &format!("main:{file}")]);
        }
        let checked = open.evidence(build.id).await;
        let main = open.git(&["rev-parse", "main"]);
        let seen = checked.iter().any(|seen| seen.commit.as_str() == main);
        assert_eq!(seen, moved, "only what no gate has seen is checked");
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_landing_without_ideas_leaves_their_folder_out_and_is_seen_by_the_gate() {
    for squash in [false, true] {
        let shape = Shape {
            squash,
            without_ideas: true,
        };
        let (_project, open, build, way) = shaped(shape, false).await;
        assert_eq!(way, if squash { Way::Squash } else { Way::Merge });
        let files = open.git(&["ls-tree", "-r", "--name-only", "main"]);
        assert_eq!(files, "CLAUDE.md\nREADME.md\na.txt\nb.txt");
        let main = open.git(&["rev-parse", "main"]);
        let checked = open.evidence(build.id).await;
        assert!(checked.iter().any(|seen| seen.commit.as_str() == main));
        let row = open
            .services
            .store
            .get::<Build>(&build.id.to_string())
            .await;
        let merged = row.unwrap().and_then(|row| row.record.merged);
        assert_eq!(merged.as_ref().map(CommitId::as_str), Some(main.as_str()));
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_to_land_takes_the_shape_of_the_configuration() {
    let project = Project::new(&three_files()).with(|options| {
        options.landing = Shape {
            squash: true,
            without_ideas: true,
        };
    });
    let open = project.open().await;
    let (spec, _) = built(&open, create("T-1", "a.txt")).await;
    open.answer_about_build("merge").await;
    open.until(spec, |build, _| build.merged.is_some()).await;
    let files = open.git(&["ls-tree", "-r", "--name-only", "main"]);
    assert_eq!(files, "CLAUDE.md\nREADME.md\na.txt");
    assert_eq!(open.git(&["rev-list", "--count", "main"]), "2");
    open.close().await;
}
