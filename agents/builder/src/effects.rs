//! Turns what a transition brings with it into the change set that stores its record: the only way in which tasks and
//! builds change their states.

use std::collections::BTreeMap;

use ropewalk_config::Trigger;
use ropewalk_coordination::locks;
use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{Attempt, AttemptState, Failure, RefusedTry};
use ropewalk_schemas::build::{Build, BuildState, TaskCounts};
use ropewalk_schemas::payload::{BuildPaused, LockReleased, TaskSkipped};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::wait::{Party, Resource, Wait};
use ropewalk_schemas::{AttemptId, Payload, QuestionId, RepoPath, Subject};
use ropewalk_store::{ChangeSet, Versioned, attempt_key};

use super::SharedState;
use super::ask;
use super::attempt::report::Report;
use super::context::{Plan, standing_of};
use super::decide::counts::count;
use super::error::BuilderError;
use super::machine::{self, Ask, Effect};

/// Where a transition takes place.
pub(crate) struct Scene<'a> {
    shared: &'a SharedState,
    context: &'a Context,
    build: &'a Build,
    report: Report,
    held: Option<BTreeMap<RepoPath, i64>>,
    counts: Option<TaskCounts>,
}

impl<'a> Scene<'a> {
    /// Sets the scene: a build, and who tells of it.
    pub(crate) fn new(shared: &'a SharedState, context: &'a Context, build: &'a Build) -> Self {
        Self {
            shared,
            context,
            build,
            report: Report::default(),
            held: None,
            counts: None,
        }
    }

    /// Adds what an attempt that ends here has learned about itself.
    pub(crate) fn with(mut self, report: &Report) -> Self {
        self.report = report.clone();
        self
    }

    /// Adds the locks that an attempt that ends here must still hold: giving one back demands its token, which is what
    /// fences a holder that lost it on the way.
    pub(crate) fn holding(mut self, locks: BTreeMap<RepoPath, i64>) -> Self {
        self.held = Some(locks);
        self
    }

    /// Adds the tasks as this commit leaves them, where that is not as they are stored.
    pub(crate) fn among(mut self, tasks: &[Task]) -> Self {
        self.counts = Some(count(tasks));
        self
    }

    /// Returns whether the build was stopped: the end of it ends its waits.
    pub(crate) fn is_stopped(&self) -> bool {
        self.build.state == BuildState::Stopped
    }

    /// Applies an input to a task: returns its record, and adds to `changes` what the transition brings with it.
    pub(crate) async fn task(
        &self,
        changes: &mut ChangeSet,
        task: &Task,
        input: machine::task::Input,
    ) -> Result<Task, BuilderError> {
        let now = self.context.now();
        let (mut after, effects) = machine::task::apply(task, input, now)?;
        let waiter = party(task);
        for effect in effects {
            match effect {
                Effect::EndAttempt {
                    attempt,
                    state,
                    failure,
                    told_at,
                } => {
                    let end = AttemptEnd {
                        state,
                        failure,
                        told_at,
                    };
                    self.end(changes, task, (attempt, end)).await?;
                }
                Effect::StopWaiting => stop_waiting(self.context, changes, &waiter).await?,
                Effect::Wait(resource) => {
                    changes.put(&self.wait(waiter.clone(), resource));
                }
                Effect::CloseQuestions { why } => {
                    ask::supersede(self.context, changes, task, &why).await?;
                }
                Effect::Ask(ask) => {
                    if let Some(question) = self.ask(changes, &after, ask).await? {
                        let asked = machine::task::Input::Ask(question);
                        after = machine::task::apply_alone(&after, asked, now)?;
                    }
                }
                Effect::TellSkipped { by, why } => self.tell_skipped(changes, task, by, why),
                Effect::CloseBudgetQuestions { .. } | Effect::TellPaused { .. } => {}
            }
        }
        Ok(after)
    }

    /// Applies an input to the build: returns its record, and adds to `changes` what the transition brings with it.
    pub(crate) async fn build(
        &self,
        changes: &mut ChangeSet,
        input: machine::build::Input,
    ) -> Result<Build, BuilderError> {
        let (mut after, effects) = machine::build::apply(self.build, input, self.context.now())?;
        for effect in effects {
            match effect {
                Effect::StopWaiting => {
                    let build = Party::Build { build: after.id };
                    stop_waiting(self.context, changes, &build).await?;
                }
                Effect::Wait(resource) => {
                    changes.put(&self.wait(Party::Build { build: after.id }, resource));
                }
                Effect::CloseQuestions { why } => {
                    ask::supersede_about(self.context, changes, after.id, &why).await?;
                }
                Effect::CloseBudgetQuestions { why } => {
                    let trigger = Trigger::BudgetExceeded;
                    if ask::asks_about_budget(self.context, &after).await? {
                        after = ask::note(self.context, &after, None)?;
                    }
                    ask::supersede_asked(self.context, changes, after.id, trigger, &why).await?;
                }
                Effect::TellPaused { reason, detail } => {
                    changes.emit(self.context.event(
                        Subject::build(after.id),
                        Payload::BuildPaused(BuildPaused {
                            build_id: after.id,
                            idea_slug: after.idea.clone(),
                            reason,
                            detail,
                            counts: self.counts().await?,
                        }),
                    ));
                }
                Effect::EndAttempt { .. } | Effect::Ask(_) | Effect::TellSkipped { .. } => {}
            }
        }
        Ok(after)
    }

    async fn counts(&self) -> Result<TaskCounts, BuilderError> {
        if let Some(counts) = self.counts {
            return Ok(counts);
        }
        let plan = Plan::load(&self.context.store, self.build.id).await?;
        Ok(count(&plan.map_or_else(Vec::new, |plan| plan.records())))
    }

    async fn ask(
        &self,
        changes: &mut ChangeSet,
        task: &Task,
        ask: Ask,
    ) -> Result<Option<QuestionId>, BuilderError> {
        let (shared, context, build) = (self.shared, self.context, self.build);
        match ask {
            Ask::Failed { class } => {
                let failed = ask::FailedTask {
                    task,
                    class,
                    summary: self.report.summary.clone(),
                    standing: standing_of(context, task).await?,
                };
                ask::task_failed(shared, context, changes, build, failed).await
            }
            Ask::Suspended { why } => {
                let (about, trigger) = ((build, task), Trigger::TaskInterrupted);
                ask::task_stands(shared, context, changes, about, trigger, why).await
            }
            Ask::Held { why } => {
                let (about, trigger) = ((build, task), Trigger::CheckHeld);
                ask::task_stands(shared, context, changes, about, trigger, why).await
            }
            Ask::Model(put) => ask::of_model(shared, context, changes, build, task, *put).await,
            Ask::Protected { candidate, files } => {
                ask::protected_files(shared, context, changes, build, task, candidate, &files).await
            }
            Ask::Budget(exceeded) => {
                let about = Some(task);
                ask::budget_exceeded(shared, context, changes, build, about, &exceeded).await
            }
        }
    }

    fn wait(&self, waiter: Party, resource: Resource) -> Wait {
        Wait {
            waiter,
            resource,
            holder: None,
            since: self.context.now(),
        }
    }

    /// Closes the row of an attempt, and gives back what it holds; what it waited for it waits for no more.
    async fn end(
        &self,
        changes: &mut ChangeSet,
        task: &Task,
        (attempt, end): (AttemptId, AttemptEnd),
    ) -> Result<(), BuilderError> {
        let store = &self.context.store;
        if let Some(row) = store.get::<Attempt>(&attempt_key(attempt)).await?
            && !row.state.is_final()
        {
            self.close(changes, &row, end);
        }
        let locks = if let Some(locks) = &self.held {
            locks.clone()
        } else {
            stop_waiting(self.context, changes, &party(task)).await?;
            let held = locks::held_by(store, attempt).await?;
            let held = held.iter().map(|lease| (lease.path.clone(), lease.token));
            held.collect()
        };
        for (path, token) in &locks {
            changes.release(path, *token);
        }
        if !locks.is_empty() {
            changes.emit(self.context.event(
                Subject::task(task.build, &task.id),
                Payload::LockReleased(LockReleased {
                    build_id: task.build,
                    task_id: task.id.clone(),
                    attempt_id: attempt,
                    files: locks.into_keys().collect(),
                }),
            ));
        }
        Ok(())
    }

    fn close(&self, changes: &mut ChangeSet, before: &Versioned<Attempt>, end: AttemptEnd) {
        let report = self.report.clone();
        let known = |new: Vec<RepoPath>, old: &Vec<RepoPath>| {
            if new.is_empty() { old.clone() } else { new }
        };
        let candidate = report.candidate.or_else(|| before.candidate.clone());
        let preserve_ref = report.preserve_ref.or_else(|| before.preserve_ref.clone());
        let summary = report.summary.or_else(|| before.summary.clone());
        let mut failure = end.failure;
        let mut tries = before.tries.clone();
        if let Some((turn, candidate)) = end.told_at.zip(candidate.clone())
            && let Some(failure) = failure.take()
        {
            tries.push(RefusedTry {
                turn,
                failure,
                candidate,
                preserve_ref: preserve_ref.clone(),
                summary: summary.clone(),
            });
        }
        let after = Attempt {
            state: end.state,
            tries,
            failure,
            summary,
            tokens: report.tokens.max(before.tokens),
            candidate,
            preserve_ref,
            granted: known(report.granted, &before.granted),
            gotchas: if report.gotchas.is_empty() {
                before.gotchas.clone()
            } else {
                report.gotchas
            },
            ended_at: Some(self.context.now()),
            ..before.record.clone()
        };
        changes.update(before, &after);
    }

    fn tell_skipped(&self, changes: &mut ChangeSet, task: &Task, by: String, why: String) {
        changes.emit(self.context.event(
            Subject::task(task.build, &task.id),
            Payload::TaskSkipped(TaskSkipped {
                build_id: task.build,
                task_id: task.id.clone(),
                idea_slug: self.build.idea.clone(),
                skipped_by: by,
                reason: why,
            }),
        ));
    }
}

/// How an attempt ends.
struct AttemptEnd {
    state: AttemptState,
    failure: Option<Failure>,
    /// The turn of its conversation whose result tells why.
    told_at: Option<u32>,
}

/// Names a task as the wait-for graph does.
pub(crate) fn party(task: &Task) -> Party {
    Party::Task {
        build: task.build,
        task: task.id.clone(),
    }
}

async fn stop_waiting(
    context: &Context,
    changes: &mut ChangeSet,
    waiter: &Party,
) -> Result<(), BuilderError> {
    let waits = locks::waits_of(&context.store, waiter).await?;
    locks::stop_waiting(changes, &waits);
    Ok(())
}
