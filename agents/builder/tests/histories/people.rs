//! What people say of a build and its tasks: answers, verbs, and what comes of both.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use ropewalk_builder::machine::task::{Input, On, State};
use ropewalk_builder::machine::{Ask, IllegalRequest, build};
use ropewalk_schemas::build::{BuildState, StopCause};
use ropewalk_schemas::task::KeptWork;
use ropewalk_schemas::wait::Resource;
use ropewalk_schemas::{BuildId, ComponentName, Priority, QuestionId};

use crate::play::commit;
use crate::samples;
use crate::world::{About, World};

/// Answers a question, if any is open.
pub(crate) fn answer_question(world: &mut World, chance: &mut StdRng) -> String {
    let open: Vec<QuestionId> = world.questions.keys().copied().collect();
    match open.choose(chance) {
        Some(question) => answered(world, *question, chance.random_range(0..3)),
        None => "nothing is asked".to_owned(),
    }
}

/// Answers a question by its choice number `choice`.
pub(crate) fn answered(world: &mut World, question: QuestionId, choice: u32) -> String {
    let Some(about) = world.questions.remove(&question) else {
        return "it is closed".to_owned();
    };
    if world.build.continued_by.is_some() {
        return "a later revision goes on".to_owned();
    }
    let told = format!("{about:?} is answered by choice {choice}");
    match about {
        About::Task(_, Ask::Budget(own)) if choice > 0 => fund(world, &own.scope),
        About::Budget(scope) if choice > 0 => fund(world, &scope),
        About::Branch if choice > 0 => drop(world.build(build::Input::SettleBranch)),
        About::Task(_, Ask::Budget(_)) | About::Budget(_) | About::Branch => stop(world),
        About::Task(place, ask) => answered_of_task(world, place, &ask, choice),
        About::Landing => answered_of_landing(world, choice),
        About::Risk(check) => answered_of_risk(world, check, choice),
    }
    let standing = world.build.question.filter(|open| *open != question);
    world.build(build::Input::Ask(standing)).unwrap();
    told
}

fn answered_of_task(world: &mut World, place: usize, ask: &Ask, choice: u32) {
    let by = "ada".to_owned();
    let skip = |why: &str| Input::Skip {
        by: by.clone(),
        why: why.to_owned(),
    };
    let input = match (ask, choice) {
        (Ask::Failed { .. } | Ask::Suspended { .. }, 0) => skip("by answer"),
        (Ask::Failed { .. } | Ask::Suspended { .. }, 1) => Input::Leave { told: by },
        (Ask::Held { .. }, 0) => skip("its check could not run"),
        (Ask::Held { .. }, _) => Input::Recheck,
        (Ask::Protected { .. }, 0) => {
            let no = vec!["no".to_owned()];
            Input::Forbid {
                overruled: no.clone(),
                told: no,
            }
        }
        (Ask::Protected { .. }, _) => Input::Allow {
            shown: commit().map(|candidate| KeptWork {
                candidate,
                granted: Vec::new(),
            }),
            overruled: vec!["no".to_owned()],
            told: (choice > 1).then(|| "and more".to_owned()),
        },
        (Ask::Model(_), choice) if choice > 0 => Input::Answer,
        _ => Input::Retry { guidance: None },
    };
    let is_of_stand = matches!(ask, Ask::Failed { .. } | Ask::Suspended { .. });
    let revives = match input {
        Input::Skip { .. } => true,
        Input::Retry { .. } => is_of_stand,
        _ => false,
    };
    let done = if revives {
        world.both(place, input, build::Input::Revive { express: false })
    } else {
        world.task(place, input)
    };
    // What stood may have moved by another word.
    assert!(done.is_ok() || is_of_stand, "{done:?}");
}

/// Lands the branch of a build that succeeded, or leaves it; a landing that is refused is asked about again.
fn answered_of_landing(world: &mut World, choice: u32) {
    match choice {
        0 => {
            let told = Some("a person lands it".to_owned());
            world.build(build::Input::Heed { told }).unwrap();
        }
        1 => drop(land(world)),
        _ => drop(refuse_landing(world)),
    }
}

/// Tries to land the branch of a build that succeeded, as somebody wanted.
pub(crate) fn landing(world: &mut World, chance: &mut StdRng) -> String {
    let done = if chance.random_bool(0.3) {
        land(world)
    } else {
        refuse_landing(world)
    };
    match done {
        Ok(()) => "its landing is tried".to_owned(),
        Err(refused) => refused.to_string(),
    }
}

fn land(world: &mut World) -> Result<(), IllegalRequest> {
    world.build(build::Input::Land {
        commit: commit().unwrap(),
        told: "landed".to_owned(),
    })?;
    // What was asked about it and its tasks matters no more.
    world.questions.clear();
    Ok(())
}

fn refuse_landing(world: &mut World) -> Result<(), IllegalRequest> {
    let why = "it does not go together".to_owned();
    world.build(build::Input::RefuseLanding { why })?;
    world.questions.retain(|_, about| *about != About::Landing);
    world.ask(About::Landing);
    Ok(())
}

/// Accepts a risk, or leaves the build failed; who answers so late that it runs again speaks of a check that no longer counts.
fn answered_of_risk(world: &mut World, check: String, choice: u32) {
    if world.build.state != BuildState::Failed {
        return;
    }
    let by = "ada".to_owned();
    let input = if choice == 0 {
        let told = Some(format!("{by} leaves it"));
        build::Input::Heed { told }
    } else {
        let accepted = &world.build.accepted;
        let is_left = |risk: &String| *risk != check && !accepted.contains(risk);
        let mut open = world.questions.iter();
        let next = open.find(|(_, about)| matches!(about, About::Risk(_)));
        let next = next.map(|(question, _)| *question);
        let left = world.risks.iter().any(is_left).then_some(next);
        build::Input::AcceptRisk { check, by, left }
    };
    world.build(input).unwrap();
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
pub(crate) fn verb(world: &mut World, chance: &mut StdRng) -> String {
    if world.build.continued_by.is_some() {
        return "a later revision goes on".to_owned();
    }
    let place = chance.random_range(0..world.tasks.len());
    let (by, why) = ("ada".to_owned(), "no need".to_owned());
    let (input, revive) = match chance.random_range(0..9) {
        0 => (Input::Skip { by, why }, Some(false)),
        1 => (Input::Interrupt { why }, None),
        2 | 3 => (Input::Suspend { why }, None),
        4 => (Input::Advise("be brief".to_owned()), None),
        7 => (Input::PutQuestion(Box::new(samples::put())), None),
        8 => (Input::Assign(ComponentName::parse("loop-2").unwrap()), None),
        _ => (Input::Retry { guidance: None }, Some(true)),
    };
    let told = format!("{} {input:?}", world.tasks[place].id);
    let before = (world.tasks.clone(), world.build.clone());
    let done = match revive {
        Some(express) => world.both(place, input, build::Input::Revive { express }),
        None => world.task(place, input),
    };
    if done.is_err() {
        assert_eq!(before, (world.tasks.clone(), world.build.clone()));
        return format!("{told} is refused");
    }
    told
}

/// A word about the build, by a person or by who works for it; what cannot be is refused.
pub(crate) fn steer(world: &mut World, chance: &mut StdRng) -> String {
    match chance.random_range(0..13) {
        0 => {
            let told = "pause".to_owned();
            drop(world.build(build::Input::Pause { told }));
            "a pause is wanted".to_owned()
        }
        1 => {
            stop(world);
            "a stop is wanted".to_owned()
        }
        2 => amend(world, chance),
        3 => abandon(world, chance),
        4 => merged_elsewhere(world, chance),
        5 => {
            let priority = Priority::URGENT;
            drop(world.build(build::Input::Rank { priority }));
            "it is urgent".to_owned()
        }
        6 => {
            let told = chance.random_bool(0.5).then(|| "no disk".to_owned());
            world.build(build::Input::Explain { told }).unwrap();
            "what keeps it is told".to_owned()
        }
        _ => {
            resume(world);
            "a resumption is wanted".to_owned()
        }
    }
}

/// Gives up its idea: nothing of it goes on, and nothing is asked any more.
fn abandon(world: &mut World, chance: &mut StdRng) -> String {
    let told = "abandoned".to_owned();
    if chance.random_bool(0.7) || world.build(build::Input::Abandon { told }).is_err() {
        return "nothing is abandoned".to_owned();
    }
    world.questions.clear();
    "its idea is abandoned".to_owned()
}

/// Lands its branch by other ways, whatever state it is in.
fn merged_elsewhere(world: &mut World, chance: &mut StdRng) -> String {
    if chance.random_bool(0.7) {
        return "nobody else merges".to_owned();
    }
    let commit = commit().unwrap();
    world.build(build::Input::Merge { commit }).unwrap();
    "its branch is merged elsewhere".to_owned()
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

/// Lets the build go on where it stood, or begin another round.
pub(crate) fn resume(world: &mut World) {
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
                    ..
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
