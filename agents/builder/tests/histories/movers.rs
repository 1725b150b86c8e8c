//! Says of each state who moves it next, and whether that claim, timer, question or wait exists. The matches are
//! exhaustive: a new state has to say who moves it.

use ropewalk_builder::machine::build;
use ropewalk_builder::machine::task::{Blocker, On, Skipper, State};
use ropewalk_schemas::build::PauseReason;
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::wait::Resource;
use ropewalk_schemas::{AttemptId, QuestionId, TaskId};

use crate::world::World;

/// Checks a world that has settled.
pub(crate) fn check(world: &World) -> Result<(), String> {
    for place in 0..world.tasks.len() {
        task(world, place).map_err(|wrong| format!("`{}` {wrong}", world.tasks[place].id))?;
    }
    for (attempt, place) in &world.attempts {
        if world.tasks[*place].attempt != Some(*attempt) {
            return Err(format!(
                "attempt `{attempt}` is open, and its task does not know it"
            ));
        }
    }
    for place in world.waits.keys() {
        let state = world.state(*place);
        if !matches!(state, State::Waiting { .. } | State::Running { .. }) {
            return Err(format!("{state:?} waits in the graph"));
        }
    }
    whole(world).map_err(|wrong| format!("the build {wrong}: {:?}", world.build))
}

fn open(world: &World, question: Option<QuestionId>) -> Result<(), String> {
    match question {
        Some(question) if world.questions.contains_key(&question) => Ok(()),
        other => Err(format!(
            "waits for a person, and question {other:?} is not open"
        )),
    }
}

fn waits(
    world: &World,
    place: usize,
    is_meant: impl Fn(&Option<Resource>) -> bool,
) -> Result<(), String> {
    let waits = world.waits.get(&place);
    if waits.is_some_and(|waits| waits.iter().any(is_meant)) {
        Ok(())
    } else {
        Err(format!("waits for what no row names: {waits:?}"))
    }
}

fn task(world: &World, place: usize) -> Result<(), String> {
    let build = build::State::of(&world.build);
    let begun = !matches!(build, build::State::Queued | build::State::Priming);
    match world.state(place) {
        // What has ended or not begun keeps its tasks as they are.
        State::Pending if world.is_over() || !begun => Ok(()),
        State::Pending => needed(world, place),
        State::Running { attempt, .. } => running(world, place, attempt),
        // No transition loses when a wait began, nor who left a task out.
        State::Waiting { since: None, .. } => Err("waits, and nobody knows since when".to_owned()),
        // The end of its build, as soon as nothing of it runs; after that the build of the later revision, which does it anew, or
        // nobody.
        State::Waiting { .. } | State::Failed { .. } if world.is_given_up() => Ok(()),
        State::Waiting { on, .. } => match on {
            On::Files(_) => waits(world, place, Option::is_none),
            On::Person { question } | On::Check { question } => open(world, question),
            On::Quota { until } => {
                waits(world, place, |on| {
                    matches!(on, Some(Resource::Quota { .. }))
                })?;
                until
                    .map(drop)
                    .ok_or_else(|| "waits for no time".to_owned())
            }
            On::Outage => {
                waits(world, place, |on| {
                    matches!(on, Some(Resource::Outage { .. }))
                })?;
                world
                    .away
                    .then_some(())
                    .ok_or_else(|| "waits for a provider that answers".to_owned())
            }
            On::Budget { question } => {
                waits(world, place, |on| {
                    matches!(on, Some(Resource::Budget { .. }))
                })?;
                if question.is_some() {
                    return open(world, question);
                }
                let asked = !world.build_waits.is_empty();
                asked
                    .then_some(())
                    .ok_or_else(|| "waits for a budget that nobody is asked about".to_owned())
            }
        },
        State::Blocked { by } => match by {
            Blocker::Failed(chain) => culprit(world, &chain, TaskState::Failed),
            // A person, or the end of its build.
            Blocker::Owner => Ok(()),
        },
        State::Failed {
            question: Some(question),
        } => open(world, Some(question)),
        State::Skipped { by } => match by {
            Skipper::Needed(chain) => culprit(world, &chain, TaskState::Skipped),
            Skipper::Person { name: Some(_) } => Ok(()),
            Skipper::Person { name: None } => {
                Err("was left out, and nobody knows by whom".to_owned())
            }
        },
        // A loop, as soon as the build lets it; a person, as the end of the build tells; nobody, since it has ended.
        State::Ready { .. } | State::Failed { question: None } | State::Complete { .. } => Ok(()),
    }
}

/// An attempt has its row and its process. Who has the files that it waits for, and whoever looks for cycles, know by another row.
fn running(world: &World, place: usize, attempt: AttemptId) -> Result<(), String> {
    if world.attempts.get(&attempt) != Some(&place) {
        return Err(format!("runs attempt `{attempt}`, which has no open row"));
    }
    if !world.running.contains(&attempt) {
        return Err(format!("runs attempt `{attempt}`, which no process runs"));
    }
    let (waits, is_told) = (
        world.blocked.contains(&attempt),
        world.waits.contains_key(&place),
    );
    match (waits, is_told) {
        (true, false) => Err("waits for more files, and no row names them".to_owned()),
        (false, true) => Err("works, and a row says that it waits".to_owned()),
        _ => Ok(()),
    }
}

/// A task that waits for others waits for one that is not complete, and that something else moves.
fn needed(world: &World, place: usize) -> Result<(), String> {
    let needs = &world.tasks[place].block.depends_on;
    let open = world.tasks.iter().find(|other| {
        needs.contains(&other.id)
            && !matches!(
                other.state,
                TaskState::Complete | TaskState::Failed | TaskState::Skipped
            )
    });
    open.map(drop)
        .ok_or_else(|| "waits for tasks, and none of them moves".to_owned())
}

fn culprit(world: &World, chain: &[TaskId], state: TaskState) -> Result<(), String> {
    let last = world
        .tasks
        .iter()
        .find(|task| Some(&task.id) == chain.last());
    if world.is_over() || last.is_some_and(|task| task.state == state) {
        Ok(())
    } else {
        Err(format!("is kept back by {chain:?}, which is not {state}"))
    }
}

fn whole(world: &World) -> Result<(), String> {
    if world.build.question.is_some() && !world.is_given_up() {
        open(world, world.build.question)?;
    }
    let moving = world.tasks.iter().any(|task| {
        task.state.is_active() || matches!(task.state, TaskState::Ready | TaskState::Waiting)
    });
    match build::State::of(&world.build) {
        // The scheduler.
        build::State::Queued | build::State::Priming | build::State::Verifying => Ok(()),
        build::State::Running if moving => Ok(()),
        build::State::Running => Err("runs, and nothing of it moves".to_owned()),
        build::State::Paused { why } => paused(world, why),
        build::State::Stopped { at: None, .. } if world.is_active() => Ok(()),
        build::State::Stopped { at: None, .. } => Err("was stopped and never ends".to_owned()),
        build::State::Stopped { .. }
        | build::State::Failed { .. }
        | build::State::Succeeded { .. } => {
            if world.is_active() {
                return Err("has ended, and an attempt still runs".to_owned());
            }
            Ok(())
        }
    }
}

fn paused(world: &World, why: PauseReason) -> Result<(), String> {
    let some = |is_meant: &dyn Fn(&State) -> bool| {
        (0..world.tasks.len()).any(|place| is_meant(&world.state(place)))
    };
    // Who asked for a pause ends it.
    let asked = world.build.pause_requested && why != PauseReason::Conflict;
    let moved = match why {
        _ if asked => true,
        PauseReason::Person => {
            !world.questions.is_empty()
                || some(&|state| {
                    matches!(
                        state,
                        State::Waiting {
                            on: On::Check { .. },
                            ..
                        }
                    )
                })
        }
        PauseReason::Quota => some(&|state| {
            matches!(
                state,
                State::Waiting {
                    on: On::Quota { .. },
                    ..
                }
            )
        }),
        PauseReason::Outage => {
            some(&|state| matches!(state, State::Waiting { on: On::Outage, .. }))
        }
        PauseReason::Budget => {
            !world.build_waits.is_empty()
                || some(&|state| {
                    matches!(
                        state,
                        State::Waiting {
                            on: On::Budget { .. },
                            ..
                        }
                    )
                })
        }
        PauseReason::Conflict => return open(world, world.build.question),
    };
    moved
        .then_some(())
        .ok_or_else(|| "stands still, and nobody can move it".to_owned())
}
