//! A revision is planned on what the build of the one before has left, not on a tree that lacks it.

use std::time::Duration;

use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::document::tasks_md;
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::payload::SpecApproved;
use ropewalk_schemas::specification::SpecState;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, CommitId, CorrelationId, Priority, SpecId};
use ropewalk_store::{ChangeSet, Query};
use serde_json::{Value, json};

use super::house::{House, user};
use super::specification::{BRIEF, README, rule, small_plan};
use ropewalk_desk::specifications;

/// Plays the build of the first revision: each task made its file.
async fn built(house: &House, spec: SpecId, head: CommitId, merged: Option<CommitId>) {
    let now = house.clock.now();
    let ended_by_landing = merged.is_some();
    let ended = |build| Build {
        state: BuildState::Succeeded,
        head: Some(head.clone()),
        merged,
        completed_at: Some(now),
        ..build
    };
    let build = begin(house, spec, 3, ended).await;
    let mut changes = ChangeSet::new();
    for task in house.revision(spec, 1).await.tasks {
        changes.insert(&Ownership {
            path: task.file,
            build,
            since: now,
            ended: ended_by_landing,
            after: None,
        });
    }
    house.store().commit(changes).await.unwrap();
}

/// Plays a build of the first revision, of which so many tasks have landed and the next one runs.
async fn begin(
    house: &House,
    spec: SpecId,
    landed: u32,
    as_it_is: impl FnOnce(Build) -> Build,
) -> BuildId {
    let revision = house.revision(spec, 1).await;
    let approval = SpecApproved {
        spec_id: spec,
        idea_slug: house.spec(spec).await.idea.clone(),
        user_slug: user("ann"),
        revision: 1,
        hash: revision.hash.clone(),
        approved_by: user("ann"),
        priority: Priority::DEFAULT,
        price: None,
    };
    let id = BuildId(house.services.ids.next());
    let now = house.clock.now();
    let build = as_it_is(Build::queued(id, &approval, CorrelationId(id.0), now));
    let mut changes = ChangeSet::new();
    changes.insert(&build);
    for (number, block) in (1..).zip(revision.tasks.clone()) {
        let done = number <= landed;
        let next = number == landed + 1 && build.head.is_some();
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
    house.store().commit(changes).await.unwrap();
    id
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

/// A house whose first revision was built on a branch; the head of that, and the script of its planner.
async fn revised(merged: bool) -> (House, SpecId) {
    let look = "- {agent: specification, task: revision-2, turn: 1, contains: ['## What Was Built of Revision 1', '`T-001` complete', \
        '- `T-001`, `T-003` were told: Bark in C, too.', 'src/ (3 files'], reply: {tools: [{name: read, input: {path: src/a.rs}}]}}\n";
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
    let house = House::new(&script).await;
    let idea = house.idea("pets", &[README, BRIEF]).await;
    let spec = house.specify(&idea).await;
    let files = [("a", "T-001"), ("b", "T-002"), ("c", "T-003")];
    let files =
        files.map(|(name, task)| (format!("src/{name}.rs"), format!("// made by {task}\n")));
    let head = house.commit_apart(&files, merged).await;
    built(&house, spec, head.clone(), merged.then_some(head)).await;
    specifications::revise(&house.person(), spec, &user("ann"), "It should bark.")
        .await
        .unwrap();
    assert_eq!(house.settle().await, []);
    (house, spec)
}

#[tokio::test]
async fn a_revision_is_planned_on_what_its_build_left_and_keeps_what_landed() {
    for merged in [false, true] {
        let (house, spec) = revised(merged).await;
        let record = house.spec(spec).await;
        assert_eq!(record.state, SpecState::Generated, "{:?}", record.reason);
        assert_eq!(house.calls(), 3, "nothing was sent back");
        let revision = house.revision(spec, 2).await;
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
        let written = house
            .folder("pets")
            .read("build/tasks.md")
            .unwrap()
            .unwrap();
        let written = tasks_md::parse(&written).unwrap();
        assert_eq!((written.header().total, written.header().completed), (4, 3));
        let asked = house.open_questions().await.remove(0);
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
    let (house, spec) = revised(true).await;
    assert_eq!(house.spec(spec).await.requests(), [""; 0]);
    specifications::revise(&house.person(), spec, &user("ann"), "It should meow.")
        .await
        .unwrap();
    assert_eq!(house.settle().await, []);
    let record = house.spec(spec).await;
    assert_eq!((record.revision, record.fulfilled), (3, 2), "{record:?}");
}

#[tokio::test]
async fn a_build_that_failed_is_not_told_to_go_on_while_its_last_word_is_waited_for() {
    let script = rule("task: revision-1", &small_plan("Pets"))
        + &rule(
            "task: revision-2, contains: ['Nothing of the build goes on, since what is left of it failed']",
            &one_more(),
        );
    let house = House::new(&script).await;
    let idea = house.idea("pets", &[README, BRIEF]).await;
    let spec = house.specify(&idea).await;
    let build = begin(&house, spec, 0, |build| Build {
        state: BuildState::Running,
        ..build
    })
    .await;
    let tasks = Query::new().equal("build", build.to_string());
    let tasks = house.store().list::<Task>(tasks).await.unwrap();
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
    house.store().commit(changes).await.unwrap();
    specifications::revise(&house.person(), spec, &user("ann"), "It should bark.")
        .await
        .unwrap();
    assert_eq!(house.settle().await, []);
    let record = house.spec(spec).await;
    assert_eq!(record.revision, 2, "{:?}", record.reason);
}

#[tokio::test]
async fn an_idea_is_told_to_others_by_the_word_that_lists_show() {
    let script = rule("idea: pets", &small_plan("Pets"))
        + &rule(
            "idea: boats, contains: ['- `pets` (generated)']",
            &small_plan("Boats"),
        );
    let house = House::new(&script).await;
    let pets = house.idea("pets", &[README, BRIEF]).await;
    house.specify(&pets).await;
    let boats = house.idea("boats", &[README, BRIEF]).await;
    let planned = house.specify(&boats).await;
    let planned = house.spec(planned).await;
    assert_eq!(planned.state, SpecState::Generated, "{:?}", planned.reason);
}

#[tokio::test]
async fn an_idea_of_which_a_build_is_merged_is_told_to_others_as_landed() {
    let script = rule("idea: pets", &small_plan("Pets"))
        + &rule(
            "idea: boats, contains: ['- `pets` (landed)']",
            &small_plan("Boats"),
        );
    let house = House::new(&script).await;
    let pets = house.idea("pets", &[README, BRIEF]).await;
    let spec = house.specify(&pets).await;
    let files = [("docs/pets.md".to_owned(), "pets\n".to_owned())];
    let head = house.commit_apart(&files, true).await;
    built(&house, spec, head.clone(), Some(head)).await;
    let boats = house.idea("boats", &[README, BRIEF]).await;
    let planned = house.specify(&boats).await;
    let planned = house.spec(planned).await;
    assert_eq!(planned.state, SpecState::Generated, "{:?}", planned.reason);
}

#[tokio::test]
async fn a_revision_is_planned_on_what_stands_while_its_build_goes_on() {
    let script = rule("task: revision-1", &small_plan("Pets"))
        + &rule(
            "task: revision-2, contains: ['## What Was Built of Revision 1', 'It goes on while you plan', '`T-003` working', 'src/ (2 files']",
            &one_more(),
        );
    let house = House::new(&script).await;
    let idea = house.idea("pets", &[README, BRIEF]).await;
    let spec = house.specify(&idea).await;
    let files = [("a", "T-001"), ("b", "T-002")];
    let files =
        files.map(|(name, task)| (format!("src/{name}.rs"), format!("// made by {task}\n")));
    let head = house.commit_apart(&files, false).await;
    let before = begin(&house, spec, 2, |build| Build {
        state: BuildState::Running,
        head: Some(head),
        ..build
    })
    .await;
    // One that waits for it has nothing yet.
    house.clock.advance(Duration::from_secs(1));
    begin(&house, spec, 0, |build| Build {
        continues: Some(before),
        ..build
    })
    .await;
    specifications::revise(&house.person(), spec, &user("ann"), "It should bark.")
        .await
        .unwrap();
    assert_eq!(house.settle().await, []);
    let record = house.spec(spec).await;
    assert_eq!(record.state, SpecState::Generated, "{:?}", record.reason);
    assert_eq!(house.calls(), 2, "nothing was sent back");
    let price = record.price.clone().unwrap();
    assert!(price.basis.contains("each of 2 tasks"), "{}", price.basis);
}
