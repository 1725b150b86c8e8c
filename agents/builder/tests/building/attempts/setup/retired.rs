//! A checkout that nothing makes clean any more: people are told of it, and the work goes on in a fresh one.

use std::process::Command;
use std::time::Duration;

use ropewalk_desk::alerts::acknowledge;
use ropewalk_desk::people::Person;
use ropewalk_schemas::UserSlug;
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::TaskState;
use ropewalk_store::{Query, Versioned};
use ropewalk_tests::namespaces;
use serde_json::{Value, json};

use crate::world::listener::Hold;
use crate::world::project::{OpenProject, PATIENCE, Project, writes};

fn plan(id: &str, needs: &[&str]) -> Value {
    json!({
        "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
        "validation": { "command": format!("grep -q good {id}.txt"), "expected": "exit 0" },
        "depends_on": needs,
    })
}

/// Lists the alerts about checkouts.
async fn alerts(open: &OpenProject) -> Vec<Alert> {
    let rows = open.services.store.list::<Alert>(Query::new()).await;
    let alerts = rows.unwrap().into_iter().map(Versioned::into_inner);
    alerts
        .filter(|alert| alert.cause.starts_with("checkout/"))
        .collect()
}

/// Waits until people are told of a checkout.
async fn told(open: &OpenProject) -> Alert {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(alert) = alerts(open).await.pop() {
            return alert;
        }
        assert!(tokio::time::Instant::now() < deadline, "nobody is told");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What is mounted in a slot cannot be removed from there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_made_clean_is_told_of_and_replaced() {
    if !namespaces::are_own() {
        let name = "attempts::setup::retired::what_cannot_be_made_clean_is_told_of_and_replaced";
        return namespaces::run(name, &[]).unwrap();
    }
    let tasks = ["T-1", "T-2", "T-3"];
    let rules = tasks.map(|id| writes(id, &format!("{id}.txt"), "good\n", None));
    let hold = Hold::new();
    let project = Project::new(&rules.concat())
        .held_by(&hold)
        .with(|options| options.loops = 1);
    let open = project.open().await;
    let plan = json!([
        plan("T-1", &[]),
        plan("T-2", &["T-1"]),
        plan("T-3", &["T-2"])
    ]);
    let spec = open.approve(plan).await;
    // The first task has written its file and is about to hand it in.
    hold.called().await;
    hold.let_go();
    hold.called().await;
    let slot = project.state().join("slots/1");
    let stays = slot.join("tree/stays");
    std::fs::create_dir(&stays).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "none"])
        .arg(&stays)
        .status();
    assert!(mounted.unwrap().success());
    // Two calls of each other task.
    for _ in 0..5 {
        hold.let_go();
    }
    let (build, done) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    for task in &done {
        let ended = (task.state, task.attempts, task.cut_off, task.failures.len());
        assert_eq!(ended, (TaskState::Complete, 1, 0, 0), "{}", task.id);
    }
    let alert = told(&open).await;
    let place = project.state().join("slots/retired-1-1");
    assert!(place.join("tree/stays").is_dir(), "it is left for people");
    assert!(slot.join("tree").is_dir() && !stays.exists(), "a fresh one");
    assert_eq!((alert.severity, alert.build), (Severity::Warning, None));
    for path in [&slot, &place] {
        let path = format!("`{}`", path.display());
        assert!(alert.message.contains(&path), "{}", alert.message);
    }
    let events = open.events().await;
    let retired = events
        .iter()
        .filter(|(kind, _)| kind == "alert.slot_retired");
    let retired: Vec<&Value> = retired.map(|(_, told)| &told["place"]).collect();
    assert_eq!(retired, [&json!(place.display().to_string())]);

    // Nothing but a person can look what it was, so it stands until one says so, and the fresh one gives no reason for another.
    let ada = Person::alone(UserSlug::parse("ada").unwrap());
    let seen = acknowledge(&open.context, &alert.cause, &ada).await;
    assert_eq!(
        seen.unwrap().acknowledged.map(|seen| seen.by),
        Some(ada.name)
    );
    let [alert] = alerts(&open).await.try_into().unwrap();
    assert_eq!(alert.cleared_at, None);
    let left = place.join("tree/stays");
    let unmounted = Command::new("umount").arg(left).status();
    assert!(unmounted.unwrap().success());
    open.close().await;
}
