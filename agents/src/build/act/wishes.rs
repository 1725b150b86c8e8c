//! Hears what people wish about what they were only told: the build goes on without their answer.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::BuildId;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::payload::{BuildRequest, QuestionAnswered};
use ropewalk_schemas::question::About;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_store::ChangeSet;

use super::control;
use crate::build::Shop;
use crate::build::context;
use crate::build::decide::answer::{Wish, with_addition};
use crate::build::trouble::Trouble;

/// What the next attempt is told of a task that is to be done in a simpler way.
const SIMPLER: &str = "This takes far longer than planned. A person asks for a simpler approach.";

/// Does what a person wishes.
pub(super) async fn heard(
    shop: &Shop,
    context: &Context,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, Trouble> {
    let by = &answer.answered_by;
    match (Wish::of(&answer.answer), &answer.about) {
        (Wish::Pause, About::Build { build } | About::Task { build, .. }) => {
            let request = BuildRequest {
                build_id: *build,
                requested_by: by.clone(),
                reason: None,
            };
            control::pause(context, &request).await
        }
        (Wish::Skip, About::Task { build, task }) => {
            let reason = "it takes longer than planned";
            control::skip(shop, context, *build, task, by, reason).await
        }
        (Wish::Simplify, About::Task { build, task }) => {
            let mut changes = ChangeSet::new();
            let row = context::task(&context.store, *build, task).await?;
            let open =
                row.filter(|row| !matches!(row.state, TaskState::Complete | TaskState::Skipped));
            if let Some(row) = open {
                let mut after: Task = row.record.clone();
                after.guidance.push(SIMPLER.to_owned());
                changes.update(&row, &after);
            }
            Ok(changes)
        }
        (Wish::Show, About::Build { build }) => {
            let told = format!("`ropewalk build show {build}` shows what is done");
            tell(context, *build, |_| told).await
        }
        (Wish::Revise, About::Build { build }) => {
            let chosen = &answer.answer;
            let told = |build: &Build| {
                let spec = build.spec;
                format!("you chose: {chosen}; `ropewalk spec revise {spec}` asks for it")
            };
            tell(context, *build, told).await
        }
        _ => Ok(ChangeSet::new()),
    }
}

async fn tell(
    context: &Context,
    build: BuildId,
    told: impl FnOnce(&Build) -> String,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    if let Some(row) = context::build(&context.store, build).await? {
        let told = told(&row);
        let after = Build {
            reason: Some(with_addition(row.reason.as_deref(), &told)),
            ..row.record.clone()
        };
        changes.update(&row, &after);
    }
    Ok(changes)
}
