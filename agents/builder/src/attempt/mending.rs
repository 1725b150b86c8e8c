//! Works on in one conversation and one tree until the gate takes the work, or somebody else has to act.

use std::pin::pin;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ropewalk_engine::{
    AgentMode, EngineError, JobEvent, Observer, Session, WentOn, Workbench, tools_of,
};
use ropewalk_runtime::{in_hand, traces};
use ropewalk_schemas::attempt::{AttemptState, FailureClass, Verdict};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{CommitId, RepoPath, trace};
use ropewalk_workspace::Slot;
use tracing::{info, warn};

use super::candidate::propose;
use super::ending::{self, Fault, Refusal};
use super::grants::following::Followers;
use super::hearing::TaskSteering;
use super::prompt;
use super::prompt::background::Background;
use super::report::Report;
use super::work::{Work, held_now};
use super::{Ending, GATE_STEP, PassedCandidate, WorkOutcome, advance, ending_of, note};
use super::{gating, lessons};
use crate::decide::failure::is_worth_keeping;
use crate::error::BuilderError;
use crate::machine::task::Phase;

/// What the call that handed something in comes back with where a person spoke meanwhile.
const SPOKE: &str = "Not taken yet: a person spoke about this task meanwhile. Take their words in, which go before the text \
                     of the task, and call again.";

/// Asks the model, shows what it hands in to the gate, and tells it what failed, as the result of the call that
/// handed it in.
pub(super) async fn work_on(
    work: &Work<'_>,
    (slot, followers): (&mut Slot, &mut Followers),
    bench: &Workbench,
    background: &Background,
    report: &mut Report,
) -> Result<WorkOutcome, BuilderError> {
    let (claim, shared) = (work.claim, work.shared);
    let missing = |error: String| BuilderError::Missing(error);
    let gotchas = lessons::gather(work, report).await?;
    let tools =
        tools_of(AgentMode::Implement, bench).map_err(|error| missing(error.to_string()))?;
    let options = &shared.options;
    let job = prompt::job(&shared.prompts, options, claim, background, &gotchas, tools);
    let job = job.map_err(|error| missing(error.to_string()))?;
    let hearing = TaskSteering::new(work);
    let mut session = match shared.engine.open(&job) {
        Ok(session) => session.steered_by(Arc::new(hearing.clone())),
        Err(error) => return Ok(WorkOutcome::Ended(ending_of(work, &error))),
    };
    loop {
        if let Some(ending) = ask(work, &mut session, (slot, followers), report).await? {
            if begins_anew(&ending) {
                report.summary = session.summary().map(str::to_owned);
                leave(work, slot, session.heard_at(), report).await;
            }
            return Ok(WorkOutcome::Ended(ending));
        }
        let went_on = session.went_on().await?;
        if let Some(words) = unheard(work, (session.turn(), went_on), &hearing).await? {
            session.send_back(&ending::told_with(SPOKE, &words));
            continue;
        }
        let allowed: Vec<RepoPath> = held_now(&work.locks).into_keys().collect();
        report.granted = beyond(&claim.task, &allowed);
        let when = session.heard_at().unwrap_or_else(|| work.context.now());
        let commit = propose(work, slot, (&allowed, when), report).await?;
        if let Some(why) = report.blocked.take() {
            let fault = Fault::new(FailureClass::Blocked, why);
            return Ok(WorkOutcome::Ended(Ending::Failed(Box::new(fault))));
        }
        match judge(work, session.turn(), &commit, allowed, report).await? {
            GateVerdict::Passed(passed) => {
                let words = hearing.said_meanwhile().await?;
                // Where somebody spoke when it was built, what is built again goes on as it did then.
                if words.is_empty() && went_on != WentOn::InThePast {
                    return Ok(WorkOutcome::Passed(passed));
                }
                if !advance(work, Phase::Working, AttemptState::Working, report).await? {
                    return Ok(WorkOutcome::Ended(taken_away()));
                }
                session.send_back(&ending::told_with(SPOKE, &words));
            }
            GateVerdict::Refused { told, guidance } => {
                report.summary = None;
                let new = hearing.new_of(&guidance);
                session.send_back(&ending::told_with(&told, &new));
            }
            GateVerdict::Ended(ending) => return Ok(WorkOutcome::Ended(ending)),
        }
    }
}

/// Returns what was said while the model handed its work in, which it takes in first; none where nothing was.
///
/// A conversation that is taken up again comes by each place where that happened before, and goes on as it did then. What no reply
/// is known to have taken in is told after the last of them.
async fn unheard(
    work: &Work<'_>,
    (turn, went_on): (u32, WentOn),
    hearing: &TaskSteering,
) -> Result<Option<Vec<String>>, BuilderError> {
    if work.claim.refused.iter().any(|one| one.turn == turn) {
        return Ok(None);
    }
    if went_on == WentOn::Here {
        return Ok(Some(Vec::new()));
    }
    let words = hearing.said_meanwhile().await?;
    Ok((!words.is_empty()).then_some(words))
}

/// Says whether whoever works on the task next begins anew, with what was done in its prompt.
fn begins_anew(ending: &Ending) -> bool {
    matches!(ending, Ending::Failed(fault) if !is_worth_keeping(fault.class))
}

/// Keeps what stands where a conversation ended before it was handed in. Where that fails, the slot still holds it.
async fn leave(
    work: &Work<'_>,
    slot: &mut Slot,
    heard_at: Option<DateTime<Utc>>,
    report: &mut Report,
) {
    let allowed: Vec<RepoPath> = held_now(&work.locks).into_keys().collect();
    let when = heard_at.unwrap_or_else(|| work.context.now());
    let kept = async {
        if !slot.changed_files().await?.is_empty() {
            propose(work, slot, (&allowed, when), report).await?;
        }
        Ok::<_, BuilderError>(())
    };
    if let Err(error) = kept.await {
        warn!(task.id = %work.claim.task.id, "what was not handed in could not be kept: {error}");
    }
}

/// Returns what an attempt holds beside the files of its task.
fn beyond(task: &Task, held: &[RepoPath]) -> Vec<RepoPath> {
    let declared = |file: &&RepoPath| task.block.files().any(|own| own.key() == file.key());
    held.iter()
        .filter(|file| !declared(file))
        .cloned()
        .collect()
}

/// Asks until the model hands something in; else says how the attempt ended.
async fn ask(
    work: &Work<'_>,
    session: &mut Session<'_>,
    (slot, followers): (&mut Slot, &mut Followers),
    report: &mut Report,
) -> Result<Option<Ending>, BuilderError> {
    let context = &work.context;
    let chain = trace::trace_id(context.correlation());
    let whole = trace::build_span(work.claim.build.id);
    let run = session.run(&work.cancel, &work.watching);
    let mut running = pin!(traces::within(Some((chain, whole)), run));
    let outcome = loop {
        tokio::select! {
            outcome = &mut running => break outcome,
            Some(follower) = followers.recv() => follower.serve(work, slot).await?,
        }
    };
    match outcome {
        Ok(outcome) => {
            note(report, &outcome);
            Ok(None)
        }
        // A reply may be paid already, so what keeps it from the journal is waited out, longer each time.
        Err(EngineError::Read(error)) => Err(error.into()),
        Err(EngineError::Journal(error)) => Err(error.into()),
        Err(error) => Ok(Some(ending_of(work, &error))),
    }
}

/// What the gate says of a candidate.
enum GateVerdict {
    Passed(Box<PassedCandidate>),
    /// The agent can mend it, and is told this and what people have said of the task.
    Refused {
        told: String,
        guidance: Vec<String>,
    },
    Ended(Ending),
}

async fn judge(
    work: &Work<'_>,
    turn: u32,
    commit: &CommitId,
    allowed: Vec<RepoPath>,
    report: &mut Report,
) -> Result<GateVerdict, BuilderError> {
    // A conversation that is taken up after a crash comes by what was refused before: it is told and counted once.
    if let Some(known) = work.claim.refused.iter().find(|one| one.turn == turn) {
        let told = ending::told_refused(&known.failure);
        let guidance = Vec::new();
        return Ok(GateVerdict::Refused { told, guidance });
    }
    if !advance(work, Phase::Validating, AttemptState::Validating, report).await? {
        return Ok(GateVerdict::Ended(taken_away()));
    }
    in_hand::reached(GATE_STEP);
    let Some(seen) =
        gating::check(work, commit, &work.base(), (&allowed, &report.withheld)).await?
    else {
        let reason = "it was ended during the gate".to_owned();
        return Ok(GateVerdict::Ended(Ending::Interrupted(reason)));
    };
    if seen.evidence.verdict == Verdict::Passed {
        work.watching.see(JobEvent::Judged {
            passed: true,
            asks: false,
            text: String::new(),
        });
        return Ok(GateVerdict::Passed(Box::new(PassedCandidate {
            seen,
            allowed,
        })));
    }
    let fault = Fault::seen(seen).noting(&report.unkept);
    let asks = fault.waits_for_consent();
    work.watching.see(JobEvent::Judged {
        passed: false,
        asks,
        text: if asks {
            fault.error.clone()
        } else {
            format!("{:?}: {}", fault.class, fault.error)
        },
    });
    let task = &work.claim.task.id;
    let refusal = ending::refused(
        work.shared,
        &work.context,
        work.ids(),
        &fault,
        (turn, report),
    );
    Ok(match refusal.await? {
        Refusal::SentBack { told, guidance } => {
            info!(task.id = %task, "the gate sent the work on `{task}` back: {:?}", fault.class);
            GateVerdict::Refused { told, guidance }
        }
        Refusal::Ends => GateVerdict::Ended(Ending::Failed(Box::new(fault))),
        Refusal::Lost => GateVerdict::Ended(taken_away()),
    })
}

fn taken_away() -> Ending {
    Ending::Interrupted("the task was taken away".to_owned())
}
