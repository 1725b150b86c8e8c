//! Shows kept work to the gate again, as it is: no slot, no model.

pub(super) mod by_hand;

use ropewalk_engine::llm::Reply;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::task::KeptWork;
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_workspace::Rebase;

use super::ending::Fault;
use super::joining;
use super::report::{Lesson, Report, TaskResult};
use super::work::{Work, held_now};
use super::{Ending, Proposal, check_proposal, earlier, start};
use crate::claim::conversation;
use crate::error::BuilderError;

/// Puts kept work onto `head` and checks it there: what a person allowed, what no check could look at before, or what missed a
/// package that is there by now.
///
/// A yes is bound to content, so nothing may touch the work in between; where it no longer fits or does not pass, the
/// conversation that handed it in is told so, and where that has ended the next attempt goes on from it with a model.
pub(super) async fn regate(
    work: &Work<'_>,
    (head, kept): (&CommitId, &KeptWork),
    report: &mut Report,
) -> Result<Ending, BuilderError> {
    if !start(work).await? {
        return Ok(Ending::Interrupted("the task was taken away".to_owned()));
    }
    let clone = &work.shared.clone;
    // What a person made may be several commits, and stays them where they stand on the head.
    let stands = clone.is_ancestor(&work.base(), &kept.candidate).await?;
    let commit = if stands {
        kept.candidate.clone()
    } else {
        match joining::rebase(work, &kept.candidate, head).await? {
            (Rebase::Rebased(rebased), _) => rebased.commit,
            (Rebase::Conflict(files), _) => {
                return Ok(Ending::Failed(Box::new(Fault::of_conflict(&files))));
            }
        }
    };
    let preserved = clone.preserve(&work.key(), &commit).await?;
    report.candidate = Some(commit.clone());
    report.preserve_ref = Some(preserved.reference);
    report.granted.clone_from(&kept.granted);
    report.summary = earlier::said_of(work, &kept.candidate).await?;
    let last = last_reply(work).await?;
    // No conversation goes on with it where that one has ended, and another one begins.
    let going_on = last.as_ref();
    let going_on = going_on.filter(|reply| reply.round == work.claim.round);
    report.turn = going_on.map(|reply| reply.turn);
    report.lesson = last.and_then(|reply| lesson_of(&reply.call, report.summary.as_deref()));
    let allowed: Vec<RepoPath> = held_now(&work.locks).into_keys().collect();
    check_proposal(work, &Proposal { commit, allowed }, report).await
}

/// A reply in a conversation about a task.
struct LoggedReply {
    round: u32,
    turn: u32,
    call: ModelCall,
}

/// Finds the last reply about the task: it handed the kept work in, since nobody was asked for anything after it, unless a person
/// made that.
async fn last_reply(work: &Work<'_>) -> Result<Option<LoggedReply>, BuilderError> {
    let store = &work.context.store;
    for round in (1..=work.claim.round).rev() {
        let conversation = conversation(&work.claim.task, round);
        let mut last = None;
        for turn in 1.. {
            let key = format!("{conversation}/{turn}");
            let Some(call) = store.get::<ModelCall>(&key).await? else {
                break;
            };
            let call = call.into_inner();
            last = Some(LoggedReply { round, turn, call });
        }
        if last.is_some() {
            return Ok(last);
        }
    }
    Ok(None)
}

/// Returns the lesson that came with the work of which this is the summary; none where the reply handed in other work. What a model
/// calls the tool is left aside, since it may write the name in ways of its own.
fn lesson_of(call: &ModelCall, summary: Option<&str>) -> Option<Lesson> {
    let reply: Reply = serde_json::from_value(call.reply.clone()).ok()?;
    let handed_in = reply.tool_uses().filter_map(|call| {
        let result = serde_json::from_value::<TaskResult>(call.input.clone());
        result.ok()
    });
    let mut of_it = handed_in.filter(|result| Some(result.summary.as_str()) == summary);
    of_it.next()?.lesson
}
