//! What comes of an attempt: from the claim to its end.

use chrono::{DateTime, Utc};
use ropewalk_engine::BudgetOverrun;
use ropewalk_gate::protected::ProtectedChange;
use ropewalk_schemas::attempt::{AttemptState, Failure, FailureClass};
use ropewalk_schemas::wait::Resource;
use ropewalk_schemas::{AttemptId, CommitId, clip};

use super::{Arm, On, Phase, State, Transition};
use crate::decide::failure::{
    Answer, ends_conversation, fingerprint, is_counted, is_worth_keeping,
};
use crate::machine::task::{FailedAttempt, Input};
use crate::machine::{Ask, Effect};

/// So many letters of an error are told with the task; the evidence holds more.
const TOLD_LETTERS: usize = 200;

/// What becomes of the conversation of an attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// It is over: whoever works on the task next begins another one.
    Over,
    /// It goes on where it was, and hears nothing of this.
    GoesOn,
    /// What it handed in goes to the gate again as it is.
    ShownAgain,
    /// It goes on from the turn that handed in what failed, and is told why.
    Told {
        /// The turn.
        turn: u32,
    },
}

impl Transition {
    /// Applies what a loop says about its attempt.
    pub(super) fn attempt(&mut self, input: Input) -> Arm {
        let (attempt, phase) = match (&self.from, &input) {
            (
                State::Ready { not_before },
                Input::Claim {
                    attempt,
                    goes_on,
                    resumes,
                },
            ) if not_before.is_none_or(|due| due <= self.now) => {
                self.claim(*attempt, *goes_on, *resumes);
                return Ok(());
            }
            (State::Running { attempt, phase }, _) => (*attempt, *phase),
            _ => return self.refuse(&input),
        };
        match input {
            Input::Await { told } => self.task.reason = Some(told),
            Input::Progress => self.task.progress_at = Some(self.now),
            Input::Extend => {
                self.moved();
                self.effects.push(Effect::StopWaiting);
            }
            Input::Refrain => {
                self.task.reason = None;
                self.effects.push(Effect::StopWaiting);
            }
            Input::Reach(next) if follows(phase, next) => {
                let phase = next;
                self.go(State::Running { attempt, phase }, None);
                self.moved();
            }
            Input::SendBack(failure) if phase == Phase::Validating => {
                self.send_back(attempt, failure);
            }
            Input::Land { commit } if phase == Phase::Landing && !self.task.has_to_hear() => {
                self.land(attempt, commit);
            }
            Input::Fail(failed) => self.fail(attempt, *failed),
            Input::CutOff {
                why,
                not_before,
                counts,
            } => {
                self.task.cut_off += u32::from(counts);
                let reason = format!("ready again: {why}");
                self.go(State::Ready { not_before }, Some(reason));
                self.end_attempt(attempt, AttemptState::Interrupted, None);
            }
            Input::Interrupt { why } => {
                self.ready(format!("ready again: {why}"));
                self.interrupt(attempt, &why);
            }
            Input::Suspend { why } => {
                let reason = format!("asks what shall become of it: {why}");
                self.wait(On::Person { question: None }, reason);
                self.interrupt(attempt, &why);
                self.effects.push(Effect::Ask(Ask::Suspended { why }));
            }
            Input::PutQuestion(put) if phase == Phase::Working => {
                let reason = format!("asks a person: {}", first_line(&put.question.question));
                self.wait(On::Person { question: None }, reason);
                // Without a failure the same conversation goes on, and comes by its question again.
                self.end_attempt(attempt, AttemptState::Interrupted, None);
                self.effects.push(Effect::Ask(Ask::Model(put)));
            }
            Input::LoseProvider { provider, told } => {
                self.wait(On::Outage, told);
                self.end_attempt(attempt, AttemptState::Interrupted, None);
                self.effects
                    .push(Effect::Wait(Resource::Outage { provider }));
            }
            Input::ExhaustBudget { exceeded, own } => self.exhaust(attempt, &exceeded, own),
            _ => return self.refuse(&input),
        }
        Ok(())
    }

    fn claim(&mut self, attempt: AttemptId, goes_on: bool, resumes: bool) {
        let phase = Phase::Claimed;
        self.go(State::Running { attempt, phase }, None);
        self.moved();
        self.effects.push(Effect::StopWaiting);
        let task = &mut self.task;
        task.attempts += u32::from(!goes_on);
        task.claimed_at = Some(self.now);
        // The gate alone takes no words in. A conversation that is taken up does, and comes to the same work again; any other goes
        // on from what was kept.
        if task.has_to_hear()
            && let Some(kept) = task.regate.take()
            && !resumes
        {
            task.resume(Some(kept));
        }
        if !resumes {
            // Its first message tells all of it.
            task.hear(u32::try_from(task.guidance.len()).unwrap_or(u32::MAX));
        }
        task.wants_files_since = None;
        task.assigned_to = None;
    }

    fn land(&mut self, attempt: AttemptId, commit: Option<CommitId>) {
        let at = self.now;
        self.go(State::Complete { commit, at }, None);
        // What was asked while it was worked on, such as whether its model may do what it was refused, matters no more.
        self.close_questions("the task is complete");
        self.moved();
        self.task.resume(None);
        self.task.regate = None;
        self.end_attempt(attempt, AttemptState::Landed, None);
    }

    /// The agent goes on in its tree and its conversation, with the locks in hand: another try of the same attempt.
    fn send_back(&mut self, attempt: AttemptId, failure: Failure) {
        let phase = Phase::Working;
        self.go(State::Running { attempt, phase }, None);
        self.moved();
        let task = &mut self.task;
        task.cut_off = 0;
        task.attempts += 1;
        task.tries += u32::from(is_counted(failure.class));
        task.failures.push(failure);
    }

    fn moved(&mut self) {
        self.task.reason = None;
        self.task.progress_at = Some(self.now);
    }

    /// Ends an attempt on somebody's word, with the reason that tells it from a crash.
    pub(super) fn interrupt(&mut self, attempt: AttemptId, why: &str) {
        let class = FailureClass::Unknown;
        let failure = Failure {
            class,
            error: why.to_owned(),
            attempt: self.task.attempts,
            fingerprint: fingerprint(class, why, &[]),
        };
        self.end_attempt(attempt, AttemptState::Interrupted, Some(failure));
    }

    fn exhaust(&mut self, attempt: AttemptId, exceeded: &BudgetOverrun, own: bool) {
        let BudgetOverrun { scope, used, limit } = exceeded;
        let reason = format!("the budget `{scope}` is used up: {used} of {limit}");
        self.wait(On::Budget { question: None }, reason);
        self.end_attempt(attempt, AttemptState::Interrupted, None);
        let scope = scope.clone();
        self.effects.push(Effect::Wait(Resource::Budget { scope }));
        if own {
            self.effects
                .push(Effect::Ask(Ask::Budget(exceeded.clone())));
        }
    }

    fn fail(&mut self, attempt: AttemptId, failed: FailedAttempt) {
        self.task.cut_off = 0;
        let counts = !matches!(failed.answer, Answer::Hold | Answer::WaitQuota { .. });
        if counts {
            self.count(attempt, &failed);
        } else {
            self.end_attempt(attempt, AttemptState::Interrupted, None);
        }
        let why = first_line(&failed.failure.error);
        match failed.answer {
            Answer::Retry { not_before } => {
                let reason = format!("tries again: {why}");
                self.go(State::Ready { not_before }, Some(reason));
            }
            Answer::RebaseAndRetry => {
                self.task.rebases += 1;
                self.ready("tries again on the head that moved");
            }
            Answer::InstallAndRetry => {
                self.task.installs += 1;
                self.ready(format!("tries again after an install: {why}"));
            }
            Answer::WaitQuota { until } => self.wait_for_quota(until, failed.provider),
            Answer::Hold => {
                // Nothing is wrong with the work: it is looked at again once the check can run.
                self.task.regate = failed.kept;
                let reason = format!("a check could not run: {why}");
                self.wait(On::Check { question: None }, reason);
                self.effects.push(Effect::Ask(Ask::Held { why }));
            }
            Answer::AskPerson => {
                self.task.resume(failed.kept);
                self.ask_whether(failed.shown, failed.protected);
            }
            Answer::Fail { class } => {
                let reason = format!("failed ({}): {why}", class.in_words());
                self.go(State::Failed { question: None }, Some(reason));
                self.effects.push(Effect::Ask(Ask::Failed { class }));
            }
        }
    }

    /// Counts a try that failed, and keeps what the next one needs of it.
    fn count(&mut self, attempt: AttemptId, failed: &FailedAttempt) {
        let course = self.course(failed);
        let mut failure = failed.failure.clone();
        // Work that goes to the gate again as it is begins no try, unless it was waited out; where it fails there, it has been one.
        let is_shown = self.task.regate.is_some() && failed.answer != Answer::AskPerson;
        if is_shown && !self.is_another_look() {
            self.task.attempts += 1;
            failure.attempt = self.task.attempts;
        }
        self.task.tries += u32::from(is_counted(failure.class));
        if let Answer::Fail { class } = failed.answer {
            failure.class = class;
        }
        let (state, told_at) = match course {
            Course::Told { turn } => (AttemptState::Interrupted, Some(turn)),
            Course::Over | Course::GoesOn | Course::ShownAgain => (AttemptState::Failed, None),
        };
        self.effects.push(Effect::EndAttempt {
            attempt,
            state,
            failure: Some(failure.clone()),
            told_at,
        });
        // What was shown as it is has been seen: what follows needs somebody's hand.
        let seen = self.task.regate.take();
        match course {
            Course::ShownAgain => self.task.regate.clone_from(&failed.kept),
            // It comes to its work again by itself.
            Course::GoesOn | Course::Told { .. } => {}
            Course::Over => {
                // Whoever goes on goes on from what is there.
                let kept = failed.kept.as_ref().or(seen.as_ref());
                let kept = kept.filter(|_| seen.is_some() || is_worth_keeping(failure.class));
                if let Some(kept) = kept {
                    self.task.resume(Some(kept.clone()));
                }
            }
        }
        self.task.failures.push(failure);
    }

    /// Says what becomes of the conversation.
    fn course(&self, failed: &FailedAttempt) -> Course {
        let is_seen = failed.shown.is_some();
        let goes_on = !ends_conversation(failed.failure.class);
        match (&failed.answer, failed.turn) {
            (Answer::Retry { not_before: None }, Some(turn)) => Course::Told { turn },
            (Answer::Retry { .. } | Answer::InstallAndRetry, turn) if goes_on && is_seen => {
                match turn {
                    Some(turn) if self.is_met_again(failed) => Course::Told { turn },
                    _ => Course::ShownAgain,
                }
            }
            (Answer::Retry { .. } | Answer::InstallAndRetry, _) if goes_on => Course::GoesOn,
            // A person may mend it, and then the same is looked at. Where no conversation made it, another one begins with it.
            (Answer::Fail { .. }, turn) if goes_on && (turn.is_some() || !is_seen) => {
                Course::GoesOn
            }
            _ => Course::Over,
        }
    }

    /// Says whether what was waited out, or installed for, was met before in the same work. Another look at it shows nothing new
    /// then, so that its model is told; once, for it may be no fault of the work all the same.
    fn is_met_again(&self, failed: &FailedAttempt) -> bool {
        if failed.answer == Answer::InstallAndRetry {
            return self.task.installs > 0;
        }
        let same = |one: &&Failure| one.fingerprint == failed.failure.fingerprint;
        self.task.failures.iter().filter(same).count() == 1
    }

    /// Says whether the try that runs was begun with its claim, though its work goes to the gate as it is: it was waited out, or
    /// packages were installed for it.
    fn is_another_look(&self) -> bool {
        let last = self.task.failures.last();
        last.is_some_and(|last| {
            last.attempt + 1 == self.task.attempts && !ends_conversation(last.class)
        })
    }

    fn ask_whether(&mut self, shown: Option<CommitId>, files: Vec<ProtectedChange>) {
        let why: Vec<&str> = files.iter().map(|one| one.why.as_str()).collect();
        let reason = format!("asks whether it may: {}", why.join(", "));
        self.wait(On::Person { question: None }, reason);
        if let Some(candidate) = shown {
            let ask = Ask::Protected { candidate, files };
            self.effects.push(Effect::Ask(ask));
        }
    }

    fn wait_for_quota(&mut self, until: DateTime<Utc>, provider: String) {
        let reason = format!("waits for the provider's quota until {until}");
        let until = Some(until);
        self.wait(On::Quota { until }, reason);
        self.effects
            .push(Effect::Wait(Resource::Quota { provider }));
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    clip::letters(line.unwrap_or_default().trim(), TOLD_LETTERS).into_owned()
}

/// Says whether an attempt comes from one phase to another: back to its work as well, where a person spoke while the gate ran.
fn follows(phase: Phase, next: Phase) -> bool {
    Some(next) == phase.next() || (phase, next) == (Phase::Validating, Phase::Working)
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::RepoPath;
    use ropewalk_schemas::task::{KeptWork, TaskState};
    use uuid::Uuid;

    use super::*;
    use crate::decide::fixture::{noon, task};
    use crate::decide::order::locked_files;
    use crate::machine::task::apply;

    #[test]
    fn a_reason_that_is_cut_shows_it() {
        let long = "wrong ".repeat(100);
        for (error, told) in [
            ("\n  wrong \nand more", "wrong".to_owned()),
            (long.as_str(), format!("{}w…", "wrong ".repeat(33))),
        ] {
            assert_eq!(first_line(error), told);
        }
    }

    #[test]
    fn whoever_goes_on_from_kept_work_locks_what_was_granted_to_it() {
        let granted = RepoPath::parse("more.txt").unwrap();
        let candidate = CommitId::parse(&"a".repeat(40)).unwrap();
        let mut ready = task("T-1", TaskState::Ready, &[]);
        ready.guidance = vec!["use tabs".to_owned()];
        ready.regate = Some(KeptWork {
            candidate: candidate.clone(),
            granted: vec![granted.clone()],
        });
        let claim = Input::Claim {
            attempt: AttemptId(Uuid::nil()),
            goes_on: false,
            resumes: false,
        };
        let (claimed, _) = apply(&ready, claim, noon()).unwrap();
        let cut_off = Input::CutOff {
            why: "the program ended".to_owned(),
            not_before: None,
            counts: false,
        };
        let (again, _) = apply(&claimed, cut_off, noon()).unwrap();
        assert_eq!(
            (&again.resume_from, again.regate.as_ref()),
            (&Some(candidate), None)
        );
        assert!(locked_files(&again).contains(&granted), "{again:?}");
    }
}
