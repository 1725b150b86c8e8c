//! The branch follows the landings of a build, beside them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::TaskState;
use serde_json::{Value, json};

use crate::world::project::{Project, writes};

/// Lets the second push wait until `go` is there, and writes down every push.
fn slow_git(place: &Path) {
    let script = format!(
        "#!/bin/sh\n\
         case \" $* \" in *' push '*)\n\
         number=$(ls {place}/pushes | wc -l)\n\
         touch {place}/pushes/$number\n\
         if [ $number = 1 ]; then until [ -e {place}/go ]; do sleep 0.02; done; fi;;\n\
         esac\n\
         PATH=${{PATH#*:}} exec git \"$@\"\n",
        place = place.display()
    );
    std::fs::create_dir(place.join("pushes")).unwrap();
    let git = place.join("programs/git");
    std::fs::create_dir(place.join("programs")).unwrap();
    std::fs::write(&git, script).unwrap();
    std::fs::set_permissions(&git, PermissionsExt::from_mode(0o755)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn landings_that_come_during_a_push_take_one_more() {
    let place = tempfile::tempdir().unwrap();
    slow_git(place.path());
    let ids = ["T-1", "T-2", "T-3"];
    let rules: String = ids
        .iter()
        .map(|id| writes(id, &format!("{id}.txt"), "good\n", None))
        .collect();
    let project = Project::new(&rules)
        .with_programs(place.path().join("programs"))
        .with(|options| options.loops = 1);
    let open = project.open().await;
    let tasks: Vec<Value> = ids
        .iter()
        .map(|id| {
            json!({
                "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
                "validation": { "command": "true", "expected": "exit 0" },
            })
        })
        .collect();
    let spec = open.approve(json!(tasks)).await;
    let complete = |tasks: &[ropewalk_schemas::task::Task]| {
        tasks.len() == 3 && tasks.iter().all(|task| task.state == TaskState::Complete)
    };
    open.until(spec, |_, tasks| complete(tasks)).await;
    std::fs::write(place.path().join("go"), "").unwrap();
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(build.head, build.published);
    let head = open.git(&["rev-parse", "build/habits"]);
    assert_eq!(build.head.unwrap().as_str(), head);
    let pushes = std::fs::read_dir(place.path().join("pushes")).unwrap();
    assert_eq!(
        pushes.count(),
        3,
        "for the ground, for the first landing, and for the two that came meanwhile"
    );
    open.close().await;
}
