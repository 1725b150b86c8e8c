//! Stands still when a budget is used up, and goes on when it was raised or a new day has begun.

use ropewalk_bus::locks;
use ropewalk_engine::{Allowance, Exceeded};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::AttemptState;
use ropewalk_schemas::build::{Build, BuildState, PauseReason, Raise};
use ropewalk_schemas::payload::{BudgetExceeded, BuildRequest};
use ropewalk_schemas::task::{TaskState, WaitReason};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{AttemptId, BuildId, Payload, Subject, TaskId};
use ropewalk_store::{ChangeSet, CommitError, Versioned};

use super::Shop;
use super::ask;
use super::context::{CONFLICTS, Plan, of_build};
use super::decide::purse::{Reply, is_over, reply};
use super::ending::{self, Report, Rows};
use super::settle::{enter, go};
use super::trouble::Trouble;

/// Ends an attempt whose next model call would go beyond a budget: its work is kept, its try is not counted, and a
/// person is asked whether to spend more.
pub(crate) async fn ran_out(
    shop: &Shop,
    context: &Context,
    ids: (BuildId, &TaskId, AttemptId),
    exceeded: &Exceeded,
    report: &Report,
) -> Result<(), Trouble> {
    for _ in 0..CONFLICTS {
        let Some(rows) = Rows::load(context, ids.0, ids.1, ids.2).await? else {
            return Ok(());
        };
        let context = of_build(context, &rows.build).because_of(rows.task.cause);
        let changes = changes(shop, &context, &rows, exceeded, report).await?;
        match context.store.commit(changes).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Conflict { .. } | CommitError::Fenced { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Trouble::Contended(format!("task/{}/{}", ids.0, ids.1)))
}

async fn changes(
    shop: &Shop,
    context: &Context,
    rows: &Rows,
    exceeded: &Exceeded,
    report: &Report,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let mut task = rows.task.record.clone();
    let mut build = rows.build.record.clone();
    go(&mut task, TaskState::Waiting);
    task.attempt = None;
    task.claimed_at = None;
    task.waiting_for = Some(WaitReason::Budget);
    task.reason = Some(format!(
        "the budget `{}` is used up: {} of {}",
        exceeded.scope, exceeded.used, exceeded.limit
    ));
    let party = Party::Task {
        build: task.build,
        task: task.id.clone(),
    };
    changes.put(&wait(context, party, &exceeded.scope));
    let of_task = exceeded.scope.starts_with("task/");
    let told = !of_task && build.exhausted.as_ref() == Some(&exceeded.scope);
    if !told {
        let about = of_task.then_some(&task.id);
        let question =
            ask::budget_exceeded(shop, context, &mut changes, &build, about, exceeded).await?;
        changes.emit(context.event(
            Subject::build(build.id),
            Payload::BudgetExceeded(BudgetExceeded {
                scope: exceeded.scope.clone(),
                limit: exceeded.limit.clone(),
                used: exceeded.used.clone(),
                build_id: Some(build.id),
            }),
        ));
        if of_task {
            task.question = question;
        } else {
            build.exhausted = Some(exceeded.scope.clone());
            build.question = question;
            let party = Party::Build { build: build.id };
            changes.put(&wait(context, party, &exceeded.scope));
        }
    }
    changes.update(&rows.task, &task);
    if build != rows.build.record {
        changes.update(&rows.build, &build);
    }
    ending::end_attempt(
        context,
        &mut changes,
        rows,
        AttemptState::Interrupted,
        None,
        report,
    );
    ending::release(context, &mut changes, rows).await?;
    Ok(changes)
}

fn wait(context: &Context, waiter: Party, scope: &str) -> Wait {
    Wait {
        waiter,
        resource: Resource::Budget {
            scope: scope.to_owned(),
        },
        holder: None,
        since: context.now(),
    }
}

/// Does what a person answered to `budget_exceeded`.
pub(crate) async fn answered(
    shop: &Shop,
    context: &Context,
    build: BuildId,
    task: Option<&TaskId>,
    text: &str,
    by: &str,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let Some(plan) = Plan::load(&context.store, build).await? else {
        return Ok(changes);
    };
    let scope = match task {
        Some(task) => Some(format!("task/{build}/{task}")),
        None => plan.build.exhausted.clone(),
    };
    let Some(scope) = scope else {
        return Ok(changes);
    };
    let share = match reply(text) {
        Reply::Stop => {
            let request = BuildRequest {
                build_id: build,
                requested_by: by.to_owned(),
                reason: Some(format!("the budget `{scope}` is used up")),
            };
            return super::act::control::stop(shop, context, &request).await;
        }
        Reply::Raise { percent } => percent,
    };
    let mut after = plan.build.record.clone();
    after.raises.push(raise(shop, &scope, share, by));
    go_on(context, &mut changes, &plan, &mut after, &scope).await?;
    changes.update(&plan.build, &after);
    Ok(changes)
}

fn raise(shop: &Shop, scope: &str, percent: u64, by: &str) -> Raise {
    let budgets = &shop.options.budgets;
    let allowance: Allowance = match scope.split('/').next() {
        Some("task") => budgets.task,
        Some("build") => budgets.build,
        Some("day") => budgets.day,
        _ => budgets.project,
    };
    let share = |limit: Option<u64>| limit.unwrap_or_default().saturating_mul(percent) / 100;
    Raise {
        scope: scope.to_owned(),
        tokens: share(allowance.tokens).max(1),
        micro_usd: share(allowance.micro_usd).max(1),
        by: by.to_owned(),
    }
}

/// Lets everything of a build that waits for the budget `scope` go on.
async fn go_on(
    context: &Context,
    changes: &mut ChangeSet,
    plan: &Plan,
    build: &mut Build,
    scope: &str,
) -> Result<(), Trouble> {
    let resource = Resource::Budget {
        scope: scope.to_owned(),
    };
    for task in &plan.tasks {
        if task.waiting_for != Some(WaitReason::Budget) {
            continue;
        }
        let waits = locks::waits_of(&context.store, &ending::party(task)).await?;
        if !waits.iter().any(|wait| wait.resource == resource) {
            continue;
        }
        locks::stop_waiting(changes, &waits);
        let mut after = task.record.clone();
        super::act::control::make_ready(&mut after, "ready; there is budget again");
        after.question = None;
        changes.update(task, &after);
    }
    if build.exhausted.as_deref() == Some(scope) {
        forget(context, changes, build).await?;
        build.question = None;
    }
    if build.state == BuildState::Paused && build.pause_reason == Some(PauseReason::Budget) {
        enter(build, BuildState::Running);
        build.pause_reason = None;
        build.reason = None;
    }
    Ok(())
}

/// Forgets that a budget of the whole build is used up.
pub(crate) async fn forget(
    context: &Context,
    changes: &mut ChangeSet,
    build: &mut Build,
) -> Result<(), Trouble> {
    build.exhausted = None;
    for wait in waits_of_build(context, build.id).await? {
        if matches!(wait.resource, Resource::Budget { .. }) {
            changes.delete(&wait);
        }
    }
    Ok(())
}

async fn waits_of_build(
    context: &Context,
    build: BuildId,
) -> Result<Vec<Versioned<Wait>>, Trouble> {
    let query = ropewalk_store::Query::new().equal("waiter", Party::Build { build }.to_string());
    Ok(context.store.list::<Wait>(query).await?)
}

/// Lets a build go on whose day has passed; none when there is nothing to do.
pub(crate) async fn new_day(context: &Context, plan: &Plan) -> Result<Option<ChangeSet>, Trouble> {
    let Some(scope) = plan.build.exhausted.clone() else {
        return Ok(None);
    };
    if !is_over(&scope, context.now()) {
        return Ok(None);
    }
    let mut changes = ChangeSet::new();
    let mut after = plan.build.record.clone();
    go_on(context, &mut changes, plan, &mut after, &scope).await?;
    ask::supersede_about(context, &mut changes, after.id, "a new day has begun").await?;
    changes.update(&plan.build, &after);
    Ok(Some(changes))
}
