//! Puts decisions before people, with options and a recommendation.

use std::collections::BTreeMap;

use ropewalk_config::Trigger;
use ropewalk_config::questions::choice::{DecisionNeeded, TaskFailedRepeatedly};
use ropewalk_orchestrator::questions::QuestionRequest;
use ropewalk_orchestrator::{AgentError, Context, questions};
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::payload::{BuildCompleted, DecisionRequested};
use ropewalk_schemas::question::{About, Content, Question, QuestionKind, QuestionState};
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{ChoiceId, EventPattern, Subject, TaskId};
use ropewalk_store::{ChangeSet, EventFilter, Query};

use crate::pm::{PmOptions, context, decide};

/// What can be decided about a build that gave up.
const ABOUT_BUILD: [DecisionNeeded; 2] = [DecisionNeeded::Retry, DecisionNeeded::Leave];
/// What can be decided about a task.
const ABOUT_TASK: [DecisionNeeded; 5] = [
    DecisionNeeded::Retry,
    DecisionNeeded::Guide,
    DecisionNeeded::Interrupt,
    DecisionNeeded::Skip,
    DecisionNeeded::Leave,
];

/// What can be decided about a call that was refused.
const ABOUT_CALL: [DecisionNeeded; 4] = [
    DecisionNeeded::AllowCall,
    DecisionNeeded::AllowRule,
    DecisionNeeded::Guide,
    DecisionNeeded::Leave,
];

/// A decision that a person has to make.
struct Decision {
    summary: String,
    details: String,
    options: Vec<DecisionNeeded>,
    recommended: Option<DecisionNeeded>,
    about: About,
    /// What a yes holds for.
    content: Option<Content>,
}

/// Asks what somebody could not decide alone. Of a task that is complete, or whose build has ended, nothing is left to decide.
pub(super) async fn requested(
    options: &PmOptions,
    request: &DecisionRequested,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let Some(build) = context::build(&context.store, request.build_id).await? else {
        return Ok(ChangeSet::new());
    };
    let (about, what) = match &request.task_id {
        Some(task) if is_over(&build, task, context).await? => return Ok(ChangeSet::new()),
        Some(task) => {
            let about = About::Task {
                build: build.id,
                task: task.clone(),
            };
            (about, format!("Task {task} of {}", build.idea))
        }
        None => (
            About::Build { build: build.id },
            format!("The build of {}", build.idea),
        ),
    };
    let possible = match (&request.call, &request.task_id) {
        (Some(_), _) => ABOUT_CALL.as_slice(),
        (None, Some(_)) => ABOUT_TASK.as_slice(),
        (None, None) => ABOUT_BUILD.as_slice(),
    };
    let decision = Decision {
        summary: format!("{what} needs a decision."),
        details: request.question.clone(),
        options: offered(possible, &request.options),
        recommended: DecisionNeeded::of(request.recommended.as_ref()),
        about,
        content: refused(request),
    };
    let mut changes = put(options, decision, &build, context).await?;
    if request.task_id.is_some() && !changes.is_empty() {
        // Who lands the task or ends the build at the same time looks again, and takes the question along.
        changes.update(&build, &build.record);
    }
    Ok(changes)
}

async fn is_over(build: &Build, task: &TaskId, context: &Context) -> Result<bool, AgentError> {
    let row = context::task(&context.store, build.id, task).await?;
    let is_complete = row.is_some_and(|row| row.state == TaskState::Complete);
    Ok(is_complete || build.completed_at.is_some())
}

/// Asks what becomes of a build that failed or gave up; one that a person stopped is left in peace.
pub(super) async fn build_ended(
    options: &PmOptions,
    ended: &BuildCompleted,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let gave_up = matches!(ended.status, BuildState::Failed | BuildState::Stopped);
    let Some(build) = context::build(&context.store, ended.build_id).await? else {
        return Ok(ChangeSet::new());
    };
    let was_wanted = matches!(build.stop, Some(StopCause::Amended | StopCause::Abandoned));
    // It may run again already.
    if !gave_up
        || was_wanted
        || build.state != ended.status
        || stopped_by_person(&build, context).await?
        || is_thought_through(&build, context).await?
    {
        return Ok(ChangeSet::new());
    }
    let counts = ended.counts;
    let (choices, recommended, how) = if decide::stands_to_be_retried(ended.status, &counts) {
        (ABOUT_BUILD.to_vec(), DecisionNeeded::Retry, String::new())
    } else {
        let how = format!(
            " Nothing that failed is left to be tried again. To mend it, say what with `ropewalk spec revise {} WORDS`: it is done \
             on top of what landed. `ropewalk build resume {}` checks the whole again, once something outside has changed.",
            ended.idea_slug, build.id
        );
        (vec![DecisionNeeded::Leave], DecisionNeeded::Leave, how)
    };
    let decision = Decision {
        summary: format!(
            "The build of {} {}: {}",
            ended.idea_slug,
            ended.status,
            ended.reason.as_deref().unwrap_or("no reason was stored")
        ),
        details: format!(
            "{} of {} landed, {} failed, {} were skipped, {} are blocked.{how}",
            counts.complete,
            counted(counts.total, "task"),
            counts.failed,
            counts.skipped,
            counts.blocked
        ),
        options: choices,
        recommended: Some(recommended),
        about: About::Build { build: build.id },
        content: None,
    };
    put(options, decision, &build, context).await
}

/// Says whether somebody thinks a task of a build through with the planner: what comes of it goes on from the build.
async fn is_thought_through(build: &Build, context: &Context) -> Result<bool, AgentError> {
    let asked = Query::new()
        .equal("state", QuestionState::Answered.as_str())
        .equal("build", build.id.to_string());
    let asked = context.store.list::<Question>(asked).await?;
    let chosen = asked
        .iter()
        .filter(|question| question.trigger == Trigger::TaskFailedRepeatedly.as_str());
    let mut choices = chosen.filter_map(|question| question.answer.as_ref()?.choice.as_ref());
    Ok(choices.any(|choice| {
        TaskFailedRepeatedly::of(Some(choice)) == Some(TaskFailedRepeatedly::Rethink)
    }))
}

async fn stopped_by_person(build: &Build, context: &Context) -> Result<bool, AgentError> {
    let filter = EventFilter {
        pattern: Some(EventPattern::of("build.stop")),
        subject: Some(Subject::build(build.id)),
        from: build.started_at,
        limit: Some(1),
        ..EventFilter::default()
    };
    Ok(build.state == BuildState::Stopped && !context.store.events(&filter).await?.is_empty())
}

/// Returns what a yes to a refused call holds for.
fn refused(request: &DecisionRequested) -> Option<Content> {
    let (rule, call) = (request.rule.clone()?, request.call.as_ref()?);
    Some(Content::Call {
        rule,
        tool: call.tool.clone(),
        subject: call.subject.clone(),
    })
}

/// Offers what was asked for and can be done, else all that can be done: a question without choices has no answer.
fn offered(possible: &[DecisionNeeded], wanted: &[ChoiceId]) -> Vec<DecisionNeeded> {
    let is_wanted =
        |choice: &&DecisionNeeded| wanted.iter().any(|id| id.as_str() == choice.as_str());
    let offered: Vec<DecisionNeeded> = possible.iter().filter(is_wanted).copied().collect();
    if offered.is_empty() {
        possible.to_vec()
    } else {
        offered
    }
}

async fn put(
    options: &PmOptions,
    decision: Decision,
    build: &Build,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let recommendation = decision.recommended.map(DecisionNeeded::as_str);
    let values = BTreeMap::from([
        ("summary", decision.summary),
        ("details", decision.details),
        (
            "recommendation",
            recommendation
                .unwrap_or("none; I cannot tell which is better")
                .to_owned(),
        ),
    ]);
    let draft = options.templates.render(Trigger::DecisionNeeded, &values);
    let mut asking = QuestionRequest::of(
        draft.map_err(AgentError::permanent)?,
        decision.about,
        Some(&build.idea),
    );
    // One about each rule may be open.
    asking.topic = match &decision.content {
        Some(Content::Call { rule, .. }) => Some(rule.clone()),
        _ => None,
    };
    if decision.content.is_some() {
        // The work goes on without what was refused. Nothing is allowed by itself: who is silent leaves it open.
        asking.kind = QuestionKind::Clarifying;
    }
    asking.content = decision.content;
    asking.choices.retain_mut(|choice| {
        let decided = DecisionNeeded::of(Some(&choice.id));
        choice.recommended = decided.is_some() && decided == decision.recommended;
        decided.is_some_and(|decided| decision.options.contains(&decided))
    });
    let mut changes = ChangeSet::new();
    questions::ask(&mut changes, context, &options.deadlines, asking).await?;
    Ok(changes)
}
