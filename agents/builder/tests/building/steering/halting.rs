//! People stop everything while a build runs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ropewalk_engine::llm::{ModelError, ScriptKey};
use ropewalk_runtime::Brake;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::TaskState;
use serde_json::json;

use crate::world::listener::Pace;
use crate::world::patience::{exists, until};
use crate::world::project::Project;
use crate::world::script::{append, append_and_meet, steps};

/// Long enough for a loop that is not held to ask its model or to run its check.
const WHILE: Duration = Duration::from_secs(2);

/// Stops everything while a model answers its second turn.
struct BrakePuller(Brake);

#[async_trait]
impl Pace for BrakePuller {
    async fn before(&self, key: &ScriptKey) -> Result<(), ModelError> {
        if key.turn == 2 {
            self.0.set(true);
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_everything_is_stopped_no_model_is_asked_and_no_command_begins() {
    let signals = tempfile::tempdir().unwrap();
    let place = |name: &str| signals.path().join(name);
    let (begun, go, checked) = (place("begun"), place("go"), place("checked"));
    let script = steps("ONE", &[append_and_meet("ONE", "a.txt", &begun, &go)]);
    let project = Project::new(&script);
    let puller = BrakePuller(project.brake.clone());
    let project = project.paced_by(Arc::new(puller));
    let open = project.open().await;
    let spec = open
        .approve(json!([{
            "id": "ONE", "phase": "api", "action": "CREATE", "file": "a.txt",
            "validation": { "command": format!("touch {}; grep -q ONE a.txt", checked.display()), "expected": "exit 0" },
        }]))
        .await;
    exists(&begun).await;
    let asked = || project.told.lock().unwrap().len();
    let before = asked();
    // The command that runs ends; what would follow it does not begin.
    project.brake.set(true);
    std::fs::write(&go, "").unwrap();
    tokio::time::sleep(WHILE).await;
    assert_eq!(asked(), before, "a model was asked");
    project.brake.set(false);
    until("a model is asked", async || asked() != before).await;
    // It is stopped in that call, which ends; no command begins after it.
    tokio::time::sleep(WHILE).await;
    let held = open.build(spec).await.unwrap();
    assert_eq!(held.state, BuildState::Running, "{:?}", held.reason);
    assert!(!checked.exists(), "a command began");
    project.brake.set(false);
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let attempts = open.attempts(build.id, "ONE").await;
    assert_eq!(attempts.len(), 1, "nothing was begun anew");
    assert!(checked.exists());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_while_everything_is_stopped_does_not_hold_the_end_and_goes_on_at_the_next_start()
 {
    let signals = tempfile::tempdir().unwrap();
    let place = |name: &str| signals.path().join(name);
    let (begun, go) = (place("begun"), place("go"));
    let script = steps("ONE", &[append_and_meet("ONE", "a.txt", &begun, &go)]);
    let project = Project::new(&script);
    let open = project.open().await;
    let spec = open.approve(one()).await;
    exists(&begun).await;
    project.brake.set(true);
    std::fs::write(&go, "").unwrap();
    let asked = project.calls();
    assert!(open.close().await.is_empty(), "a loop ran on");
    // Nothing is taken up again before people let it.
    let open = project.open().await;
    tokio::time::sleep(WHILE).await;
    assert!(open.close().await.is_empty(), "a loop ran on");
    assert_eq!(project.calls(), asked, "a model was asked");
    project.brake.set(false);
    let open = project.open().await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert!(tasks[0].failures.is_empty(), "{:?}", tasks[0].failures);
    let attempts = open.attempts(build.id, "ONE").await;
    assert_eq!(attempts.len(), 2, "it was taken up once more");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_everything_is_stopped_no_task_is_taken() {
    let project = Project::new(&steps("ONE", &[append("ONE", "a.txt")]));
    project.brake.set(true);
    let open = project.open().await;
    let spec = open.approve(one()).await;
    open.until(spec, |_, tasks| {
        tasks.iter().any(|task| task.state == TaskState::Ready)
    })
    .await;
    tokio::time::sleep(WHILE).await;
    let build = open.build(spec).await.unwrap();
    assert!(open.attempts(build.id, "ONE").await.is_empty());
    project.brake.set(false);
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    open.close().await;
}

/// Returns a plan of one task.
fn one() -> serde_json::Value {
    json!([{
        "id": "ONE", "phase": "api", "action": "CREATE", "file": "a.txt",
        "validation": { "command": "grep -q ONE a.txt", "expected": "exit 0" },
    }])
}
