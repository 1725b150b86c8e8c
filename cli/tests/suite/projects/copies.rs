//! `import` where a configuration comes with the repository, or is there: the copy is a project of its own.

use crate::world::World;

/// A project whose configuration is committed; where it says so, its state lies where the name puts it.
fn committed(state: bool) -> World {
    let world = World::scripted();
    let settings = world.repository().join("ropewalk.toml");
    let text = std::fs::read_to_string(settings).unwrap();
    let line = "state = \"../state\"\n";
    assert!(text.contains(line));
    let text = if state { text } else { text.replace(line, "") };
    world.write("ropewalk.toml", &format!("# Ours.\n{text}"));
    world.git(&["add", "ropewalk.toml"]);
    world.git(&["commit", "--quiet", "--message=configure"]);
    world.run("idea new Walks --slug walks");
    world.run("export ../walks.ropewalk");
    world
}

/// Trusts the copy in `directory`, and looks whether it is one of its own, and stopped, which the original is not.
fn stands(world: &World, directory: &str, name: &str) {
    let shown = world.ropewalk(["-C", directory, "trust"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let hash = shown.lines().find_map(|line| line.strip_prefix("hash "));
    world.run(&format!("-C {directory} trust --hash {}", hash.unwrap()));
    let stopped = |directory: &str| {
        let verb = ["-C", directory, "idea", "list"];
        let listed = world.ropewalk(verb).assert().success();
        let said = String::from_utf8_lossy(&listed.get_output().stderr).into_owned();
        said.contains("imported from an archive")
    };
    assert!(stopped(directory) && !stopped("."), "{directory}");
    world.run(&format!("-C {directory} idea new Copied"));
    let ideas = |directory: &str| world.json(&format!("-C {directory} idea list"));
    let number = |directory: &str| ideas(directory).as_array().unwrap().len();
    assert_eq!((number(directory), number(".")), (2, 1), "{directory}");
    let text = world.repository().join(directory).join("ropewalk.toml");
    let text = std::fs::read_to_string(text).unwrap();
    assert!(text.contains("# Ours."), "{text}");
    assert!(text.contains(&format!("name = \"{name}\"")), "{text}");
    assert!(!text.contains("../state"), "{text}");
}

#[test]
fn a_copy_beside_its_original_is_a_project_of_its_own() {
    let world = committed(false);
    let imported = world.json("import ../walks.ropewalk ../copy --name copy");
    assert_eq!(imported["changed"], serde_json::json!(["project.name"]));
    stands(&world, "../copy", "copy");
    // A clone has the configuration already.
    world.git(&["clone", "--quiet", ".", "../clone"]);
    let said = world.refused("import ../walks.ropewalk ../clone", 1);
    assert!(said.contains("has its state in"), "{said}");
    let imported = world.json("import ../walks.ropewalk ../clone --name third");
    assert_eq!(imported["changed"], serde_json::json!(["project.name"]));
    stands(&world, "../clone", "third");
}

#[test]
fn a_copy_does_not_take_the_state_that_its_original_names() {
    let world = committed(true);
    let imported = world.json("import ../walks.ropewalk ../copy --name copy");
    let changed = serde_json::json!(["project.name", "project.state"]);
    assert_eq!(imported["changed"], changed);
    stands(&world, "../copy", "copy");
}
