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

use crate::house::{
    House, attempt_at, build, build_id, component, id, name, noon, path, task, templates, types,
};
use crate::monitor::{monitor, ring};

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
async fn stuck(house: &House) -> (Attempt, Payload) {
    let task = task(1, "T-005", "src/api.rs", Action::Create);
    house.lay(&build(1), std::slice::from_ref(&task)).await;
    let attempt = house.run(&task, 7, "loop-1").await;
    house.pass(660);
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
    let house = House::open().await;
    let pm = pm();
    let (attempt, alert) = stuck(&house).await;
    let target = attempt.id.to_string();
    let watched = house.give(&pm, alert).await;
    assert_eq!(verdicts(&watched), [Verdict::Watch]);
    assert_eq!(house.timers(STUCK).await, [16]);
    house.pass(300);
    assert_eq!(house.due(&pm, STUCK, &target).await, []);
    assert_eq!(house.timers(STUCK).await, [20]);
    assert_eq!(house.open_question().await, None);
    house.pass(240);
    assert_eq!(
        types(&house.due(&pm, STUCK, &target).await),
        ["question.asked"]
    );
    let question = house.open_question().await.unwrap();
    let ids: Vec<&str> = question
        .choices
        .iter()
        .map(|choice| choice.id.as_str())
        .collect();
    assert_eq!(ids, ["wait", "skip", "retry"]);
    assert_eq!(house.timers(STUCK).await, [30]);
    house.pass(600);
    let ended = house.due(&pm, STUCK, &target).await;
    assert_eq!(types(&ended), ["question.superseded", "decision.made"]);
    assert_eq!(verdicts(&ended), [Verdict::Interrupt]);
}

#[tokio::test]
async fn the_answer_wait_begins_the_age_anew_also_after_a_restart() {
    let house = House::open().await;
    let (attempt, alert) = stuck(&house).await;
    let target = attempt.id.to_string();
    house.pass(540);
    assert_eq!(types(&house.give(&pm(), alert).await), ["question.asked"]);
    house.pass(120);
    assert_eq!(
        verdicts(&house.answer(&pm(), "wait").await),
        [Verdict::Watch]
    );
    assert_eq!(house.timers(STUCK).await, [27]);
    house.pass(1199);
    assert_eq!(house.due(&pm(), STUCK, &target).await, []);
    house.pass(1);
    assert_eq!(
        types(&house.due(&pm(), STUCK, &target).await),
        ["question.asked"]
    );
}

#[tokio::test]
async fn skip_and_retry_are_done_for_the_attempt_that_was_asked_about() {
    for (answer, verdict) in [("skip", Verdict::Skip), ("retry", Verdict::Retry)] {
        let house = House::open().await;
        let (_, alert) = stuck(&house).await;
        house.pass(600);
        house.give(&pm(), alert).await;
        let decided = house.answer(&pm(), answer).await;
        let [Payload::DecisionMade(decided)] = decided.as_slice() else {
            panic!("{decided:?}");
        };
        assert_eq!(
            (decided.verdict, decided.task_id.clone()),
            (verdict, Some(id("T-005")))
        );
        assert!(decided.reason.contains("ada"));
        assert_eq!(decided.decided_by.as_deref(), Some("ada"));
        assert!(house.timers(STUCK).await.is_empty());
    }
}

#[tokio::test]
async fn an_answer_that_comes_for_an_earlier_attempt_changes_nothing() {
    let house = House::open().await;
    let (attempt, alert) = stuck(&house).await;
    house.pass(600);
    house.give(&pm(), alert).await;
    house
        .put(&Attempt {
            state: AttemptState::Interrupted,
            ..attempt
        })
        .await;
    house.pass(60);
    let again = task(1, "T-005", "src/api.rs", Action::Create);
    house.run(&again, 8, "loop-1").await;
    assert_eq!(house.answer(&pm(), "skip").await, []);
}

#[tokio::test]
async fn a_task_that_moves_again_is_no_longer_looked_after() {
    let house = House::open().await;
    let (attempt, alert) = stuck(&house).await;
    house.pass(600);
    house.give(&pm(), alert).await;
    let cleared = AlertCleared {
        cause: format!("stuck/{}/T-005/{}", build_id(1), attempt.id),
        message: String::new(),
    };
    let told = house.give(&pm(), Payload::StuckTaskCleared(cleared)).await;
    assert_eq!(types(&told), ["question.superseded"]);
    assert!(house.timers(STUCK).await.is_empty());
    house
        .put(&Attempt {
            state: AttemptState::Landed,
            ..attempt.clone()
        })
        .await;
    house.pass(3600);
    assert_eq!(house.due(&pm(), STUCK, &attempt.id.to_string()).await, []);
}

#[tokio::test]
async fn a_contested_file_goes_by_ownership_and_priority() {
    let house = House::open().await;
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
        house.put(build).await;
    }
    for (file, build) in [
        ("less-urgent.ts", 2),
        ("given-up.ts", 3),
        ("equal.ts", 4),
        ("may-come-back.ts", 5),
    ] {
        house
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
        let decided = house.give(&pm(), Payload::ConflictDetected(conflict)).await;
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
async fn three_loops(house: &House) {
    let file = |number: u32| format!("src/{number}.rs");
    let mut tasks: Vec<Task> = (1..=5)
        .map(|number| task(1, &format!("T-{number:03}"), &file(number), Action::Create))
        .collect();
    for assigned in &mut tasks[3..] {
        assigned.assigned_to = Some(name("loop-2"));
    }
    house.lay(&build(1), &tasks).await;
    house.run(&tasks[0], 1, "loop-1").await;
    house.run(&tasks[1], 3, "loop-3").await;
    // The work of loop 2 was taken from it already; its attempt is kept.
    house
        .put(&Attempt {
            state: AttemptState::Interrupted,
            ..attempt_at(&tasks[2], 2, "loop-2")
        })
        .await;
    house
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
    let house = House::open().await;
    three_loops(&house).await;
    house.put(&component("loop-2", noon())).await;
    house.pass(120);
    for living in ["loop-1", "loop-3", "build", "build-scheduler"] {
        house.put(&component(living, house.clock.now())).await;
    }
    let given: Vec<(String, String)> = house
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
    let house = House::open().await;
    three_loops(&house).await;
    for silent in ["loop-1", "loop-2", "loop-3"] {
        house.put(&component(silent, noon())).await;
    }
    house.pass(120);
    let told = house.give(&pm(), down()).await;
    assert_eq!(verdicts(&told), [Verdict::Watch; 3]);
    assert_eq!(told.len(), 3);
    // One that is back has lost nothing.
    house.put(&component("loop-2", house.clock.now())).await;
    assert_eq!(house.give(&pm(), down()).await, []);
}

#[tokio::test]
async fn an_unresolved_ring_is_broken_at_its_least_urgent_member() {
    let house = House::open().await;
    ring(&house).await;
    let mut found = house
        .due(&monitor(), ropewalk_agents::monitor::TICK, "")
        .await;
    let alert = found.remove(0);
    let told = house.give(&pm(), alert.clone()).await;
    let [Payload::LockRevoked(revoked)] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(
        (revoked.task_id.clone(), revoked.files.clone()),
        (id("T-002"), vec![path("b.ts")])
    );
    let leases = house.list::<Lease>().await;
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
    assert_eq!(house.list::<Wait>().await.len(), 1);
    assert!(house.list::<Alert>().await[0].cleared_at.is_some());
    assert_eq!(house.give(&pm(), alert).await, []);
}

#[tokio::test]
async fn a_decision_is_asked_with_options_and_the_answer_is_told() {
    for (answer, verdict, told) in [
        ("retry", vec![Verdict::Retry], vec!["decision.made"]),
        ("skip", vec![Verdict::Skip], vec!["decision.made"]),
        ("guide take the other side", vec![], vec!["task.retry"]),
        ("leave", vec![], vec![]),
    ] {
        let house = House::open().await;
        house.put(&build(1)).await;
        let request = DecisionRequested {
            build_id: build_id(1),
            task_id: Some(id("T-001")),
            question: "Both changed line 7.".to_owned(),
            options: ["retry", "guide", "skip", "leave"].map(choice).to_vec(),
            recommended: Some(choice("retry")),
            rule: None,
            call: None,
        };
        house.give(&pm(), Payload::DecisionRequested(request)).await;
        let question = house.open_question().await.unwrap();
        assert!(question.text.contains("line 7") && question.consequential);
        let recommended: Vec<bool> = question
            .choices
            .iter()
            .map(|choice| choice.recommended)
            .collect();
        assert_eq!(recommended, [true, false, false, false]);
        assert!(means_nothing(&question), "nothing here reads a label");
        let decided = house.answer(&pm(), answer).await;
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
        let house = House::open().await;
        let of_build = Build {
            completed_at,
            ..build(1)
        };
        let mut of_task = task(1, "T-001", "src/api.rs", Action::Create);
        of_task.state = state;
        house.lay(&of_build, &[of_task]).await;
        let given = house.give(&pm(), refused_call()).await;
        assert_eq!(types(&given), told, "{state}, {completed_at:?}");
    }
}

#[tokio::test]
async fn who_lands_a_task_while_its_refused_call_is_asked_about_looks_again() {
    let house = House::open().await;
    let of_task = task(1, "T-001", "src/api.rs", Action::Create);
    house.lay(&build(1), &[of_task]).await;
    let key = build_id(1).to_string();
    let before = house.store.get::<Build>(&key).await.unwrap().unwrap();
    house.give(&pm(), refused_call()).await;
    let mut landing = ChangeSet::new();
    landing.update(&before, &before.record);
    let landed = house.store.commit(landing).await;
    assert!(matches!(landed, Err(CommitError::Conflict { .. })));
}

/// Two builds own a file each, and a task of each waits for the file of the other.
async fn knot(house: &House) -> [Build; 2] {
    let builds = [build(1), build(2)];
    for (own, other, file) in [(1, 2, "b.ts"), (2, 1, "a.ts")] {
        let mut waiting = task(own, "T-001", file, Action::Update);
        waiting.state = TaskState::Waiting;
        house
            .lay(&builds[usize::try_from(own).unwrap() - 1], &[waiting])
            .await;
        house
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
        house
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
    let house = House::open().await;
    knot(&house).await;
    let mut found = house
        .due(&monitor(), ropewalk_agents::monitor::TICK, "")
        .await;
    let told = house.give(&pm(), found.remove(0)).await;
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
        let house = House::open().await;
        knot(&house).await;
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
        house.put(&waiting).await;
        let requested = ChangeRequested {
            build_id: build_id(1),
            task_id: id("T-001"),
            owner: build_id(2),
            file: path("b.ts"),
            change: "it changes it".to_owned(),
        };
        let asked = house.give(&pm(), Payload::ChangeRequested(requested)).await;
        assert_eq!(types(&asked), ["question.asked"]);
        let question = house.open_question().await.unwrap();
        assert_eq!(question.default, Some(choice("wait")));
        let told = house.answer(&pm(), answer).await;
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
