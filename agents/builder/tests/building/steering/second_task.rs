//! Two tasks of which the second fails at its first try and passes at the next one, in a project where one failure is enough.

use ropewalk_schemas::SpecId;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::TaskRetry;
use ropewalk_schemas::{Payload, Subject, TaskId};
use serde_json::{Value, json};

use crate::world::project::{OpenProject, Project, writes};

fn plan(id: &str) -> Value {
    json!({
        "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
        "validation": { "command": format!("grep -q good {id}.txt"), "expected": "exit 0" },
    })
}

pub(super) fn project() -> Project {
    let bad = writes("T-2", "T-2.txt", "bad\n", None).replace("  turn:", "  attempt: 1\n  turn:");
    let rules = [
        writes("T-1", "T-1.txt", "good\n", None),
        bad,
        writes("T-2", "T-2.txt", "good\n", None),
    ];
    Project::new(&rules.concat()).with(|options| {
        options.loops = 1;
        options.tries.tries = 1;
    })
}

/// Builds until the second task has failed.
pub(super) async fn failed(open: &OpenProject) -> SpecId {
    let spec = open.approve(json!([plan("T-1"), plan("T-2")])).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    spec
}

/// Asks for another try of the second task, as who may not let a stopped build go on.
pub(super) async fn retry(open: &OpenProject, build: &Build, guidance: Option<&str>) {
    retry_as(open, build, guidance, false).await;
}

/// Asks for another try of the second task.
pub(super) async fn retry_as(
    open: &OpenProject,
    build: &Build,
    guidance: Option<&str>,
    may_resume: bool,
) {
    let task = TaskId::parse("T-2").unwrap();
    let wish = TaskRetry {
        build_id: build.id,
        task_id: task.clone(),
        requested_by: "ada".to_owned(),
        guidance: guidance.map(str::to_owned),
        may_resume,
    };
    open.emit(Subject::task(build.id, &task), Payload::TaskRetry(wish))
        .await;
}
