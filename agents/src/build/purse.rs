//! Stands still when a budget is used up, and goes on when it was raised or a new day has begun.

use ropewalk_bus::locks;
use ropewalk_config::Trigger;
use ropewalk_engine::{Allowance, Exceeded};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::AttemptState;
use ropewalk_schemas::build::{Build, BuildState, PauseReason, Raise};
use ropewalk_schemas::payload::{BudgetExceeded, BuildRequest, QuestionAnswered};
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::task::{TaskState, WaitReason};
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{AttemptId, BuildId, Payload, QuestionId, Subject, TaskId};
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
    let told = !of_task
        && waits(context, build.id)
            .await?
            .iter()
            .any(is_for(&exceeded.scope));
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
            build.exhausted.get_or_insert(exceeded.scope.clone());
            build.question = build.question.or(question);
            let party = Party::Build { build: build.id };
            changes.put(&wait(context, party, &exceeded.scope));
        }
    }
    changes.update(&rows.task, &task);
    if told {
        // A raise meanwhile has ended the wait of the build, and this one would outlive it.
        changes.require(&rows.build);
    } else {
        // Of two attempts that meet the same end at once, one asks.
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
    answer: &QuestionAnswered,
) -> Result<ChangeSet, Trouble> {
    let mut changes = ChangeSet::new();
    let Some(plan) = Plan::load(&context.store, build).await? else {
        return Ok(changes);
    };
    let scope = match task {
        Some(task) => Some(format!("task/{build}/{task}")),
        None => scope_of(context, build, answer.question_id).await?,
    };
    let Some(scope) = scope else {
        return Ok(changes);
    };
    let by = &answer.answered_by;
    let share = match reply(&answer.answer) {
        Reply::Stop => {
            let request = BuildRequest {
                build_id: build,
                requested_by: by.clone(),
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

/// Returns the budget that a question is about, if the whole build still waits for it.
async fn scope_of(
    context: &Context,
    build: BuildId,
    question: QuestionId,
) -> Result<Option<String>, Trouble> {
    let key = question.to_string();
    let Some(question) = context.store.get::<Question>(&key).await? else {
        return Ok(None);
    };
    let scopes = waits(context, build).await?.into_iter();
    Ok(scopes
        .map(|(scope, _)| scope)
        .find(|scope| question.topic.as_ref() == Some(scope)))
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

/// Lets everything of a build that waits for the budget `scope` go on, as far as no other budget is used up.
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
    let (over, left): (Vec<_>, Vec<_>) = waits(context, build.id)
        .await?
        .into_iter()
        .partition(is_for(scope));
    for (_, wait) in &over {
        changes.delete(wait);
    }
    build.exhausted = left.into_iter().map(|(scope, _)| scope).next();
    pass_on(context, build, scope).await?;
    let stands = build.state == BuildState::Paused && build.exhausted.is_none();
    if stands && build.pause_reason == Some(PauseReason::Budget) {
        enter(build, BuildState::Running);
        build.pause_reason = None;
        build.reason = None;
    }
    Ok(())
}

/// Puts the next open question about a budget in the place of the one about `scope`; a question about something else
/// holds the build as before.
async fn pass_on(context: &Context, build: &mut Build, scope: &str) -> Result<(), Trouble> {
    if !asks_about_budget(context, build).await? {
        return Ok(());
    }
    let open = ask::open_questions(context, build.id).await?;
    let next = open.iter().find(|question| {
        let of_build = matches!(question.about, About::Build { .. });
        of_build && is_of_budget(question) && question.topic.as_deref() != Some(scope)
    });
    build.question = next.map(|question| question.id);
    Ok(())
}

/// Forgets that budgets of the whole build are used up, and what was asked about them.
pub(crate) async fn forget(
    context: &Context,
    changes: &mut ChangeSet,
    build: &mut Build,
    reason: &str,
) -> Result<(), Trouble> {
    stop_waiting(context, changes, build).await?;
    if asks_about_budget(context, build).await? {
        build.question = None;
    }
    let trigger = Trigger::BudgetExceeded;
    Ok(ask::supersede_asked(context, changes, build.id, trigger, reason).await?)
}

/// Ends the waits of a whole build for budgets.
pub(crate) async fn stop_waiting(
    context: &Context,
    changes: &mut ChangeSet,
    build: &mut Build,
) -> Result<(), Trouble> {
    build.exhausted = None;
    for (_, wait) in waits(context, build.id).await? {
        changes.delete(&wait);
    }
    Ok(())
}

/// Lists the budgets that a whole build waits for, the longest wait first.
async fn waits(
    context: &Context,
    build: BuildId,
) -> Result<Vec<(String, Versioned<Wait>)>, Trouble> {
    let mut waits = locks::waits_of(&context.store, &Party::Build { build }).await?;
    waits.sort_by_key(|wait| wait.since);
    let scoped = waits.into_iter().filter_map(|wait| match &wait.resource {
        Resource::Budget { scope } => Some((scope.clone(), wait)),
        _ => None,
    });
    Ok(scoped.collect())
}

fn is_for(scope: &str) -> impl Fn(&(String, Versioned<Wait>)) -> bool {
    move |(waits_for, _)| waits_for == scope
}

async fn asks_about_budget(context: &Context, build: &Build) -> Result<bool, Trouble> {
    let Some(question) = build.question else {
        return Ok(false);
    };
    let asked = context.store.get::<Question>(&question.to_string()).await?;
    Ok(asked.is_some_and(|asked| is_of_budget(&asked)))
}

fn is_of_budget(question: &Question) -> bool {
    question.trigger == Trigger::BudgetExceeded.as_str()
}

/// Lets a build go on whose day has passed; none when there is nothing to do.
pub(crate) async fn new_day(context: &Context, plan: &Plan) -> Result<Option<ChangeSet>, Trouble> {
    if plan.build.exhausted.is_none() {
        return Ok(None);
    }
    let waits = waits(context, plan.build.id).await?.into_iter();
    let now = context.now();
    let Some(scope) = waits
        .map(|(scope, _)| scope)
        .find(|scope| is_over(scope, now))
    else {
        return Ok(None);
    };
    let mut changes = ChangeSet::new();
    let mut after = plan.build.record.clone();
    go_on(context, &mut changes, plan, &mut after, &scope).await?;
    let asked =
        |question: &Question| is_of_budget(question) && question.topic.as_ref() == Some(&scope);
    ask::close(
        context,
        &mut changes,
        after.id,
        "a new day has begun",
        asked,
    )
    .await?;
    changes.update(&plan.build, &after);
    Ok(Some(changes))
}
