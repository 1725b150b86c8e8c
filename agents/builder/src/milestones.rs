//! Tells people how a build comes along: half of a long plan is done, or a task takes far longer than planned.

use std::collections::BTreeMap;

use ropewalk_config::Trigger;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::task::Task;
use ropewalk_store::{ChangeSet, Query};

use super::SharedState;
use super::ask::{about_task, put};
use super::context::attempts_at;
use super::decide::counts::count;
use super::decide::step::working_time;
use super::error::BuilderError;

/// Half of a shorter plan is reached too soon to be worth a word.
const SHORTEST_PLAN: usize = 10;

/// Says that half of the tasks have landed, once: with the landing that makes it so.
pub(crate) async fn landed(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    tasks: &[Task],
    passed_tests: Option<u32>,
) -> Result<(), BuilderError> {
    let done = count(tasks).complete;
    let total = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
    let reached = |done: u32| {
        let facts = BTreeMap::from([
            ("completed_tasks", f64::from(done)),
            ("total_tasks", f64::from(total)),
        ]);
        shared
            .questions
            .applies(Trigger::MilestoneReached, &facts)
            .unwrap_or(false)
    };
    let after = done + 1;
    if tasks.len() < SHORTEST_PLAN || after >= total || reached(done) || !reached(after) {
        return Ok(());
    }
    let minutes = working_time(build, context.now()).as_secs() / 60;
    let values = BTreeMap::from([
        ("completed_count", after.to_string()),
        ("total_count", total.to_string()),
        ("time", format!("{minutes} minutes")),
        (
            "test_status",
            passed_tests.map_or_else(
                || "not counted in the last check".to_owned(),
                |passed| format!("{passed} in the last check"),
            ),
        ),
        (
            "encouragement_message",
            format!("{} to go.", total.saturating_sub(after)),
        ),
    ]);
    let draft = shared
        .questions
        .render(Trigger::MilestoneReached, &values)?;
    let about = About::Build { build: build.id };
    put(shared, context, changes, build, about, draft).await?;
    Ok(())
}

/// Asks about a task whose attempts have taken far longer than its estimate, and which is tried again; once.
pub(crate) async fn takes_long(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    task: &Task,
) -> Result<(), BuilderError> {
    let Some(estimate) = task.block.estimate_minutes else {
        return Ok(());
    };
    let about = about_task(build, task);
    let trigger = Trigger::TaskComplexityExceeded;
    let of_trigger = Query::new()
        .equal("build", build.id.to_string())
        .equal("trigger", trigger.as_str());
    let asked = context.store.list::<Question>(of_trigger).await?;
    if asked.iter().any(|question| question.about == about) {
        return Ok(());
    }
    let attempts = attempts_at(&context.store, build.id, &task.id).await?;
    let now = context.now();
    let spent = attempts.iter().fold(chrono::TimeDelta::zero(), |sum, one| {
        sum + (one.ended_at.unwrap_or(now) - one.started_at)
    });
    let minutes = spent.num_minutes();
    let facts = BTreeMap::from([
        (
            "actual_time",
            f64::from(u32::try_from(minutes).unwrap_or(u32::MAX)),
        ),
        ("estimated_time", f64::from(estimate)),
    ]);
    if !shared.questions.applies(trigger, &facts).unwrap_or(false) {
        return Ok(());
    }
    let last = task.failures.last();
    let values = BTreeMap::from([
        ("task_id", task.id.to_string()),
        ("estimate", format!("{estimate} minutes")),
        ("actual", format!("{minutes} minutes")),
        ("remaining", "another try".to_owned()),
        (
            "common_reason",
            last.map_or_else(
                || "the plan did not foresee a part of the work".to_owned(),
                |failure| format!("the check keeps failing ({})", failure.class.in_words()),
            ),
        ),
    ]);
    let draft = shared.questions.render(trigger, &values)?;
    put(shared, context, changes, build, about, draft).await?;
    Ok(())
}
