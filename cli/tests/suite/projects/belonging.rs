//! Each repository has a state of its own, though a clone brings the name of its project along.

use std::path::PathBuf;

use crate::world::World;

/// A project whose configuration is committed, with an idea.
fn committed() -> World {
    let world = World::bare_of_project();
    world.run("init --name walks");
    world.git(&["add", "ropewalk.toml"]);
    world.git(&["commit", "--quiet", "--message=configure"]);
    world.run("idea new Walks");
    world
}

fn ideas(world: &World, directory: &str) -> usize {
    let listed = world.json(&format!("-C {directory} idea list"));
    listed.as_array().unwrap().len()
}

fn state(world: &World) -> PathBuf {
    world.home().join(".local/state/ropewalk/walks")
}

/// What is said of a repository whose name leads to the state of another, in `theirs`.
fn refused(world: &World, directory: &str, theirs: &str) {
    let owner = state(world).join("repository.json");
    for verb in ["idea list", "idea new Rests", "up", "stop"] {
        let said = world.refused(&format!("-C {directory} {verb}"), 1);
        let here = world.root().join(directory.trim_start_matches("../"));
        let theirs = world.root().join(theirs);
        for wanted in [here, theirs, owner.clone(), "[project]".into()] {
            let wanted = format!("`{}`", wanted.display());
            assert!(said.contains(&wanted), "{verb}, {wanted}: {said}");
        }
    }
    let doctor = world.ropewalk(["-C", directory, "doctor", "--json"]);
    let doctor = { doctor }.assert().code(1).get_output().stdout.clone();
    let findings: Vec<serde_json::Value> = serde_json::from_slice(&doctor).unwrap();
    let of = |check: &str| findings.iter().find(|finding| finding["check"] == check);
    assert_eq!(of("state").unwrap()["verdict"], "fail", "{findings:?}");
    assert!(of("store").is_none(), "{findings:?}");
}

#[test]
fn a_clone_does_not_come_to_the_state_of_its_original() {
    let world = committed();
    world.git(&["clone", "--quiet", ".", "../clone"]);
    refused(&world, "../clone", "app");
    // A name of its own leads to a state of its own.
    let own = "-C ../clone --set project.name=other";
    assert_eq!(
        world.json(&format!("{own} idea list")),
        serde_json::json!([])
    );
    assert_eq!(ideas(&world, "."), 1);
}

#[test]
fn a_repository_that_was_moved_goes_on_and_one_cloned_into_its_place_does_not() {
    let world = committed();
    let moved = world.root().join("moved");
    std::fs::rename(world.repository(), &moved).unwrap();
    std::fs::create_dir(world.repository()).unwrap();
    world.git(&["clone", "--quiet", "../moved", "."]);
    refused(&world, "../app", "app");
    assert_eq!(ideas(&world, "../moved"), 1);
    refused(&world, "../app", "moved");
    world.run("-C ../moved idea new Rests");
    assert_eq!(ideas(&world, "../moved"), 2);
    // Whoever says that it takes the place of the other is believed.
    std::fs::remove_file(state(&world).join("repository.json")).unwrap();
    assert_eq!(ideas(&world, "../app"), 2);
    refused(&world, "../moved", "app");
}

#[test]
fn of_two_with_one_mark_the_one_goes_on_that_the_state_knows() {
    let world = committed();
    let copied = std::process::Command::new("cp")
        .args(["-r", "app", "copy"])
        .current_dir(world.root())
        .status();
    assert!(copied.unwrap().success());
    refused(&world, "../copy", "app");
    assert_eq!(ideas(&world, "."), 1);
    std::fs::rename(world.root().join("app"), world.root().join("gone")).unwrap();
    std::fs::create_dir(world.repository()).unwrap();
    assert_eq!(ideas(&world, "../copy"), 1);
    refused(&world, "../gone", "copy");
}

#[test]
fn worktrees_links_and_bare_repositories_share_and_files_without_a_repository_do_not() {
    let world = committed();
    world.git(&["worktree", "add", "--quiet", "../tree"]);
    std::os::unix::fs::symlink(world.repository(), world.root().join("link")).unwrap();
    for directory in ["../tree", "../link"] {
        assert_eq!(ideas(&world, directory), 1, "{directory}");
    }
    world.run("-C ../tree idea new Rests");
    assert_eq!(ideas(&world, "."), 2);
    let file = world.repository().join("ropewalk.toml");
    std::fs::create_dir(world.root().join("plain")).unwrap();
    std::fs::copy(file, world.root().join("plain/ropewalk.toml")).unwrap();
    refused(&world, "../plain", "app");
    world.git(&["clone", "--quiet", "--bare", ".", "../shared.git"]);
    world.run("-C ../shared.git init");
    assert_eq!(ideas(&world, "../shared.git"), 0);
    let bare = world.root().join("moved.git");
    std::fs::rename(world.root().join("shared.git"), bare).unwrap();
    world.run("-C ../moved.git idea new Bare");
    assert_eq!(ideas(&world, "../moved.git"), 1);
}

#[test]
fn a_state_without_a_mark_is_of_the_first_that_opens_it() {
    let world = committed();
    std::fs::remove_file(state(&world).join("repository.json")).unwrap();
    std::fs::remove_file(world.repository().join(".git/ropewalk-id")).unwrap();
    let looked = world.ropewalk(["doctor"]).output().unwrap();
    assert!(String::from_utf8_lossy(&looked.stdout).contains("is writable"));
    assert!(
        !state(&world).join("repository.json").exists(),
        "a check makes nothing"
    );
    assert_eq!(ideas(&world, "."), 1);
    world.git(&["clone", "--quiet", ".", "../clone"]);
    refused(&world, "../clone", "app");
}
