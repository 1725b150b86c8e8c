//! What a person is asked about a file that the build of another branch owns, by how that stands.

use ropewalk_schemas::Payload;
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::payload::ChangeRequested;
use ropewalk_schemas::question::Choice;
use ropewalk_schemas::task::{Action, ChangeRequest, ChangeRequestState, Task, TaskState};

use crate::pm::pm;
use crate::world::{WatchWorld, build, build_id, id, noon, path, task};

/// A task of the first build waits for a file of the second, which stands as `owner` does.
async fn asked(owner: &Build) -> WatchWorld {
    let world = WatchWorld::open().await;
    let waiting = Task {
        state: TaskState::Waiting,
        change_requests: vec![ChangeRequest {
            file: path("b.ts"),
            owner: owner.id,
            state: ChangeRequestState::Requested,
            reason: None,
            requested_at: noon(),
            decided_at: None,
            commit: None,
        }],
        ..task(1, "T-001", "b.ts", Action::Update)
    };
    world.lay(&build(1), &[waiting]).await;
    world.lay(owner, &[]).await;
    world
        .put(&Ownership {
            path: path("b.ts"),
            build: owner.id,
            since: noon(),
            ended: false,
            after: None,
        })
        .await;
    let requested = ChangeRequested {
        build_id: build_id(1),
        task_id: id("T-001"),
        owner: owner.id,
        file: path("b.ts"),
        change: "it changes it".to_owned(),
    };
    world.give(&pm(), Payload::ChangeRequested(requested)).await;
    world
}

#[tokio::test]
async fn nobody_is_advised_to_wait_for_a_build_that_goes_on_by_itself_no_more() {
    use BuildState::{Failed, Paused, Running, Stopped, Succeeded};
    for (state, pause_reason, rests) in [
        (Running, None, false),
        (Succeeded, None, false),
        (Paused, Some(PauseReason::Quota), false),
        (Paused, Some(PauseReason::Person), true),
        (Stopped, None, true),
        (Failed, None, true),
    ] {
        let owner = Build {
            state,
            pause_reason,
            branch: "build/walks".to_owned(),
            ..build(2)
        };
        let world = asked(&owner).await;
        let question = world.open_question().await.unwrap();
        let told = format!("of `build/walks`, whose build is {state}");
        assert_eq!(question.text.contains(&told), rests, "{}", question.text);
        let best = |choice: &&Choice| choice.recommended;
        let best = question.choices.iter().find(best);
        let best = best.map(|choice| choice.id.as_str());
        assert_eq!(best, (!rests).then_some("wait"), "{state}");
    }
}
