//! Attempts that ask for each other's files: they wait with their locks in hand, and a cycle of waits is broken.

use std::time::{Duration, Instant};

use chrono::{TimeZone, Utc};
use ropewalk_coordination::locks;
use ropewalk_runtime::Clock;
use ropewalk_schemas::alert::{Alert, Severity};
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::wait::{Resource, Wait};
use ropewalk_schemas::{BuildId, SpecId};
use ropewalk_store::{ChangeSet, Query, Versioned};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::project::{OpenProject, Project, git, task};
use crate::world::script::{Step, append, append_and_meet, meet, steps};

/// So long that no renewal and no expiry plays a part.
const LONG_LEASE: Duration = Duration::from_hours(1);
/// Within this a cycle is broken whose last request finds it; the sweep of a monitor would take a minute.
const AT_ONCE: Duration = Duration::from_secs(30);

fn update(id: &str, file: &str, priority: u8) -> Value {
    json!({
        "id": id, "phase": "api", "action": "UPDATE", "file": file, "priority": priority,
        "validation": { "command": format!("grep -q {id} a.ts && grep -q {id} b.ts"), "expected": "exit 0" },
    })
}

/// Two tasks that hold one file each and ask for the other's, `first` before the other one.
struct Cycle {
    project: Project,
    /// Where the two say how far they are.
    signals: TempDir,
}

impl Cycle {
    fn new(first: &str) -> Self {
        let signals = tempfile::tempdir().unwrap();
        let signal = |name: &str| signals.path().join(name);
        let rules = |task: &str, other: &str, own: &str, wanted: &'static [&'static str]| {
            let (says, awaits) = (signal(task), signal(other));
            let mut plan = vec![append_and_meet(task, own, &says, &awaits)];
            if task != first {
                plan.push(meet(&signal("go")));
            }
            plan.push(Step::Ask(wanted));
            plan.push(append(task, wanted[0]));
            steps(task, &plan)
        };
        let script =
            rules("ONE", "TWO", "a.ts", &["b.ts"]) + &rules("TWO", "ONE", "b.ts", &["a.ts"]);
        let project = Project::new(&script)
            .with(|options| options.lease = LONG_LEASE)
            .with_files(&[("a.ts", "a\n"), ("b.ts", "b\n")]);
        Self { project, signals }
    }

    async fn begin(&self, open: &OpenProject) -> SpecId {
        open.approve(json!([update("ONE", "a.ts", 1), update("TWO", "b.ts", 2)]))
            .await
    }

    /// Lets the second task ask for the file of the first.
    fn close(&self) {
        std::fs::write(self.signals.path().join("go"), "").unwrap();
    }

    /// Checks that the less urgent task gave way, and that both are done.
    async fn check_end(&self, open: &OpenProject, spec: SpecId) {
        let (build, tasks) = open.ended(spec).await;
        assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
        let survivor = open.attempts(build.id, "ONE").await;
        assert_eq!(survivor.len(), 1, "only one gives way");
        let victim = open.attempts(build.id, "TWO").await;
        assert_eq!(victim.len(), 2);
        assert_eq!(victim[0].state, AttemptState::Interrupted);
        assert_eq!(task(&tasks, "TWO").tries, 0, "it is not counted");
        self.check_kept(&victim[0]);
        for file in ["a.ts", "b.ts"] {
            let text = open.git(&["show", &format!("build/habits:{file}")]);
            assert_eq!(
                text.lines().skip(1).collect::<Vec<_>>(),
                ["ONE", "TWO"],
                "{file}"
            );
        }
        assert!(waits(open).await.is_empty(), "no wait outlives its end");
        assert!(open.held_locks().await.is_empty());
    }

    /// What the victim had written lies under a preserve ref and on no branch.
    fn check_kept(&self, victim: &Attempt) {
        let clone = self.project.state().join("repository.git");
        let kept = victim.preserve_ref.as_deref().expect("its work is kept");
        let text = git(&clone, &["show", &format!("{kept}:b.ts")]);
        assert_eq!(text, "b\nTWO");
        let commit = git(&clone, &["rev-parse", kept]);
        let branches = git(&clone, &["branch", "--all", "--contains", &commit]);
        assert_eq!(branches, "");
    }
}

async fn waits(open: &OpenProject) -> Vec<Wait> {
    let found = open
        .services
        .store
        .list::<Wait>(Query::new())
        .await
        .unwrap();
    found.into_iter().map(Versioned::into_inner).collect()
}

/// Waits until so many waits for locks are written down.
async fn until_waits(open: &OpenProject, spec: SpecId, number: usize) -> BuildId {
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut feed = open.services.store.feed();
    while waits(open).await.len() != number {
        assert!(Instant::now() < deadline, "{:?}", waits(open).await);
        drop(tokio::time::timeout(Duration::from_millis(50), feed.next()).await);
    }
    open.build(spec).await.unwrap().id
}

async fn deadlock_alerts(open: &OpenProject) -> Vec<Value> {
    let events = open.events().await.into_iter();
    events
        .filter(|event| event.0 == "alert.deadlock")
        .map(|event| event.1)
        .collect()
}

async fn until_alert(open: &OpenProject) -> Vec<Value> {
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut feed = open.services.store.feed();
    loop {
        let alerts = deadlock_alerts(open).await;
        if !alerts.is_empty() {
            return alerts;
        }
        assert!(Instant::now() < deadline, "no alert");
        drop(tokio::time::timeout(Duration::from_millis(50), feed.next()).await);
    }
}

async fn check_alert_record(open: &OpenProject) {
    let alerts = open
        .services
        .store
        .list::<Alert>(Query::new())
        .await
        .unwrap();
    let [alert] = &alerts[..] else {
        panic!("one alert, not {alerts:?}")
    };
    assert_eq!(alert.severity, Severity::Critical);
    assert!(alert.cleared_at.is_some(), "{alert:?}");
}

async fn a_cycle_is_broken_at_once(first: &str) {
    let cycle = Cycle::new(first);
    let open = cycle.project.open().await;
    let spec = cycle.begin(&open).await;
    let build = until_waits(&open, spec, 1).await;
    let waiting = waits(&open).await;
    assert_eq!(
        waiting[0].waiter.to_string(),
        format!("task/{build}/{first}")
    );
    assert!(matches!(waiting[0].resource, Resource::Lease { .. }));
    let shown = open.tasks(build).await;
    let shown = task(&shown, first);
    assert_eq!(
        shown.state,
        TaskState::Working,
        "it waits with its lock in hand"
    );
    assert!(
        shown
            .reason
            .as_deref()
            .is_some_and(|reason| reason.starts_with("waits for the lock"))
    );
    cycle.close();
    let closed = Instant::now();
    let alerts = until_alert(&open).await;
    let took = closed.elapsed();
    assert!(took < AT_ONCE, "{took:?}");
    assert_eq!(alerts.len(), 1);
    assert_eq!(alerts[0]["resolved"], json!(true));
    assert_eq!(alerts[0]["victim"], json!(format!("task/{build}/TWO")));
    cycle.check_end(&open, spec).await;
    assert_eq!(
        deadlock_alerts(&open).await.len(),
        1,
        "one alert for one cycle"
    );
    check_alert_record(&open).await;
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_request_that_closes_a_cycle_finds_it_and_gives_way() {
    a_cycle_is_broken_at_once("ONE").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_waits_already_gives_way_to_a_more_urgent_request() {
    a_cycle_is_broken_at_once("TWO").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cycle_that_nobody_saw_is_found_by_the_monitor_and_broken_by_pm() {
    let clock = Clock::manual(Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 1).unwrap());
    let cycle = Cycle::new("ONE");
    let cycle = Cycle {
        project: cycle
            .project
            .at_the_time_of(&clock)
            .watched()
            .with(|options| options.check_cycles = false),
        signals: cycle.signals,
    };
    let open = cycle.project.open().await;
    let spec = cycle.begin(&open).await;
    until_waits(&open, spec, 1).await;
    cycle.close();
    let build = until_waits(&open, spec, 2).await;
    assert!(deadlock_alerts(&open).await.is_empty());
    // One interval of the monitor; nothing else moves the time.
    clock.advance(Duration::from_mins(2));
    let alerts = until_alert(&open).await;
    assert_eq!(alerts[0]["resolved"], json!(false));
    assert_eq!(alerts[0]["cycle"].as_array().unwrap().len(), 2);
    cycle.check_end(&open, spec).await;
    assert_eq!(
        deadlock_alerts(&open).await.len(),
        1,
        "one alert for one cycle"
    );
    check_alert_record(&open).await;
    let revoked = open.events().await.into_iter();
    let revoked: Vec<Value> = revoked
        .filter(|event| event.0 == "lock.revoked")
        .map(|event| event.1)
        .collect();
    assert_eq!(revoked.len(), 1);
    assert_eq!(revoked[0]["task_id"], json!("TWO"));
    assert_eq!(revoked[0]["build_id"], json!(build));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_comes_free_is_granted_as_its_holder_left_it() {
    let signals = tempfile::tempdir().unwrap();
    let signal = |name: &str| signals.path().join(name);
    let script = steps(
        "ONE",
        &[
            append_and_meet("ONE", "a.ts", &signal("ONE"), &signal("TWO")),
            Step::Ask(&["b.ts", "new.ts"]),
            append("ONE", "b.ts"),
        ],
    ) + &steps(
        "TWO",
        &[
            append_and_meet("TWO", "b.ts", &signal("TWO"), &signal("ONE")),
            meet(&signal("go")),
        ],
    );
    let project = Project::new(&script)
        .with(|options| options.lease = LONG_LEASE)
        .with_files(&[("a.ts", "a\n"), ("b.ts", "b\n")]);
    let open = project.open().await;
    let plan = |id: &str, file: &str| {
        let mut plan = update(id, file, 5);
        plan["validation"]["command"] = json!(format!("grep -q {id} {file}"));
        plan
    };
    let spec = open
        .approve(json!([plan("ONE", "a.ts"), plan("TWO", "b.ts")]))
        .await;
    let build = until_waits(&open, spec, 1).await;
    let held: Vec<String> = open
        .held_locks()
        .await
        .iter()
        .map(|lease| lease.path.to_string())
        .collect();
    assert!(
        !held.contains(&"new.ts".to_owned()),
        "all or none: {held:?}"
    );
    std::fs::write(signal("go"), "").unwrap();
    let (ended, _) = open.ended(spec).await;
    assert_eq!(ended.state, BuildState::Succeeded, "{:?}", ended.reason);
    // ONE read b.ts as TWO had left it, and so its only attempt landed on that.
    for id in ["ONE", "TWO"] {
        let attempts = open.attempts(build, id).await;
        let states: Vec<AttemptState> = attempts.iter().map(|attempt| attempt.state).collect();
        assert_eq!(states, [AttemptState::Landed], "{id}");
    }
    assert_eq!(open.git(&["show", "build/habits:b.ts"]), "b\nTWO\nONE");
    assert_eq!(open.git(&["show", "build/habits:a.ts"]), "a\nONE");
    assert_eq!(
        open.git(&["log", "--format=%s", "-1", "build/habits", "--", "b.ts"]),
        "ONE: update a.ts"
    );
    let granted = open.attempts(build, "ONE").await.pop().unwrap().granted;
    let granted: Vec<String> = granted.iter().map(ToString::to_string).collect();
    assert_eq!(granted, ["b.ts", "new.ts"]);
    assert!(waits(&open).await.is_empty());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_and_a_link_to_it_that_the_build_made_are_written_by_one_task_at_a_time() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let writer = |task: &str, file: &str| steps(task, &[append(task, file), meet(&go)]);
    let script = steps("LINK", &[Step::Shell("ln -s real.ts link.ts".to_owned())])
        + &writer("ONE", "link.ts")
        + &writer("TWO", "real.ts");
    let project = Project::new(&script)
        .with(|options| options.lease = LONG_LEASE)
        .with_files(&[("real.ts", "a\n")]);
    let open = project.open().await;
    let plan = |id: &str, action: &str, file: &str, check: &str, after: &[&str]| {
        json!({
            "id": id, "phase": "api", "action": action, "file": file, "priority": 5, "depends_on": after,
            "validation": { "command": check, "expected": "exit 0" },
        })
    };
    let spec = open
        .approve(json!([
            plan("LINK", "CREATE", "link.ts", "test -L link.ts", &[]),
            plan("ONE", "UPDATE", "link.ts", "grep -q ONE real.ts", &["LINK"]),
            plan("TWO", "UPDATE", "real.ts", "grep -q TWO real.ts", &["LINK"]),
        ]))
        .await;
    let build = until_waits(&open, spec, 1).await;
    assert!(matches!(
        &waits(&open).await[0].resource,
        Resource::Lease { path } if path.as_str() == "real.ts"
    ));
    std::fs::write(&go, "").unwrap();
    let (ended, _) = open.ended(spec).await;
    assert_eq!(ended.state, BuildState::Succeeded, "{:?}", ended.reason);
    for id in ["ONE", "TWO"] {
        assert_eq!(open.attempts(build, id).await.len(), 1, "{id}");
    }
    let text = open.git(&["show", "build/habits:real.ts"]);
    let mut written: Vec<&str> = text.lines().skip(1).collect();
    written.sort_unstable();
    assert_eq!(written, ["ONE", "TWO"]);
    assert!(waits(&open).await.is_empty());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_a_model_asked_for_a_file_is_shown_with_its_lock_and_told() {
    let signals = tempfile::tempdir().unwrap();
    let (says, goes_on) = (signals.path().join("says"), signals.path().join("go"));
    let script = steps(
        "ONE",
        &[
            Step::Ask(&["new.ts"]),
            append("ONE", "new.ts"),
            append_and_meet("ONE", "a.ts", &says, &goes_on),
        ],
    );
    let project = Project::new(&script)
        .with(|options| options.lease = LONG_LEASE)
        .with_files(&[("a.ts", "a\n")]);
    let open = project.open().await;
    let mut plan = update("ONE", "a.ts", 5);
    plan["validation"]["command"] = json!("grep -q ONE a.ts");
    let spec = open.approve(json!([plan])).await;
    let deadline = Instant::now() + Duration::from_mins(1);
    while !says.exists() {
        assert!(Instant::now() < deadline, "it never began");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let locks = open.held_locks().await;
    let granted = locks.iter().find(|lease| lease.path.as_str() == "new.ts");
    let reason = &granted.unwrap().reason;
    assert!(reason.ends_with(": it belongs together"), "{reason}");
    let events = open.events().await.into_iter();
    let told: Vec<_> = events.filter(|(kind, _)| kind == "lock.extended").collect();
    let [(_, told)] = told.as_slice() else {
        panic!("{told:?}");
    };
    let told = [&told["task_id"], &told["files"], &told["reason"]];
    let expected = [
        json!("ONE"),
        json!(["new.ts"]),
        json!("it belongs together"),
    ];
    assert_eq!(told, expected.each_ref());
    std::fs::write(&goes_on, "").unwrap();
    let (ended, _) = open.ended(spec).await;
    assert_eq!(ended.state, BuildState::Succeeded, "{:?}", ended.reason);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_whose_lock_is_revoked_ends_at_once_with_its_work_kept() {
    let signals = tempfile::tempdir().unwrap();
    let (says, never) = (signals.path().join("says"), signals.path().join("never"));
    let script = steps("ONE", &[append_and_meet("ONE", "a.ts", &says, &never)]);
    let project = Project::new(&script)
        .with(|options| options.lease = LONG_LEASE)
        .with_files(&[("a.ts", "a\n")]);
    let open = project.open().await;
    let mut plan = update("ONE", "a.ts", 5);
    plan["validation"]["command"] = json!("grep -q ONE a.ts");
    let spec = open.approve(json!([plan])).await;
    let deadline = Instant::now() + Duration::from_mins(1);
    while !says.exists() {
        assert!(Instant::now() < deadline, "it never began");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let store = &open.services.store;
    let held = locks::all_held(store).await.unwrap();
    let announce = |subject, payload| open.context.event(subject, payload);
    let mut changes = ChangeSet::new();
    locks::revoke(&mut changes, &held, "others need it", &announce);
    store.commit(changes).await.unwrap();
    // The next renewal is twenty minutes away.
    let (build, _) = open.until(spec, |_, tasks| tasks[0].attempts == 2).await;
    let first = &open.attempts(build.id, "ONE").await[0];
    assert_eq!(first.state, AttemptState::Interrupted);
    let clone = project.state().join("repository.git");
    let kept = first.preserve_ref.as_deref().expect("its work is kept");
    assert_eq!(git(&clone, &["show", &format!("{kept}:a.ts")]), "a\nONE");
    std::fs::write(&never, "").unwrap();
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(tasks[0].tries, 0);
    open.close().await;
}
