//! `init` finds how a repository is tested, tries that, and writes the gate that holds.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::world::{World, stand_in};

/// Makes a repository with a Go module, and a `go` that tests it by its one file.
fn module(code: &str) -> World {
    let world = World::bare_of_project();
    world.write_untrusted("go.mod", "module pets\n");
    world.write_untrusted("pets.go", code);
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message=pets"]);
    world.write_untrusted(
        "../programs/go",
        "#!/bin/sh\ngrep -q bare pets.go && { echo '?   \tpets\t[no test files]'; exit; }\n[ \"$1\" = test ] && grep -q good pets.go || { echo '--- FAIL: TestPets'; exit 1; }\necho '--- PASS: TestPets'\n",
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
fn tests_of_a_repository_that_just_came_run_confined() {
    let world = module("// good\n");
    world.write_untrusted("../home/.ssh/id", "the key of the person\n");
    // With nothing in their way they would find the key, and fail.
    let lines = "touch ~/escaped\ntest ! -e ~/.ssh/id || exit 1\necho '--- PASS: TestPets'";
    stand_in(&world.root().join("programs"), "go", lines);
    let made = init(&world, &["init"]);
    assert_eq!(made["checks"][0]["passed"], true, "{made}");
    assert!(!world.home().join("escaped").exists());
}

#[test]
fn submodules_are_named_since_no_checkout_has_them() {
    let world = module("// good\n");
    let plain = init(&world, &["init", "--untried"]);
    assert_eq!(plain["left_out"], Value::Null);
    assert_eq!(check(&world, "submodules"), None);
    let world = module("// good\n");
    world.write_untrusted(
        ".gitmodules",
        "[submodule \"a\"]\n\tpath = libs/a\n\turl = ../a\n[submodule \"b c\"]\n\tpath = b c\n\turl = ../b\n",
    );
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message=submodules"]);
    let told = "leave out what lies in git submodules: `libs/a`, `b c`";
    let made = init(&world, &["init", "--untried"]);
    let left_out = made["left_out"].as_str().unwrap_or_default();
    assert!(left_out.ends_with(told), "{made}");
    let found = check(&world, "submodules").unwrap();
    assert_eq!(found["verdict"], "warn");
    assert!(found["detail"].as_str().unwrap().ends_with(told), "{found}");
}

/// Returns the row of a check of `doctor`.
fn check(world: &World, name: &str) -> Option<Value> {
    let checks = world.ropewalk(["doctor", "--json"]).output().unwrap();
    let checks: Value = serde_json::from_slice(&checks.stdout).unwrap();
    let rows = checks.as_array().unwrap().clone();
    rows.into_iter().find(|row| row["check"] == name)
}

#[test]
fn conventions_that_no_model_reads_to_the_end_are_named_with_their_letters() {
    let world = module("// good\n");
    world.write_untrusted("AGENTS.md", "See @docs/style.md\n");
    world.write_untrusted("docs/style.md", &"Be brief.\n".repeat(1_000));
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message=conventions"]);
    init(&world, &["init", "--untried"]);
    assert_eq!(check(&world, "conventions"), None);
    // What is no text for a model is named in vain, and stands in nobody's way.
    world.write_untrusted("AGENTS.md", "See @docs/style.md and @data.csv\n");
    world.write_untrusted("data.csv", &"1,2,3\n".repeat(50_000));
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message=data"]);
    assert_eq!(check(&world, "conventions"), None);
    world.write_untrusted("web/CLAUDE.md", &"Be short.\n".repeat(1_700));
    world.git(&["add", "--all"]);
    world.git(&["commit", "--quiet", "--message=web"]);
    let found = check(&world, "conventions").unwrap();
    assert_eq!(found["verdict"], "warn");
    let told = found["detail"].as_str().unwrap();
    assert!(
        told.starts_with("`web/CLAUDE.md`, with what it names"),
        "{told}"
    );
    assert!(told.contains("models are told the first 16000"), "{told}");
}

#[test]
fn where_no_tests_are_found_no_command_is_named() {
    let world = World::bare_of_project();
    let made = init(&world, &["init"]);
    assert_eq!(made["checks"], json!([]), "{made}");
    let text = file(&world);
    let named = text.lines().find(|line| line.contains("command ="));
    assert_eq!(
        named,
        Some("# command = \"\"   # that of your tests"),
        "{text}"
    );
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
fn where_no_test_runs_the_owner_hears_of_it() {
    let world = module("// bare\n");
    let made = init(&world, &["init"]);
    let told = made["checks"][0]["told"].as_str().unwrap();
    assert!(told.starts_with("passed, but there was no test"), "{told}");
    assert!(gate(&world).contains("go test ./..."), "{}", gate(&world));
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

/// A repository with its files, and the stacks and test commands that `init` finds in it.
type Layout = (&'static str, Vec<(&'static str, &'static str)>, Value);

/// Repositories as they are laid out in public, of languages with scripts.
fn layouts() -> Vec<Layout> {
    let pytest =
        "[project]\nname = \"ledger\"\n[tool.pytest.ini_options]\ntestpaths = [\"tests\"]\n";
    let test = "def test_one():\n    assert True\n";
    let workspaces = r#"{ "private": true, "workspaces": ["packages/*"], "scripts": { "test": "npm test --workspaces" } }"#;
    vec![
        (
            "Python in src",
            vec![
                ("pyproject.toml", pytest),
                ("src/ledger/__init__.py", ""),
                ("tests/test_ledger.py", test),
            ],
            json!([["Python"], ["python3 -m pytest -q"]]),
        ),
        (
            "flat Python, unittest",
            vec![
                (
                    "setup.py",
                    "from setuptools import setup\nsetup(name='habits')\n",
                ),
                ("habits.py", ""),
                ("test_habits.py", test),
            ],
            json!([["Python"], ["python3 -m unittest discover"]]),
        ),
        (
            "uv",
            vec![
                ("pyproject.toml", pytest),
                ("uv.lock", "version = 1\n"),
                ("src/ledger/app.py", ""),
                ("tests/test_app.py", test),
            ],
            json!([
                ["Python"],
                ["uv run --offline --frozen python -m pytest -q"]
            ]),
        ),
        (
            "npm workspaces",
            vec![
                ("package.json", workspaces),
                ("package-lock.json", "{}"),
                (
                    "packages/core/package.json",
                    r#"{ "name": "core", "scripts": { "test": "node --test" } }"#,
                ),
                ("packages/core/index.js", ""),
            ],
            json!([["JavaScript"], ["npm test"]]),
        ),
        (
            "TypeScript, pnpm",
            vec![
                ("package.json", r#"{ "scripts": { "test": "vitest run" } }"#),
                ("pnpm-lock.yaml", ""),
                ("tsconfig.json", "{}"),
                ("src/index.ts", "export {}\n"),
            ],
            json!([["TypeScript"], ["pnpm test"]]),
        ),
    ]
}

/// The same of languages that are compiled, of several in one, and of none.
fn other_layouts() -> Vec<Layout> {
    let cmake = "cmake_minimum_required(VERSION 3.16)\nproject(ring C)\nenable_testing()\nadd_executable(ring src/ring.c)\n";
    vec![
        (
            "a Go module",
            vec![
                ("go.mod", "module x\n"),
                ("cmd/x/main.go", "package main\n"),
                ("internal/y/y_test.go", "package y\n"),
            ],
            json!([["Go"], ["go test ./..."]]),
        ),
        (
            "a Rust workspace",
            vec![
                ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n"),
                ("crates/core/Cargo.toml", "[package]\nname = \"core\"\n"),
                ("crates/core/src/lib.rs", ""),
            ],
            json!([["Program in Rust"], ["cargo test --workspace"]]),
        ),
        (
            "Java, Maven",
            vec![
                ("pom.xml", "<project/>\n"),
                ("src/main/java/a/App.java", ""),
                ("src/test/java/a/AppTest.java", ""),
            ],
            json!([["Java"], ["mvn -q -o test"]]),
        ),
        (
            "C, CMake",
            vec![
                ("CMakeLists.txt", cmake),
                ("src/ring.c", "int main(void) { return 0; }\n"),
            ],
            json!([
                ["C or C++"],
                [
                    "cmake -S . -B .check && cmake --build .check && ctest --test-dir .check --output-on-failure"
                ]
            ]),
        ),
        (
            "a server and its pages",
            vec![
                ("backend/go.mod", "module x\n"),
                ("backend/main.go", "package main\n"),
                (
                    "frontend/package.json",
                    r#"{ "scripts": { "test": "jest" } }"#,
                ),
                ("frontend/yarn.lock", ""),
                ("frontend/src/app.js", ""),
            ],
            json!([
                ["Go in `backend`", "JavaScript in `frontend`"],
                ["cd backend && go test ./...", "cd frontend && yarn test"]
            ]),
        ),
        (
            "nothing yet",
            vec![("README.md", "# Soon\n")],
            json!([[], []]),
        ),
    ]
}

#[test]
fn the_stack_and_the_tests_of_usual_layouts_are_found() {
    for (name, files, expected) in layouts().into_iter().chain(other_layouts()) {
        let world = World::bare_of_project();
        for (path, text) in files {
            world.write_untrusted(path, text);
        }
        world.git(&["add", "--all"]);
        world.git(&["commit", "--quiet", "--message=begin"]);
        let made = init(&world, &["init", "--untried"]);
        let checks = made["checks"].as_array().unwrap();
        let commands: Vec<&Value> = checks.iter().map(|check| &check["command"]).collect();
        assert_eq!(json!([made["stacks"], commands]), expected, "{name}");
        let text = file(&world);
        for command in commands {
            let told = format!("# command = {}", json!(command));
            assert!(text.contains(&told), "{name}: {told}: {text}");
        }
    }
}
