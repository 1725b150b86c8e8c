//! Lets a model hand in a plan until its checks say something, or it will mend no more.

use ropewalk_engine::{EngineError, SilentObserver};
use ropewalk_orchestrator::{AgentError, Context};
use tokio_util::sync::CancellationToken;

use super::one_line;
use crate::failure;
use crate::specification::context::Material;
use crate::specification::submission::{ModelSubmission, Plan};
use crate::specification::{SpecificationOptions, dry_run, earlier, prompt};
use crate::withdrawal::Commission;

/// So often what trying the checks showed goes back to the model.
const DRY_RUNS: u32 = 2;

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
    for dry_runs in 0.. {
        let cancel = CancellationToken::new();
        let run = session.run(&cancel, &SilentObserver);
        let outcome = commission.while_wanted(&context.store, &cancel, run).await;
        match (outcome, handed_in.take()) {
            (Ok(_), _) => {}
            (Err(EngineError::Cancelled), _) => return Ok(Draft::Withdrawn),
            (Err(error), _) if failure::may_pass(&error) => return Err(failure::of_job(&error)),
            (Err(_), Some(plan)) => return Ok(Draft::Submitted(ModelSubmission::Plan(plan))),
            (Err(error), None) => return Ok(Draft::Refused(one_line(&error.to_string()))),
        }
        let mut plan = match draft.taken() {
            Some(ModelSubmission::Plan(plan)) => plan,
            Some(question) => return Ok(Draft::Submitted(question)),
            None => break,
        };
        let kept = material.facts.kept(&plan.document, &plan.tasks);
        let dry = dry_run::run(options, &material.look.commit, &plan, &kept).await;
        plan.dry_run = Some(dry.count);
        let tried = dry.faults.iter().cloned().chain(dry.notes);
        plan.warnings.splice(..0, tried);
        if dry.faults.is_empty() || dry_runs == DRY_RUNS {
            return Ok(Draft::Submitted(ModelSubmission::Plan(plan)));
        }
        session.send_back(&format!(
            "not accepted; the checks were tried on the repository as it is. Mend this and call again, with `amends` for what changes alone: {}",
            dry.faults.join("; ")
        ));
        handed_in = Some(plan);
    }
    Ok(Draft::Refused("the model handed in nothing".to_owned()))
}
