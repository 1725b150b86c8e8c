//! What installs of a project fetch once: nothing twice, but where the repository could have put something else there.

use std::path::Path;
use std::process::Command;

use ropewalk_schemas::build::BuildState;
use serde_json::{Value, json};
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::{IGNORED, going_on, wants_more};
use crate::world::project::task;

/// Runs a program that must succeed, and returns what it says.
fn said(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(directory).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Serves a package, and returns its lock file.
async fn registry() -> (MockServer, Value) {
    let made = tempfile::tempdir().unwrap();
    let package = made.path().join("package");
    std::fs::create_dir(&package).unwrap();
    let manifest = r#"{ "name": "left", "version": "1.0.0", "main": "index.js" }"#;
    std::fs::write(package.join("package.json"), manifest).unwrap();
    std::fs::write(package.join("index.js"), "module.exports = 'good';\n").unwrap();
    said(made.path(), "tar", &["-czf", "left.tgz", "package"]);
    let hash = "require('crypto').createHash('sha512').update(require('fs').readFileSync('left.tgz')).digest('base64')";
    let hash = said(made.path(), "node", &["-p", hash]);
    let archive = std::fs::read(made.path().join("left.tgz")).unwrap();
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .and(path("/left.tgz"))
        .respond_with(ResponseTemplate::new(200).set_body_bytes(archive))
        .mount(&server)
        .await;
    let place = format!("{}/left.tgz", server.uri());
    let lock = json!({
        "name": "habits", "version": "1.0.0", "lockfileVersion": 3, "requires": true,
        "packages": {
            "": { "name": "habits", "version": "1.0.0", "dependencies": { "left": "1.0.0" } },
            "node_modules/left": { "version": "1.0.0", "resolved": place, "integrity": format!("sha512-{hash}") },
        },
    });
    (server, lock)
}

const MANIFEST: &str =
    r#"{ "name": "habits", "version": "1.0.0", "dependencies": { "left": "1.0.0" } }"#;

/// What came of building what needs the package.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    /// How often it was installed.
    installs: usize,
    /// How often it was fetched.
    requests: usize,
    is_kept: bool,
}

async fn build(more: &[(&str, &str)]) -> Outcome {
    let (server, lock) = registry().await;
    let lock = lock.to_string();
    let files = [
        ("package.json", MANIFEST),
        ("package-lock.json", &lock),
        IGNORED,
    ];
    let files = [&files[..], more].concat();
    let project = going_on(&files);
    let open = project.open().await;
    let spec = open.approve(json!([wants_more()])).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(task(&tasks, "T-1").installs, 1);
    let evidence = open.evidence(build.id).await;
    let of_gates: usize = evidence.iter().map(|seen| seen.installs.len()).sum();
    open.close().await;
    Outcome {
        // One more in the slot, of which no evidence tells.
        installs: of_gates + 1,
        requests: server.received_requests().await.unwrap().len(),
        is_kept: project.state().join("packages/npm/_cacache").is_dir(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_is_fetched_once_for_slot_gate_and_whole() {
    let expected = Outcome {
        installs: 4,
        requests: 1,
        is_kept: true,
    };
    assert_eq!(build(&[]).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_repository_may_steer_leaves_nothing_for_others() {
    let steered = build(&[(".npmrc", "fund=false\n")]).await;
    assert_eq!((steered.installs, steered.is_kept), (4, false));
}
