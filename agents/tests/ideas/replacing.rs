//! A requirement of a revision that takes the place of one of the revision before.

use ropewalk_desk::specifications;
use ropewalk_desk::views::specification;
use ropewalk_schemas::RequirementId;
use ropewalk_schemas::document::spec_md;
use serde_json::{Value, json};

use super::specification::{BRIEF, README, rule, small_plan};
use super::world::{IdeaWorld, user};

/// Returns the small plan, all of it for a requirement that takes the place of `old`.
fn replacing(old: &str) -> Value {
    let mut plan = small_plan("Pets");
    plan["document"]["requirements"][0]["id"] = json!("FR-2");
    plan["document"]["requirements"][0]["replaces"] = json!(old);
    for task in plan["tasks"].as_array_mut().unwrap() {
        task["requirements"][0]["id"] = json!("FR-2");
    }
    plan
}

#[tokio::test]
async fn a_requirement_that_takes_the_place_of_one_that_stood_is_shown_as_such() {
    let sent_back = "task: revision-2, attempt: 2, contains: ['`FR-9`, which is not known: the revision before has FR-1']";
    let changed = "task: revision-3, contains: ['\"replaces\":\"FR-1\"']";
    let script = [
        rule("task: revision-1", &small_plan("Pets")),
        rule("task: revision-2, attempt: 1", &replacing("FR-9")),
        rule(sent_back, &replacing("FR-1")),
        // What was replaced once stays so in the revisions that follow.
        rule(changed, &replacing("FR-1")),
    ]
    .concat();
    let world = IdeaWorld::new(&script).await;
    let idea = world.idea("pets", &[README, BRIEF]).await;
    let spec = world.specify(&idea).await;
    for words in ["It is another one", "Once more"] {
        specifications::revise(&world.person(), spec, &user("ann"), words)
            .await
            .unwrap();
        assert_eq!(world.settle().await, []);
    }
    let record = world.spec(spec).await;
    assert_eq!(record.revision, 3, "{:?}", record.reason);
    let old = RequirementId::parse("FR-1").ok();
    for number in [2, 3] {
        let revision = world.revision(spec, number).await;
        assert_eq!(revision.document.requirements[0].replaces, old);
    }
    let folder = world.folder("pets");
    let written = folder.read("build/spec.md").unwrap().unwrap();
    let (_, document) = spec_md::parse(&written).unwrap();
    assert_eq!(document.requirements[0].replaces, old, "{written}");
    let compared = specification::compare(world.store(), &record, Some(1), Some(2)).await;
    let difference = compared.unwrap().difference;
    assert!(difference.contains("\n+  Replaces: FR-1\n"), "{difference}");
}
