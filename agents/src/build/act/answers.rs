//! Does what people answered to the questions of a build.

use ropewalk_bus::ownership;
use ropewalk_config::Trigger;
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::QuestionAnswered;
use ropewalk_schemas::question::About;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, TaskId};
use ropewalk_store::{ChangeSet, Versioned};

use super::{control, wishes};
use crate::build::Shop;
use crate::build::ask;
use crate::build::context;
use crate::build::decide::answer::{
    BranchFate, Consent, TaskReply, consent, task_reply, with_addition,
};
use crate::build::land::{self, LandRequest};
use crate::build::purse;
use crate::build::settle::enter;
use crate::build::trouble::Trouble;
use crate::build::verdicts;

/// Handles an answer; answers to the questions of others are none of ours.
pub(super) async fn answered(
    shop: &Shop,
    context: &Context,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, Trouble> {
    match (Trigger::parse(&answer.trigger), &answer.about) {
        (Some(Trigger::TaskFailedRepeatedly), About::Task { build, task }) => {
            failed_task(shop, context, *build, task, answer).await
        }
        (Some(Trigger::ProtectedFiles), About::Task { build, task }) => {
            protected(context, *build, task, answer).await
        }
        (Some(Trigger::BranchMoved), About::Build { build }) => {
            branch_moved(shop, context, *build, answer).await
        }
        (Some(Trigger::BuildFinished | Trigger::LandingRefused), About::Build { build }) => {
            finished(shop, context, *build, answer).await
        }
        (Some(Trigger::ValidationLevelNeeded), About::Build { build }) => {
            verdicts::level_chosen(context, *build, &answer.answer).await
        }
        (
            Some(Trigger::SecurityVulnerability | Trigger::MultipleFailures),
            About::Build { build },
        ) => verdicts::answered(context, *build, answer).await,
        (
            Some(
                Trigger::MilestoneReached
                | Trigger::TaskComplexityExceeded
                | Trigger::CoverageBelowThreshold
                | Trigger::ValidationPassed,
            ),
            _,
        ) => wishes::heard(shop, context, answer).await,
        (Some(Trigger::BudgetExceeded), about) => {
            let (build, task) = match about {
                About::Build { build } => (*build, None),
                About::Task { build, task } => (*build, Some(task)),
                _ => return Ok(ChangeSet::new()),
            };
            purse::answered(shop, context, build, task, answer).await
        }
        _ => Ok(ChangeSet::new()),
    }
}

async fn failed_task(
    shop: &Shop,
    context: &Context,
    build: BuildId,
    task: &TaskId,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let (Some(build), Some(row)) = (
        context::build(&context.store, build).await?,
        context::task(&context.store, build, task).await?,
    ) else {
        return Ok(changes);
    };
    // An answer that comes after the task moved on by other ways changes nothing any more.
    if row.state != TaskState::Failed {
        return Ok(changes);
    }
    match task_reply(&answer.answer) {
        TaskReply::Skip => {
            let by = &answer.answered_by;
            return control::skip(shop, context, build.id, task, by, "skipped by answer").await;
        }
        TaskReply::Manual => {
            let after = Task {
                question: None,
                reason: Some(format!("{} fixes it manually", answer.answered_by)),
                ..row.record.clone()
            };
            changes.update(&row, &after);
        }
        TaskReply::Guidance(guidance) => {
            let mut after = row.record.clone();
            control::new_round(&mut after, Some(guidance));
            changes.update(&row, &after);
            control::run_again(context, &mut changes, &build, false).await?;
        }
    }
    Ok(changes)
}

/// The work that was asked about is kept; with a yes the gate lets it pass, with a no it is done without.
async fn protected(
    context: &Context,
    build: BuildId,
    task: &TaskId,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let Some(row) = context::task(&context.store, build, task).await? else {
        return Ok(changes);
    };
    if row.state != TaskState::Waiting {
        return Ok(changes);
    }
    let mut after = row.record.clone();
    after.question = None;
    match consent(&answer.answer) {
        Consent::Given => {
            control::make_ready(&mut after, "ready; the change was allowed");
            after.guidance.push(format!(
                "The change that was asked about is allowed: {}",
                answer.answer
            ));
        }
        Consent::Refused => {
            control::make_ready(&mut after, "ready; the change was refused");
            after.resume_from = None;
            let told = &answer.answer;
            after.guidance.push(format!(
                "The tests, gate and CI files must stay as they are. A person said: {told}"
            ));
        }
    }
    changes.update(&row, &after);
    Ok(changes)
}

async fn branch_moved(
    shop: &Shop,
    context: &Context,
    build: BuildId,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let Some(build) = context::build(&context.store, build).await? else {
        return Ok(changes);
    };
    let mut after = build.record.clone();
    after.question = None;
    let text = answer.answer.to_lowercase();
    if text.starts_with("stop") {
        enter(&mut after, BuildState::Stopped);
        after.reason = Some(format!(
            "{} by {}: its branch was moved",
            control::STOP_REQUESTED,
            answer.answered_by
        ));
        after.completed_at = None;
    } else {
        let adopted = text.starts_with("build on top") && adopt(shop, &mut after).await?;
        if !adopted {
            // What others put on the branch stays theirs; the landed commits go on under a free name.
            after.branch = own_branch(shop, &build).await?;
            after.published = None;
        }
        if after.state == BuildState::Paused {
            enter(&mut after, BuildState::Running);
        }
        after.pause_reason = None;
        after.reason = None;
    }
    changes.update(&build, &after);
    Ok(changes)
}

/// Takes the moved branch as the head, if it only adds to what landed.
async fn adopt(shop: &Shop, build: &mut Build) -> Result<bool, Trouble> {
    shop.clone.fetch().await?;
    let Some(actual) = shop.clone.user_branch(&build.branch).await? else {
        return Ok(false);
    };
    let Some(head) = &build.head else {
        return Ok(false);
    };
    if !shop.clone.is_ancestor(head, &actual).await? {
        return Ok(false);
    }
    build.head = Some(actual.clone());
    build.published = Some(actual);
    Ok(true)
}

async fn own_branch(shop: &Shop, build: &Build) -> Result<String, Trouble> {
    let mut number = 2_u32;
    loop {
        let branch = format!("build/{}-{number}", build.idea);
        if branch != build.branch && shop.clone.user_branch(&branch).await?.is_none() {
            return Ok(branch);
        }
        number += 1;
    }
}

/// Merges the branch or leaves it, as the person wants; what is asked for and cannot be done is asked about again.
async fn finished(
    shop: &Shop,
    context: &Context,
    build: BuildId,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let Some(row) = context::build(&context.store, build).await? else {
        return Ok(changes);
    };
    let fate = BranchFate::of(&answer.answer);
    if fate == Some(BranchFate::Merge) {
        return merge(shop, context, &row, &answer.answered_by).await;
    }
    let told = fate.and_then(|fate| fate.told(&row.branch));
    let after = Build {
        question: None,
        reason: match told {
            Some(told) => Some(with_addition(row.reason.as_deref(), &told)),
            None => row.reason.clone(),
        },
        ..row.record.clone()
    };
    changes.update(&row, &after);
    // A branch that is left alone no longer keeps others from its files.
    if fate == Some(BranchFate::Leave) {
        let owned = ownership::owned_by(&context.store, build).await?;
        ownership::abandon(&mut changes, &owned);
    }
    Ok(changes)
}

async fn merge(
    shop: &Shop,
    context: &Context,
    build: &Versioned<Build>,
    by: &str,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    if build.merged.is_some() {
        return Ok(changes);
    }
    let request = LandRequest {
        build: build.id,
        into: None,
        push: None,
        by: by.to_owned(),
    };
    // It is written down at once and not with the end of the delivery: whatever changes while the gate runs, what the
    // gate saw must not get lost.
    let refusal = match land::land(&shop.house, context, &request).await {
        Ok(_) => return Ok(changes),
        Err(refusal) if refusal.is_for_people() => refusal,
        Err(error) => return Err(AgentError::transient(error).into()),
    };
    let mut after = build.record.clone();
    after.question = ask::landing_refused(shop, context, &mut changes, build, &refusal).await?;
    after.reason = Some(format!("not landed: {refusal}"));
    changes.update(build, &after);
    Ok(changes)
}
