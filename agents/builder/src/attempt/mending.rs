//! Works on in one conversation and one tree until the gate takes the work, or somebody else has to act.

use std::pin::pin;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ropewalk_engine::{
    AgentMode, EngineError, JobEvent, Observer, Session, WentOn, Workbench, tools_of,
};
use ropewalk_runtime::{in_hand, traces};
use ropewalk_schemas::attempt::{AttemptState, FailureClass, RefusedTry, Verdict};
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
use super::prompt::submission::KeptSummary;
use super::report::{Report, SUMMARY_KEPT};
use super::work::{Work, held_now};
use super::{Ending, GATE_STEP, PassedCandidate, WorkOutcome, advance, ending_of, note};
use super::{gating, lessons};
use crate::decide::failure::ends_conversation;
use crate::error::BuilderError;
use crate::machine::task::Phase;

/// What the call that handed something in comes back with where a person spoke meanwhile.
const SPOKE: &str = "Not taken yet: a person spoke about this task meanwhile. Take their words in, which go before the text \
                     of the task, and call again";

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
    let kept = Arc::<KeptSummary>::default();
    let prompts = &shared.prompts;
    let job = prompt::job(prompts, options, claim, background, &gotchas, tools, &kept);
    let job = job.map_err(|error| missing(error.to_string()))?;
    let hearing = TaskSteering::new(work);
    let mut session = match shared.engine.open(&job) {
        Ok(session) => session.steered_by(Arc::new(hearing.clone())),
        Err(error) => return Ok(WorkOutcome::Ended(ending_of(work, &error))),
    };
    loop {
        if let Some(ending) = ask(work, &mut session, (slot, followers), report).await? {
            // It is not about what was handed in before.
            report.turn = None;
            if begins_anew(&ending) {
                report.summary = session.summary().map(str::to_owned);
                leave(work, slot, session.heard_at(), report).await;
            }
            return Ok(WorkOutcome::Ended(ending));
        }
        // What was handed in may leave it out.
        report.summary = kept.newest();
        let (turn, went_on) = (session.turn(), session.went_on().await?);
        if let Some(words) = unheard(work, (turn, went_on), &hearing).await? {
            session.send_back(&spoke(&words));
            continue;
        }
        let allowed: Vec<RepoPath> = held_now(&work.locks).into_keys().collect();
        report.granted = beyond(&claim.task, &allowed);
        let when = session.heard_at().unwrap_or_else(|| work.context.now());
        let commit = propose(work, slot, (&allowed, when), report).await?;
        report.turn = Some(turn);
        if let Some(why) = report.blocked.take() {
            let fault = Fault::new(FailureClass::Blocked, why);
            return Ok(WorkOutcome::Ended(Ending::Failed(Box::new(fault))));
        }
        match judge(work, (turn, went_on), &commit, allowed, report).await? {
            GateVerdict::Passed(passed) => {
                let words = hearing.said_meanwhile().await?;
                // Where somebody spoke when it was built, what is built again goes on as it did then.
                if words.is_empty() && went_on != WentOn::InThePast {
                    return Ok(WorkOutcome::Passed(passed));
                }
                if !advance(work, Phase::Working, AttemptState::Working, report).await? {
                    return Ok(WorkOutcome::Ended(taken_away()));
                }
                session.send_back(&spoke(&words));
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

/// Says that what was handed in waits until the model has taken in `words`.
fn spoke(words: &[String]) -> String {
    ending::told_with(&format!("{SPOKE}; {SUMMARY_KEPT}."), words)
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
    if refused_at(work, turn).is_some() {
        return Ok(None);
    }
    if went_on == WentOn::Here {
        return Ok(Some(Vec::new()));
    }
    let words = hearing.said_meanwhile().await?;
    Ok((!words.is_empty()).then_some(words))
}

/// Returns what was refused before of what a turn handed in; a conversation that is taken up again comes by it once more.
fn refused_at<'a>(work: &Work<'a>, turn: u32) -> Option<&'a RefusedTry> {
    let refused = &work.claim.refused;
    refused.iter().find(|one| one.turn == turn)
}

/// Says whether whoever works on the task next begins another conversation.
fn begins_anew(ending: &Ending) -> bool {
    matches!(ending, Ending::Failed(fault) if ends_conversation(fault.class))
}

/// Keeps what stands where a conversation ended before it was handed in, for whoever begins the next one. Where that fails, the slot
/// still holds it.
async fn leave(
    work: &Work<'_>,
    slot: &mut Slot,
    heard_at: Option<DateTime<Utc>>,
    report: &mut Report,
) {
    let allowed: Vec<RepoPath> = held_now(&work.locks).into_keys().collect();
    let when = heard_at.unwrap_or_else(|| work.context.now());
    let kept = async {
        if slot.changed_files().await?.is_empty() {
            // What was handed in before is there no more.
            report.candidate = None;
        } else {
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
    (turn, went_on): (u32, WentOn),
    commit: &CommitId,
    allowed: Vec<RepoPath>,
    report: &mut Report,
) -> Result<GateVerdict, BuilderError> {
    // It is told and counted once. What people said since is told with it, unless the conversation went on from there before.
    if let Some(known) = refused_at(work, turn) {
        let told = ending::told_refused(&known.failure);
        let guidance = match went_on {
            WentOn::Here => Vec::new(),
            WentOn::No | WentOn::InThePast => work.claim.task.guidance.clone(),
        };
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
