//! Programs that others wrote read the description of the API and find that it holds.

use std::path::Path;
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use ropewalk_tests::servers::schemathesis_program;
use serde_json::{Value, json};

use super::filled::{fill, names};
use super::serving::{TOKEN, address, ask, with_token};
use crate::approvals::{specified, text, until};
use crate::world::World;

/// How many requests schemathesis makes up for each operation in each phase.
const EXAMPLES: &str = "10";

/// Tries every operation that `description` lists with what it allows and with what it forbids.
fn tried(description: &Path, address: &str, more: &[&str]) -> Output {
    let mut command = Command::new(schemathesis_program().unwrap());
    command
        .arg("run")
        .arg(description)
        .arg(format!("--url=http://{address}"))
        .arg(format!("--header=Authorization: Bearer {TOKEN}"))
        .arg("--checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance")
        .arg(format!("--max-examples={EXAMPLES}"))
        .args(["--phases=coverage,fuzzing", "--request-timeout=30", "--seed=1", "--no-color"])
        .args(more)
        .current_dir(description.parent().unwrap());
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Writes the description of the API into a file.
fn described(world: &World, address: &str) -> (std::path::PathBuf, Value) {
    let (status, description) = ask(address, "GET /api/openapi.json", None);
    assert_eq!(status, 200);
    let path = world.root().join("openapi.json");
    std::fs::write(&path, description.to_string()).unwrap();
    (path, description)
}

/// Lists the operations of a description, each as a method and the parts of its path.
fn operations(description: &Value) -> Vec<(String, Vec<&str>)> {
    let paths = description["paths"].as_object().unwrap().iter();
    let each = paths.flat_map(|(path, operations)| {
        let methods = operations.as_object().unwrap().keys();
        methods.map(|method| (method.to_uppercase(), path.split('/').collect()))
    });
    each.collect()
}

/// Checks that each operation that names something was done, or refused for what is there, by a report of what was asked.
fn every_name_was_met(description: &Value, report: &Value) {
    let entries = report["log"]["entries"].as_array().unwrap();
    let mut unmet = Vec::new();
    for (method, path) in operations(description) {
        let is_name = |part: &str| part.starts_with('{');
        if !path.iter().any(|part| is_name(part)) {
            continue;
        }
        let here = |entry: &&Value| {
            let url = text(&entry["request"]["url"]);
            let asked = url.splitn(4, '/').nth(3).unwrap_or_default();
            let asked: Vec<&str> = asked.split(['?', '#']).next().unwrap().split('/').collect();
            let same = asked.len() + 1 == path.len()
                && path[1..]
                    .iter()
                    .zip(&asked)
                    .all(|(part, asked)| is_name(part) || part == asked);
            same && entry["request"]["method"] == method
        };
        let statuses = entries.iter().filter(here);
        let mut statuses: Vec<u64> = statuses
            .map(|entry| entry["response"]["status"].as_u64().unwrap())
            .collect();
        statuses.sort_unstable();
        statuses.dedup();
        if !statuses
            .iter()
            .any(|status| (200..300).contains(status) || *status == 409)
        {
            unmet.push(format!("{method} {}: {statuses:?}", path.join("/")));
        }
    }
    assert!(unmet.is_empty(), "{unmet:#?}");
}

#[test]
fn nothing_that_is_asked_gets_an_answer_that_is_not_described() {
    let world = World::scripted();
    fill(&world);
    let names = names(&world);
    with_token(&world);
    let up = world.up_with(&[]);
    let address = address(&world);
    let (path, mut description) = described(&world, &address);
    names.put_into(&mut description);
    std::fs::write(&path, description.to_string()).unwrap();
    let operations: usize = description["paths"]
        .as_object()
        .unwrap()
        .values()
        .map(|path| path.as_object().unwrap().len())
        .sum();
    let output = tried(
        &path,
        &address,
        &["--report=har", "--report-har-path=asked.har"],
    );
    let told = said(&output);
    let report = std::fs::read_to_string(world.root().join("asked.har")).unwrap();
    assert!(output.status.success(), "{told}");
    every_name_was_met(&description, &serde_json::from_str(&report).unwrap());
    assert!(
        told.contains(&format!("Tested: {operations}")),
        "{operations}: {told}"
    );
    let lie = "/paths/~1api~1ideation~1sessions~1{slug}/get/responses";
    let responses = description.pointer_mut(lie).and_then(Value::as_object_mut);
    responses.unwrap().remove("404").unwrap();
    std::fs::write(&path, description.to_string()).unwrap();
    let output = tried(
        &path,
        &address,
        &["--include-path=/api/ideation/sessions/{slug}"],
    );
    let told = said(&output);
    assert!(!output.status.success() && told.contains("404"), "{told}");
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}

#[test]
fn a_client_that_is_made_of_the_description_approves_a_specification() {
    let world = World::scripted();
    let spec = specified(&world);
    with_token(&world);
    let up = world.up_with(&[]);
    let address = address(&world);
    let (path, _) = described(&world, &address);
    let program = schemathesis_program().unwrap();
    let made = Command::new(program.with_file_name("openapi-python-client"))
        .args([
            "generate",
            "--meta=none",
            "--fail-on-warning",
            "--output-path=made_client",
            "--path",
        ])
        .arg(&path)
        .env("PATH", program.parent().unwrap())
        .current_dir(world.root())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", said(&made));
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/tools/approve_by_client.py"
    );
    let id = text(&spec["id"]);
    let approved = Command::new(program.with_file_name("python"))
        .arg(script)
        .arg(world.root())
        .args([&address, TOKEN, id])
        .output()
        .unwrap();
    let told: Value = serde_json::from_slice(&approved.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&approved.stderr)));
    assert_eq!(told["revision"], json!(1), "{told}");
    let builds = until(&world, "build list", |builds| builds[0]["tasks_total"] == 3);
    assert_eq!(builds[0]["hash"], spec["hash"]);
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}
