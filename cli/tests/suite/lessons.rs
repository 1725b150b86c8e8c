//! What was learned is listed, and what came of a build is shown with its lessons.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::review::{Divergence, DivergenceClass, Review, ReviewKind};
use ropewalk_schemas::{BuildId, ContentHash, KnowledgeId, ReviewId, Slug};
use serde_json::json;
use uuid::Uuid;

use crate::world::World;

#[test]
fn what_was_learned_is_listed_by_kind_the_newest_first() {
    let world = World::scripted();
    assert_eq!(world.json("knowledge list"), json!([]));
    world.run("knowledge add Rivers flood in spring so keep the tables apart");
    world.run("knowledge add --kind pattern Walks are stored by day and never by hour");
    let all = world.json("knowledge list");
    let kinds: Vec<&str> = all.as_array().unwrap().iter().map(kind).collect();
    assert_eq!(kinds, ["pattern", "gotcha"]);
    let gotchas = world.json("knowledge list --kind gotcha");
    let [gotcha] = gotchas.as_array().unwrap().as_slice() else {
        panic!("{gotchas}");
    };
    assert_eq!(
        gotcha["content"],
        "Rivers flood in spring so keep the tables apart"
    );
    let shown = world.run("knowledge list");
    assert!(shown.contains("Walks are stored by day"), "{shown}");
}

fn kind(item: &serde_json::Value) -> &str {
    item["kind"].as_str().unwrap()
}

#[test]
fn a_review_is_shown_by_its_own_id_or_that_of_its_build() {
    let world = World::scripted();
    let added = world.json("knowledge add Rivers flood in spring so keep the tables apart");
    let lesson: KnowledgeId = serde_json::from_value(added["id"].clone()).unwrap();
    let (review, build) = (Uuid::from_u128(7), Uuid::from_u128(8 << 96));
    world.commit(|changes| {
        changes.insert(&succeeded(BuildId(build)));
        changes.insert(&Review {
            id: ReviewId(review),
            kind: ReviewKind::Build,
            idea: Slug::parse("walks").unwrap(),
            build: Some(BuildId(build)),
            spec: None,
            gotchas: vec![lesson],
            patterns: Vec::new(),
            divergences: vec![Divergence {
                class: DivergenceClass::ScopeCreep,
                file: Some("a.txt".to_owned()),
                task: None,
                requirement: None,
                planned: "a list".to_owned(),
                actual: "a map".to_owned(),
            }],
            metrics: BTreeMap::from([("first_pass_success".to_owned(), 0.5)]),
            notes: vec!["Mind the rivers.".to_owned()],
            ended_at: None,
            head: None,
            at: DateTime::UNIX_EPOCH,
        });
    });
    let shown = world.json(&format!("review show {review}"));
    assert_eq!(
        (&shown["build"], &shown["lessons"][0]["id"]),
        (&json!(build), &added["id"])
    );
    let text = world.run(&format!("review show {review}"));
    for wanted in [
        "scope-creep a.txt: planned a list, done a map",
        "Rivers flood in spring",
        "note: Mind the rivers.",
        "tasks that passed at the first try: 50 %\n",
    ] {
        assert!(text.contains(wanted), "`{wanted}` is missing in {text}");
    }
    assert!(!text.contains("first_pass_success"), "{text}");
    let measured = &shown["metrics"]["first_pass_success"];
    assert_eq!(measured, &json!(0.5));
    assert_eq!(world.json(&format!("review show {build}")), shown);
    let other = Uuid::from_u128(9);
    let said = world.refused(&format!("review show {other}"), 1);
    assert!(said.contains("no review is called"), "{said}");
}

#[test]
fn reviews_are_listed_the_newest_first_and_by_idea() {
    let world = World::scripted();
    assert_eq!(world.json("review list"), json!([]));
    for idea in ["walks", "lakes"] {
        world.run(&format!("idea new Steps --slug {idea}"));
    }
    let mut walks = objections_to(BuildId(Uuid::from_u128(8)));
    let mut lakes = walks.clone();
    walks.idea = Slug::parse("walks").unwrap();
    lakes.idea = Slug::parse("lakes").unwrap();
    lakes.id = ReviewId(Uuid::from_u128(9));
    lakes.at = walks.at + TimeDelta::hours(1);
    world.commit(|changes| {
        changes.insert(&walks);
        changes.insert(&lakes);
    });
    assert_eq!(world.json("review list"), json!([lakes, walks]));
    assert_eq!(world.json("review list --idea walks"), json!([walks]));
    let shown = world.run("review list --idea lakes");
    let row = format!("lakes  build {}  2  ", Uuid::from_u128(8));
    assert!(shown.contains(&row), "{row}: {shown}");
    assert!(!shown.contains("walks"), "{shown}");
}

#[test]
fn a_build_that_nobody_has_reviewed_says_so() {
    let world = World::scripted();
    world.run("idea list");
    let build = Uuid::from_u128(8 << 96);
    world.commit(|changes| {
        changes.insert(&succeeded(BuildId(build)));
    });
    let said = world.refused(&format!("review show {build}"), 1);
    assert!(
        said.contains("was not reviewed; a review follows"),
        "{said}"
    );
}

/// A build as it stands when it has ended well.
fn succeeded(id: BuildId) -> Build {
    let build = json!({
        "id": id, "spec": Uuid::from_u128(1), "revision": 1, "hash": ContentHash::of(b"walks"), "idea": "walks",
        "user": "ada", "state": "succeeded", "pause_requested": false, "branch": "build/walks", "target": "main",
        "priority": 5, "working_ms": 0, "correlation_id": Uuid::from_u128(2), "created_at": DateTime::UNIX_EPOCH,
    });
    serde_json::from_value(build).unwrap()
}

/// What a review holds against this build.
pub(crate) fn objections_to(build: BuildId) -> Review {
    let review = json!({
        "id": Uuid::from_u128(7), "kind": "build", "idea": "walks", "build": build, "at": "2200-01-01T00:00:00Z",
        "divergences": [
            { "class": "missed-requirement", "task": "T-001", "requirement": "FR-6", "planned": "help names both",
                "actual": "it names one" },
            { "class": "deviation", "task": "T-002", "planned": "one pass", "actual": "two" },
            { "class": "enhancement", "planned": "a list", "actual": "a map" },
        ],
    });
    serde_json::from_value(review).unwrap()
}

#[test]
fn what_a_review_holds_against_a_build_is_told_beside_what_was_shown() {
    let world = World::scripted();
    world.run("idea list");
    let build = BuildId(Uuid::from_u128(8 << 96));
    world.commit(|changes| {
        changes.insert(&succeeded(build));
    });
    let show = format!("build show {build}");
    let shown = world.json(&show);
    assert_eq!(
        (shown.get("objections"), &shown["reviewed"]),
        (None, &json!("missing"))
    );
    let said = world.run(&show);
    let line = "\nreview     nobody has reviewed it as it stands\n";
    assert!(said.contains(line), "{said}");
    world.commit(|changes| {
        changes.insert(&objections_to(build));
    });
    let told =
        "the review holds FR-6 of T-001 for missed: planned help names both, done it names one";
    let worse = "the review holds T-002 for worse than planned: planned one pass, done two";
    assert_eq!(
        world.json(&show)["objections"],
        json!([
            { "review": Uuid::from_u128(7), "requirement": "FR-6", "task": "T-001", "told": told },
            { "review": Uuid::from_u128(7), "task": "T-002", "told": worse },
        ])
    );
    let said = world.run(&show);
    let named = format!("but {told}\nbut {worse}\n`ropewalk review show {build}` shows all of it");
    assert!(said.contains(&named), "{said}");
    // With the same first digits as two other reviews, the build is meant.
    let began = |id: u128| {
        let mut review = serde_json::to_value(objections_to(build)).unwrap();
        review["id"] = json!(Uuid::from_u128(8 << 96 | id));
        review["kind"] = json!("specification");
        review.as_object_mut().unwrap().remove("build");
        serde_json::from_value::<Review>(review).unwrap()
    };
    world.commit(|changes| {
        changes.insert(&began(1));
        changes.insert(&began(2));
    });
    let digits = &build.to_string()[..8];
    let said = world.run(&format!("review show {digits}"));
    let listed = "missed-requirement FR-6 of T-001: planned help names both, done it names one";
    assert!(said.contains(listed), "{said}");
}

#[test]
fn what_was_held_against_an_end_that_was_taken_back_is_told_no_more() {
    let world = World::scripted();
    world.run("idea list");
    let id = BuildId(Uuid::from_u128(9 << 96));
    let show = format!("build show {id}");
    world.commit(|changes| {
        changes.insert(&objections_to(id));
    });
    let review = format!("`ropewalk review show {}` shows", &id.to_string()[28..]);
    let earlier = format!("nobody has reviewed it as it stands; {review} that of an earlier end\n");
    for (state, ended, is_told, line) in [
        ("running", None, false, None),
        (
            "succeeded",
            Some("2200-01-02T00:00:00Z"),
            false,
            Some(earlier),
        ),
        (
            "succeeded",
            Some("2200-01-01T00:00:00Z"),
            true,
            Some(format!("{review} what it found\n")),
        ),
    ] {
        let mut build = serde_json::to_value(succeeded(id)).unwrap();
        build["state"] = json!(state);
        build["completed_at"] = json!(ended);
        let build: Build = serde_json::from_value(build).unwrap();
        world.commit(|changes| {
            changes.put(&build);
        });
        let shown = world.json(&show);
        assert_eq!(shown.get("objections").is_some(), is_told, "{shown}");
        let said = world.run(&show);
        assert_eq!(said.contains("for missed"), is_told, "{said}");
        let told = said.split_once("\nreview     ").map(|(_, rest)| rest);
        let line = line.as_deref();
        assert_eq!(told.is_some(), line.is_some(), "{said}");
        assert!(
            told.unwrap_or_default()
                .starts_with(line.unwrap_or_default()),
            "{said}"
        );
    }
}
