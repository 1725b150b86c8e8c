//! What may happen at any moment, and how a history is led to its end.

use chrono::TimeDelta;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use ropewalk_builder::decide::failure::{Answer, FailureContext, Limits, answer, fingerprint};
use ropewalk_builder::decide::order::claimable;
use ropewalk_builder::decide::step::{StopLimits, stop_reason};
use ropewalk_builder::machine::task::{FailedAttempt, Files, Input, On, Phase, State};
use ropewalk_builder::machine::{Ask, build};
use ropewalk_engine::BudgetOverrun;
use ropewalk_gate::protected::ProtectedChange;
use ropewalk_schemas::attempt::{Failure, FailureClass};
use ropewalk_schemas::build::{BuildState, PauseReason, StopCause};
use ropewalk_schemas::task::{KeptWork, Task, TaskState};
use ropewalk_schemas::wait::Resource;
use ropewalk_schemas::{AttemptId, BuildId, CommitId, ComponentName, QuestionId, RepoPath};

use crate::samples;
use crate::world::{About, World};

/// The classes of failure, with those that lead to different answers.
const CLASSES: [FailureClass; 9] = [
    FailureClass::ValidationFailed,
    FailureClass::EmptyChange,
    FailureClass::ProviderDown,
    FailureClass::Quota,
    FailureClass::Conflict,
    FailureClass::MissingDependency,
    FailureClass::ToolMissing,
    FailureClass::Tampered,
    FailureClass::Unknown,
];

/// Lets something happen; says what.
pub(crate) fn step(world: &mut World, chance: &mut StdRng) -> String {
    let what = match chance.random_range(0..20) {
        0..=4 => claim(world, chance),
        5..=10 => move_attempt(world, chance),
        11..=12 => answer_question(world, chance),
        13 => verb(world, chance),
        14 => steer(world, chance),
        15 if world.away && chance.random() => {
            world.away = false;
            "the provider answers again".to_owned()
        }
        15 => resources(world, chance),
        16 => {
            world.now += TimeDelta::minutes(chance.random_range(1..30));
            "time passes".to_owned()
        }
        17 => {
            world.crash();
            "the process dies".to_owned()
        }
        _ => schedule(world, chance),
    };
    // A crash between any commit and what follows from it.
    if chance.random_bool(0.05) {
        world.crash();
        return format!("{what}, and the process dies");
    }
    what
}

fn commit() -> Option<CommitId> {
    CommitId::parse(&"a".repeat(40)).ok()
}

/// Lays the ground, or checks the whole.
fn schedule(world: &mut World, chance: &mut StdRng) -> String {
    let input = match world.build.state {
        BuildState::Queued => build::Input::Prime,
        BuildState::Priming => build::Input::Begin,
        BuildState::Verifying => match chance.random_range(0..4) {
            0 => build::Input::Fail {
                why: "the whole".to_owned(),
            },
            1 => build::Input::Hold {
                detail: "no tool".to_owned(),
            },
            _ => build::Input::Pass { told: None },
        },
        BuildState::Running if chance.random_bool(0.1) => {
            let detail = "moved".to_owned();
            world.build(build::Input::Contest { detail }).unwrap();
            world.ask(About::Branch);
            return "the branch is moved".to_owned();
        }
        _ => return "nothing".to_owned(),
    };
    let told = format!("{input:?}");
    world.build(input).unwrap();
    told
}

fn claim(world: &mut World, chance: &mut StdRng) -> String {
    let limits = StopLimits::default();
    let build = &world.build;
    let may = build.state == BuildState::Running
        && !build.pause_requested
        && build.exhausted.is_none()
        && !world.away
        && stop_reason(build, &world.tasks, &limits, world.now).is_none();
    let name = ComponentName::parse("loop-1").unwrap();
    let first = claimable(&world.tasks, &name, world.now)
        .first()
        .map(|task| task.id.clone());
    let Some(first) = first.filter(|_| may) else {
        return "nothing is free".to_owned();
    };
    let place = world
        .tasks
        .iter()
        .position(|task| task.id == first)
        .unwrap();
    if chance.random_bool(0.15) {
        let by = if chance.random() {
            Files::Locked
        } else {
            Files::Owned
        };
        let told = "waits".to_owned();
        world.task(place, Input::Obstruct { by, told }).unwrap();
        world.wait(place, None);
        return format!("`{first}` waits for files");
    }
    let attempt = AttemptId(world.fresh());
    world
        .task(
            place,
            Input::Claim {
                attempt,
                goes_on: false,
                resumes: chance.random(),
            },
        )
        .unwrap();
    world.attempts.insert(attempt, place);
    world.running.insert(attempt);
    format!("`{first}` is claimed")
}

/// What an attempt does whose work the gate has taken: nothing lands before its model has heard what was said.
fn land(task: &Task) -> Input {
    if task.has_to_hear() {
        let words = u32::try_from(task.guidance.len()).unwrap();
        return Input::Hear { words };
    }
    Input::Land { commit: commit() }
}

fn move_attempt(world: &mut World, chance: &mut StdRng) -> String {
    let running: Vec<usize> = world
        .running
        .iter()
        .filter_map(|attempt| world.attempts.get(attempt).copied())
        .collect();
    let Some(place) = running.choose(chance).copied() else {
        return "nothing runs".to_owned();
    };
    let State::Running { phase, attempt } = world.state(place) else {
        return "nothing runs".to_owned();
    };
    let input = match (chance.random_range(0..10), phase) {
        (0..=6, Phase::Claimed) => Input::Reach(Phase::Working),
        (0..=6, Phase::Working) => Input::Reach(Phase::Validating),
        (0..=6, Phase::Validating) => Input::Reach(Phase::Landing),
        (0..=6, Phase::Landing) if world.build.state == BuildState::Running => {
            land(&world.tasks[place])
        }
        (7, _) => exhaust(world, chance, place),
        (8, Phase::Working) if chance.random_bool(0.3) => {
            world.away = true;
            Input::LoseProvider {
                provider: "scripted".to_owned(),
                told: "away".to_owned(),
            }
        }
        (8, _) => Input::CutOff {
            why: "lost".to_owned(),
            not_before: None,
            counts: chance.random(),
        },
        _ => fail(world, chance, place),
    };
    let told = format!("{} {input:?}", world.tasks[place].id);
    if let Input::ExhaustBudget {
        exceeded,
        own: false,
    } = &input
    {
        let scope = exceeded.scope.clone();
        let known = Resource::Budget {
            scope: scope.clone(),
        };
        if !world.build_waits.contains(&known) {
            let scope_too = scope.clone();
            world
                .build(build::Input::ExhaustBudget { scope: scope_too })
                .unwrap();
            world.ask(About::Budget(scope));
        }
    }
    world.task(place, input).unwrap();
    if world.tasks[place].attempt != Some(attempt) {
        world.running.remove(&attempt);
    }
    told
}

fn exhaust(world: &World, chance: &mut StdRng, place: usize) -> Input {
    let own = chance.random_bool(0.5);
    let scope = if own {
        format!("task/{}", world.tasks[place].id)
    } else {
        "project".to_owned()
    };
    Input::ExhaustBudget {
        exceeded: Box::new(BudgetOverrun {
            scope,
            limit: "1".to_owned(),
            used: "2".to_owned(),
        }),
        own,
    }
}

fn fail(world: &World, chance: &mut StdRng, place: usize) -> Input {
    let class = *CLASSES.choose(chance).unwrap();
    let error = format!("error {}", chance.random_range(0..3));
    let failure = Failure {
        class,
        fingerprint: fingerprint(class, &error, &[]),
        error,
        attempt: world.tasks[place].attempts,
    };
    let happened = FailureContext {
        failure: &failure,
        quota_back: None,
        installable: chance.random(),
        certain: chance.random(),
        now: world.now,
        jitter: 0.5,
    };
    let answer = answer(&world.tasks[place], &happened, &Limits::default());
    let judged = matches!(
        world.state(place),
        State::Running {
            phase: Phase::Validating,
            ..
        }
    );
    if judged && answer == (Answer::Retry { not_before: None }) {
        return Input::SendBack(failure);
    }
    Input::Fail(Box::new(FailedAttempt {
        answer,
        kept: commit().map(|candidate| KeptWork {
            candidate,
            granted: Vec::new(),
        }),
        turn: chance.random_bool(0.5).then_some(1),
        // Nobody is asked about what the gate did not see.
        shown: commit().filter(|_| judged || class == FailureClass::Tampered),
        protected: vec![ProtectedChange {
            path: "tests/a.rs".to_owned(),
            before: None,
            after: None,
            why: "`tests/a.rs` is a test".to_owned(),
        }],
        provider: "scripted".to_owned(),
        failure,
    }))
}

fn answer_question(world: &mut World, chance: &mut StdRng) -> String {
    let open: Vec<QuestionId> = world.questions.keys().copied().collect();
    match open.choose(chance) {
        Some(question) => answered(world, *question, chance.random_range(0..3)),
        None => "nothing is asked".to_owned(),
    }
}

/// Answers a question by its choice number `choice`.
fn answered(world: &mut World, question: QuestionId, choice: u32) -> String {
    let Some(about) = world.questions.remove(&question) else {
        return "it is closed".to_owned();
    };
    if world.build.continued_by.is_some() {
        return "a later revision goes on".to_owned();
    }
    let told = format!("{about:?} is answered by choice {choice}");
    let by = "ada".to_owned();
    match about {
        About::Task(place, Ask::Failed { .. } | Ask::Suspended { .. }) => {
            let input = match choice {
                0 => Input::Skip {
                    by,
                    why: "by answer".to_owned(),
                },
                1 => Input::Leave { told: by },
                _ => Input::Retry { guidance: None },
            };
            let revives = !matches!(input, Input::Leave { .. });
            if world.task(place, input).is_ok() && revives {
                world
                    .build(build::Input::Revive { express: false })
                    .unwrap();
            }
        }
        About::Task(place, Ask::Protected { .. }) => {
            let shown = commit().map(|candidate| KeptWork {
                candidate,
                granted: Vec::new(),
            });
            let no = vec!["no".to_owned()];
            let input = match choice {
                0 => Input::Forbid {
                    overruled: no.clone(),
                    told: no,
                },
                1 => Input::Allow {
                    shown,
                    overruled: no,
                    told: None,
                },
                _ => Input::Allow {
                    shown,
                    overruled: no,
                    told: Some("and more".to_owned()),
                },
            };
            world.task(place, input).unwrap();
        }
        About::Task(place, Ask::Model(_)) => {
            let input = match choice {
                0 => Input::Retry { guidance: None },
                _ => Input::Answer,
            };
            world.task(place, input).unwrap();
        }
        About::Task(place, Ask::Held { .. }) => {
            let why = "its check could not run".to_owned();
            let input = match choice {
                0 => Input::Skip { by, why },
                _ => Input::Recheck,
            };
            let revives = matches!(input, Input::Skip { .. });
            world.task(place, input).unwrap();
            if revives {
                world
                    .build(build::Input::Revive { express: false })
                    .unwrap();
            }
        }
        About::Task(_, Ask::Budget(own)) if choice > 0 => fund(world, &own.scope),
        About::Budget(scope) if choice > 0 => fund(world, &scope),
        About::Branch if choice > 0 => drop(world.build(build::Input::SettleBranch)),
        About::Task(_, Ask::Budget(_)) | About::Budget(_) | About::Branch => stop(world),
    }
    let standing = world.build.question.filter(|open| *open != question);
    world.build(build::Input::Ask(standing)).unwrap();
    told
}

fn fund(world: &mut World, scope: &str) {
    let resource = Some(Resource::Budget {
        scope: scope.to_owned(),
    });
    for place in 0..world.tasks.len() {
        let waits = world
            .waits
            .get(&place)
            .is_some_and(|waits| waits.contains(&resource));
        if waits {
            world.task(place, Input::Fund).unwrap();
        }
    }
    world
        .build_waits
        .retain(|wait| Some(wait) != resource.as_ref());
    let left = world.build_waits.iter().find_map(|wait| match wait {
        Resource::Budget { scope } => Some(scope.clone()),
        _ => None,
    });
    world.build(build::Input::Fund { left }).unwrap();
}

fn stop(world: &mut World) {
    // One that has ended is not stopped again.
    drop(world.build(build::Input::Stop {
        why: StopCause::Person,
        told: "stop requested".to_owned(),
    }));
}

/// A word of a person or of PM about a task; what cannot be is refused, and changes nothing.
fn verb(world: &mut World, chance: &mut StdRng) -> String {
    if world.build.continued_by.is_some() {
        return "a later revision goes on".to_owned();
    }
    let place = chance.random_range(0..world.tasks.len());
    let (by, why) = ("ada".to_owned(), "no need".to_owned());
    let (input, revive) = match chance.random_range(0..8) {
        0 => (Input::Skip { by, why }, Some(false)),
        1 => (Input::Interrupt { why }, None),
        2 | 3 => (Input::Suspend { why }, None),
        7 => (Input::PutQuestion(Box::new(samples::put())), None),
        4 => (Input::Advise("be brief".to_owned()), None),
        _ => (Input::Retry { guidance: None }, Some(true)),
    };
    let told = format!("{} {input:?}", world.tasks[place].id);
    let before = (world.tasks.clone(), world.build.clone());
    if world.task(place, input).is_err() {
        assert_eq!(before, (world.tasks.clone(), world.build.clone()));
        return format!("{told} is refused");
    }
    if let Some(express) = revive {
        world.build(build::Input::Revive { express }).unwrap();
    }
    told
}

/// A word of a person about the build.
fn steer(world: &mut World, chance: &mut StdRng) -> String {
    match chance.random_range(0..8) {
        7 => amend(world, chance),
        0 => {
            let told = "pause".to_owned();
            drop(world.build(build::Input::Pause { told }));
            "a pause is wanted".to_owned()
        }
        1 => {
            stop(world);
            "a stop is wanted".to_owned()
        }
        _ => {
            resume(world);
            "a resumption is wanted".to_owned()
        }
    }
}

/// A later revision takes over: what it touches ends, and the rest goes on to its end.
fn amend(world: &mut World, chance: &mut StdRng) -> String {
    let by = BuildId(uuid::Uuid::nil());
    if chance.random_bool(0.7)
        || world
            .build(build::Input::Amend { by, revision: 2 })
            .is_err()
    {
        return "nothing is amended".to_owned();
    }
    world.questions.clear();
    for place in 0..world.tasks.len() {
        if matches!(world.state(place), State::Running { .. }) && chance.random() {
            let why = "the revision asks for something else".to_owned();
            world.task(place, Input::Interrupt { why }).unwrap();
        }
    }
    "a later revision is built".to_owned()
}

fn resume(world: &mut World) {
    let before = world.build.state;
    if world.build(build::Input::Resume).is_err() {
        return;
    }
    for place in 0..world.tasks.len() {
        let input = match (before, world.state(place)) {
            (
                BuildState::Paused,
                State::Waiting {
                    on: On::Check { .. } | On::Quota { .. } | On::Budget { .. } | On::Outage,
                },
            ) => Input::Resume,
            (BuildState::Stopped | BuildState::Failed, State::Failed { .. }) => {
                Input::Retry { guidance: None }
            }
            _ => continue,
        };
        world.task(place, input).unwrap();
    }
}

/// Files come free, or their owners decide about them.
fn resources(world: &mut World, chance: &mut StdRng) -> String {
    let waiting: Vec<usize> = (0..world.tasks.len())
        .filter(|place| world.tasks[*place].state == TaskState::Waiting)
        .collect();
    let Some(place) = waiting.choose(chance).copied() else {
        return "nothing waits".to_owned();
    };
    let file = RepoPath::parse("src/shared.rs").unwrap();
    let why = "so it is".to_owned();
    let input = match chance.random_range(0..6) {
        0 => Input::HandOver { file, why },
        1 => Input::Deny { why },
        2 => Input::ChangeOwner { file },
        _ => Input::FilesFree,
    };
    let told = format!("{} {input:?}", world.tasks[place].id);
    drop(world.task(place, input));
    told
}

/// Answers whatever is asked, frees whatever is waited for, and lets every attempt land: the build has to end.
pub(crate) fn to_the_end(world: &mut World) -> Result<(), String> {
    world.away = false;
    for _ in 0..400 {
        world.settle();
        if world.is_over() {
            return Ok(());
        }
        for question in world.questions.keys().copied().collect::<Vec<_>>() {
            answered(world, question, 2);
        }
        world.now += TimeDelta::hours(1);
        for place in 0..world.tasks.len() {
            drop(world.task(place, Input::FilesFree));
            if let State::Running { attempt, phase } = world.state(place) {
                let input = match phase.next() {
                    Some(next) => Input::Reach(next),
                    None => land(&world.tasks[place]),
                };
                world.task(place, input).unwrap();
                if world.tasks[place].attempt.is_none() {
                    world.running.remove(&attempt);
                }
            }
        }
        world.settle();
        match world.build.state {
            BuildState::Queued => world.build(build::Input::Prime).unwrap(),
            BuildState::Priming => world.build(build::Input::Begin).unwrap(),
            BuildState::Verifying => world.build(build::Input::Pass { told: None }).unwrap(),
            BuildState::Paused
                if world.build.pause_requested
                    || world.build.pause_reason == Some(PauseReason::Person) =>
            {
                resume(world);
            }
            BuildState::Running if world.build.pause_requested => resume(world),
            _ => {}
        }
        world.settle();
        let mut certain = <StdRng as rand::SeedableRng>::seed_from_u64(0);
        claim(world, &mut certain);
    }
    Err(format!(
        "it never ends: {:?} {:?}",
        world.build, world.tasks
    ))
}
