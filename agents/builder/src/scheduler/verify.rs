//! Checks a build as a whole before it is called a success: cold, on its final head.

use ropewalk_desk::builds::landing;
use ropewalk_desk::views::trace::Trace;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::BuildId;
use ropewalk_schemas::attempt::{Evidence, Verdict};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::fulfilment::Fulfilment;
use ropewalk_schemas::task::TaskState;
use ropewalk_store::{ChangeSet, retry_on_conflict};
use tracing::info;

use super::settle;
use super::{publish, tasks_file, traced, verdicts};
use crate::SharedState;
use crate::ask::{self, BranchOutlook};
use crate::context::{Plan, of_build};
use crate::decide::counts::{count, named, unplanned, unverified};
use crate::decide::validation::held;
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::land;
use crate::machine::build::Input;
use ropewalk_gate::whole::{self, Whole};

/// Checks the whole and ends the build.
pub(crate) async fn verify(
    shared: &SharedState,
    context: &Context,
    id: BuildId,
) -> Result<(), BuilderError> {
    // What is checked is what a person gets: the code, and the word about its tasks that travels with it.
    let Some(head) = tasks_file::commit(shared, context, id).await? else {
        return Ok(());
    };
    let Some(plan) = Plan::load(&context.store, id).await? else {
        return Ok(());
    };
    // What is told to be on the branch must be on the branch first.
    publish::publish(shared, context, id).await?;
    let context = of_build(context, &plan.build);
    let tasks = plan.records();
    let whole = Whole {
        build: &plan.build,
        tasks: &tasks,
        commit: &head,
        level: plan.build.level,
        now: context.now(),
    };
    let evidence = whole::check_to_the_end(&shared.gate, &whole).await?;
    retry_on_conflict!(BuilderError, id, {
        conclude(shared, &context, id, &evidence).await.map(Some)
    })?;
    tasks_file::write(shared, &context, id).await
}

/// Ends the build by what was seen.
async fn conclude(
    shared: &SharedState,
    context: &Context,
    id: BuildId,
    evidence: &Evidence,
) -> Result<(), BuilderError> {
    let Some(plan) = Plan::load(&context.store, id).await? else {
        return Ok(());
    };
    let checked = plan.build.head.as_ref() == Some(&evidence.commit);
    if plan.build.state != BuildState::Verifying || !checked {
        return Ok(());
    }
    let tasks = plan.records();
    let before = &plan.build.record;
    let mut changes = ChangeSet::new();
    let build = match evidence.verdict {
        Verdict::Passed => {
            let fulfilments = Trace::load(&context.store, before).await?.fulfilments();
            let counts = count(&tasks);
            let skipped = named(&tasks, TaskState::Skipped)
                .map(|names| format!("{} skipped: {names}", counts.skipped));
            let told: Vec<String> = skipped
                .into_iter()
                .chain(unverified(&fulfilments))
                .chain(unplanned(&fulfilments, &tasks))
                .collect();
            let doubts = !told.is_empty() || !evidence.checks.iter().all(held);
            let input = Input::Pass {
                told: (!told.is_empty()).then(|| told.join("; ")),
            };
            let ended =
                settle::complete(shared, context, &mut changes, before, &tasks, input).await?;
            let in_the_way =
                land::documents_in_the_way(&shared.clone, context, &plan, shared.options.landing)
                    .await;
            let build = ask::build_finished(
                shared,
                context,
                &mut changes,
                &ended,
                &counts,
                BranchOutlook {
                    requirements: Fulfilment::summed_up(&fulfilments, &tasks),
                    gate: landing::gate_lines(Some(evidence), &tasks),
                    objections: Vec::new(),
                    doubts,
                    in_the_way,
                },
            )
            .await?;
            verdicts::ask_people(shared, context, &mut changes, &build, evidence).await?;
            build
        }
        Verdict::Failed => {
            let reason = format!(
                "the whole-build check failed: {}",
                evidence.findings.join("; ")
            );
            let failed =
                settle::fail(shared, context, &mut changes, before, &tasks, reason).await?;
            let asked =
                verdicts::ask_people(shared, context, &mut changes, &failed, evidence).await?;
            ask::note(context, &failed, asked.or(failed.question))?
        }
        Verdict::Held => {
            let detail = format!("a check could not run: {}", evidence.findings.join("; "));
            let input = Input::Hold { detail };
            let scene = Scene::new(shared, context, before).among(&tasks);
            scene.build(&mut changes, input).await?
        }
    };
    changes.put(evidence);
    changes.update(&plan.build, &build);
    info!(build.id = %id, "checked build `{id}` as a whole: {:?}", evidence.verdict);
    traced::commit(context, before, changes).await?;
    Ok(())
}
