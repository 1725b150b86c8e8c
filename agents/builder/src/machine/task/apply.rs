//! Says what an input makes of a task, and what that brings with it.

mod attempt;
mod people;
mod resources;

use chrono::{DateTime, Utc};
use ropewalk_schemas::attempt::{AttemptState, Failure, FailureClass};
use ropewalk_schemas::task::{ChangeRequestState, Task};
use ropewalk_schemas::{AttemptId, TaskId};

use super::{Blocker, Input, On, Phase, Skipper, State, close_requests};
use crate::decide::readiness::{Edges, follows_edges};
use crate::machine::{Effect, IllegalRequest, NOT_ALONE};

/// The reason of a task that only waits for a loop.
const FREE_LOOP: &str = "ready; waits for a free loop";

/// Applies an input at `now`; an error changes nothing.
pub fn apply(
    task: &Task,
    input: Input,
    now: DateTime<Utc>,
) -> Result<(Task, Vec<Effect>), IllegalRequest> {
    let mut transition = Transition {
        from: State::of(task),
        task: task.clone(),
        effects: Vec::new(),
        now,
    };
    match input {
        Input::Edges(edges) => transition.edges(edges),
        Input::Claim { .. }
        | Input::Await { .. }
        | Input::Progress
        | Input::Extend
        | Input::Refrain
        | Input::Reach(_)
        | Input::Land { .. }
        | Input::SendBack(_)
        | Input::Fail(_)
        | Input::CutOff { .. }
        | Input::Interrupt { .. }
        | Input::Suspend { .. }
        | Input::PutQuestion(_)
        | Input::LoseProvider { .. }
        | Input::ExhaustBudget { .. } => transition.attempt(input),
        Input::Obstruct { .. }
        | Input::FilesFree
        | Input::ProviderBack
        | Input::Tick
        | Input::Fund
        | Input::Resume
        | Input::HandOver { .. }
        | Input::ChangeOwner { .. }
        | Input::Deny { .. }
        | Input::LayDown => transition.resources(input),
        Input::Carry { .. }
        | Input::TakeUp { .. }
        | Input::Allow { .. }
        | Input::Forbid { .. }
        | Input::Recheck
        | Input::Answer
        | Input::Retry { .. }
        | Input::Skip { .. }
        | Input::Leave { .. }
        | Input::Assign(_)
        | Input::Advise(_)
        | Input::Hear { .. }
        | Input::Ask(_) => transition.people(input),
    }?;
    Ok((transition.task, transition.effects))
}

/// Applies an input at `now` that brings nothing beside the new record; one that brings more is refused, for nobody would store that.
pub fn apply_alone(task: &Task, input: Input, now: DateTime<Utc>) -> Result<Task, IllegalRequest> {
    let wish = input.wish();
    let (after, effects) = apply(task, input, now)?;
    if effects.is_empty() {
        return Ok(after);
    }
    let why = NOT_ALONE.to_owned();
    Err(IllegalRequest::of_task(task, wish, Some(why)))
}

/// A transition under way.
struct Transition {
    from: State,
    task: Task,
    effects: Vec<Effect>,
    now: DateTime<Utc>,
}

/// What an arm comes to.
type Arm = Result<(), IllegalRequest>;

impl Transition {
    /// Goes to `next`; what belonged to the old state alone ends with it.
    fn go(&mut self, next: State, reason: Option<String>) {
        let waits = |state: &State| matches!(state, State::Waiting { .. });
        if waits(&self.from) && !waits(&next) {
            self.effects.push(Effect::StopWaiting);
        }
        let asked = self.from.question();
        if asked.is_some() && next.question() != asked {
            self.close_questions(reason.as_deref().unwrap_or("the task went on"));
        }
        if matches!(next, State::Skipped { .. }) {
            // No owner of a file has to decide for what is not done.
            let (state, why) = (ChangeRequestState::Needless, "the task was left out");
            close_requests(&mut self.task, None, state, why, self.now);
        }
        next.write(&mut self.task);
        self.task.reason = reason;
    }

    /// Lets the task be claimed from now on.
    fn ready(&mut self, reason: impl Into<String>) {
        self.go(State::Ready { not_before: None }, Some(reason.into()));
    }

    /// Waits; what was waited for until now is not waited for any more. Another one of its kind goes on with the same wait.
    fn wait(&mut self, on: On, reason: impl Into<String>) {
        let since = match &self.from {
            State::Waiting {
                on: until_now,
                since,
            } if until_now.is_like(&on) => *since,
            _ => Some(self.now),
        };
        self.go(State::Waiting { on, since }, Some(reason.into()));
    }

    fn close_questions(&mut self, why: &str) {
        let closes = |effect: &Effect| matches!(effect, Effect::CloseQuestions { .. });
        if !self.effects.iter().any(closes) {
            self.effects.push(Effect::CloseQuestions {
                why: why.to_owned(),
            });
        }
    }

    fn end_attempt(&mut self, attempt: AttemptId, state: AttemptState, failure: Option<Failure>) {
        self.effects.push(Effect::EndAttempt {
            attempt,
            state,
            failure,
            told_at: None,
        });
    }

    fn refuse(&self, input: &Input) -> Arm {
        Err(self.illegal(input.wish(), None))
    }

    fn illegal(&self, wish: &'static str, instead: Option<String>) -> IllegalRequest {
        IllegalRequest::of_task(&self.task, wish, instead)
    }

    /// A task behind a failed one is blocked and revives by itself; one behind a task that was left out is left out too,
    /// since it could never become ready, unless that was only to resolve what stands against it.
    fn edges(&mut self, edges: Edges) -> Arm {
        if !follows_edges(&self.task) {
            return self.refuse(&Input::Edges(edges));
        }
        match edges {
            // It stays as it is, with the time before which it is not claimed.
            Edges::Complete(last) if matches!(self.from, State::Ready { .. }) => {
                self.task.reason.get_or_insert_with(|| free(last));
            }
            Edges::Complete(last) => self.ready(free(last)),
            Edges::Open(needed) => {
                let needed: Vec<String> = needed.iter().map(|task| format!("`{task}`")).collect();
                let reason = format!("waits for {}", needed.join(", "));
                self.go(State::Pending, Some(reason));
            }
            Edges::Failed(chain) => {
                let reason = needs(&chain, "failed");
                let by = Blocker::Failed(chain);
                self.go(State::Blocked { by }, Some(reason));
            }
            Edges::Skipped(chain) => {
                let why = needs(&chain, "was skipped");
                if !matches!(self.from, State::Skipped { .. }) {
                    self.effects.push(Effect::TellSkipped {
                        by: "build".to_owned(),
                        why: why.clone(),
                    });
                }
                let by = Skipper::Needed(chain);
                self.go(State::Skipped { by }, Some(why));
            }
            Edges::Unresolved { left_out, others } => {
                self.do_without(&left_out);
                return self.edges(*others);
            }
        }
        Ok(())
    }

    /// Waits no more for tasks that were to resolve what stands against it. Nobody wants that resolved any more, so it counts as
    /// met in this round: where it still stands, a person is asked again.
    fn do_without(&mut self, left_out: &[TaskId]) {
        let task = &mut self.task;
        let needed = &mut task.block.depends_on;
        needed.retain(|needed| !left_out.contains(needed));
        let earlier = std::mem::take(&mut task.earlier_failures).into_iter();
        let (mut met, earlier): (Vec<Failure>, Vec<Failure>) =
            earlier.partition(|failure| failure.class == FailureClass::Conflict);
        task.earlier_failures = earlier;
        met.append(&mut task.failures);
        task.failures = met;
    }
}

fn free(last: Option<TaskId>) -> String {
    match last {
        Some(last) => format!("{FREE_LOOP}; unblocked by `{last}`"),
        None => FREE_LOOP.to_owned(),
    }
}

fn needs(chain: &[TaskId], fate: &str) -> String {
    let links: Vec<String> = chain.iter().map(|task| format!("`{task}`")).collect();
    format!("needs {}, which {fate}", links.join(", which needs "))
}
