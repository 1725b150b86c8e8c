//! Says what an input makes of a build, and what that brings with it.

use chrono::{DateTime, Utc};
use ropewalk_schemas::build::{Build, PauseReason, StopCause};
use ropewalk_schemas::illegal;
use ropewalk_schemas::wait::Resource;

use super::{Input, State};
use crate::decide::counts::with_addition;
use crate::decide::step::working_time;
use crate::machine::{Effect, IllegalRequest, NOT_ALONE};

/// Why questions of a build that goes on are closed.
const RESUMED: &str = "the build was resumed";

/// Applies an input at `now`; an error changes nothing.
pub fn apply(
    build: &Build,
    input: Input,
    now: DateTime<Utc>,
) -> Result<(Build, Vec<Effect>), IllegalRequest> {
    let mut transition = Transition {
        from: State::of(build),
        build: build.clone(),
        effects: Vec::new(),
        now,
    };
    match input {
        Input::Pause { .. }
        | Input::Count { .. }
        | Input::Rest { .. }
        | Input::Hold { .. }
        | Input::Contest { .. }
        | Input::SettleBranch
        | Input::GoOn => transition.pause(input),
        Input::Resume | Input::Revive { .. } | Input::AcceptRisk { .. } => transition.resume(input),
        Input::ExhaustBudget { .. } | Input::Fund { .. } => transition.budget(input),
        Input::Land { .. } | Input::Merge { .. } | Input::RefuseLanding { .. } => {
            transition.landing(input)
        }
        Input::Abandon { told } => transition.abandon(told),
        _ => transition.course(input),
    }?;
    Ok((transition.build, transition.effects))
}

/// Applies an input at `now` that brings nothing beside the new record; one that brings more is refused, for nobody would store that.
pub fn apply_alone(
    build: &Build,
    input: Input,
    now: DateTime<Utc>,
) -> Result<Build, IllegalRequest> {
    let wish = input.wish();
    let (after, effects) = apply(build, input, now)?;
    if effects.is_empty() {
        return Ok(after);
    }
    let why = NOT_ALONE.to_owned();
    Err(IllegalRequest::of_build(build, wish, Some(why)))
}

/// Says whether nothing may be asked about a build: no wish makes it move again, as [`illegal::is_over_for_good`] says, and it has
/// ended as well. One that runs still, or winds up for a revision, may need an answer though it is landed or goes on elsewhere.
pub fn holds_no_question(build: &Build) -> bool {
    build.state.has_ended() && illegal::is_over_for_good(build) && !build.gives_way()
}

/// A transition under way.
struct Transition {
    from: State,
    build: Build,
    effects: Vec<Effect>,
    now: DateTime<Utc>,
}

/// What an arm comes to.
type Arm = Result<(), IllegalRequest>;

impl Transition {
    fn go(&mut self, next: State, reason: Option<String>) {
        next.write(&mut self.build);
        self.build.reason = reason;
        // What failed before is said no more.
        self.build.failing.clear();
    }

    fn refuse(&self, input: &Input) -> Arm {
        Err(IllegalRequest::of_build(&self.build, input.wish(), None))
    }

    fn tell(&mut self, told: &str) {
        let reason = with_addition(self.build.reason.as_deref(), told);
        self.build.reason = Some(reason);
    }

    /// The way from the approval to the end.
    fn course(&mut self, input: Input) -> Arm {
        use State::{Paused, Priming, Queued, Running, Verifying};
        let at = self.now;
        match (&self.from, input) {
            (Queued, Input::Prime) => self.go(Priming, None),
            (Priming | Running, Input::Begin) => self.go(Running, None),
            (Running, Input::Verify) => {
                self.go(Verifying, Some("the whole is checked".to_owned()));
            }
            (Verifying, Input::Pass { told }) => self.go(State::Succeeded { at }, told),
            (Queued | Priming | Running | Paused { .. } | Verifying, Input::Fail { why }) => {
                self.go(State::Failed { at }, Some(why));
            }
            (Queued | Priming | Running | Paused { .. } | Verifying, Input::Stop { why, told }) => {
                self.go(State::Stopped { why, at: None }, Some(told));
                self.build.pause_requested = false;
                self.build.question = None;
            }
            (_, Input::Rank { priority }) => {
                illegal::rank(&self.build)?;
                self.build.priority = priority;
            }
            // What still runs of it ends now; the revision begins on what landed.
            (_, Input::Stop { why, told }) if self.build.gives_way() => {
                self.go(State::Stopped { why, at: None }, Some(told));
            }
            (State::Stopped { why, at: None }, Input::Conclude) => {
                let (why, at, reason) = (*why, Some(at), self.build.reason.take());
                self.go(State::Stopped { why, at }, reason);
                self.forget_budgets("the build was stopped");
            }
            (_, Input::Amend { by, revision }) if self.build.continued_by.is_none() => {
                let alive = matches!(
                    self.from,
                    Queued | Priming | Running | Paused { .. } | Verifying
                );
                if alive {
                    let why = StopCause::Amended;
                    let told = format!("revision {revision} goes on from here");
                    self.go(State::Stopped { why, at: None }, Some(told));
                }
                self.build.continued_by = Some(by);
                self.build.question = None;
            }
            (Queued | Priming | Running | Verifying, Input::Explain { told })
                if !self.build.pause_requested =>
            {
                self.build.reason = told;
            }
            // It says why it stands or ended, and goes on saying that.
            (_, Input::Explain { .. }) => {}
            (_, Input::Heed { told }) => {
                self.build.question = None;
                if let Some(told) = told {
                    self.tell(&told);
                }
            }
            // Nobody's answer makes one move that is over, whoever asks so late.
            (_, Input::Ask(question)) => {
                self.build.question = question.filter(|_| !holds_no_question(&self.build));
            }
            (_, input) => return self.refuse(&input),
        }
        Ok(())
    }

    /// Ends it for good; what had ended before ends no second time.
    fn abandon(&mut self, told: String) -> Arm {
        if illegal::is_over_for_good(&self.build) && !self.build.gives_way() {
            return self.refuse(&Input::Abandon { told });
        }
        let at = self.build.completed_at;
        let why = StopCause::Abandoned;
        self.go(State::Stopped { why, at }, Some(told));
        self.build.pause_requested = false;
        self.build.question = None;
        Ok(())
    }

    /// What makes it stand still, and what lets it go on by itself.
    fn pause(&mut self, input: Input) -> Arm {
        use State::{Paused, Priming, Queued, Running, Verifying};
        match (&self.from, input) {
            (Queued | Priming | Running | Paused { .. } | Verifying, Input::Pause { told }) => {
                if !self.build.pause_requested {
                    self.build.pause_requested = true;
                    self.build.reason = Some(told);
                }
            }
            (Running, Input::Count { told }) => self.build.reason = Some(told),
            (Running | Paused { .. }, Input::Rest { why, detail }) => self.stand(why, detail),
            (Queued | Priming | Running | Verifying, Input::Hold { detail }) => {
                // Only a person can mend this, and a resume lays its ground or checks again.
                self.build.pause_requested = true;
                self.stand(PauseReason::Person, detail);
            }
            (Running | Verifying, Input::Contest { detail }) => {
                self.stand(PauseReason::Conflict, detail);
            }
            (_, Input::Contest { detail }) => self.build.reason = Some(detail),
            (Paused { .. }, Input::GoOn) => self.go(Running, None),
            (Paused { .. }, Input::SettleBranch) => {
                self.go(Running, None);
                self.build.question = None;
            }
            (_, Input::SettleBranch) => {
                self.build.reason = None;
                self.build.question = None;
            }
            (_, input) => return self.refuse(&input),
        }
        Ok(())
    }

    fn stand(&mut self, why: PauseReason, detail: String) {
        self.go(State::Paused { why }, Some(detail.clone()));
        self.effects.push(Effect::TellPaused {
            reason: why,
            detail,
        });
    }

    /// What lets it go on because a person said so.
    fn resume(&mut self, input: Input) -> Arm {
        let over = matches!(
            self.from,
            State::Stopped { .. } | State::Failed { .. } | State::Succeeded { .. }
        );
        if matches!(input, Input::Revive { .. }) {
            illegal::run_again(&self.build, input.wish())?;
        } else {
            illegal::revive(&self.build, input.wish())?;
        }
        match (&self.from, input) {
            (State::Stopped { why, .. }, Input::Revive { express })
                if !express && *why == StopCause::Person => {}
            // What is tried again was not checked with the rest.
            (State::Verifying, Input::Revive { .. }) => self.go(State::Running, None),
            (State::Failed { .. }, Input::AcceptRisk { check, by, left }) => {
                self.build.accepted.push(check);
                if let Some(next) = left {
                    self.build.question = next;
                } else {
                    self.revive();
                    self.build.reason = Some(format!("{by} accepts the risk"));
                }
            }
            (State::Succeeded { .. }, input @ Input::Resume)
            | (_, input @ Input::AcceptRisk { .. }) => return self.refuse(&input),
            (_, Input::Resume | Input::Revive { .. }) if over => self.revive(),
            (State::Paused { .. }, Input::Resume) => {
                self.go(State::Running, None);
                self.build.pause_requested = false;
                self.build.question = None;
                self.forget_budgets(RESUMED);
            }
            (_, Input::Resume) if self.build.pause_requested => {
                self.build.pause_requested = false;
                self.build.reason = None;
            }
            _ => {}
        }
        Ok(())
    }

    /// Runs again, with a fresh allowance where time had run out; nothing that was asked about its end holds it.
    fn revive(&mut self) {
        let limited = matches!(
            self.from,
            State::Stopped {
                why: StopCause::WorkingTime,
                ..
            }
        );
        let worked = working_time(&self.build, self.now).as_millis();
        self.go(State::Running, None);
        let build = &mut self.build;
        build.working_ms = if limited {
            0
        } else {
            u64::try_from(worked).unwrap_or(u64::MAX)
        };
        build.working_since = None;
        build.pause_requested = false;
        build.question = None;
        build.exhausted = None;
        self.effects.push(Effect::StopWaiting);
        self.effects.push(Effect::CloseQuestions {
            why: RESUMED.to_owned(),
        });
    }

    fn forget_budgets(&mut self, why: &str) {
        self.build.exhausted = None;
        self.effects.push(Effect::StopWaiting);
        self.effects.push(Effect::CloseBudgetQuestions {
            why: why.to_owned(),
        });
    }

    fn budget(&mut self, input: Input) -> Arm {
        match (&self.from, input) {
            (_, Input::ExhaustBudget { scope }) => {
                self.build.exhausted.get_or_insert(scope.clone());
                self.effects.push(Effect::Wait(Resource::Budget { scope }));
            }
            (from, Input::Fund { left }) => {
                let stands = matches!(
                    from,
                    State::Paused {
                        why: PauseReason::Budget
                    }
                );
                self.build.exhausted = left;
                if stands && self.build.exhausted.is_none() {
                    self.go(State::Running, None);
                }
            }
            (_, input) => return self.refuse(&input),
        }
        Ok(())
    }

    fn landing(&mut self, input: Input) -> Arm {
        match (&self.from, input) {
            (State::Succeeded { .. }, Input::Land { commit, told })
                if self.build.merged.is_none() =>
            {
                // Whoever lands it closes what was asked about it and about its tasks.
                self.build.merged = Some(commit);
                self.build.question = None;
                self.build.reason = Some(told);
            }
            (_, Input::Merge { commit }) => {
                self.build.merged.get_or_insert(commit);
            }
            (State::Succeeded { .. }, Input::RefuseLanding { why })
                if self.build.merged.is_none() =>
            {
                self.build.reason = Some(format!("not landed: {why}"));
            }
            (_, input) => return self.refuse(&input),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::build::{BuildState, FailingWork};
    use ropewalk_schemas::{CommitId, QuestionId};
    use uuid::Uuid;

    use super::*;
    use crate::decide::fixture;

    #[test]
    fn what_keeps_a_build_is_said_in_place_of_nothing_that_a_person_or_its_end_said() {
        for (state, pause_requested, is_said) in [
            (BuildState::Priming, false, true),
            (BuildState::Running, false, true),
            (BuildState::Running, true, false),
            (BuildState::Verifying, false, true),
            (BuildState::Paused, false, false),
            (BuildState::Stopped, false, false),
            (BuildState::Failed, false, false),
            (BuildState::Succeeded, false, false),
        ] {
            let build = Build {
                state,
                pause_requested,
                reason: Some("before".to_owned()),
                ..fixture::build()
            };
            let told = Some("it failed twice in a row".to_owned());
            let input = Input::Explain { told: told.clone() };
            let (after, _) = apply(&build, input, fixture::noon()).unwrap();
            let expected = if is_said { told } else { build.reason };
            assert_eq!(after.reason, expected, "{state} {pause_requested}");
        }
    }

    #[test]
    fn what_failed_is_known_until_the_build_says_something_of_its_own() {
        let failing = FailingWork {
            work: "publication".to_owned(),
            count: 2,
            shown: "broken".to_owned(),
        };
        let build = Build {
            failing: vec![failing],
            reason: Some("broken".to_owned()),
            ..fixture::build()
        };
        let told = Some("left by ada".to_owned());
        for (input, is_known) in [(Input::Heed { told }, true), (Input::Verify, false)] {
            let (after, _) = apply(&build, input.clone(), fixture::noon()).unwrap();
            assert_eq!(!after.failing.is_empty(), is_known, "{input:?}");
        }
    }

    #[test]
    fn whatever_state_it_is_in_a_landing_elsewhere_is_noted_once_and_one_question_holds_it() {
        let commit = |letter: &str| CommitId::parse(&letter.repeat(40)).unwrap();
        let question = Some(QuestionId(Uuid::nil()));
        for &state in BuildState::ALL {
            let mut build = Build {
                state,
                ..fixture::build()
            };
            for input in [
                Input::Ask(question),
                Input::Merge {
                    commit: commit("a"),
                },
                Input::Merge {
                    commit: commit("b"),
                },
            ] {
                let (after, effects) = apply(&build, input, fixture::noon()).unwrap();
                assert_eq!(effects, []);
                build = after;
            }
            assert_eq!(build.merged, Some(commit("a")), "{state}");
            assert_eq!((build.state, build.question), (state, question));
            let (free, _) = apply(&build, Input::Ask(None), fixture::noon()).unwrap();
            assert_eq!(free.question, None, "{state}");
        }
    }

    #[test]
    fn what_is_landed_by_now_is_not_said_to_be_refused() {
        let commit = CommitId::parse(&"a".repeat(40)).unwrap();
        for (merged, reason) in [
            (None, Some("not landed: in the way".to_owned())),
            (Some(commit), None),
        ] {
            let build = Build {
                state: BuildState::Succeeded,
                merged,
                ..fixture::build()
            };
            let why = "in the way".to_owned();
            let after = apply_alone(&build, Input::RefuseLanding { why }, fixture::noon());
            assert_eq!(after.ok().and_then(|after| after.reason), reason);
        }
    }

    #[test]
    fn no_question_holds_a_build_that_is_over() {
        let question = Some(QuestionId(Uuid::nil()));
        let commit = CommitId::parse(&"a".repeat(40)).unwrap();
        let of = |state, stop| Build {
            state,
            stop,
            ..fixture::build()
        };
        let landed = |state| Build {
            merged: Some(commit.clone()),
            ..of(state, None)
        };
        let amended = |completed_at| Build {
            continued_by: Some(fixture::build().id),
            completed_at,
            ..of(BuildState::Stopped, Some(StopCause::Amended))
        };
        for (build, holds) in [
            (of(BuildState::Succeeded, None), true),
            (of(BuildState::Stopped, Some(StopCause::Person)), true),
            (of(BuildState::Stopped, Some(StopCause::Abandoned)), false),
            (landed(BuildState::Running), true),
            (landed(BuildState::Succeeded), false),
            // What still runs of it may need an answer.
            (amended(None), true),
            (amended(Some(fixture::noon())), false),
        ] {
            let (after, _) = apply(&build, Input::Ask(question), fixture::noon()).unwrap();
            assert_eq!(after.question.is_some(), holds, "{build:?}");
        }
    }
}
