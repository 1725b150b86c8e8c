//! Records how an attempt ended without landing: failed, held, or interrupted.

mod refusal;
mod telling;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{Evidence, Failure, FailureClass, Verdict};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{AttemptId, BuildId, Subject, TaskId};
use ropewalk_store::{ChangeSet, retry_on_conflict};
use ropewalk_workspace::ConflictFile;

use ropewalk_gate::candidate::GateReport;
use ropewalk_gate::protected::ProtectedChange;
use ropewalk_schemas::clip::{self, Weight};

use super::lessons;
use super::report::{self, Report};
use super::rows::Rows;
use crate::SharedState;
use crate::context::{of_build, standing_of};
use crate::decide::failure::{self, Answer, FailureContext};
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::TopicQuestion;
use crate::machine::task::{FailedAttempt, Input};
use crate::milestones;
pub(crate) use refusal::{Refusal, refused, told_refused, told_with};
use telling::{End, told_failed};

/// So much of an error is kept with the task; the evidence holds more.
const ERROR_BYTES: usize = 8 * 1024;
/// So much of an error travels with `task.failed`.
const EVENT_ERROR_BYTES: usize = 2 * 1024;

/// Why an attempt failed.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) class: FailureClass,
    /// The actual output.
    pub(crate) error: String,
    /// The changed files, each with what tells its content from any other.
    pub(crate) changed: Vec<String>,
    /// What a person would have to accept.
    pub(crate) protected: Vec<ProtectedChange>,
    /// When the provider said its quota is back.
    pub(crate) quota_back: Option<DateTime<Utc>>,
    /// Whether packages can be installed for what was checked.
    pub(crate) installable: bool,
    /// Whether another try would only meet it again, since nobody works before it.
    pub(crate) certain: bool,
    /// What the gate saw, if it came so far.
    pub(crate) evidence: Option<Evidence>,
}

impl Fault {
    /// A fault that the gate has not seen.
    pub(crate) fn new(class: FailureClass, error: impl Into<String>) -> Self {
        Self {
            class,
            error: error.into(),
            changed: Vec::new(),
            protected: Vec::new(),
            quota_back: None,
            installable: false,
            certain: false,
            evidence: None,
        }
    }

    /// What stands against each other, with both sides.
    pub(crate) fn of_conflict(files: &[ConflictFile]) -> Self {
        let mut text = String::from("the head changed the same lines\n");
        for file in files {
            text.push('\n');
            text.push_str(&file.shown());
        }
        Self {
            changed: files.iter().map(|file| file.path.clone()).collect(),
            ..Self::new(FailureClass::Conflict, text)
        }
    }

    /// The same, where another try would only meet it again.
    pub(crate) fn for_certain(mut self) -> Self {
        self.certain = true;
        self
    }

    /// What the gate saw, where that was no pass.
    pub(crate) fn seen(seen: GateReport) -> Self {
        Self {
            class: seen.evidence.class.unwrap_or(FailureClass::Unknown),
            error: seen.error,
            changed: seen.changed,
            protected: seen.protected,
            quota_back: None,
            installable: seen.installable,
            certain: false,
            evidence: Some(seen.evidence),
        }
    }

    /// Returns whether a check could not run, so that nothing is known of the work.
    pub(crate) fn is_held(&self) -> bool {
        let seen = self.evidence.as_ref();
        seen.is_some_and(|seen| seen.verdict == Verdict::Held)
    }

    /// Returns whether nothing is wrong with the work but that a person has to allow what it changes.
    pub(crate) fn waits_for_consent(&self) -> bool {
        !self.protected.is_empty()
    }

    /// Puts what was found beside the gate before what it saw.
    pub(crate) fn noting(mut self, lines: &[String]) -> Self {
        if !lines.is_empty() {
            self.error = format!("{}\n{}", lines.join("\n"), self.error);
        }
        self
    }
}

/// Records a failure with everything that follows from it.
pub(crate) async fn failed(
    shared: &SharedState,
    context: &Context,
    ids: (BuildId, &TaskId, AttemptId),
    fault: &Fault,
    report: &Report,
) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, ids.1, {
        if let Some(rows) = Rows::load(context, ids.0, ids.1, ids.2).await? {
            let changes = failure_changes(shared, context, &rows, fault, report).await?;
            context.store.commit(changes).await?;
        }
        Ok(Some(()))
    })
}

/// Names a failure, and decides what follows from it.
fn judged(
    shared: &SharedState,
    context: &Context,
    rows: &Rows,
    fault: &Fault,
) -> (Failure, Answer) {
    let error = clip::ends(&fault.error, ERROR_BYTES, Weight::Tail).into_owned();
    let failure = Failure {
        class: fault.class,
        fingerprint: failure::fingerprint(fault.class, &error, &fault.changed),
        error,
        attempt: rows.task.attempts,
    };
    let happened = FailureContext {
        failure: &failure,
        quota_back: fault.quota_back,
        installable: fault.installable,
        certain: fault.certain,
        now: context.now(),
        jitter: context.ids.fraction(),
    };
    let answer = failure::answer(&rows.task, &happened, &shared.options.tries);
    (failure, answer)
}

async fn failure_changes(
    shared: &SharedState,
    context: &Context,
    rows: &Rows,
    fault: &Fault,
    report: &Report,
) -> Result<ChangeSet, BuilderError> {
    let context = of_build(context, &rows.build).because_of(rows.task.cause);
    let (failure, answer) = judged(shared, &context, rows, fault);
    let ends = match answer {
        Answer::Fail { class } => Some(class),
        _ => None,
    };
    // What waits, for a check, a quota or somebody's consent, has not failed.
    let has_failed = !matches!(
        answer,
        Answer::Hold | Answer::WaitQuota { .. } | Answer::AskPerson
    );
    let will_retry = answer.will_retry();
    let failed = FailedAttempt {
        failure,
        answer,
        kept: report.kept(),
        turn: report.turn,
        shown: fault.evidence.as_ref().map(|seen| seen.commit.clone()),
        protected: fault.protected.clone(),
        provider: shared.engine.models().build.model.name().to_owned(),
    };
    let mut changes = ChangeSet::new();
    let scene = Scene::new(shared, &context, &rows.build).with(report);
    let input = Input::Fail(Box::new(failed));
    let task = scene.task(&mut changes, &rows.task, input).await?;
    changes.update(&rows.task, &task);
    if let Some(evidence) = &fault.evidence {
        changes.put(evidence);
    }
    if ends.is_some() {
        // A claim that was decided before this failure must not go through: the build may have to stop.
        changes.update(&rows.build, &rows.build.record);
        lessons::close_uses(&context, &mut changes, rows.build.spec, &task).await?;
    }
    if has_failed && will_retry {
        milestones::takes_long(shared, &context, &mut changes, &rows.build, &task).await?;
    }
    if let Some(failure) = task.failures.last().filter(|_| has_failed) {
        let end = match ends {
            Some(class) => Some(End {
                class,
                standing: standing_of(&context, &task).await?,
            }),
            None => None,
        };
        let told = told_failed(rows, &task, failure, will_retry, end.as_ref());
        changes.emit(context.event(Subject::task(task.build, &task.id), told));
    }
    Ok(changes)
}

/// So many attempts in a row may be cut off before a person is asked.
const CUT_OFFS: u32 = 5;

/// What follows an attempt that could not go on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    /// How long the next one waits, since whatever kept it from its work may still be there.
    pub(crate) pause: TimeDelta,
    /// Whether it counts: the work itself may be the reason.
    pub(crate) counts: bool,
}

/// Returns whether one more attempt that could not go on is the last that is run unasked.
pub(crate) const fn was_cut_off_enough(task: &Task) -> bool {
    task.cut_off + 1 >= CUT_OFFS
}

/// Says why a task is not run again that was cut off too often.
pub(crate) fn told_cut_off(error: &BuilderError) -> String {
    format!("{CUT_OFFS} attempts in a row could not go on; the last one: {error}")
}

/// Records that an attempt was ended from outside; its try is not counted and its work is kept.
pub(crate) async fn interrupted(
    shared: &SharedState,
    context: &Context,
    ids: (BuildId, &TaskId, AttemptId),
    reason: &str,
    cut: Option<Cut>,
    report: &Report,
) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, ids.1, {
        let Some(rows) = Rows::load(context, ids.0, ids.1, ids.2).await? else {
            return report::kept(context, ids.2, report).await.map(Some);
        };
        let mut changes = ChangeSet::new();
        requeue(shared, context, &mut changes, &rows, reason, cut, report).await?;
        context.store.commit(changes).await?;
        Ok(Some(()))
    })
}

/// Records that the model of an attempt asks a person: its work is kept, its locks are free, and the same conversation goes on
/// with the answer.
pub(crate) async fn asks(
    shared: &SharedState,
    context: &Context,
    ids: (BuildId, &TaskId, AttemptId),
    put: TopicQuestion,
    report: &Report,
) -> Result<(), BuilderError> {
    retry_on_conflict!(BuilderError, ids.1, {
        let Some(rows) = Rows::load(context, ids.0, ids.1, ids.2).await? else {
            return report::kept(context, ids.2, report).await.map(Some);
        };
        let context = of_build(context, &rows.build).because_of(rows.task.cause);
        let mut changes = ChangeSet::new();
        let scene = Scene::new(shared, &context, &rows.build).with(report);
        let input = Input::PutQuestion(Box::new(put.clone()));
        let task = scene.task(&mut changes, &rows.task, input).await?;
        changes.update(&rows.task, &task);
        context.store.commit(changes).await?;
        Ok(Some(()))
    })
}

/// Puts the task of an attempt back that was cut off, with its attempts kept and its locks free.
pub(crate) async fn requeue(
    shared: &SharedState,
    context: &Context,
    changes: &mut ChangeSet,
    rows: &Rows,
    reason: &str,
    cut: Option<Cut>,
    report: &Report,
) -> Result<(), BuilderError> {
    let context = of_build(context, &rows.build).because_of(rows.task.cause);
    let input = Input::CutOff {
        why: reason.to_owned(),
        not_before: cut.map(|cut| context.now() + cut.pause),
        counts: cut.is_some_and(|cut| cut.counts),
    };
    let scene = Scene::new(shared, &context, &rows.build).with(report);
    let task = scene.task(changes, &rows.task, input).await?;
    changes.update(&rows.task, &task);
    Ok(())
}
