//! A revision is planned on what the build of the one before has left, not on a tree that lacks it.

use std::time::Duration;

use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::document::tasks_md;
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::payload::SpecApproved;
use ropewalk_schemas::specification::SpecState;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, CommitId, CorrelationId, Priority, SpecId, TaskId};
use ropewalk_store::{ChangeSet, Query};
use serde_json::{Value, json};

use super::specification::{BRIEF, README, rule, small_plan};
use super::world::{IdeaWorld, user};
use ropewalk_desk::specifications;

/// Plays the build of the first revision: each task made its file.
async fn built(world: &IdeaWorld, spec: SpecId, head: CommitId, merged: Option<CommitId>) {
    let now = world.clock.now();
    let ended_by_landing = merged.is_some();
    let ended = |build| Build {
        state: BuildState::Succeeded,
        head: Some(head.clone()),
        merged,
        completed_at: Some(now),
        ..build
    };
    let build = begin(world, spec, 3, ended).await;
    let mut changes = ChangeSet::new();
    for task in world.revision(spec, 1).await.tasks {
        changes.insert(&Ownership {
            path: task.file,
            build,
            since: now,
            ended: ended_by_landing,
            after: None,
        });
    }
    world.store().commit(changes).await.unwrap();
}

/// Plays a build of the first revision, of which so many tasks have landed and the next one runs.
async fn begin(
    world: &IdeaWorld,
    spec: SpecId,
    landed: u32,
    as_it_is: impl FnOnce(Build) -> Build,
) -> BuildId {
    let revision = world.revision(spec, 1).await;
    let approval = SpecApproved {
        spec_id: spec,
        idea_slug: world.spec(spec).await.idea.clone(),
        user_slug: user("ann"),
        revision: 1,
        hash: revision.hash.clone(),
        approved_by: user("ann"),
        priority: Priority::DEFAULT,
        price: None,
    };
    let id = BuildId(world.services.ids.next());
    let now = world.clock.now();
    let build = as_it_is(Build::queued(id, &approval, CorrelationId(id.0), now));
    let mut changes = ChangeSet::new();
    changes.insert(&build);
    for (number, block) in (1..).zip(revision.tasks.clone()) {
        let done = number <= landed;
        let next = number == landed + 1 && build.head.is_some();
        if done {
            changes.insert(&attempt(world, id, &block.id));
        }
        // Nothing was said of the work that took the place of the first.
        if done && number == 3 {
            changes.insert(&Attempt {
                number: 2,
                summary: None,
                ..attempt(world, id, &block.id)
            });
        }
        changes.insert(&Task {
            state: match (done, next) {
                (true, _) => TaskState::Complete,
                (_, true) => TaskState::Working,
                _ => TaskState::Pending,
            },
            commit: build.head.clone().filter(|_| done),
            guidance: match number {
                1 | 3 => vec!["Bark in C, too.".to_owned()],
                _ => Vec::new(),
            },
            ..Task::planned(id, number, block)
        });
    }
    world.store().commit(changes).await.unwrap();
    id
}

/// Returns the attempt by which a task landed.
fn attempt(world: &IdeaWorld, build: BuildId, task: &TaskId) -> Attempt {
    let now = world.clock.now();
    let attempt = json!({
        "id": world.services.ids.next(), "build": build, "task": task, "number": 1, "loop_name": "loop-1",
        "state": AttemptState::Landed, "token": 1, "base": "a".repeat(40), "summary": format!("Done,\nsays {task}."),
        "tokens": 0, "started_at": now, "ended_at": now,
    });
    serde_json::from_value(attempt).unwrap()
}

/// Returns the small plan with one task more, on a file that it makes.
fn one_more() -> Value {
    let mut plan = small_plan("Pets");
    plan["document"]["requirements"].as_array_mut().unwrap().push(json!({
        "id": "FR-2", "text": "it barks", "priority": "must", "acceptance": "it does", "source": "planning/brief.md",
    }));
    plan["tasks"].as_array_mut().unwrap().push(json!({
        "id": "T-004", "phase": "types", "action": "UPDATE", "file": "src/a.rs", "depends_on": ["T-001"],
        "requirements": [{ "id": "FR-2", "text": "it barks" }],
        "validation": { "command": "grep -qs barks src/a.rs", "expected": "exit 0" },
    }));
    plan
}

/// A world whose first revision was built on a branch; the head of that, and the script of its planner.
async fn revised(merged: bool) -> (IdeaWorld, SpecId) {
    let look = "- {agent: specification, task: revision-2, turn: 1, contains: ['## What Was Built of Revision 1', '`T-001` complete', \
        '; said of it: Done, says T-002.', \"create `src/c.rs`: it holds\\n\", '- `T-001`, `T-003` were told: Bark in C, too.', 'src/ (3 files'], reply: {tools: [{name: read, input: {path: src/a.rs}}]}}\n";
    let script = rule("task: revision-1", &small_plan("Pets"))
        + look
        + &rule(
            "task: revision-2, turn: 2, contains: ['made by T-001']",
            &one_more(),
        )
        + &rule(
            "task: revision-3, contains: [\"## Requested Changes\\n- It should meow.\"]",
            &one_more(),
        );
    let world = IdeaWorld::new(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let files = [("a", "T-001"), ("b", "T-002"), ("c", "T-003")];
    let files =
        files.map(|(name, task)| (format!("src/{name}.rs"), format!("// made by {task}\n")));
    let head = world.commit_apart(&files, merged).await;
    built(&world, spec, head.clone(), merged.then_some(head)).await;
    specifications::revise(&world.person(), spec, &user("ann"), "It should bark.")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    (world, spec)
}

#[tokio::test]
async fn a_revision_is_planned_on_what_its_build_left_and_keeps_what_landed() {
    for merged in [false, true] {
        let (world, spec) = revised(merged).await;
        let record = world.spec(spec).await;
        assert_eq!(record.state, SpecState::Generated, "{:?}", record.reason);
        assert_eq!(world.calls(), 3, "nothing was sent back");
        let revision = world.revision(spec, 2).await;
        assert_eq!(
            revision.validation, [""; 0],
            "what landed is not tried again"
        );
        assert_eq!(revision.tasks.len(), 4);
        let notes: Vec<_> = revision
            .tasks
            .iter()
            .filter_map(|task| task.notes.clone())
            .collect();
        assert_eq!(notes, [""; 0], "its own build keeps nothing from it");
        let kept: Vec<&str> = revision.kept.iter().map(AsRef::as_ref).collect();
        assert_eq!(kept, ["T-001", "T-002", "T-003"]);
        let written = world
            .folder("pets")
            .read("build/tasks.md")
            .unwrap()
            .unwrap();
        let written = tasks_md::parse(&written).unwrap();
        assert_eq!((written.header().total, written.header().completed), (4, 3));
        let asked = world.open_questions().await.remove(0);
        let checks = &asked.context;
        assert!(
            checks.contains("# T-003, done already\n") && checks.contains("# T-004\n"),
            "{checks}"
        );
        let price = record.price.clone().unwrap();
        assert!(price.basis.contains("each of 1 task"), "{}", price.basis);
    }
}

#[tokio::test]
async fn a_request_that_a_revision_was_made_for_is_not_made_again() {
    let (world, spec) = revised(true).await;
    assert_eq!(world.spec(spec).await.requests(), [""; 0]);
    specifications::revise(&world.person(), spec, &user("ann"), "It should meow.")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    let record = world.spec(spec).await;
    assert_eq!((record.revision, record.fulfilled), (3, 2), "{record:?}");
}

#[tokio::test]
async fn a_build_that_failed_is_not_told_to_go_on_while_its_last_word_is_waited_for() {
    let script = rule("task: revision-1", &small_plan("Pets"))
        + &rule(
            "task: revision-2, contains: ['Nothing of the build goes on, since what is left of it failed']",
            &one_more(),
        );
    let world = IdeaWorld::new(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let build = begin(&world, spec, 0, |build| Build {
        state: BuildState::Running,
        ..build
    })
    .await;
    let tasks = Query::new().equal("build", build.to_string());
    let tasks = world.store().list::<Task>(tasks).await.unwrap();
    let mut changes = ChangeSet::new();
    for (row, state) in
        tasks
            .iter()
            .zip([TaskState::Failed, TaskState::Blocked, TaskState::Blocked])
    {
        let after = Task {
            state,
            ..row.record.clone()
        };
        changes.update(row, &after);
    }
    world.store().commit(changes).await.unwrap();
    specifications::revise(&world.person(), spec, &user("ann"), "It should bark.")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    let record = world.spec(spec).await;
    assert_eq!(record.revision, 2, "{:?}", record.reason);
}

#[tokio::test]
async fn an_idea_is_told_to_others_by_the_word_that_lists_show() {
    let script = rule("idea: pets", &small_plan("Pets"))
        + &rule(
            "idea: boats, contains: ['- `pets` (generated)']",
            &small_plan("Boats"),
        );
    let world = IdeaWorld::new(&script).await;
    let pets = world.idea("pets", &[README, BRIEF]).await;
    world.specify(&pets).await;
    let boats = world.idea("boats", &[README, BRIEF]).await;
    let planned = world.specify(&boats).await;
    let planned = world.spec(planned).await;
    assert_eq!(planned.state, SpecState::Generated, "{:?}", planned.reason);
}

#[tokio::test]
async fn an_idea_of_which_a_build_is_merged_is_told_to_others_as_landed() {
    let script = rule("idea: pets", &small_plan("Pets"))
        + &rule(
            "idea: boats, contains: ['- `pets` (landed)']",
            &small_plan("Boats"),
        );
    let world = IdeaWorld::new(&script).await;
    let pets = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&pets).await;
    let files = [("docs/pets.md".to_owned(), "pets\n".to_owned())];
    let head = world.commit_apart(&files, true).await;
    built(&world, spec, head.clone(), Some(head)).await;
    let boats = world.idea("boats", &[README, BRIEF]).await;
    let planned = world.specify(&boats).await;
    let planned = world.spec(planned).await;
    assert_eq!(planned.state, SpecState::Generated, "{:?}", planned.reason);
}

#[tokio::test]
async fn a_revision_is_planned_on_what_stands_while_its_build_goes_on() {
    let script = rule("task: revision-1", &small_plan("Pets"))
        + &rule(
            "task: revision-2, contains: ['## What Was Built of Revision 1', 'It goes on while you plan', '`T-003` working', 'src/ (2 files']",
            &one_more(),
        );
    let world = IdeaWorld::new(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let files = [("a", "T-001"), ("b", "T-002")];
    let files =
        files.map(|(name, task)| (format!("src/{name}.rs"), format!("// made by {task}\n")));
    let head = world.commit_apart(&files, false).await;
    let before = begin(&world, spec, 2, |build| Build {
        state: BuildState::Running,
        head: Some(head),
        ..build
    })
    .await;
    // One that waits for it has nothing yet.
    world.clock.advance(Duration::from_secs(1));
    begin(&world, spec, 0, |build| Build {
        continues: Some(before),
        ..build
    })
    .await;
    specifications::revise(&world.person(), spec, &user("ann"), "It should bark.")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    let record = world.spec(spec).await;
    assert_eq!(record.state, SpecState::Generated, "{:?}", record.reason);
    assert_eq!(world.calls(), 2, "nothing was sent back");
    let price = record.price.clone().unwrap();
    assert!(price.basis.contains("each of 2 tasks"), "{}", price.basis);
}
