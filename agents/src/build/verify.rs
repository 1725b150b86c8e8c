//! Checks a build as a whole before it is called a success: cold, on its final head.

use std::path::Path;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{CheckRun, Evidence, Verdict};
use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::payload::BuildPaused;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{BuildId, CommitId, Payload, Subject};
use ropewalk_store::ChangeSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::Shop;
use super::ask;
use super::attempt::committed;
use super::context::{CONFLICTS, Plan, of_build};
use super::decide::counts::{count, named};
use super::gate::run::{Check, Findings, Turn, execute};
use super::settle::{self, enter};
use super::trouble::Trouble;
use super::{publish, tasks_file};

/// Checks the whole and ends the build.
pub(crate) async fn verify(shop: &Shop, context: &Context, id: BuildId) -> Result<(), Trouble> {
    let Some(plan) = Plan::load(&context.store, id).await? else {
        return Ok(());
    };
    let (BuildState::Verifying, Some(head)) = (plan.build.state, plan.build.head.clone()) else {
        return Ok(());
    };
    // What is told to be on the branch must be on the branch first.
    publish::publish(shop, context, id).await?;
    let context = of_build(context, &plan.build);
    let tasks = plan.records();
    let Some((findings, checks)) = check(shop, &plan.build, &tasks, &head).await? else {
        return Ok(());
    };
    let evidence = Evidence {
        build: id,
        task: None,
        attempt: None,
        tree: shop.clone.tree_of(&head).await?,
        commit: head,
        verdict: findings.verdict(),
        class: findings.class,
        findings: findings.lines.clone(),
        checks,
        at: context.now(),
    };
    for _ in 0..CONFLICTS {
        if conclude(shop, &context, id, &evidence).await? {
            tasks_file::write(shop, &context, id).await?;
            return Ok(());
        }
    }
    Err(Trouble::Contended(format!("build/{id}")))
}

/// Runs the gate and every task's own check on a clean checkout, with a target directory that nothing was built in.
async fn check(
    shop: &Shop,
    build: &Build,
    tasks: &[Task],
    head: &CommitId,
) -> Result<Option<(Findings, Vec<CheckRun>)>, Trouble> {
    let turn = Turn::take(shop, head).await?;
    let target = shop.state.join("verify").join(build.id.to_string());
    clear(&target)?;
    let mut findings = Findings::default();
    let mut runs = Vec::new();
    let never = CancellationToken::new();
    for check in checks(shop, tasks) {
        let ran = execute(shop, &turn.clean, &target, &check, &never, &mut findings).await?;
        let Some(run) = ran else { return Ok(None) };
        runs.push(run);
    }
    clear(&target)?;
    Ok(Some((findings, runs)))
}

fn clear(target: &Path) -> Result<(), Trouble> {
    match std::fs::remove_dir_all(target) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(Trouble::File {
            path: target.display().to_string(),
            source,
        }),
        _ => Ok(()),
    }
}

/// Lists the distinct checks: the gate's commands, then those of the landed tasks.
fn checks<'a>(shop: &'a Shop, tasks: &'a [Task]) -> Vec<Check<'a>> {
    let mut checks: Vec<Check<'a>> = shop
        .options
        .gate
        .iter()
        .map(|check| Check {
            name: &check.name,
            command: &check.command,
            expected: None,
            timeout: check.timeout,
        })
        .collect();
    for task in tasks
        .iter()
        .filter(|task| task.state == TaskState::Complete)
    {
        let validation = &task.block.validation;
        let known = checks.iter().any(|check| {
            check.command == validation.command && check.expected == Some(&validation.expected)
        });
        if !known {
            checks.push(Check {
                name: task.id.as_str(),
                command: &validation.command,
                expected: Some(&validation.expected),
                timeout: shop.options.validation_timeout,
            });
        }
    }
    checks
}

/// Ends the build by what was seen; false when its records changed meanwhile.
async fn conclude(
    shop: &Shop,
    context: &Context,
    id: BuildId,
    evidence: &Evidence,
) -> Result<bool, Trouble> {
    let Some(plan) = Plan::load(&context.store, id).await? else {
        return Ok(true);
    };
    let checked = plan.build.head.as_ref() == Some(&evidence.commit);
    if plan.build.state != BuildState::Verifying || !checked {
        return Ok(true);
    }
    let tasks = plan.records();
    let mut build = plan.build.record.clone();
    let mut changes = ChangeSet::new();
    match evidence.verdict {
        Verdict::Passed => {
            enter(&mut build, BuildState::Succeeded);
            build.reason =
                named(&tasks, TaskState::Skipped).map(|names| format!("skipped: {names}"));
            settle::complete(context, &mut changes, &mut build, &tasks);
            let counts = count(&tasks);
            build.question =
                ask::build_finished(shop, context, &mut changes, &build, &counts).await?;
        }
        Verdict::Failed => {
            let reason = format!(
                "the whole-build check failed: {}",
                evidence.findings.join("; ")
            );
            settle::fail(context, &mut changes, &mut build, &tasks, reason);
        }
        Verdict::Held => {
            let detail = format!("a check could not run: {}", evidence.findings.join("; "));
            enter(&mut build, BuildState::Paused);
            // Only a person can mend this, and a resume checks again.
            build.pause_requested = true;
            build.pause_reason = Some(PauseReason::Person);
            build.reason = Some(detail.clone());
            changes.emit(context.event(
                Subject::build(build.id),
                Payload::BuildPaused(BuildPaused {
                    build_id: build.id,
                    idea_slug: build.idea.clone(),
                    reason: PauseReason::Person,
                    detail,
                }),
            ));
        }
    }
    changes.put(evidence);
    changes.update(&plan.build, &build);
    info!(build.id = %id, "checked build `{id}` as a whole: {:?}", evidence.verdict);
    committed(context, changes).await
}
