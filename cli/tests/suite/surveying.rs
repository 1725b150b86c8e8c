//! `init` finds how a repository is tested, tries that, and writes the gate that holds.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::world::World;

/// Makes a repository with a Go module, and a `go` that tests it by its one file.
fn module(code: &str) -> World {
    let world = World::bare_of_project();
    world.write_untrusted("go.mod", "module pets\n");
    world.write_untrusted("pets.go", code);
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message=pets"]);
    world.write_untrusted(
        "../programs/go",
        "#!/bin/sh\n[ \"$1\" = test ] && grep -q good pets.go || { echo '--- FAIL: TestPets'; exit 1; }\necho '--- PASS: TestPets'\n",
    );
    let go = world.root().join("programs/go");
    std::fs::set_permissions(go, std::fs::Permissions::from_mode(0o755)).unwrap();
    world
}

fn init(world: &World, arguments: &[&str]) -> Value {
    let programs = world.root().join("programs");
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let mut command = world.ropewalk(arguments.iter().copied());
    let output = command.env("PATH", path).arg("--json").assert().success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

fn file(world: &World) -> String {
    std::fs::read_to_string(world.repository().join("ropewalk.toml")).unwrap()
}

fn gate(world: &World) -> String {
    let keys = world.json("config show");
    let rows = keys.as_array().unwrap();
    let found = rows.iter().find(|row| row["key"] == "gate.commands");
    found.map_or_else(String::new, |row| row["value"].to_string())
}

#[test]
fn tests_that_pass_are_the_gate_and_trusted() {
    let world = module("// good\n");
    let made = init(&world, &["init"]);
    assert_eq!(made["stacks"], serde_json::json!(["Go"]));
    assert_eq!(made["checks"][0]["passed"], true, "{made}");
    assert_eq!(made["checks"][0]["command"], "go test ./...");
    assert!(gate(&world).contains("go test ./..."), "{}", gate(&world));
    assert_eq!(world.git(&["status", "--short"]), "?? ropewalk.toml");
}

#[test]
fn tests_that_fail_would_refuse_every_change_and_are_no_gate() {
    let world = module("// bad\n");
    let made = init(&world, &["init"]);
    assert_eq!(made["checks"][0]["passed"], false, "{made}");
    let text = file(&world);
    assert!(
        text.contains("# Not in force, `tests` ended with exit code 1"),
        "{text}"
    );
    assert!(text.contains("# command = \"go test ./...\""), "{text}");
    assert!(!gate(&world).contains("go test"), "{}", gate(&world));
}

#[test]
fn what_cannot_be_tried_says_why() {
    let world = module("// good\n");
    let made = init(&world, &["init", "--untried"]);
    assert_eq!(made["checks"][0]["told"], "not run, as asked");
    std::fs::remove_file(world.repository().join("ropewalk.toml")).unwrap();
    std::fs::remove_file(world.root().join("programs/go")).unwrap();
    let made = init(&world, &["init", "--name", "again"]);
    assert_eq!(
        made["checks"][0]["told"],
        "not run: `go` is not on the PATH"
    );
    assert!(!gate(&world).contains("go test"), "{}", gate(&world));
}
