//! Runs one attempt: slot, engine, candidate, gate, landing; and records how it ended.

mod asking;
mod candidate;
pub(crate) mod ending;
mod gating;
mod grants;
mod hearing;
mod join;
mod joining;
mod keeper;
mod landing;
mod lessons;
mod mending;
mod packages;
mod prompt;
mod regate;
pub(crate) mod report;
pub(crate) mod rows;
pub(crate) mod survey;
mod watching;
mod work;

use std::error::Error as _;
use std::ffi::OsString;
use std::sync::{Arc, Mutex};

use ropewalk_engine::llm::ModelError;
use ropewalk_engine::{BudgetOverrun, EngineError, Outcome, Policy, Workbench, WorkbenchOptions};
use ropewalk_orchestrator::Context;
use ropewalk_runtime::{Supervisor, in_hand};
use ropewalk_schemas::advice::{Advice, Words};
use ropewalk_schemas::attempt::{Attempt, AttemptState, FailureClass, Verdict};
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::payload::TaskStarted;
use ropewalk_schemas::task::Action;
use ropewalk_schemas::{CommitId, Payload, RepoPath, Subject};
use ropewalk_store::{ChangeSet, retry_on_conflict};
use ropewalk_workspace::{History, Slot};
use tracing::{info, warn};

use super::SharedState;
use super::budget;
use super::claim::Claim;
use super::context::{consents, of_build};
use super::decide::failure::rest;
use super::error::BuilderError;
use super::isolation;
use super::machine::TopicQuestion;
use super::machine::task::{Input, Phase, apply_alone};
use super::outages;
use ending::{Cut, Fault};
use join::JoinOutcome;
use landing::Landing;
use prompt::background::Background;
use prompt::earlier;
use report::{Report, TaskResult};
use ropewalk_gate::candidate::GateReport;
use ropewalk_gate::runner;
use work::{Work, held_now};

use asking::Questions;
use asking::unattended::UnattendedApprover;
use candidate::lay_out;
use grants::Grants;
use packages::Packages;
use watching::AttemptObserver;

/// How far an attempt has come that shows its work to the gate; before that each turn of the model is a step.
const GATE_STEP: u32 = 10_000;
/// How far one has come that lands.
const LANDING_STEP: u32 = 20_000;

/// How an attempt ended.
pub(crate) enum Ending {
    /// Its work is the build's head or below it.
    Landed,
    /// It failed.
    Failed(Box<Fault>),
    /// It was ended from outside, for this reason.
    Interrupted(String),
    /// Its next model call would go beyond a budget.
    OutOfBudget(Box<BudgetOverrun>),
    /// The provider of its model is away.
    Away(Box<Outage>),
    /// Its model asks a person.
    Asks(TopicQuestion),
}

/// Runs a claimed task to an end and records it.
pub(crate) async fn run(shared: &Arc<SharedState>, context: &Context, claim: Claim) {
    let attempt = &claim.attempt;
    let context = of_build(context, &claim.build);
    let work = Work {
        shared,
        watching: AttemptObserver::new(&context, &shared.state, attempt),
        context,
        locks: Arc::new(Mutex::new(claim.locks.clone())),
        cancel: shared
            .signals
            .begin(attempt.id, attempt.build, &attempt.task),
        base: Arc::new(Mutex::new(claim.base.clone())),
        waiting: Arc::default(),
        claim: &claim,
    };
    let mut report = Report::default();
    let context = &work.context;
    let suspects = context.registry.suspects();
    let suspect = isolation::name(&claim.task);
    let mark = suspects.hold(suspect.clone(), 0);
    let ending = Box::pin(mark.around(caught(&work, &mut report))).await;
    let is_over = !matches!(ending, Ok(Ending::Interrupted(_)) | Err(_));
    if let Err(error) = record(&work, ending, &report).await {
        // The rows stay as they are; a restart or the judge of leases sets them right.
        warn!(task.id = %attempt.task, "the end of attempt `{}` could not be stored: {error}", attempt.id);
    }
    drop(mark);
    if is_over {
        suspects.let_go(&suspect, &context.store).await;
    }
    shared.isolation.end(&claim.task);
    shared.signals.end(attempt.id);
    shared.signals.wake_scheduler();
    shared.signals.wake_loops();
}

/// Runs the steps of an attempt; a crash is one more thing that keeps it from its work.
async fn caught(work: &Work<'_>, report: &mut Report) -> Result<Ending, BuilderError> {
    match Supervisor::guard("attempt", Box::pin(watched(work, report))).await {
        Ok(ending) => ending,
        Err(crash) => Err(BuilderError::Missing(crash.to_string())),
    }
}

/// Runs the steps of an attempt until they end; one that was taken away keeps its work before it ends.
async fn watched(work: &Work<'_>, report: &mut Report) -> Result<Ending, BuilderError> {
    let mut steps = Box::pin(steps(work, report));
    let lost = tokio::select! {
        ending = &mut steps => {
            let reason = work.shared.signals.reason(work.claim.attempt.id);
            return ending.map(|ending| match (ending, reason) {
                (Ending::Interrupted(_), Some(reason)) => Ending::Interrupted(reason),
                (ending, _) => ending,
            });
        }
        lost = keeper::keep(work) => lost,
    };
    Ok(match steps.await {
        Ok(Ending::Landed) => Ending::Landed,
        _ => Ending::Interrupted(lost),
    })
}

async fn record(
    work: &Work<'_>,
    ending: Result<Ending, BuilderError>,
    report: &Report,
) -> Result<(), BuilderError> {
    let (shared, context) = (work.shared, &work.context);
    match ending {
        Ok(Ending::Landed) => Ok(()),
        Ok(Ending::Failed(fault)) => {
            let (task, number) = (&work.claim.task.id, work.claim.attempt.number);
            if fault.waits_for_consent() {
                let why = fault.class.in_words();
                info!(task.id = %task, "attempt {number} at `{task}` waits for your answer: {why}");
            } else {
                info!(task.id = %task, "attempt {number} at `{task}` failed: {:?}", fault.class);
            }
            ending::failed(shared, context, work.ids(), &fault, report).await
        }
        Ok(Ending::OutOfBudget(exceeded)) => {
            info!(task.id = %work.claim.task.id, "the budget `{}` is used up", exceeded.scope);
            budget::ran_out(shared, context, work.ids(), &exceeded, report).await
        }
        Ok(Ending::Away(outage)) => {
            outages::met(shared, context, work.ids(), &outage, report).await
        }
        Ok(Ending::Asks(put)) => ending::asks(shared, context, work.ids(), put, report).await,
        Ok(Ending::Interrupted(reason)) => {
            ending::interrupted(shared, context, work.ids(), &reason, None, report).await
        }
        Err(error) => {
            warn!(task.id = %work.claim.task.id, "attempt {} at `{}` could not go on: {error}",
                work.claim.attempt.number, work.claim.task.id);
            // As it is stored: what met the gate since the claim has begun to count anew.
            let task = work.rows().await?.map(|rows| rows.task.record);
            let was_last = task.is_some_and(|task| ending::was_cut_off_enough(&task));
            if error.may_be_the_works() && was_last {
                let fault = Fault::new(FailureClass::Interrupted, ending::told_cut_off(&error));
                return ending::failed(shared, context, work.ids(), &fault, report).await;
            }
            let cut = Some(Cut {
                pause: rest(work.claim.rested, &shared.options.tries),
                counts: error.may_be_the_works(),
            });
            let why = error.to_string();
            ending::interrupted(shared, context, work.ids(), &why, cut, report).await
        }
    }
}

async fn steps(work: &Work<'_>, report: &mut Report) -> Result<Ending, BuilderError> {
    if work.claim.task.block.action == Action::Verify {
        return verify(work, report).await;
    }
    let head = match join::join(work).await? {
        JoinOutcome::Stands(head) => head,
        JoinOutcome::Failed(fault) => return Ok(Ending::Failed(fault)),
        JoinOutcome::Lost(reason) => return Ok(Ending::Interrupted(reason)),
    };
    if let Some(ending) = joining::begin(work, &head).await? {
        return Ok(ending);
    }
    if let Some(kept) = &work.claim.task.regate {
        return regate::regate(work, (&head, kept), report).await;
    }
    if let Some(ending) = regate::by_hand::take_up(work, report).await? {
        return Ok(ending);
    }
    let now = work.context.now();
    let key = work.key();
    let acquired = async {
        let mut slot = work.shared.slots.acquire(&key, &work.base(), now).await?;
        slot.show(history(work).await?).await?;
        Ok::<_, BuilderError>(slot)
    };
    let (mut slot, background) = tokio::try_join!(acquired, background(work))?;
    if !start(work).await? {
        return Ok(Ending::Interrupted("the task was taken away".to_owned()));
    }
    let (ending, kept) = match in_slot(work, &mut slot, background, report).await {
        // Nobody writes in the slot any more, so it is given back beside the landing.
        Ok(WorkOutcome::Passed(passed)) => {
            tokio::join!(land(work, *passed, report), give_back(work, slot))
        }
        Ok(WorkOutcome::Ended(ending)) => (Ok(ending), give_back(work, slot).await),
        Err(error) => (Err(error), give_back(work, slot).await),
    };
    report.preserve_ref = report.preserve_ref.take().or(kept);
    ending
}

/// Gives a slot back; says where work is kept that no ref held.
async fn give_back(work: &Work<'_>, slot: Slot) -> Option<String> {
    // What no ref holds yet is kept first, so that nothing the agent made is lost.
    // What is left in the slot when that fails is kept by whoever takes the slot next, and hides no ending.
    match slot.release(work.context.now()).await {
        Ok(kept) => kept.map(|kept| kept.reference),
        Err(error) => {
            let task = &work.claim.task.id;
            warn!(task.id = %task, "the slot of `{task}` could not be given back: {}", Words::of(&error));
            None
        }
    }
}

/// What came of the work in a slot.
enum WorkOutcome {
    /// Something that may land.
    Passed(Box<PassedCandidate>),
    /// The attempt has ended.
    Ended(Ending),
}

/// A candidate that the gate saw pass, and the files that it may change.
struct PassedCandidate {
    seen: GateReport,
    allowed: Vec<RepoPath>,
}

/// A candidate, and the files that it may change.
struct Proposal {
    commit: CommitId,
    allowed: Vec<RepoPath>,
}

async fn in_slot(
    work: &Work<'_>,
    slot: &mut Slot,
    mut background: Background,
    report: &mut Report,
) -> Result<WorkOutcome, BuilderError> {
    packages::products::clear_others(work).await?;
    let Some(packages) = packages::install(work, slot).await? else {
        return Ok(WorkOutcome::Ended(Ending::Interrupted(
            "it was ended during an install".to_owned(),
        )));
    };
    if let Some(kept) = &work.claim.task.resume_from
        && let Some(laid) = lay_out(work, slot, kept).await?
    {
        background.resume(work, &laid).await?;
    }
    let (follow, mut followers) = grants::following::way();
    let grants = Grants::new(work, follow);
    if let Some(ending) = grants::links::lock_behind(work, slot, &grants).await? {
        return Ok(WorkOutcome::Ended(ending));
    }
    let bench = bench(work, slot, &packages, grants).await?;
    background.made_ready = packages.told;
    background.tools = tools(work, slot).await?;
    let place = (slot, &mut followers);
    mending::work_on(work, place, &bench, &background, report).await
}

async fn tools(work: &Work<'_>, slot: &Slot) -> Result<Vec<String>, BuilderError> {
    let (shared, claim) = (work.shared, work.claim);
    let base = claim.build.base.as_ref().unwrap_or(&claim.base);
    let tools = shared.survey.tools(&shared.clone, base, slot.root()).await;
    Ok(tools?)
}

/// Shows a proposal to the gate and lands it.
async fn check_proposal(
    work: &Work<'_>,
    proposal: &Proposal,
    report: &mut Report,
) -> Result<Ending, BuilderError> {
    let Proposal { commit, allowed } = proposal;
    if !advance(work, Phase::Validating, AttemptState::Validating, report).await? {
        return Ok(Ending::Interrupted("the task was taken away".to_owned()));
    }
    check_and_land(work, commit, &work.base(), allowed, report).await
}

/// Gates the candidate and lands it.
async fn check_and_land(
    work: &Work<'_>,
    commit: &CommitId,
    parent: &CommitId,
    allowed: &[RepoPath],
    report: &mut Report,
) -> Result<Ending, BuilderError> {
    in_hand::reached(GATE_STEP);
    let Some(seen) = gating::check(work, commit, parent, (allowed, &[])).await? else {
        return Ok(Ending::Interrupted(
            "it was ended during the gate".to_owned(),
        ));
    };
    if seen.evidence.verdict != Verdict::Passed {
        return Ok(Ending::Failed(Box::new(Fault::seen(seen))));
    }
    let allowed = allowed.to_vec();
    land(work, PassedCandidate { seen, allowed }, report).await
}

/// Lands what passed.
async fn land(
    work: &Work<'_>,
    passed: PassedCandidate,
    report: &mut Report,
) -> Result<Ending, BuilderError> {
    let PassedCandidate { seen, allowed } = passed;
    if !advance(work, Phase::Landing, AttemptState::Landing, report).await? {
        return Ok(Ending::Interrupted("the task was taken away".to_owned()));
    }
    in_hand::reached(LANDING_STEP);
    Ok(match landing::land(work, seen, &allowed, report).await? {
        Landing::Landed => Ending::Landed,
        Landing::Failed(fault) => Ending::Failed(fault),
        Landing::Lost(reason) => Ending::Interrupted(reason),
    })
}

/// Runs a task that only verifies: no model, no slot, the gate alone on the head.
async fn verify(work: &Work<'_>, report: &mut Report) -> Result<Ending, BuilderError> {
    let validating = start(work).await?
        && advance(work, Phase::Validating, AttemptState::Validating, report).await?;
    if !validating {
        return Ok(Ending::Interrupted("the task was taken away".to_owned()));
    }
    let base = &work.claim.base;
    check_and_land(work, base, base, &[], report).await
}

/// Says that the attempt works now, and writes down the token that its landing must hold.
async fn start(work: &Work<'_>) -> Result<bool, BuilderError> {
    let claim = work.claim;
    retry_on_conflict!(BuilderError, &claim.task.id, {
        let Some(rows) = work.rows().await? else {
            return Ok(Some(false));
        };
        let context = &work.context;
        let mut task = apply_alone(&rows.task, Input::Reach(Phase::Working), context.now())?;
        let attempt = Attempt {
            token: claim.attempt.token,
            base: work.base(),
            ..rows.attempt.record.clone()
        };
        let mut changes = ChangeSet::new();
        let started = context.event(
            Subject::task(task.build, &task.id),
            Payload::TaskStarted(TaskStarted {
                build_id: task.build,
                task_id: task.id.clone(),
                idea_slug: claim.build.idea.clone(),
                attempt: attempt.number,
                file: task.block.file.clone(),
                loop_name: attempt.loop_name.clone(),
            }),
        );
        task.cause = Some(started.id);
        changes.update(&rows.task, &task);
        changes.update(&rows.attempt, &attempt);
        changes.emit(started);
        context.store.commit(changes).await?;
        Ok(Some(true))
    })
}

/// Moves task and attempt on together; false when the task was taken away.
async fn advance(
    work: &Work<'_>,
    to: Phase,
    attempt_to: AttemptState,
    report: &Report,
) -> Result<bool, BuilderError> {
    retry_on_conflict!(BuilderError, &work.claim.task.id, {
        let Some(rows) = work.rows().await? else {
            return Ok(Some(false));
        };
        let task = apply_alone(&rows.task, Input::Reach(to), work.context.now())?;
        let attempt = Attempt {
            state: attempt_to,
            candidate: report.candidate.clone(),
            preserve_ref: report.preserve_ref.clone(),
            summary: report.summary.clone(),
            tokens: report.tokens,
            granted: report.granted.clone(),
            gotchas: report.gotchas.clone(),
            ..rows.attempt.record.clone()
        };
        let mut changes = ChangeSet::new();
        changes.update(&rows.task, &task);
        changes.update(&rows.attempt, &attempt);
        work.context.store.commit(changes).await?;
        Ok(Some(true))
    })
}

/// Returns what commands of the attempt see of what was before.
async fn history(work: &Work<'_>) -> Result<History, BuilderError> {
    let shared = work.shared;
    let base = work.claim.build.base.clone();
    let base = base.unwrap_or_else(|| work.base());
    let objects = shared.runner.objects_of(&shared.clone);
    Ok(shared.clone.history_on(&base, objects).await?)
}

/// Opens the tools of the attempt.
async fn bench(
    work: &Work<'_>,
    slot: &Slot,
    packages: &Packages,
    grants: Grants,
) -> Result<Workbench, BuilderError> {
    let gate_files = gate_files(work).await?;
    let state = &work.shared.state;
    let attempt = &work.claim.attempt;
    let text = |value: OsString| value.to_string_lossy().into_owned();
    let mut variables: Vec<(String, String)> = slot
        .variables()
        .into_iter()
        .chain(packages.variables.iter().cloned())
        .map(|(name, value)| (text(name), text(value)))
        .collect();
    for (name, value) in runner::quiet_variables() {
        variables.push((name.to_owned(), value.to_owned()));
    }
    let target = packages::products::directory(work);
    variables.push(("CARGO_TARGET_DIR".to_owned(), text(target.into())));
    Ok(Workbench::open(WorkbenchOptions {
        root: slot.root().to_owned(),
        writable: held_now(&work.locks).into_keys().collect(),
        gate_files,
        plan_folder: Some(RepoPath::of_idea(&work.claim.build.idea)),
        policy: Policy::following(work.shared.options.policy.clone())
            .approved_by(Arc::new(UnattendedApprover::new(work))),
        runner: work.shared.runner.clone(),
        variables,
        grants: Some(Arc::new(grants)),
        asker: Some(Arc::new(Questions::new(work))),
        search: work.shared.options.search.clone(),
        egress: work.shared.runner.egress().cloned(),
        history: None,
        cache: work.shared.options.cache,
        scratch: Some(slot.scratch()),
        spill_directory: state.join("spill").join(attempt.id.to_string()),
    })?)
}

/// Lists the files that the attempt may not ask for, since they judge its work.
async fn gate_files(work: &Work<'_>) -> Result<Vec<RepoPath>, BuilderError> {
    let Work { shared, claim, .. } = work;
    let base = claim.build.base.as_ref();
    let kept = ropewalk_gate::kept_files(&shared.gate, base, &claim.task, &work.base()).await?;
    Ok(kept
        .iter()
        .filter_map(|path| RepoPath::parse(path).ok())
        .collect())
}

/// Reads what the prompt holds beside the task.
async fn background(work: &Work<'_>) -> Result<Background, BuilderError> {
    let mut background = Background::load(work).await?;
    background.earlier = earlier::find(work).await?;
    background.answers = earlier::answers(work).await?;
    let (store, task) = (&work.context.store, &work.claim.task);
    background.permissions = consents::permissions(store, task).await?;
    background.budget = prompt::budget(work).await?;
    Ok(background)
}

fn note(report: &mut Report, outcome: &Outcome) {
    report.tokens = outcome.usage.total_input_tokens() + outcome.usage.output_tokens;
    let finished = outcome
        .submission
        .clone()
        .and_then(|value| serde_json::from_value::<TaskResult>(value).ok());
    if let Some(finished) = finished {
        report.lesson = finished.lesson;
        report.blocked = finished.blocked.filter(|why| !why.trim().is_empty());
    }
}

fn ending_of(work: &Work<'_>, error: &EngineError) -> Ending {
    let class = match error {
        EngineError::Budget(exceeded) => return Ending::OutOfBudget(exceeded.clone()),
        EngineError::Outage(outage) => return Ending::Away(outage.clone()),
        EngineError::Ended { reason } => {
            return match work.waiting.get() {
                Some(put) => Ending::Asks(put.clone()),
                None => Ending::Interrupted(reason.clone()),
            };
        }
        // The same work would use as much again, so waiting for a better time does not help.
        EngineError::TokenLimit { .. } => Some(FailureClass::NoProgress),
        other => other.failure_class(),
    };
    let Some(class) = class else {
        return Ending::Interrupted(told(error));
    };
    let mut fault = Fault::new(class, told(error));
    if let EngineError::Model(ModelError::RateLimited {
        retry_after: Some(after),
        ..
    }) = error
    {
        fault.quota_back = chrono::TimeDelta::from_std(*after)
            .ok()
            .map(|after| work.context.now() + after);
    }
    Ending::Failed(Box::new(fault))
}

/// Tells an error with its causes, and how they are mended.
fn told(error: &EngineError) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        message.push_str(": ");
        message.push_str(&inner.to_string());
        cause = inner.source();
    }
    let next = match error {
        EngineError::Read(error) => error.next(),
        EngineError::Journal(error) => error.next(),
        _ => None,
    };
    Words { message, next }.to_string()
}
