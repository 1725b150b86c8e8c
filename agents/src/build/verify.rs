//! Checks a build as a whole before it is called a success: cold, on its final head.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{Evidence, Verdict};
use ropewalk_schemas::build::{BuildState, PauseReason};
use ropewalk_schemas::payload::BuildPaused;
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{BuildId, Payload, Subject};
use ropewalk_store::ChangeSet;
use tracing::info;

use super::Shop;
use super::ask;
use super::attempt::committed;
use super::context::{CONFLICTS, Plan, of_build};
use super::decide::counts::{count, named};
use super::gate::whole::{self, Whole};
use super::settle::{self, enter};
use super::trouble::Trouble;
use super::{publish, tasks_file, verdicts};

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
    let whole = Whole {
        build: &plan.build,
        tasks: &tasks,
        commit: &head,
        level: plan.build.level,
        now: context.now(),
    };
    let evidence = whole::check_to_the_end(&shop.house, &whole).await?;
    for _ in 0..CONFLICTS {
        if conclude(shop, &context, id, &evidence).await? {
            tasks_file::write(shop, &context, id).await?;
            return Ok(());
        }
    }
    Err(Trouble::Contended(format!("build/{id}")))
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
    if evidence.verdict != Verdict::Held {
        build.spent = Some(settle::spent(context, id).await?);
    }
    match evidence.verdict {
        Verdict::Passed => {
            enter(&mut build, BuildState::Succeeded);
            build.reason =
                named(&tasks, TaskState::Skipped).map(|names| format!("skipped: {names}"));
            settle::complete(context, &mut changes, &mut build, &tasks).await?;
            let counts = count(&tasks);
            build.question =
                ask::build_finished(shop, context, &mut changes, &build, &counts).await?;
            verdicts::ask_people(shop, context, &mut changes, &build, evidence).await?;
        }
        Verdict::Failed => {
            let reason = format!(
                "the whole-build check failed: {}",
                evidence.findings.join("; ")
            );
            settle::fail(context, &mut changes, &mut build, &tasks, reason).await?;
            let asked = verdicts::ask_people(shop, context, &mut changes, &build, evidence).await?;
            build.question = asked.or(build.question);
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
