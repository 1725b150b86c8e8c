//! What people, PM and earlier builds say about a task.

use ropewalk_schemas::task::KeptWork;
use ropewalk_schemas::{CommitId, QuestionId, illegal};

use super::{Arm, On, Skipper, State, Transition};
use crate::machine::Effect;
use crate::machine::task::Input;

/// So many failures of earlier rounds are kept with a task.
const EARLIER_FAILURES: usize = 12;

impl Transition {
    /// Applies a word about the task.
    pub(super) fn people(&mut self, input: Input) -> Arm {
        match (self.from.clone(), input) {
            (
                State::Pending,
                Input::Carry {
                    commit,
                    at,
                    attempts,
                },
            ) => {
                self.go(State::Complete { commit, at }, None);
                self.task.attempts = attempts;
            }
            (State::Pending, Input::TakeUp { work, guidance }) => self.take_up(work, guidance),
            (
                State::Waiting {
                    on: On::Person { .. },
                    ..
                },
                Input::Allow {
                    shown,
                    overruled,
                    told,
                },
            ) => {
                self.ready("ready; the change was allowed");
                self.task.regate = shown;
                // What is allowed was no mistake: nobody is told of it as one, and nothing is learned from it.
                self.task.failures.pop();
                self.advise_anew(&overruled, told.as_slice());
            }
            (
                State::Waiting {
                    on: On::Person { .. },
                    ..
                },
                Input::Forbid { overruled, told },
            ) => {
                self.ready("ready; the change was refused");
                self.advise_anew(&overruled, &told);
            }
            (
                State::Waiting {
                    on: On::Check { .. },
                    ..
                },
                Input::Recheck,
            ) => self.ready("ready; it is checked again"),
            (
                State::Waiting {
                    on: On::Person { .. },
                    ..
                },
                Input::Answer,
            ) => self.ready("ready; its question was answered"),
            (_, Input::Retry { guidance }) => return self.retry(guidance),
            (_, Input::Skip { by, why }) => return self.skip(by, why),
            (
                State::Failed { .. }
                | State::Waiting {
                    on: On::Person { .. },
                    ..
                },
                Input::Leave { told },
            ) => self.go(State::Failed { question: None }, Some(told)),
            (State::Running { .. } | State::Complete { .. }, input @ Input::Assign(_)) => {
                return self.refuse(&input);
            }
            (_, Input::Assign(to)) => self.task.assigned_to = Some(to),
            (_, Input::Advise(advice)) => {
                illegal::advise(&self.task)?;
                self.advise(&advice);
            }
            (State::Running { .. }, Input::Hear { words }) => self.task.hear(words),
            (_, Input::Ask(asked)) => return self.asked(asked),
            (_, input) => return self.refuse(&input),
        }
        Ok(())
    }

    /// Goes on from what was made of it before, and hears what was said of it.
    fn take_up(&mut self, work: Option<CommitId>, guidance: Vec<String>) {
        for words in guidance {
            self.advise(&words);
        }
        if let Some(candidate) = work {
            let granted = Vec::new();
            self.task.resume(Some(KeptWork { candidate, granted }));
        }
    }

    /// Writes down which question stands where none does yet; who waits goes on with the same wait.
    fn asked(&mut self, asked: QuestionId) -> Arm {
        let question = Some(asked);
        let state = match self.from.clone() {
            State::Failed { question: None } => State::Failed { question },
            State::Waiting { on, since } => {
                let on = match on {
                    On::Person { question: None } => On::Person { question },
                    On::Check { question: None } => On::Check { question },
                    On::Budget { question: None } => On::Budget { question },
                    _ => return self.refuse(&Input::Ask(asked)),
                };
                State::Waiting { on, since }
            }
            _ => return self.refuse(&Input::Ask(asked)),
        };
        state.write(&mut self.task);
        Ok(())
    }

    fn advise(&mut self, advice: &str) {
        let advice = advice.trim();
        if !advice.is_empty() {
            self.task.guidance.push(advice.to_owned());
        }
    }

    /// Tells of an answer in place of what was told of earlier ones.
    fn advise_anew(&mut self, overruled: &[String], told: &[String]) {
        for words in overruled {
            self.take_back(words);
        }
        for words in told {
            self.advise(words);
        }
    }

    /// Takes back what was advised, so that nobody is told of it any more; what was heard of the rest stays heard.
    fn take_back(&mut self, advice: &str) {
        while let Some(at) = self.task.guidance.iter().position(|words| words == advice) {
            if at < self.task.told().len() {
                self.task.heard -= 1;
            }
            self.task.guidance.remove(at);
        }
    }

    /// Begins another round: fresh tries, with what failed before and the advice in its prompt. A task that needs others
    /// still waits for them.
    fn retry(&mut self, guidance: Option<String>) -> Arm {
        illegal::retry(&self.task)?;
        match self.from.clone() {
            State::Pending => {}
            State::Running { attempt, .. } => {
                self.ready("ready again: tried again on request");
                self.interrupt(attempt, "tried again on request");
            }
            _ => {
                self.close_questions("the task is tried again");
                self.ready("ready; another round was asked for");
            }
        }
        let task = &mut self.task;
        task.tries = 0;
        task.installs = 0;
        task.rebases = 0;
        task.cut_off = 0;
        task.regate = None;
        task.earlier_failures.append(&mut task.failures);
        let old = task.earlier_failures.len().saturating_sub(EARLIER_FAILURES);
        task.earlier_failures.drain(..old);
        self.advise(&guidance.unwrap_or_default());
        Ok(())
    }

    fn skip(&mut self, by: String, why: String) -> Arm {
        match self.from.clone() {
            State::Complete { .. }
            | State::Skipped {
                by: Skipper::Person { .. },
            } => return Err(self.illegal("be skipped", None)),
            State::Running { attempt, .. } => self.interrupt(attempt, &why),
            _ => {}
        }
        self.close_questions("the task was skipped");
        let name = Some(by.clone());
        let skipped = State::Skipped {
            by: Skipper::Person { name },
        };
        self.go(skipped, Some(why.clone()));
        self.effects.push(Effect::TellSkipped { by, why });
        Ok(())
    }
}
