//! Shows kept work to the gate again, as it is: no slot, no model.

pub(super) mod by_hand;

use ropewalk_engine::llm::Reply;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::task::KeptWork;
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_workspace::Rebase;
use serde_json::Value;

use super::ending::Fault;
use super::joining;
use super::prompt::submission::part;
use super::report::{Lesson, Report};
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
    // It is none of this work where that reply handed in other work, as far as its words tell: no attempt notes the turn that
    // handed its candidate in. A person's work has words of its own.
    let of_it = last.filter(|reply| reply.summary.is_some() && reply.summary == report.summary);
    report.lesson = of_it.and_then(|reply| reply.lesson);
    let allowed: Vec<RepoPath> = held_now(&work.locks).into_keys().collect();
    check_proposal(work, &Proposal { commit, allowed }, report).await
}

/// A reply in a conversation about a task.
struct LoggedReply {
    round: u32,
    turn: u32,
    /// The newest summary that the conversation handed in with it or before.
    summary: Option<String>,
    /// What it says that was learned.
    lesson: Option<Lesson>,
}

impl LoggedReply {
    /// Reads a reply of a conversation that had handed in the summary `before`. What the model calls the tool is left aside, since it
    /// may write the name in ways of its own.
    fn read((round, turn): (u32, u32), reply: &Value, before: Option<String>) -> Self {
        let reply = serde_json::from_value::<Reply>(reply.clone()).ok();
        let calls = reply.iter().flat_map(Reply::tool_uses);
        let (mut summary, mut lesson) = (None, None);
        for call in calls {
            // Field by field: a summary is kept where something else of the result is refused.
            let said = part::<String>(&call.input, "summary").ok().flatten();
            summary = summary.or(said.filter(|said| !said.trim().is_empty()));
            lesson = lesson.or(part::<Lesson>(&call.input, "lesson").ok().flatten());
        }
        Self {
            round,
            turn,
            summary: summary.or(before),
            lesson,
        }
    }
}

/// Finds the last reply about the task: it handed the kept work in, since nobody was asked for anything after it, unless a person
/// made that.
async fn last_reply(work: &Work<'_>) -> Result<Option<LoggedReply>, BuilderError> {
    let store = &work.context.store;
    for round in (1..=work.claim.round).rev() {
        let conversation = conversation(&work.claim.task, round);
        let mut last: Option<LoggedReply> = None;
        for turn in 1.. {
            let key = format!("{conversation}/{turn}");
            let Some(call) = store.get::<ModelCall>(&key).await? else {
                break;
            };
            let before = last.and_then(|reply| reply.summary);
            last = Some(LoggedReply::read((round, turn), &call.reply, before));
        }
        if last.is_some() {
            return Ok(last);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use ropewalk_engine::llm::{Block, StopReason, ToolUse, Usage};
    use serde_json::json;

    use super::*;

    /// A reply that calls tools with these inputs.
    fn reply(inputs: &[Value]) -> Value {
        let calls = inputs.iter().map(|input| {
            Block::ToolUse(ToolUse {
                id: "1".to_owned(),
                name: "finish".to_owned(),
                input: input.clone(),
                malformed: false,
            })
        });
        json!(Reply {
            blocks: calls.collect(),
            stop: StopReason::ToolUse,
            usage: Usage::default(),
            model: "scripted".to_owned(),
        })
    }

    #[test]
    fn a_lesson_comes_with_the_summary_that_holds_whether_it_is_written_again_or_not() {
        let lesson = json!({ "text": "months differ" });
        let command = json!({ "command": "true" });
        for (inputs, before, summary, is_learned) in [
            (
                vec![json!({ "summary": "one", "lesson": lesson })],
                None,
                Some("one"),
                true,
            ),
            (
                vec![command.clone(), json!({ "lesson": lesson })],
                Some("one"),
                Some("one"),
                true,
            ),
            (
                vec![json!({ "summary": "two" })],
                Some("one"),
                Some("two"),
                false,
            ),
            (
                vec![json!({ "summary": " " })],
                Some("one"),
                Some("one"),
                false,
            ),
            // What was refused for something else keeps its summary.
            (
                vec![json!({ "summary": "two", "lesson": { "globs": ["*"] } })],
                Some("one"),
                Some("two"),
                false,
            ),
            (
                vec![json!({ "summary": "two", "blocked": true })],
                Some("one"),
                Some("two"),
                false,
            ),
            (
                vec![json!({ "summary": 3, "lesson": lesson })],
                Some("one"),
                Some("one"),
                true,
            ),
            (vec![command], None, None, false),
            (vec![], None, None, false),
        ] {
            let read = LoggedReply::read((1, 2), &reply(&inputs), before.map(str::to_owned));
            let found = (read.summary.as_deref(), read.lesson.is_some());
            assert_eq!(found, (summary, is_learned), "{inputs:?}");
            assert_eq!((read.round, read.turn), (1, 2));
        }
    }
}
