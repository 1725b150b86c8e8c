//! Sends work that the gate refused back into the conversation that made it: a try has failed, the attempt goes on.

use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{Attempt, AttemptState, Failure, FailureClass, RefusedTry};
use ropewalk_schemas::{AttemptId, BuildId, Subject, TaskId};
use ropewalk_store::{ChangeSet, retry_on_conflict};

use super::telling::told_failed;
use super::{Fault, judged};
use crate::SharedState;
use crate::ask::class_name;
use crate::attempt::report::{Report, SUMMARY_KEPT};
use crate::attempt::rows::Rows;
use crate::context::of_build;
use crate::decide::failure::Answer;
use crate::effects::Scene;
use crate::error::BuilderError;
use crate::machine::task::Input;
use crate::milestones;

/// What became of refused work.
pub(crate) enum Refusal {
    /// The agent goes on, and is told this and what people have said of the task.
    SentBack { told: String, guidance: Vec<String> },
    /// Somebody or something else has to act first, so the attempt ends.
    Ends,
    /// The task was taken away meanwhile.
    Lost,
}

/// Counts a try that the gate refused, and says whether the same conversation goes on.
pub(crate) async fn refused(
    shared: &SharedState,
    context: &Context,
    ids: (BuildId, &TaskId, AttemptId),
    fault: &Fault,
    (turn, report): (u32, &Report),
) -> Result<Refusal, BuilderError> {
    retry_on_conflict!(BuilderError, ids.1, {
        let Some(rows) = Rows::load(context, ids.0, ids.1, ids.2).await? else {
            return Ok(Some(Refusal::Lost));
        };
        let context = of_build(context, &rows.build).because_of(rows.task.cause);
        let (failure, answer) = judged(shared, &context, &rows, fault);
        if answer != (Answer::Retry { not_before: None }) {
            return Ok(Some(Refusal::Ends));
        }
        let told = told_refused(&failure);
        let changes = changes(shared, &context, &rows, (fault, failure), (turn, report)).await?;
        context.store.commit(changes).await?;
        let guidance = rows.task.guidance.clone();
        Ok(Some(Refusal::SentBack { told, guidance }))
    })
}

async fn changes(
    shared: &SharedState,
    context: &Context,
    rows: &Rows,
    (fault, failure): (&Fault, Failure),
    (turn, report): (u32, &Report),
) -> Result<ChangeSet, BuilderError> {
    let mut changes = ChangeSet::new();
    let input = Input::SendBack(failure.clone());
    let scene = Scene::new(shared, context, &rows.build);
    let task = scene.task(&mut changes, &rows.task, input).await?;
    let before = &rows.attempt.record;
    let mut attempt = Attempt {
        state: AttemptState::Working,
        ..before.clone()
    };
    if let Some(candidate) = report.candidate.clone() {
        attempt.tries.push(RefusedTry {
            turn,
            failure: failure.clone(),
            candidate,
            preserve_ref: report.preserve_ref.clone(),
            summary: report.summary.clone(),
        });
        // It stands with that try: what follows may end without a word.
        attempt.summary = None;
    }
    changes.update(&rows.task, &task);
    changes.update(&rows.attempt, &attempt);
    if let Some(evidence) = &fault.evidence {
        changes.put(evidence);
    }
    milestones::takes_long(shared, context, &mut changes, &rows.build, &task).await?;
    let told = told_failed(rows, &task, &failure, true, None);
    changes.emit(context.event(Subject::task(task.build, &task.id), told));
    Ok(changes)
}

/// Tells the agent why its work was refused and what to do: the result of the call that handed it in.
pub(crate) fn told_refused(failure: &Failure) -> String {
    let class = class_name(failure.class);
    let what = failure.error.trim();
    let advice = advice(failure.class);
    format!(
        "Not taken: {class}.\n\n{what}\n\n{advice} Your checkout is as you left it: mend this there, and call again; {SUMMARY_KEPT}."
    )
}

/// Adds what people have said since the agent was told last.
pub(crate) fn told_with(told: &str, guidance: &[String]) -> String {
    let said = guidance.iter();
    said.fold(told.to_owned(), |told, text| {
        format!("{told}\n\nA person said about this task: {text}")
    })
}

const fn advice(class: FailureClass) -> &'static str {
    match class {
        FailureClass::EmptyChange => {
            "No check was run, since there is nothing to look at: the files of this task are as they were before it."
        }
        FailureClass::OutOfScope => {
            "No check was run. Remove what you need not leave behind and put back what you need not change; ask with `request_file` for what you do need."
        }
        FailureClass::StubMarker => "No check was run: write the whole thing first.",
        FailureClass::SecretFound => {
            "No check was run. Take it out again: read it from the environment where the code needs it, and remove the file where nothing does."
        }
        FailureClass::WeakenedTest => "What passed before has to pass still.",
        FailureClass::Timeout => "It was ended when its time was over: look for what never ends.",
        _ => "Find the cause before you change anything.",
    }
}
