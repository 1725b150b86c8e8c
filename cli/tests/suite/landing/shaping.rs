//! What the configuration makes of the work of every build that lands.

use serde_json::Value;

use super::built;
use crate::approvals::{text, until};
use crate::world::World;

/// A project whose file says that each build lands as one commit and without the folder of its idea.
fn shaped() -> World {
    let world = World::scripted();
    let file = world.repository().join("ropewalk.toml");
    let settings = std::fs::read_to_string(file).unwrap();
    let shape = "[build]\nsquash = true\nwithout_ideas = true\n";
    world.write("ropewalk.toml", &format!("{settings}\n{shape}"));
    world
}

/// Checks what is in `main` behind `before`.
fn check_landed(world: &World, before: &str) {
    let commits = world.git(&["rev-list", "--count", &format!("{before}..main")]);
    assert_eq!(commits, "1", "one commit");
    let files = world.git(&["ls-tree", "-r", "--name-only", "main"]);
    assert!(
        files.contains("a.txt") && !files.contains("ideas/"),
        "{files}"
    );
}

#[test]
fn a_verb_that_lands_takes_the_shape_of_the_configuration() {
    let world = shaped();
    let build = built(&world);
    let before = world.git(&["rev-parse", "main"]);
    let preview = world.json(&format!("build land {build} --dry-run"));
    assert_eq!(text(&preview["way"]), "squash");
    assert_eq!(preview["documents"], Value::Null);
    let done = world.json(&format!("build land {build}"));
    assert_eq!(text(&done["way"]), "squash");
    check_landed(&world, &before);
}

#[test]
fn an_answer_that_lands_takes_the_shape_of_the_configuration() {
    let world = shaped();
    let build = built(&world);
    let before = world.git(&["rev-parse", "main"]);
    let asked = world.json("question list");
    let id = text(&asked[0]["id"]);
    world.run(&format!("question answer {id} merge"));
    let up = world.up();
    let shown = format!("build show {build}");
    until(&world, &shown, |build| build["merged"].is_string());
    drop(up);
    check_landed(&world, &before);
}
