//! A person gives an idea up (V30.5), and says how urgent a build is.

use nix::sys::signal::Signal;

use crate::approvals::{documented, text, until};
use crate::landing::{built, open_questions};
use crate::world::World;

#[test]
fn an_abandoned_idea_is_over_for_every_verb() {
    let world = World::scripted();
    let build = built(&world);
    assert_ne!(world.json("idea list")[0]["state"], "abandoned");
    assert_eq!(open_questions(&world), 1);
    let preview = world.json("idea abandon walks --dry-run");
    assert_eq!(preview["builds"], serde_json::json!([build]));
    assert_eq!(preview["questions"].as_array().unwrap().len(), 1);
    assert_ne!(world.json("idea list")[0]["state"], "abandoned");
    assert_eq!(open_questions(&world), 1);
    let up = world.up();
    let done = world.json("idea abandon walks --yes --reason rain");
    assert_eq!(done["idea"], "walks");
    assert_eq!(world.json("idea list")[0]["state"], "abandoned");
    assert_eq!(world.json("idea show walks")["state"], "abandoned");
    assert_eq!(open_questions(&world), 0);
    let ended = until(&world, &format!("build show {build}"), |build| {
        build["state"] == "stopped"
    });
    assert!(
        text(&ended["reason"]).contains("abandoned by") && text(&ended["reason"]).contains("rain"),
        "{ended}"
    );
    drop(up);
    let said = world.refused("build wait walks", 1);
    assert!(said.contains("is stopped: abandoned by"), "{said}");
    let spec = world.json("spec list");
    let (id, hash) = (text(&spec[0]["id"]), text(&spec[0]["hash"]));
    for line in [
        "idea abandon walks".to_owned(),
        "idea chat walks".to_owned(),
        "spec generate walks --complexity simple".to_owned(),
        format!("spec revise {id} more"),
        format!("spec approve {id} --hash {hash}"),
        format!("build resume {build}"),
    ] {
        let said = world.refused(&line, 1);
        assert!(
            said.contains("the idea `walks` was abandoned"),
            "{line}: {said}"
        );
    }
    for line in [
        format!("build priority {build} 1"),
        format!("build land {build}"),
    ] {
        let said = world.refused(&line, 1);
        assert!(
            said.contains(&build) && said.contains("stopped"),
            "{line}: {said}"
        );
    }
    let said = world.refused("idea abandon nowhere", 1);
    assert!(said.contains("idea list"), "{said}");
}

#[test]
fn who_waits_for_a_specification_is_told_that_its_idea_was_abandoned() {
    let world = World::scripted();
    let script = std::fs::read_to_string(world.root().join("script.yaml")).unwrap();
    let never = "- {agent: specification, reply: {delay_ms: 600000, text: x}}\n";
    world.write("../script.yaml", &format!("{never}{script}"));
    documented(&world, "walks");
    let up = world.up();
    let said = std::thread::scope(|scope| {
        let generate = || world.ropewalk(["spec", "generate", "walks"]).output();
        let waits = scope.spawn(generate);
        until(&world, "spec list", |specs| specs[0]["state"] == "draft");
        world.json("idea abandon walks");
        waits.join().unwrap().unwrap()
    });
    let told = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(1), "{told}");
    assert!(told.contains("the idea `walks` was abandoned"), "{told}");
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}

#[test]
fn a_landed_idea_says_so_and_cannot_be_abandoned() {
    let world = World::scripted();
    let build = built(&world);
    let stands = |expected: &str| {
        for told in ["idea list", "idea show walks"] {
            let said = world.run(told);
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains(" captured "), "{said}");
        }
        assert_eq!(world.json("idea list")[0]["standing"], expected);
        assert_eq!(world.json("idea show walks")["standing"], expected);
    };
    stands("succeeded");
    let said = std::fs::read_to_string(world.root().join("up.log")).unwrap();
    let told: Vec<&str> = said.lines().filter(|line| line.contains("walks")).collect();
    let ended = told.iter().find(|line| line.contains("succeeded, 1 of 1"));
    // What was open before is told as well.
    let since = told.iter().skip_while(|line| !line.contains("succeeded, "));
    let asked = since.filter(|line| line.contains("question answer"));
    // One thing to do next, and that is to answer.
    assert!(
        ended.is_some_and(|line| !line.contains("ropewalk")),
        "{said}"
    );
    assert_eq!(asked.count(), 1, "{said}");
    world.run(&format!("build land {build}"));
    stands("landed");
    assert_eq!(world.json("idea list")[0]["state"], "landed");
    assert_eq!(world.json("idea show walks")["state"], "landed");
    let said = world.refused("idea abandon walks", 1);
    assert!(said.contains("the idea `walks` is landed"), "{said}");
}

#[test]
fn a_build_gets_the_priority_that_a_person_says() {
    let world = World::scripted();
    let build = built(&world);
    let up = world.up();
    let done = world.json(&format!("build priority {build} 2"));
    assert_eq!(
        (text(&done["build"]), &done["priority"]),
        (build.as_str(), &2.into())
    );
    until(&world, &format!("build show {build}"), |build| {
        build["priority"] == 2
    });
    drop(up);
    let said = world.refused(&format!("build priority {build} 11"), 3);
    assert!(said.contains("11"), "{said}");
    let said = world.refused(&format!("build tell {build} T-009 hello there"), 1);
    assert!(
        said.contains("`T-009`") && said.contains("build show"),
        "{said}"
    );
}

#[test]
fn an_idea_is_named_by_how_its_name_begins() {
    let world = World::scripted();
    for slug in ["pet-sitters", "petty-cash"] {
        world.run(&format!("idea new Walks --slug {slug}"));
    }
    assert_eq!(world.json("idea show pet-s")["slug"], "pet-sitters");
    let several = world.refused("idea abandon pet", 1);
    assert!(
        several.contains("fits 2 of them: ") && several.contains("petty-cash"),
        "{several}"
    );
    let begun = world.refused("idea abandon pett", 1);
    assert!(
        begun.contains("write the whole name, such as `petty-cash`"),
        "{begun}"
    );
    assert_ne!(world.json("idea show pett")["state"], "abandoned");
    assert!(world.refused("idea show pets", 1).contains("idea list"));
}
