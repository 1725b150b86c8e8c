//! Lets a model hand in a plan until its checks say something, or it will mend no more.

use std::collections::BTreeSet;

use ropewalk_engine::{EngineError, SilentObserver};
use ropewalk_orchestrator::{AgentError, Context};
use ropewalk_schemas::TaskId;
use tokio_util::sync::CancellationToken;

use super::one_line;
use crate::failure;
use crate::specification::context::Material;
use crate::specification::submission::{self, ModelSubmission, Plan};
use crate::specification::{SpecificationOptions, dry_run, earlier, prompt, validate};
use crate::withdrawal::Commission;

/// Stands before what trying the checks showed.
const TRIED: &str = " the checks were tried on the repository as it is;";

/// What came of asking for a plan.
pub(super) enum Draft {
    /// A plan, or a question that comes first.
    Submitted(ModelSubmission),
    /// There is no plan, for this reason.
    Refused(String),
    /// People gave it up meanwhile.
    Withdrawn,
}

/// Lets the model hand in a plan, and tells it what trying its checks showed.
///
/// A plan that it will not mend goes on to people with what was found: they can read it, and a refusal would leave them nothing.
pub(super) async fn draft(
    options: &SpecificationOptions,
    context: &Context,
    material: &Material,
) -> Result<Draft, AgentError> {
    let earlier = earlier::find(&options.engine, material, options.repairs).await?;
    let (draft, job) = (
        &earlier.draft,
        prompt::job(&options.prompts, material, &earlier, options.repairs)?,
    );
    let mut session = options
        .engine
        .open(&job)
        .map_err(|error| failure::of_job(&error))?;
    let commission = Commission::Draft(material.spec.id, &material.spec.idea);
    let mut handed_in: Option<Box<Plan>> = None;
    loop {
        let cancel = CancellationToken::new();
        let run = session.run(&cancel, &SilentObserver);
        let outcome = commission.while_wanted(&context.store, &cancel, run).await;
        match outcome {
            Ok(_) => {}
            Err(EngineError::Cancelled) => return Ok(Draft::Withdrawn),
            Err(error) if failure::may_pass(&error) => return Err(failure::of_job(&error)),
            Err(error) => return Ok(settled(handed_in, &error)),
        }
        let mut plan = match draft.taken() {
            Some(ModelSubmission::Plan(plan)) => plan,
            Some(question) => return Ok(Draft::Submitted(question)),
            None => break,
        };
        let untried = untried(&plan, material);
        let dry = dry_run::run(options, &material.look.commit, &plan, &untried).await;
        let faults = plan.faults.len();
        let all = [plan.faults.clone(), dry.faults.clone()].concat();
        let advice = submission::advice(&plan.warnings);
        if plan.faults.is_empty() {
            plan.dry_run = (!dry.untried).then_some(dry.count);
            plan.warnings
                .splice(..0, dry.faults.into_iter().chain(dry.notes));
            if all.is_empty() {
                return Ok(Draft::Submitted(ModelSubmission::Plan(plan)));
            }
            handed_in = Some(plan);
        }
        let tried = if all.len() > faults { TRIED } else { "" };
        let told: Vec<String> = all.iter().cloned().chain(advice).collect();
        let told = format!(
            "not accepted;{tried} mend this and call again, with `amends: true` for what changes alone: {}",
            told.join("; ")
        );
        if !session.repair(&told) {
            let refusal = EngineError::Submission {
                name: prompt::SUBMIT.to_owned(),
                tries: options.repairs + 1,
                errors: all,
            };
            return Ok(settled(handed_in, &refusal));
        }
    }
    Ok(Draft::Refused("the model handed in nothing".to_owned()))
}

/// Returns the plan that fits together, where one was handed in before.
fn settled(handed_in: Option<Box<Plan>>, error: &EngineError) -> Draft {
    match handed_in {
        Some(plan) => Draft::Submitted(ModelSubmission::Plan(plan)),
        None => Draft::Refused(one_line(&error.to_string())),
    }
}

/// Lists the tasks whose checks are not tried: what is kept has passed its own where it landed, and a task with a fault of its own
/// has none that can be.
fn untried(plan: &Plan, material: &Material) -> BTreeSet<TaskId> {
    let facts = &material.facts;
    let mut untried = facts.kept(&plan.document, &plan.tasks);
    let faulty = plan.tasks.iter().filter(|task| {
        let alone = std::slice::from_ref(*task);
        !validate::check_parts(None, alone, facts).errors.is_empty()
    });
    untried.extend(faulty.map(|task| task.id.clone()));
    untried
}
