//! Stands still when a budget is used up, and goes on when it was raised or a new day has begun.

use ropewalk_config::questions::choice::BudgetExceeded as Spend;
use ropewalk_coordination::locks;
use ropewalk_engine::{Allowance, BudgetOverrun};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::build::{Build, Raise};
use ropewalk_schemas::payload::{BudgetExceeded, BuildRequest, QuestionAnswered};
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::task::WaitReason;
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{AttemptId, BuildId, Payload, QuestionId, Subject, TaskId};
use ropewalk_store::{ChangeSet, Versioned, retry_on_conflict};

use super::SharedState;
use super::ask;
use super::attempt::report::Report;
use super::attempt::rows::Rows;
use super::context::{Plan, of_build};
use super::decide::budget::is_over;
use super::effects::{Scene, party};
use super::error::BuilderError;
use super::machine::{build, task};

/// Ends an attempt whose next model call would go beyond a budget: its work is kept, its try is not counted, and a
/// person is asked whether to spend more.
pub(crate) async fn ran_out(
    shared: &SharedState,
    context: &Context,
    ids: (BuildId, &TaskId, AttemptId),
    exceeded: &BudgetOverrun,
    report: &Report,
) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, ids.1, {
        if let Some(rows) = Rows::load(context, ids.0, ids.1, ids.2).await? {
            let context = of_build(context, &rows.build).because_of(rows.task.cause);
            let changes = changes(shared, &context, &rows, exceeded, report).await?;
            context.store.commit(changes).await?;
        }
        Ok(Some(()))
    })
}

async fn changes(
    shared: &SharedState,
    context: &Context,
    rows: &Rows,
    exceeded: &BudgetOverrun,
    report: &Report,
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let own = exceeded.scope.starts_with("task/");
    let scene = Scene::new(shared, context, &rows.build).with(report);
    let input = task::Input::ExhaustBudget {
        exceeded: Box::new(exceeded.clone()),
        own,
    };
    let task = scene.task(&mut changes, &rows.task, input).await?;
    changes.update(&rows.task, &task);
    let is_told = waits(context, rows.build.id)
        .await?
        .iter()
        .any(is_for(&exceeded.scope));
    if !own && is_told {
        // A raise meanwhile has ended the wait of the build, and this one would outlive it.
        changes.require(&rows.build);
        return Ok(changes);
    }
    changes.emit(context.event(
        Subject::build(rows.build.id),
        Payload::BudgetExceeded(BudgetExceeded {
            scope: exceeded.scope.clone(),
            limit: exceeded.limit.clone(),
            used: exceeded.used.clone(),
            build_id: Some(rows.build.id),
        }),
    ));
    let mut build = rows.build.record.clone();
    if !own {
        let scope = exceeded.scope.clone();
        build = scene
            .build(&mut changes, build::Input::ExhaustBudget { scope })
            .await?;
        if !build::holds_no_question(&build) {
            let question =
                ask::budget_exceeded(shared, context, &mut changes, &build, None, exceeded).await?;
            // What is asked about something else holds it as before.
            build = ask::note(context, &build, build.question.or(question))?;
        }
    }
    // Of two attempts that meet the same end at once, one asks.
    changes.update(&rows.build, &build);
    Ok(changes)
}

/// Does what a person answered to `budget_exceeded`.
pub(crate) async fn answered(
    shared: &SharedState,
    context: &Context,
    build: BuildId,
    task: Option<&TaskId>,
    answer: &QuestionAnswered,
) -> Result<ChangeSet, BuilderError> {
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
    let percent = match Spend::of(answer.choice.as_ref()) {
        Some(Spend::Half) => 50,
        Some(Spend::Double) => 100,
        // Whatever is no choice to spend spends nothing.
        Some(Spend::Stop) | None => {
            let request = BuildRequest {
                build_id: build,
                requested_by: by.clone(),
                reason: Some(format!("the budget `{scope}` is used up")),
            };
            return super::act::control::stop(shared, context, &request).await;
        }
    };
    let mut after = go_on(shared, context, &mut changes, &plan, &scope).await?;
    after.raises.push(raise(shared, &scope, percent, by));
    changes.update(&plan.build, &after);
    Ok(changes)
}

/// Returns the budget that a question is about, if the whole build still waits for it.
async fn scope_of(
    context: &Context,
    build: BuildId,
    question: QuestionId,
) -> Result<Option<String>, BuilderError> {
    let key = question.to_string();
    let Some(question) = context.store.get::<Question>(&key).await? else {
        return Ok(None);
    };
    let scopes = waits(context, build).await?.into_iter();
    Ok(scopes
        .map(|(scope, _)| scope)
        .find(|scope| question.topic.as_ref() == Some(scope)))
}

fn raise(shared: &SharedState, scope: &str, percent: u64, by: &str) -> Raise {
    let budgets = &shared.options.budgets;
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
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    plan: &Plan,
    scope: &str,
) -> Result<Build, BuilderError> {
    let scene = Scene::new(shared, context, &plan.build);
    let resource = Resource::Budget {
        scope: scope.to_owned(),
    };
    for task in &plan.tasks {
        if task.waiting_for != Some(WaitReason::Budget) {
            continue;
        }
        let waits = locks::waits_of(&context.store, &party(task)).await?;
        if waits.iter().any(|wait| wait.resource == resource) {
            let after = scene.task(changes, task, task::Input::Fund).await?;
            changes.update(task, &after);
        }
    }
    let (over, left): (Vec<_>, Vec<_>) = waits(context, plan.build.id)
        .await?
        .into_iter()
        .partition(is_for(scope));
    for (_, wait) in &over {
        changes.delete(wait);
    }
    let left = left.into_iter().map(|(scope, _)| scope).next();
    let build = scene.build(changes, build::Input::Fund { left }).await?;
    pass_on(context, build, scope).await
}

/// Puts the next open question about a budget in the place of the one about `scope`; a question about something else
/// holds the build as before.
async fn pass_on(context: &Context, build: Build, scope: &str) -> Result<Build, BuilderError> {
    if !ask::asks_about_budget(context, &build).await? {
        return Ok(build);
    }
    let open = ask::open_questions(context, build.id).await?;
    let next = open.iter().find(|question| {
        let of_build = matches!(question.about, About::Build { .. });
        of_build && ask::is_of_budget(question) && question.topic.as_deref() != Some(scope)
    });
    let next = next.map(|question| question.id);
    Ok(ask::note(context, &build, next)?)
}

/// Lists the budgets that a whole build waits for, the longest wait first.
async fn waits(
    context: &Context,
    build: BuildId,
) -> Result<Vec<(String, Versioned<Wait>)>, BuilderError> {
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

/// Lets a build go on whose day has passed; none when there is nothing to do.
pub(crate) async fn new_day(
    shared: &SharedState,
    context: &Context,
    plan: &Plan,
) -> Result<Option<ChangeSet>, BuilderError> {
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
    let after = go_on(shared, context, &mut changes, plan, &scope).await?;
    let asked = |question: &Question| {
        ask::is_of_budget(question) && question.topic.as_ref() == Some(&scope)
    };
    let why = "a new day has begun";
    ask::close(context, &mut changes, after.id, why, asked).await?;
    changes.update(&plan.build, &after);
    Ok(Some(changes))
}
