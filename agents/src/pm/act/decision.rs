//! Puts decisions before people, with options and a recommendation.

use std::collections::BTreeMap;

use ropewalk_config::Trigger;
use ropewalk_orchestrator::{AgentError, Context, questions};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::{BuildCompleted, DecisionRequested};
use ropewalk_schemas::question::{About, Choice};
use ropewalk_schemas::{EventPattern, Subject};
use ropewalk_store::{ChangeSet, EventFilter};

use crate::pm::{PmOptions, context};
use crate::question::asking;

/// What brings a build that failed back to life.
const RESUME: &str = "Try again";
/// What leaves it as it is.
const LEAVE: &str = "Leave it";

/// A decision that a person has to make.
struct Decision {
    summary: String,
    details: String,
    options: Vec<String>,
    recommended: Option<String>,
    about: About,
}

/// Asks what somebody could not decide alone.
pub(super) async fn requested(
    options: &PmOptions,
    request: &DecisionRequested,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let Some(build) = context::build(&context.store, request.build_id).await? else {
        return Ok(ChangeSet::new());
    };
    let (about, what) = match &request.task_id {
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
    let decision = Decision {
        summary: format!("{what} needs a decision."),
        details: request.question.clone(),
        options: request.options.clone(),
        recommended: request.recommended.clone(),
        about,
    };
    put(options, decision, &build, context).await
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
    // It may run again already.
    if !gave_up || build.state != ended.status || stopped_by_person(&build, context).await? {
        return Ok(ChangeSet::new());
    }
    let counts = ended.counts;
    let decision = Decision {
        summary: format!(
            "The build of {} {}: {}",
            ended.idea_slug,
            ended.status,
            ended.reason.as_deref().unwrap_or("no reason was stored")
        ),
        details: format!(
            "{} of {} tasks landed, {} failed, {} were skipped, {} are blocked.",
            counts.complete, counts.total, counts.failed, counts.skipped, counts.blocked
        ),
        options: vec![RESUME.to_owned(), LEAVE.to_owned()],
        recommended: Some(RESUME.to_owned()),
        about: About::Build { build: build.id },
    };
    put(options, decision, &build, context).await
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

async fn put(
    options: &PmOptions,
    decision: Decision,
    build: &Build,
    context: &Context,
) -> Result<ChangeSet, AgentError> {
    let recommendation = decision.recommended.clone();
    let values = BTreeMap::from([
        ("summary", decision.summary),
        ("details", decision.details),
        (
            "recommendation",
            recommendation.unwrap_or_else(|| "none; I cannot tell which is better".to_owned()),
        ),
    ]);
    let draft = options.templates.render(Trigger::DecisionNeeded, &values);
    let mut asking = asking(
        draft.map_err(AgentError::permanent)?,
        decision.about,
        Some(&build.idea),
    );
    asking.choices = decision
        .options
        .into_iter()
        .map(|label| Choice {
            recommended: Some(&label) == decision.recommended.as_ref(),
            label,
            description: None,
            implications: None,
        })
        .collect();
    // A yes may spend tokens and time, so no default and no "answer all" takes it.
    asking.consequential = true;
    let mut changes = ChangeSet::new();
    questions::ask(&mut changes, context, &options.deadlines, asking).await?;
    Ok(changes)
}
