//! What may happen at any moment, and how a history is led to its end.

use chrono::TimeDelta;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use ropewalk_builder::decide::failure::{Answer, FailureContext, Limits, answer, fingerprint};
use ropewalk_builder::decide::order::claimable;
use ropewalk_builder::decide::step::{StopLimits, stop_reason};
use ropewalk_builder::machine::build;
use ropewalk_builder::machine::task::{FailedAttempt, Files, Input, Phase, State};
use ropewalk_engine::BudgetOverrun;
use ropewalk_gate::protected::ProtectedChange;
use ropewalk_schemas::attempt::{Failure, FailureClass};
use ropewalk_schemas::build::{BuildState, PauseReason};
use ropewalk_schemas::task::{KeptWork, Task, TaskState};
use ropewalk_schemas::wait::Resource;
use ropewalk_schemas::{AttemptId, CommitId, ComponentName, RepoPath};

use crate::people;
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
    let what = match chance.random_range(0..21) {
        0..=4 => claim(world, chance),
        5..=10 => move_attempt(world, chance),
        11..=12 => people::answer_question(world, chance),
        13 => people::verb(world, chance),
        14 | 20 => people::steer(world, chance),
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

/// Names the one commit that there is here.
pub(crate) fn commit() -> Option<CommitId> {
    CommitId::parse(&"a".repeat(40)).ok()
}

/// Lays the ground, checks the whole, lands it, or finds that the branch was moved.
fn schedule(world: &mut World, chance: &mut StdRng) -> String {
    let input = match world.build.state {
        BuildState::Queued => build::Input::Prime,
        BuildState::Priming => {
            carry(world, chance);
            build::Input::Begin
        }
        BuildState::Verifying => return verify(world, chance),
        BuildState::Succeeded if chance.random() => return people::landing(world, chance),
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

/// Takes over what an earlier build landed or began, where there was one.
fn carry(world: &mut World, chance: &mut StdRng) {
    if chance.random_bool(0.7) {
        return;
    }
    for place in 0..world.tasks.len() {
        if world.state(place) != State::Pending {
            continue;
        }
        let input = match chance.random_range(0..3) {
            0 => Input::Carry {
                commit: commit(),
                at: world.now,
                attempts: 1,
            },
            1 => Input::TakeUp {
                work: commit(),
                guidance: vec!["as before".to_owned()],
            },
            _ => continue,
        };
        world.task(place, input).unwrap();
    }
}

/// Checks the whole: it passes, or it fails with risks that a person may accept, or it cannot be checked.
fn verify(world: &mut World, chance: &mut StdRng) -> String {
    let input = match chance.random_range(0..4) {
        0 => build::Input::Fail {
            why: "the whole".to_owned(),
        },
        1 => build::Input::Hold {
            detail: "no tool".to_owned(),
        },
        _ => build::Input::Pass { told: None },
    };
    let told = format!("{input:?}");
    world.build(input).unwrap();
    match world.build.state {
        BuildState::Failed => {
            let found = (0..chance.random_range(0..3)).map(|number| format!("check {number}"));
            let accepted = &world.build.accepted;
            let risks: Vec<String> = found.filter(|risk| !accepted.contains(risk)).collect();
            world.risks.clone_from(&risks);
            for risk in risks {
                world.ask(About::Risk(risk));
            }
        }
        BuildState::Succeeded => world.ask(About::Landing),
        _ => {}
    }
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
    let input = if world.blocked.contains(&attempt) {
        end_wait(chance)
    } else {
        next_move(world, chance, place, phase)
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
    let (waits, goes_on) = (
        matches!(input, Input::Await { .. }),
        matches!(input, Input::Extend | Input::Refrain),
    );
    world.task(place, input).unwrap();
    if waits {
        world.wait(place, None);
        world.blocked.insert(attempt);
    }
    if goes_on {
        world.blocked.remove(&attempt);
    }
    if world.tasks[place].attempt != Some(attempt) {
        world.running.remove(&attempt);
    }
    told
}

/// What an attempt does that waits for nothing.
fn next_move(world: &mut World, chance: &mut StdRng, place: usize, phase: Phase) -> Input {
    match (chance.random_range(0..13), phase) {
        (0..=7, Phase::Claimed) => Input::Reach(Phase::Working),
        (0..=7, Phase::Working) => Input::Reach(Phase::Validating),
        (0..=7, Phase::Validating) => Input::Reach(Phase::Landing),
        (0..=7, Phase::Landing) if world.build.state == BuildState::Running => {
            land(&world.tasks[place])
        }
        (8, _) => exhaust(world, chance, place),
        (9, Phase::Working) if chance.random_bool(0.3) => {
            world.away = true;
            Input::LoseProvider {
                provider: "scripted".to_owned(),
                told: "away".to_owned(),
            }
        }
        (9, _) => Input::CutOff {
            why: "lost".to_owned(),
            not_before: None,
            counts: chance.random(),
        },
        (10 | 11, Phase::Working) => Input::Await {
            told: "waits for more files".to_owned(),
        },
        (10 | 11, _) => Input::Progress,
        _ => fail(world, chance, place),
    }
}

/// What becomes of an attempt that waits for more files with its locks in hand: it gets them or does without, others have them by
/// now, or it gives way to one that waits for its own.
fn end_wait(chance: &mut StdRng) -> Input {
    match chance.random_range(0..6) {
        0..=2 => Input::Extend,
        3 => Input::Refrain,
        4 => Input::Await {
            told: "waits for others".to_owned(),
        },
        _ => Input::CutOff {
            why: "it gave way".to_owned(),
            not_before: None,
            counts: false,
        },
    }
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
            people::answered(world, question, 2);
        }
        world.now += TimeDelta::hours(1);
        for place in 0..world.tasks.len() {
            drop(world.task(place, Input::FilesFree));
            if let State::Running { attempt, phase } = world.state(place) {
                let input = match phase.next() {
                    _ if world.blocked.remove(&attempt) => Input::Extend,
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
            BuildState::Verifying => {
                world.build(build::Input::Pass { told: None }).unwrap();
                world.ask(About::Landing);
            }
            BuildState::Paused
                if world.build.pause_requested
                    || world.build.pause_reason == Some(PauseReason::Person) =>
            {
                people::resume(world);
            }
            BuildState::Running if world.build.pause_requested => people::resume(world),
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
