//! Learns from why people reject specifications.

use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::payload::SpecRejected;
use ropewalk_schemas::{Payload, SpecId};

use crate::workshop::Workshop;
use crate::world::{build, build_id, types};

#[tokio::test]
async fn why_a_person_rejected_a_specification_is_a_candidate_that_a_second_one_strengthens() {
    let workshop = Workshop::open("[]").await;
    let reason = "Keep the walks in one file; nobody here wants a database server for them.";
    let rejected = |spec: u128, by: &str| {
        Payload::SpecRejected(SpecRejected {
            spec_id: SpecId(build_id(spec).0),
            idea_slug: build(1).idea,
            rejected_by: by.to_owned(),
            reason: reason.to_owned(),
        })
    };
    let give = |payload| workshop.world.give(&workshop.improvement, payload);
    // Whoever writes specifications and cannot says so as a component.
    assert_eq!(give(rejected(7, "test")).await, []);
    assert_eq!(
        types(&give(rejected(7, "ada")).await),
        ["knowledge.recorded"]
    );
    assert_eq!(give(rejected(7, "ada")).await, []);
    let items = workshop.world.list::<KnowledgeItem>().await;
    let [item] = &items[..] else {
        panic!("{items:?}")
    };
    assert_eq!(
        (item.state, item.kind, item.content.as_str()),
        (KnowledgeState::Candidate, KnowledgeKind::Preference, reason)
    );
    give(rejected(8, "bob")).await;
    let item = workshop.item(item.id).await;
    assert_eq!(item.executions.len(), 2);
}
