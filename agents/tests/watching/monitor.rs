//! The monitor's alerts.

use std::time::Duration;

use ropewalk_agents::monitor::deputy::Deputy;
use ropewalk_agents::monitor::{HEALTH, Monitor, MonitorOptions, TICK};
use ropewalk_config::Config;
use ropewalk_orchestrator::Agent;
use ropewalk_schemas::agent::Component;
use ropewalk_schemas::alert::{Acknowledgement, Alert, Severity};
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::lease::{Holder, Lease, LeaseState};
use ropewalk_schemas::payload::DeadlockDetected;
use ropewalk_schemas::task::{Action, Task, TaskState};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{EventPattern, Payload, UserSlug};
use ropewalk_store::{ChangeSet, EventFilter};

use crate::world::{
    WatchWorld, attempt_id, build, build_id, component, id, noon, path, task, types,
};

pub(crate) fn monitor() -> Monitor {
    let shipped = Config::shipped().unwrap();
    Monitor::new(MonitorOptions::from(&shipped.monitor)).unwrap()
}

#[tokio::test]
async fn every_pattern_of_the_three_agents_takes_events_that_exist() {
    let workshop = crate::workshop::Workshop::open("[]").await;
    let profiles = [
        monitor().profile(),
        crate::pm::pm().profile(),
        workshop.improvement.profile(),
    ];
    assert_eq!(ropewalk_orchestrator::router::check(&profiles), Ok(()));
}

#[tokio::test]
async fn the_shipped_settings_make_two_schedules() {
    let schedules = monitor().profile().schedules;
    let lines: Vec<(&str, &str)> = schedules
        .iter()
        .map(|schedule| (schedule.name.as_str(), schedule.cron.as_str()))
        .collect();
    assert_eq!(lines, [(TICK, "*/2 * * * *"), (HEALTH, "*/30 * * * * *")]);
}

#[tokio::test]
async fn a_stuck_task_has_one_alert_that_clears_when_its_attempt_ends() {
    let world = WatchWorld::open().await;
    let stuck = task(1, "T-005", "src/api.rs", Action::Create);
    world.lay(&build(1), std::slice::from_ref(&stuck)).await;
    let attempt = world.run(&stuck, 7, "loop-1").await;
    let monitor = monitor();
    world.pass(600);
    assert_eq!(world.due(&monitor, TICK, "").await, []);
    world.pass(60);
    let raised = world.due(&monitor, TICK, "").await;
    let [Payload::StuckTask(alert)] = raised.as_slice() else {
        panic!("{raised:?}");
    };
    assert_eq!(
        (alert.task_id.as_str(), alert.attempt_id),
        ("T-005", attempt.id)
    );
    assert_eq!(
        (alert.idle_minutes, alert.loop_name.as_str()),
        (11, "loop-1")
    );
    world.pass(120);
    assert_eq!(world.due(&monitor, TICK, "").await, []);
    let [row] = world.list::<Alert>().await.try_into().unwrap();
    let seen = Acknowledgement {
        by: UserSlug::parse("ann").unwrap(),
        at: noon(),
    };
    world
        .put(&Alert {
            acknowledged: Some(seen),
            ..row
        })
        .await;
    world.pass(420);
    let worse = world.due(&monitor, TICK, "").await;
    let [Payload::StuckTaskEscalated(worse)] = worse.as_slice() else {
        panic!("{worse:?}");
    };
    assert_eq!(worse.severity, Severity::Error);
    assert!(worse.message.contains("20 minutes"), "{}", worse.message);
    world.pass(120);
    let again = world.due(&monitor, TICK, "").await;
    assert_eq!(again, [], "it is as bad as it was told");
    let [row] = world.list::<Alert>().await.try_into().unwrap();
    assert_eq!(
        (row.severity, row.escalations, row.cleared_at),
        (Severity::Error, 1, None)
    );
    assert_eq!(row.acknowledged, None, "it grew worse since");
    assert_eq!(row.build, Some(build_id(1)));

    world
        .put(&Attempt {
            state: AttemptState::Landed,
            failure: None,
            ended_at: Some(noon() + Duration::from_mins(18)),
            ..attempt
        })
        .await;
    world
        .put(&Task {
            state: TaskState::Complete,
            attempt: None,
            ..world.task(&stuck).await
        })
        .await;
    let cleared = world.due(&monitor, TICK, "").await;
    let [Payload::StuckTaskCleared(cleared)] = cleared.as_slice() else {
        panic!("{cleared:?}");
    };
    assert_eq!(cleared.cause, row.cause);
    assert!(
        cleared.message.contains("18 minutes"),
        "{}",
        cleared.message
    );
    assert_eq!(world.due(&monitor, TICK, "").await, []);
}

#[tokio::test]
async fn a_slow_task_that_makes_progress_is_left_alone() {
    let world = WatchWorld::open().await;
    let slow = task(1, "T-001", "src/api.rs", Action::Create);
    world.lay(&build(1), std::slice::from_ref(&slow)).await;
    world.run(&slow, 7, "loop-1").await;
    for _ in 0..10 {
        world.pass(540);
        let now = Some(world.clock.now());
        let moved = Task {
            progress_at: now,
            ..world.task(&slow).await
        };
        world.put(&moved).await;
        assert_eq!(world.due(&monitor(), TICK, "").await, []);
    }
    assert_eq!(world.list::<Alert>().await, []);
}

#[tokio::test]
async fn a_dead_loop_is_noticed_within_two_minutes_and_its_return_too() {
    let world = WatchWorld::open().await;
    let monitor = monitor();
    monitor.recover(&world.context("monitor")).await.unwrap();
    world.put(&component("loop-2", noon())).await;
    let mut seen = Vec::new();
    for half_minutes in 1..=6 {
        world.pass(30);
        world.put(&component("loop-1", world.clock.now())).await;
        for payload in world.due(&monitor, HEALTH, "").await {
            seen.push((half_minutes, payload));
        }
    }
    let [(3, Payload::ComponentDown(down))] = seen.as_slice() else {
        panic!("{seen:?}");
    };
    assert_eq!(
        (down.component.as_str(), down.silent_seconds),
        ("loop-2", 90)
    );
    world.put(&component("loop-2", world.clock.now())).await;
    let back = world.due(&monitor, HEALTH, "").await;
    assert_eq!(types(&back), ["alert.component_down.cleared"]);
    assert!(world.list::<Alert>().await[0].cleared_at.is_some());
}

/// Counts the stored events that tell of a silent process.
async fn told_down(world: &WatchWorld) -> usize {
    let filter = EventFilter {
        pattern: Some(EventPattern::of("alert.component_down")),
        ..EventFilter::default()
    };
    world.store.events(&filter).await.unwrap().len()
}

#[tokio::test]
async fn the_death_of_the_monitor_is_told_once_by_those_who_live_until_it_is_back() {
    let world = WatchWorld::open().await;
    let options = MonitorOptions::from(&Config::shipped().unwrap().monitor);
    let (mut one, mut two) = (Deputy::new(options.clone()), Deputy::new(options));
    let lives = async || {
        let of_role = Component {
            role: "monitor".to_owned(),
            ..component("monitor-3", world.clock.now())
        };
        world.put(&of_role).await;
    };
    for deaths in 1..=2 {
        lives().await;
        for half_minutes in 0..=4 {
            let context = world.context("deputy");
            let looked = tokio::join!(one.look(&context), two.look(&context));
            assert_eq!(looked, (Ok(()), Ok(())));
            let told = if half_minutes < 3 { deaths - 1 } else { deaths };
            assert_eq!(told_down(&world).await, told, "{deaths} {half_minutes}");
            world.pass(30);
        }
        let [row] = world.list::<Alert>().await.try_into().unwrap();
        assert_eq!(
            (row.cause.as_str(), row.severity, row.cleared_at),
            ("component/monitor-3", Severity::Error, None)
        );
        lives().await;
        let back = world.due(&monitor(), HEALTH, "").await;
        assert_eq!(types(&back), ["alert.component_down.cleared"]);
        assert!(world.list::<Alert>().await[0].cleared_at.is_some());
    }
}

#[tokio::test]
async fn silence_from_before_a_restart_raises_no_alarm_and_clears_none() {
    let world = WatchWorld::open().await;
    let before = monitor();
    before.recover(&world.context("monitor")).await.unwrap();
    world.put(&component("loop-2", noon())).await;
    for _ in 0..3 {
        world.pass(30);
        world.due(&before, HEALTH, "").await;
    }
    assert_eq!(world.list::<Alert>().await.len(), 1);
    world.pass(3600);
    world.put(&component("loop-1", noon())).await;
    let after = monitor();
    after.recover(&world.context("monitor")).await.unwrap();
    assert_eq!(world.due(&after, HEALTH, "").await, []);
    assert_eq!(world.list::<Alert>().await.len(), 1);
}

/// Two tasks that each hold what the other waits for; loop 2's is the less urgent.
pub(crate) async fn deadlocked_tasks(world: &WatchWorld) -> [Task; 2] {
    let mut tasks = [
        task(1, "T-001", "a.ts", Action::Update),
        task(1, "T-002", "b.ts", Action::Update),
    ];
    for (index, task) in tasks.iter_mut().enumerate() {
        task.block.priority = u8::try_from(index + 1).ok();
    }
    world.lay(&build(1), &tasks).await;
    for (number, (task, on)) in tasks.iter().zip(["loop-1", "loop-2"]).enumerate() {
        let attempt = world.run(task, number as u128 + 1, on).await;
        let mut changes = ChangeSet::new();
        changes.grant(Lease {
            path: task.block.file.clone(),
            holder: Holder {
                build: task.build,
                task: task.id.clone(),
                attempt: attempt.id,
                loop_name: attempt.loop_name,
            },
            state: LeaseState::Granted,
            token: 0,
            renewals: 0,
            ttl_ms: 60_000,
            reason: String::new(),
            granted_at: noon(),
        });
        world.commit(changes).await;
    }
    for (waiter, wanted, holder) in [("T-001", "b.ts", "T-002"), ("T-002", "a.ts", "T-001")] {
        let party = |task: &str| Party::Task {
            build: build_id(1),
            task: id(task),
        };
        world
            .put(&Wait {
                waiter: party(waiter),
                resource: Resource::Lease { path: path(wanted) },
                holder: Some(party(holder)),
                since: noon(),
            })
            .await;
    }
    tasks
}

#[tokio::test]
async fn a_cycle_is_reported_once_while_it_stands() {
    let world = WatchWorld::open().await;
    deadlocked_tasks(&world).await;
    let monitor = monitor();
    let found = world.due(&monitor, TICK, "").await;
    let [
        Payload::DeadlockDetected(DeadlockDetected {
            cycle,
            victim: None,
            resolved: false,
            severity: Some(Severity::Critical),
        }),
    ] = found.as_slice()
    else {
        panic!("{found:?}");
    };
    assert_eq!(cycle.len(), 2);
    world.pass(120);
    assert_eq!(world.due(&monitor, TICK, "").await, []);
    let [row] = world.list::<Alert>().await.try_into().unwrap();
    assert_eq!((row.severity, row.cleared_at), (Severity::Critical, None));

    let [first, _] = world
        .store
        .list::<Wait>(ropewalk_store::Query::new())
        .await
        .unwrap()
        .try_into()
        .unwrap();
    let mut changes = ChangeSet::new();
    changes.delete(&first);
    world.commit(changes).await;
    assert_eq!(world.due(&monitor, TICK, "").await, []);
    assert!(world.list::<Alert>().await[0].cleared_at.is_some());
}

#[tokio::test]
async fn a_task_that_waits_for_a_lock_is_not_called_stuck() {
    let world = WatchWorld::open().await;
    let [_, second] = deadlocked_tasks(&world).await;
    world.pass(3600);
    let found = world.due(&monitor(), TICK, "").await;
    assert_eq!(types(&found), ["alert.deadlock"]);
    assert_eq!(world.task(&second).await.attempt, Some(attempt_id(2)));
    assert_eq!(build(1).state, BuildState::Running);
}
