//! What stands is changed in what changes alone, where the model hands it in.

use ropewalk_desk::people::Person;
use ropewalk_desk::specifications;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::specification::SpecState;
use ropewalk_schemas::{Priority, RepoPath};
use ropewalk_store::{ChangeSet, Query};
use serde_json::json;

use super::specification::{BRIEF, OWNER, README, foreign, rule, small_plan};
use super::world::{IdeaWorld, user};

#[tokio::test]
async fn a_revision_says_what_changes_alone_and_is_taken_at_once() {
    let change = json!({
        "amends": true, "document": { "title": "Subtract" },
        "tasks": [{ "id": "T-001", "title": "Subtract numbers" }],
    });
    let script = rule("task: revision-1", &small_plan("Pets"))
        + &rule(
            "task: revision-2, turn: 1, contains: ['Fewer words']",
            &change,
        );
    let world = IdeaWorld::new(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    specifications::revise(&world.person(), spec, &user("ann"), "Fewer words")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    let record = world.spec(spec).await;
    assert_eq!(
        (record.state, record.revision),
        (SpecState::Generated, 2),
        "{record:?}"
    );
    let revision = world.revision(spec, 2).await;
    assert_eq!(revision.document.title, "Subtract");
    assert_eq!(revision.document.objective, "Owners book sitters");
    let titles = revision.tasks.iter().map(|task| task.title.as_deref());
    assert_eq!(
        titles.collect::<Vec<_>>(),
        [Some("Subtract numbers"), None, None]
    );
    assert_eq!(world.calls(), 2);
}

#[tokio::test]
async fn what_was_refused_by_its_form_is_mended_by_what_was_wrong_alone() {
    let mut faulty = small_plan("Pets");
    let file = faulty["tasks"][1].as_object_mut().unwrap().remove("file");
    let mended = json!({ "amends": true, "tasks": [{ "id": "T-002", "file": file }] });
    let told = "turn: 2, contains: ['task T-002', 'missing field `file`']";
    let script = rule("turn: 1", &faulty) + &rule(told, &mended);
    let world = IdeaWorld::new(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let record = world.spec(spec).await;
    assert_eq!(record.state, SpecState::Generated, "{:?}", record.reason);
    assert_eq!(world.revision(spec, 1).await.tasks.len(), 3);
    assert_eq!(world.calls(), 2);
}

#[tokio::test]
async fn whose_a_file_was_is_no_word_of_the_planner_and_is_said_anew_in_each_revision() {
    let script = rule("task: revision-1", &small_plan("Pets"))
        + &rule(
            "task: revision-2, contains: ['is owned by build']",
            &small_plan("Owned"),
        )
        + &rule(
            "task: revision-2",
            &json!({ "amends": true, "document": { "title": "More" } }),
        );
    let world = IdeaWorld::new(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let mut changes = ChangeSet::new();
    let owned = Ownership {
        path: RepoPath::parse("src/a.rs").unwrap(),
        build: OWNER,
        since: world.clock.now(),
        ended: false,
        after: None,
    };
    changes.insert(&owned);
    changes.insert(&foreign());
    world.store().commit(changes).await.unwrap();
    let spec = world.specify(&idea).await;
    let notes = async |number| {
        let tasks = world.revision(spec, number).await.tasks;
        tasks.into_iter().find_map(|task| task.notes)
    };
    let remark = format!("`src/a.rs` is owned by build {OWNER}.");
    assert_eq!(notes(1).await, Some(remark));
    let mut changes = ChangeSet::new();
    changes.put(&Ownership {
        ended: true,
        ..owned
    });
    world.store().commit(changes).await.unwrap();
    specifications::revise(&world.person(), spec, &user("ann"), "More")
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    let revision = world.revision(spec, 2).await;
    assert_eq!(revision.document.title, "More");
    assert_eq!(notes(2).await, None);
}

#[tokio::test]
async fn a_revision_that_is_put_away_leaves_the_approved_one_as_it_stands() {
    let titled = |title: &str| json!({ "amends": true, "document": { "title": title } });
    let script = rule("task: revision-1", &small_plan("Pets"))
        + &rule("task: revision-2", &titled("More"))
        + &rule(
            "task: revision-3, contains: ['## Revision 1', 'Rather']",
            &titled("Other"),
        );
    let world = IdeaWorld::new(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    let (person, ann) = (world.person(), Person::alone(user("ann")));
    let first = world.spec(spec).await.hash.unwrap();
    specifications::approve(&person, spec, &first, &ann, Priority::DEFAULT)
        .await
        .unwrap();
    assert_eq!(world.settle().await, []);
    let text = world.folder("pets").read("build/spec.md").unwrap().unwrap();
    assert!(
        text.contains("status: approved\n") && text.contains("approved_by: ann\n"),
        "{text}"
    );
    let revise = async |words: &str| {
        specifications::revise(&person, spec, &ann.name, words)
            .await
            .unwrap();
        assert_eq!(world.settle().await, []);
        world.spec(spec).await
    };
    let record = revise("More").await;
    assert_eq!((record.state, record.revision), (SpecState::Generated, 2));
    let second = record.hash.unwrap();
    let state = specifications::reject(&person, spec, &ann, None)
        .await
        .unwrap();
    let late = specifications::approve(&person, spec, &second, &ann, Priority::DEFAULT).await;
    let told = late.unwrap_err().to_string();
    assert!(
        told.ends_with("was rejected, and revision 1 stands approved"),
        "{told}"
    );
    let again = specifications::approve(&person, spec, &first, &ann, Priority::DEFAULT).await;
    let told = again.unwrap_err().to_string();
    assert!(told.contains("was already approved by ann"), "{told}");
    let record = world.spec(spec).await;
    assert_eq!(
        (state, record.state),
        (SpecState::Approved, SpecState::Approved)
    );
    assert_eq!((record.revision, record.hash.as_ref()), (1, Some(&first)));
    assert_eq!(record.price, record.approval.as_ref().unwrap().price);
    assert_eq!(record.reason, None, "nobody said why");
    let taken = world
        .store()
        .list::<KnowledgeItem>(Query::new())
        .await
        .unwrap();
    assert!(taken.is_empty(), "{taken:?}");
    let record = revise("Rather another").await;
    assert_eq!(
        (record.state, record.revision),
        (SpecState::Generated, 3),
        "{record:?}"
    );
    assert_eq!(world.revision(spec, 3).await.document.title, "Other");
    assert_eq!(
        world.revision(spec, 2).await.document.title,
        "More",
        "it is kept"
    );
}
