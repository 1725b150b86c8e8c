//! What PM decides, asks and hands out.

use ropewalk_agents::pm::{Pm, PmOptions, STUCK};
use ropewalk_config::Config;
use ropewalk_orchestrator::questions::Deadlines;
use ropewalk_schemas::alert::Alert;
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::lease::{Lease, LeaseState, Ownership};
use ropewalk_schemas::payload::{
    AlertCleared, ChangeRequested, ComponentDown, ConflictDetected, DecisionMade,
    DecisionRequested, RefusedCall, StuckTask, Verdict,
};
use ropewalk_schemas::task::{Action, ChangeRequest, ChangeRequestState, Task, TaskState};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{ChoiceId, Payload, Priority};
use ropewalk_store::{ChangeSet, CommitError};
use ropewalk_world::questions::means_nothing;

use crate::monitor::{deadlocked_tasks, monitor};
use crate::world::{
    WatchWorld, attempt_at, build, build_id, component, id, name, noon, path, task, templates,
    types,
};

fn choice(id: &str) -> ChoiceId {
    ChoiceId::parse(id).unwrap()
}

pub(crate) fn pm() -> Pm {
    let shipped = Config::shipped().unwrap();
    let templates = templates();
    let deadlines = Deadlines::default();
    Pm::new(PmOptions::new(
        &shipped.pm,
        &shipped.monitor,
        templates,
        deadlines,
    ))
    .unwrap()
}

fn verdicts(payloads: &[Payload]) -> Vec<Verdict> {
    payloads
        .iter()
        .filter_map(|payload| match payload {
            Payload::DecisionMade(made) => Some(made.verdict),
            _ => None,
        })
        .collect()
}

/// A task that has stood still for eleven minutes, with its alert.
async fn stuck(world: &WatchWorld) -> (Attempt, Payload) {
    let task = task(1, "T-005", "src/api.rs", Action::Create);
    world.lay(&build(1), std::slice::from_ref(&task)).await;
    let attempt = world.run(&task, 7, "loop-1").await;
    world.pass(660);
    let alert = Payload::StuckTask(StuckTask {
        build_id: attempt.build,
        task_id: attempt.task.clone(),
        attempt_id: attempt.id,
        loop_name: attempt.loop_name.clone(),
        idle_minutes: 11,
        severity: None,
    });
    (attempt, alert)
}

#[tokio::test]
async fn a_stuck_task_is_watched_then_asked_about_then_interrupted() {
    let world = WatchWorld::open().await;
    let pm = pm();
    let (attempt, alert) = stuck(&world).await;
    let target = attempt.id.to_string();
    let watched = world.give(&pm, alert).await;
    assert_eq!(verdicts(&watched), [Verdict::Watch]);
    assert_eq!(world.timers(STUCK).await, [16]);
    world.pass(300);
    assert_eq!(world.due(&pm, STUCK, &target).await, []);
    assert_eq!(world.timers(STUCK).await, [20]);
    assert_eq!(world.open_question().await, None);
    world.pass(240);
    assert_eq!(
        types(&world.due(&pm, STUCK, &target).await),
        ["question.asked"]
    );
    let question = world.open_question().await.unwrap();
    let ids: Vec<&str> = question
        .choices
        .iter()
        .map(|choice| choice.id.as_str())
        .collect();
    assert_eq!(ids, ["wait", "skip", "retry"]);
    assert_eq!(world.timers(STUCK).await, [30]);
    world.pass(600);
    let ended = world.due(&pm, STUCK, &target).await;
    assert_eq!(types(&ended), ["question.superseded", "decision.made"]);
    assert_eq!(verdicts(&ended), [Verdict::Interrupt]);
}

#[tokio::test]
async fn the_answer_wait_begins_the_age_anew_also_after_a_restart() {
    let world = WatchWorld::open().await;
    let (attempt, alert) = stuck(&world).await;
    let target = attempt.id.to_string();
    world.pass(540);
    assert_eq!(types(&world.give(&pm(), alert).await), ["question.asked"]);
    world.pass(120);
    assert_eq!(
        verdicts(&world.answer(&pm(), "wait").await),
        [Verdict::Watch]
    );
    assert_eq!(world.timers(STUCK).await, [27]);
    world.pass(1199);
    assert_eq!(world.due(&pm(), STUCK, &target).await, []);
    world.pass(1);
    assert_eq!(
        types(&world.due(&pm(), STUCK, &target).await),
        ["question.asked"]
    );
}

#[tokio::test]
async fn skip_and_retry_are_done_for_the_attempt_that_was_asked_about() {
    for (answer, verdict) in [("skip", Verdict::Skip), ("retry", Verdict::Retry)] {
        let world = WatchWorld::open().await;
        let (_, alert) = stuck(&world).await;
        world.pass(600);
        world.give(&pm(), alert).await;
        let decided = world.answer(&pm(), answer).await;
        let [Payload::DecisionMade(decided)] = decided.as_slice() else {
            panic!("{decided:?}");
        };
        assert_eq!(
            (decided.verdict, decided.task_id.clone()),
            (verdict, Some(id("T-005")))
        );
        assert!(decided.reason.contains("ada"));
        assert_eq!(decided.decided_by.as_deref(), Some("ada"));
        assert!(world.timers(STUCK).await.is_empty());
    }
}

#[tokio::test]
async fn an_answer_that_comes_for_an_earlier_attempt_changes_nothing() {
    let world = WatchWorld::open().await;
    let (attempt, alert) = stuck(&world).await;
    world.pass(600);
    world.give(&pm(), alert).await;
    world
        .put(&Attempt {
            state: AttemptState::Interrupted,
            ..attempt
        })
        .await;
    world.pass(60);
    let again = task(1, "T-005", "src/api.rs", Action::Create);
    world.run(&again, 8, "loop-1").await;
    assert_eq!(world.answer(&pm(), "skip").await, []);
}

#[tokio::test]
async fn a_task_that_moves_again_is_no_longer_looked_after() {
    let world = WatchWorld::open().await;
    let (attempt, alert) = stuck(&world).await;
    world.pass(600);
    world.give(&pm(), alert).await;
    let cleared = AlertCleared {
        cause: format!("stuck/{}/T-005/{}", build_id(1), attempt.id),
        message: String::new(),
    };
    let told = world.give(&pm(), Payload::StuckTaskCleared(cleared)).await;
    assert_eq!(types(&told), ["question.superseded"]);
    assert!(world.timers(STUCK).await.is_empty());
    world
        .put(&Attempt {
            state: AttemptState::Landed,
            ..attempt.clone()
        })
        .await;
    world.pass(3600);
    assert_eq!(world.due(&pm(), STUCK, &attempt.id.to_string()).await, []);
}

#[tokio::test]
async fn a_contested_file_goes_by_ownership_and_priority() {
    let world = WatchWorld::open().await;
    let owner = Build {
        priority: Priority::new(6).unwrap(),
        ..build(2)
    };
    let given_up = Build {
        state: BuildState::Stopped,
        stop: Some(StopCause::Abandoned),
        ..build(3)
    };
    let equal = build(4);
    let failed = Build {
        state: BuildState::Failed,
        ..build(5)
    };
    for build in [&build(1), &owner, &given_up, &equal, &failed] {
        world.put(build).await;
    }
    for (file, build) in [
        ("less-urgent.ts", 2),
        ("given-up.ts", 3),
        ("equal.ts", 4),
        ("may-come-back.ts", 5),
    ] {
        world
            .put(&Ownership {
                path: path(file),
                build: build_id(build),
                since: noon(),
                ended: false,
                after: None,
            })
            .await;
    }
    for (file, verdict) in [
        ("free.ts", Verdict::Grant),
        ("given-up.ts", Verdict::Grant),
        ("less-urgent.ts", Verdict::Preempt),
        ("equal.ts", Verdict::Deny),
        ("may-come-back.ts", Verdict::Deny),
    ] {
        let conflict = ConflictDetected {
            build_id: build_id(1),
            task_id: id("T-001"),
            owner: None,
            file: path(file),
        };
        let decided = world.give(&pm(), Payload::ConflictDetected(conflict)).await;
        let [
            Payload::DecisionMade(DecisionMade {
                verdict: found,
                file: told,
                ..
            }),
        ] = decided.as_slice()
        else {
            panic!("{decided:?}");
        };
        let expected = (verdict, Some(path(file)));
        assert_eq!((*found, told.clone()), expected, "{file}");
    }
}

/// Loop 2 works on one task and has two more; loops 1 and 3 have one each.
async fn three_loops(world: &WatchWorld) {
    let file = |number: u32| format!("src/{number}.rs");
    let mut tasks: Vec<Task> = (1..=5)
        .map(|number| task(1, &format!("T-{number:03}"), &file(number), Action::Create))
        .collect();
    for assigned in &mut tasks[3..] {
        assigned.assigned_to = Some(name("loop-2"));
    }
    world.lay(&build(1), &tasks).await;
    world.run(&tasks[0], 1, "loop-1").await;
    world.run(&tasks[1], 3, "loop-3").await;
    // The work of loop 2 was taken from it already; its attempt is kept.
    world
        .put(&Attempt {
            state: AttemptState::Interrupted,
            ..attempt_at(&tasks[2], 2, "loop-2")
        })
        .await;
    world
        .put(&Task {
            state: TaskState::Ready,
            attempts: 1,
            ..tasks[2].clone()
        })
        .await;
}

fn down() -> Payload {
    Payload::ComponentDown(ComponentDown {
        component: name("loop-2"),
        silent_seconds: 90,
        severity: None,
    })
}

#[tokio::test]
async fn the_work_of_a_dead_loop_goes_to_the_living_by_load() {
    let world = WatchWorld::open().await;
    three_loops(&world).await;
    world.put(&component("loop-2", noon())).await;
    world.pass(120);
    for living in ["loop-1", "loop-3", "build", "build-scheduler"] {
        world.put(&component(living, world.clock.now())).await;
    }
    let given: Vec<(String, String)> = world
        .give(&pm(), down())
        .await
        .into_iter()
        .map(|payload| match payload {
            Payload::WorkAssigned(given) => {
                let (from, why) = (given.from, given.reason);
                assert!(from == Some(name("loop-2")) && why.is_some());
                (given.task_id.to_string(), given.to.to_string())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        ("T-003", "loop-1"),
        ("T-004", "loop-3"),
        ("T-005", "loop-1"),
    ];
    assert_eq!(
        given,
        expected.map(|(task, to)| (task.to_owned(), to.to_owned()))
    );
}

#[tokio::test]
async fn work_that_nobody_can_take_stays_and_is_said_aloud() {
    let world = WatchWorld::open().await;
    three_loops(&world).await;
    for silent in ["loop-1", "loop-2", "loop-3"] {
        world.put(&component(silent, noon())).await;
    }
    world.pass(120);
    let told = world.give(&pm(), down()).await;
    assert_eq!(verdicts(&told), [Verdict::Watch; 3]);
    assert_eq!(told.len(), 3);
    // One that is back has lost nothing.
    world.put(&component("loop-2", world.clock.now())).await;
    assert_eq!(world.give(&pm(), down()).await, []);
}

#[tokio::test]
async fn an_unresolved_cycle_is_broken_at_its_least_urgent_member() {
    let world = WatchWorld::open().await;
    deadlocked_tasks(&world).await;
    let mut found = world
        .due(&monitor(), ropewalk_agents::monitor::TICK, "")
        .await;
    let alert = found.remove(0);
    let told = world.give(&pm(), alert.clone()).await;
    let [Payload::LockRevoked(revoked)] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(
        (revoked.task_id.clone(), revoked.files.clone()),
        (id("T-002"), vec![path("b.ts")])
    );
    let leases = world.list::<Lease>().await;
    let state = |file: &str| {
        leases
            .iter()
            .find(|lease| lease.path == path(file))
            .unwrap()
            .state
    };
    assert_eq!(
        (state("a.ts"), state("b.ts")),
        (LeaseState::Granted, LeaseState::Revoked)
    );
    assert_eq!(world.list::<Wait>().await.len(), 1);
    assert!(world.list::<Alert>().await[0].cleared_at.is_some());
    assert_eq!(world.give(&pm(), alert).await, []);
}

#[tokio::test]
async fn a_decision_is_asked_with_options_and_the_answer_is_told() {
    for (answer, verdict, told) in [
        ("retry", vec![Verdict::Retry], vec!["decision.made"]),
        ("skip", vec![Verdict::Skip], vec!["decision.made"]),
        ("guide take the other side", vec![], vec!["task.retry"]),
        ("leave", vec![], vec![]),
    ] {
        let world = WatchWorld::open().await;
        world.put(&build(1)).await;
        let request = DecisionRequested {
            build_id: build_id(1),
            task_id: Some(id("T-001")),
            question: "Both changed line 7.".to_owned(),
            options: ["retry", "guide", "skip", "leave"].map(choice).to_vec(),
            recommended: Some(choice("retry")),
            rule: None,
            call: None,
        };
        world.give(&pm(), Payload::DecisionRequested(request)).await;
        let question = world.open_question().await.unwrap();
        assert!(question.text.contains("line 7") && question.consequential);
        let recommended: Vec<bool> = question
            .choices
            .iter()
            .map(|choice| choice.recommended)
            .collect();
        assert_eq!(recommended, [true, false, false, false]);
        assert!(means_nothing(&question), "nothing here reads a label");
        let decided = world.answer(&pm(), answer).await;
        assert_eq!(
            (verdicts(&decided), types(&decided)),
            (verdict, told),
            "{answer}"
        );
        let resumes = |one: &Payload| matches!(one, Payload::TaskRetry(retry) if retry.may_resume);
        assert!(
            !decided.iter().any(resumes),
            "an answer lets no stopped build go on"
        );
    }
}

#[tokio::test]
async fn whoever_leaves_a_task_out_says_why_and_that_is_the_reason() {
    for (answer, reason) in [
        ("skip: nobody needs it any more", "nobody needs it any more"),
        ("skip", "`ada` decided: "),
    ] {
        let world = WatchWorld::open().await;
        world.put(&build(1)).await;
        let request = DecisionRequested {
            build_id: build_id(1),
            task_id: Some(id("T-001")),
            question: "Both changed line 7.".to_owned(),
            options: ["retry", "skip"].map(choice).to_vec(),
            recommended: None,
            rule: None,
            call: None,
        };
        world.give(&pm(), Payload::DecisionRequested(request)).await;
        let decided = world.answer(&pm(), answer).await;
        let [Payload::DecisionMade(decision)] = decided.as_slice() else {
            panic!("{decided:?}");
        };
        assert_eq!(decision.verdict, Verdict::Skip);
        assert!(decision.reason.starts_with(reason), "{}", decision.reason);
        assert_eq!(decision.decided_by.as_deref(), Some("ada"));
    }
}

/// A call that was refused while a task was worked on.
fn refused_call() -> Payload {
    Payload::DecisionRequested(DecisionRequested {
        build_id: build_id(1),
        task_id: Some(id("T-001")),
        question: "The model wanted to use `bash` for `expr 1 + 1`.".to_owned(),
        options: ["allow-call", "allow-rule", "leave"].map(choice).to_vec(),
        recommended: Some(choice("leave")),
        rule: Some("the rule ask bash `expr *`".to_owned()),
        call: Some(RefusedCall {
            agent: "attempt/1".to_owned(),
            tool: "bash".to_owned(),
            subject: "expr 1 + 1".to_owned(),
        }),
    })
}

#[tokio::test]
async fn a_refused_call_is_asked_about_while_its_task_may_make_it_again_and_no_longer() {
    let asked = vec!["question.asked"];
    for (state, completed_at, told) in [
        (TaskState::Working, None, asked.clone()),
        (TaskState::Failed, None, asked),
        (TaskState::Complete, None, vec![]),
        (TaskState::Working, Some(noon()), vec![]),
    ] {
        let world = WatchWorld::open().await;
        let of_build = Build {
            completed_at,
            ..build(1)
        };
        let mut of_task = task(1, "T-001", "src/api.rs", Action::Create);
        of_task.state = state;
        world.lay(&of_build, &[of_task]).await;
        let given = world.give(&pm(), refused_call()).await;
        assert_eq!(types(&given), told, "{state}, {completed_at:?}");
    }
}

#[tokio::test]
async fn who_lands_a_task_while_its_refused_call_is_asked_about_looks_again() {
    let world = WatchWorld::open().await;
    let of_task = task(1, "T-001", "src/api.rs", Action::Create);
    world.lay(&build(1), &[of_task]).await;
    let key = build_id(1).to_string();
    let before = world.store.get::<Build>(&key).await.unwrap().unwrap();
    world.give(&pm(), refused_call()).await;
    let mut landing = ChangeSet::new();
    landing.update(&before, &before.record);
    let landed = world.store.commit(landing).await;
    assert!(matches!(landed, Err(CommitError::Conflict { .. })));
}

/// Two builds own a file each, and a task of each waits for the file of the other.
async fn knot(world: &WatchWorld) -> [Build; 2] {
    let builds = [build(1), build(2)];
    for (own, other, file) in [(1, 2, "b.ts"), (2, 1, "a.ts")] {
        let mut waiting = task(own, "T-001", file, Action::Update);
        waiting.state = TaskState::Waiting;
        world
            .lay(&builds[usize::try_from(own).unwrap() - 1], &[waiting])
            .await;
        world
            .put(&Ownership {
                path: path(file),
                build: build_id(other),
                since: noon(),
                ended: false,
                after: None,
            })
            .await;
        let waiter = Party::Task {
            build: build_id(own),
            task: id("T-001"),
        };
        world
            .put(&Wait {
                waiter,
                resource: Resource::Ownership { path: path(file) },
                holder: Some(Party::Build {
                    build: build_id(other),
                }),
                since: noon(),
            })
            .await;
    }
    builds
}

#[tokio::test]
async fn of_two_builds_that_wait_for_each_other_one_hands_its_file_over() {
    let world = WatchWorld::open().await;
    knot(&world).await;
    let mut found = world
        .due(&monitor(), ropewalk_agents::monitor::TICK, "")
        .await;
    let told = world.give(&pm(), found.remove(0)).await;
    let [Payload::ChangeDecided(decided)] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert!(decided.approved);
    assert_eq!(
        (decided.build_id, decided.owner, decided.file.clone()),
        (build_id(1), build_id(2), path("b.ts"))
    );
    assert!(
        decided.reason.contains("cycle of waits"),
        "{}",
        decided.reason
    );
}

#[tokio::test]
async fn a_change_request_is_decided_by_a_person_and_waits_until_then() {
    let rows = [
        ("wait", None),
        ("go-on", Some(true)),
        ("refuse", Some(false)),
    ];
    for (answer, expected) in rows {
        let world = WatchWorld::open().await;
        knot(&world).await;
        let mut waiting = task(1, "T-001", "b.ts", Action::Update);
        waiting.state = TaskState::Waiting;
        waiting.change_requests.push(ChangeRequest {
            file: path("b.ts"),
            owner: build_id(2),
            state: ChangeRequestState::Requested,
            reason: None,
            requested_at: noon(),
            decided_at: None,
            commit: None,
        });
        world.put(&waiting).await;
        let requested = ChangeRequested {
            build_id: build_id(1),
            task_id: id("T-001"),
            owner: build_id(2),
            file: path("b.ts"),
            change: "it changes it".to_owned(),
        };
        let asked = world.give(&pm(), Payload::ChangeRequested(requested)).await;
        assert_eq!(types(&asked), ["question.asked"]);
        let question = world.open_question().await.unwrap();
        assert_eq!(question.default, Some(choice("wait")));
        let told = world.answer(&pm(), answer).await;
        let decided: Vec<bool> = told
            .iter()
            .map(|payload| match payload {
                Payload::ChangeDecided(decided) => decided.approved,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            decided,
            expected.into_iter().collect::<Vec<_>>(),
            "{answer}"
        );
    }
}
