//! What the page of a specification tells, and where a yes leads that was for an older revision.

use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::specification::{Revision, Specification};
use ropewalk_schemas::{ContentHash, SpecId};
use ropewalk_store::ChangeSet;
use serde_json::{Value, json};

use crate::browser::{Browser, HTML};
use crate::world::{BOB, ServerWorld, answered};

/// Stores revisions of a specification, from 1, with these documents and the same tasks; the last one is its newest. The
/// hash of each is that of its objective.
async fn revise(
    world: &ServerWorld,
    spec: SpecId,
    documents: &[Value],
    tasks: &Value,
    dry_run: &Value,
) {
    let store = &world.services.store;
    let mut changes = ChangeSet::new();
    for (number, document) in (1..).zip(documents) {
        let objective = document["objective"].as_str().unwrap();
        let revision: Revision = serde_json::from_value(json!({
            "spec": spec, "number": number, "hash": ContentHash::of(objective.as_bytes()), "document": document,
            "tasks": tasks, "validation": ["nobody owns `a.txt`"], "dry_run": dry_run,
            "at": world.services.clock.now(),
        }))
        .unwrap();
        changes.put(&revision);
    }
    let newest = documents.last().unwrap()["objective"].as_str().unwrap();
    let found = store.get::<Specification>(&spec.to_string()).await.unwrap();
    let found = found.unwrap();
    let mut after = found.record.clone();
    after.revision = u32::try_from(documents.len()).unwrap();
    after.hash = Some(ContentHash::of(newest.as_bytes()));
    changes.update(&found, &after);
    store.commit(changes).await.unwrap();
}

fn document(objective: &str) -> Value {
    json!({ "title": "Walks", "objective": objective })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_to_an_old_revision_leads_to_all_that_changed_since() {
    let world = ServerWorld::new().await;
    let (spec, _) = world.specified().await;
    let documents = ["Count steps.", "Count strides.", "Count miles."].map(document);
    revise(&world, spec, &documents, &json!([]), &Value::Null).await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let hash = |text: &str| ContentHash::of(text.as_bytes()).to_string();
    let (first, third) = (hash("Count steps."), hash("Count miles."));
    let path = format!("/specifications/{spec}");
    let link = format!("href=\"{path}/difference?from=1&#38;to=3\"");
    let before = world.rows().await;
    for verb in ["approve", "revise", "reject"] {
        let fields = [("hash", first.as_str()), ("text", "No.")];
        let refused = browser
            .send(&format!("{path}/{verb}"), &fields, Some(&proof))
            .await;
        assert_eq!(refused.status, 409, "{verb}: {}", refused.text);
        assert!(refused.text.contains(&link), "{verb}: {}", refused.text);
        let told = "What changed from revision 1 to 3";
        assert!(refused.text.contains(told), "{verb}: {}", refused.text);
    }
    // What nobody was shown has changed into nothing.
    let made_up = [("hash", &*hash("made up"))];
    let refused = browser
        .send(&format!("{path}/approve"), &made_up, Some(&proof))
        .await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert!(!refused.text.contains("/difference?"), "{}", refused.text);
    assert_eq!(world.rows().await, before);
    let page = browser
        .read(&format!("{path}/difference?from=1&to=3"))
        .await;
    for told in [
        "<h1>Revision 1 to 3</h1>",
        "<span class=\"removed\">-Count steps.</span>",
        "<span class=\"added\">+Count miles.</span>",
    ] {
        assert!(page.text.contains(told), "no {told}: {}", page.text);
    }
    assert!(!page.text.contains("strides"), "{}", page.text);
    let newest = [("hash", third.as_str())];
    let taken = browser
        .send(&format!("{path}/approve"), &newest, Some(&proof))
        .await;
    assert_eq!(taken.status, 303, "{}", taken.text);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_is_asked_for_where_the_specification_stands_that_was_approved() {
    let world = ServerWorld::new().await;
    let (spec, _) = world.specified().await;
    revise(&world, spec, &[document("Walk.")], &json!([]), &Value::Null).await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let path = format!("/specifications/{spec}");
    let hash = ContentHash::of(b"Walk.").to_string();
    let form = format!("action=\"{path}/revise\"");
    let (approve, revise) = (format!("{path}/approve"), format!("{path}/revise"));
    let fields = [("hash", hash.as_str()), ("text", "Count strides as well.")];
    let taken = browser.send(&approve, &fields[..1], Some(&proof)).await;
    assert_eq!(taken.status, 303, "{}", taken.text);
    let page = browser.read(&path).await.text;
    assert!(
        page.contains(&form) && page.contains("Ask for more"),
        "{page}"
    );
    let taken = browser.send(&revise, &fields, Some(&proof)).await;
    assert_eq!(taken.status, 303, "{}", taken.text);
    let shown = world.read(&format!("/api{path}")).await;
    assert_eq!(shown["state"], "draft", "{shown}");
    assert_eq!(shown["approval"]["by"], "ada", "{shown}");
    assert_eq!(shown["feedback"], json!(["Count strides as well."]));
    // While that is written, nothing more can be said about the revision before it.
    let page = browser.read(&path).await.text;
    assert!(!page.contains(&form), "{page}");
    world.stop().await;
}

/// Returns a document in which every field says something, and its only task, which heeds `lesson`.
fn rich(lesson: &str) -> (Value, Value) {
    let file = |path: &str, purpose: &str| json!([{ "path": path, "purpose": purpose, "owner": "build/runs" }]);
    let document = json!({
        "title": "Walks", "objective": "Count **steps**.", "context_read": ["planning/brief.md"],
        "missing_inputs": ["ux/colours.md"], "success_criteria": ["a walk is counted"], "out_of_scope": ["swims"],
        "requirements": [{ "id": "FR-1", "text": "It counts.", "priority": "must", "acceptance": "a count is there",
            "source": "planning/needs.md" }],
        "quality": [{ "id": "NFR-1", "text": "It is quick.", "priority": "should", "acceptance": "in a second",
            "source": "", "replaces": "NFR-0" }],
        "new_files": file("new.rs", "holds the count"), "modified_files": file("old.rs", "calls it"),
        "avoid_files": file("not.rs", "is somebody else's"),
        "interfaces": [{ "signature": "fn count() -> u32", "made_by": "T-1", "used_by": [] }],
        "data": ["a walk has a length"], "dependencies": ["the clock of the phone"],
        "new_packages": [{ "manager": "cargo", "name": "steps", "purpose": "to step" }],
        "gotchas": [{ "id": lesson, "text": "mind leap years" }], "validation": ["the whole is walked once"],
        "risks": ["rain"],
    });
    let tasks = json!([{
        "id": "T-1", "phase": "api", "title": "Count the steps", "action": "UPDATE", "file": "old.rs",
        "more_files": ["new.rs"], "read_first": ["first.rs"], "leave_alone": ["the name of it"],
        "requirements": [{ "id": "FR-1", "text": "It counts them." }],
        "gotchas": [{ "id": lesson, "text": "a step is two feet" }],
        "validation": { "command": "cargo test steps", "expected": "exit 0" }, "preserves": true,
        "code_template": "fn count() {}", "depends_on": [], "notes": "Begin on the left.",
    }]);
    (document, tasks)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_specification_tells_all_that_it_holds() {
    let world = ServerWorld::new().await;
    let (spec, _) = world.specified().await;
    let lesson = world.services.ids.next();
    let (document, tasks) = rich(&lesson.to_string());
    let dry_run = json!({ "tasks": 4, "failed": 2, "passed": 1 });
    revise(&world, spec, &[document], &tasks, &dry_run).await;
    let call: ModelCall = serde_json::from_value(json!({
        "key": "one", "role": "spec", "model": "m", "provider": "p", "reply": null, "idea": "walks",
        "input_tokens": 1_234, "output_tokens": 56, "micro_usd": 1_500_000, "at": "2026-03-01T08:00:00Z",
    }))
    .unwrap();
    let mut changes = ChangeSet::new();
    changes.insert(&call);
    world.services.store.commit(changes).await.unwrap();
    let page = Browser::new(&world)
        .await
        .read(&format!("/specifications/{spec}"))
        .await;
    let lesson = format!("href=\"/knowledge/{lesson}\"");
    for told in [
        "Count <strong>steps</strong>.",
        "planning/brief.md",
        "ux/colours.md",
        "a walk is counted",
        "swims",
        "It counts.",
        "a count is there",
        "from planning/needs.md",
        "It is quick.",
        "in place of <span class=\"id\">NFR-0</span>",
        "<code>new.rs</code> holds the count",
        "<code>old.rs</code> calls it",
        "<code>not.rs</code> is somebody else's",
        "owned by build/runs",
        "fn count() -&#62; u32",
        "a walk has a length",
        "the clock of the phone",
        "<code>cargo</code> steps: to step",
        "mind leap years",
        "the whole is walked once",
        "rain",
        "Count the steps",
        "<code>first.rs</code>",
        "leaves alone: the name of it",
        "It counts them.",
        "heeds: a step is two feet",
        "cargo test steps",
        "it changes nothing that its check looks at",
        "fn count() {}",
        "Begin on the left.",
        "warning: nobody owns <code>a.txt</code>",
        "Dry-run: of 4 checks: 2 failed as it is, before the work, as it should; 1 passed as it is, and has to go on to; 1 shows \
         nothing, as a warning says.",
        "The idea used $1.50 so far: 1 call, 1234 tokens in, 56 out.",
        &lesson,
    ] {
        assert!(page.text.contains(told), "no {told}: {}", page.text);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_goes_on_does_not_disappear_from_the_board_behind_a_wish_for_more() {
    let world = ServerWorld::new().await;
    let begun = world
        .send("/api/ideation/sessions", &json!({ "text": "Walks" }))
        .await;
    assert_eq!(begun.status, 201, "{}", begun.text);
    let spec = world.specification().await;
    // It is marked as theirs of whoever may approve it, or do what a question waits for.
    let browser = Browser::new(&world).await;
    let marked = async || {
        let of_bob = world.ask("GET", "/", BOB).header("Accept", HTML);
        let (ada, bob) = (browser.read("/").await.text, answered(of_bob).await.text);
        assert!(bob.contains("waits for an a"), "{bob}");
        [ada, bob].map(|board| board.contains("card yours"))
    };
    assert_eq!(marked().await, [true, false]);
    let build = world.built().await;
    let more = "another revision waits for an approval";
    for (state, href, is_told) in [
        (BuildState::Running, format!("/builds/{build}"), true),
        (BuildState::Succeeded, format!("/builds/{build}"), true),
        (BuildState::Failed, format!("/specifications/{spec}"), false),
    ] {
        world.change(build, |build| build.state = state).await;
        let board = browser.read("/").await.text;
        assert!(board.contains(&href), "{state}: {board}");
        assert_eq!(board.contains(more), is_told, "{state}: {board}");
    }
    world.asked("spec_complete", ["start", "revise"]).await;
    assert_eq!(marked().await, [true, false]);
    world.stop().await;
}
