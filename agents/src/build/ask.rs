//! Puts the questions of a build into a change set.

use std::collections::BTreeMap;

use ropewalk_config::{QuestionDraft, Trigger};
use ropewalk_engine::Exceeded;
use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::questions::{self, Asked, Asking};
use ropewalk_schemas::attempt::{Failure, FailureClass};
use ropewalk_schemas::build::{Build, TaskCounts};
use ropewalk_schemas::question::{About, Question, QuestionState};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, CommitId, QuestionId, TaskId};
use ropewalk_store::{ChangeSet, Query, ReadError, Versioned};

use super::Shop;
use super::decide::counts::Standing;
use super::decide::failure::recommended;
use super::land::LandError;
use super::trouble::Trouble;
use crate::question::asking;

/// So much of an error goes into a question; the whole lies in the evidence.
const ERROR_LETTERS: usize = 1_500;

/// A task that has used up its tries.
pub(crate) struct FailedTask<'a> {
    pub(crate) task: &'a Task,
    /// Of the whole round.
    pub(crate) class: FailureClass,
    /// What its end means for the others.
    pub(crate) standing: Standing,
}

/// Asks what shall become of a task that has used up its tries.
pub(crate) async fn task_failed(
    shop: &Shop,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    failed: FailedTask<'_>,
) -> Result<Option<QuestionId>, Trouble> {
    let FailedTask {
        task,
        class,
        standing,
    } = failed;
    let error = task.failures.last().map_or("", |failure| &failure.error);
    let tried: Vec<String> = task.failures.iter().map(told).collect();
    let values = BTreeMap::from([
        ("task_id", task.id.to_string()),
        ("attempts", task.failures.len().to_string()),
        ("error_message", cut(error)),
        ("attempts_list", tried.join("\n")),
        ("standing", standing.told()),
        ("recommended", recommended(class).to_owned()),
    ]);
    let draft = shop
        .questions
        .render(Trigger::TaskFailedRepeatedly, &values)?;
    let about = About::Task {
        build: build.id,
        task: task.id.clone(),
    };
    put(shop, context, changes, build, about, draft).await
}

fn told(failure: &Failure) -> String {
    let first = failure.error.lines().find(|line| !line.trim().is_empty());
    format!(
        "- attempt {}: {} {}",
        failure.attempt,
        class_name(failure),
        first.unwrap_or_default().trim()
    )
}

fn class_name(failure: &Failure) -> String {
    serde_json::to_value(failure.class)
        .ok()
        .and_then(|name| name.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Asks whether a task may change files that judge its work.
pub(crate) async fn protected_files(
    shop: &Shop,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    task: &Task,
    files: &[String],
) -> Result<Option<QuestionId>, Trouble> {
    let list: Vec<String> = files.iter().map(|file| format!("- {file}")).collect();
    let values = BTreeMap::from([
        ("task_id", task.id.to_string()),
        ("file_list", list.join("\n")),
    ]);
    let draft = shop.questions.render(Trigger::ProtectedFiles, &values)?;
    let about = About::Task {
        build: build.id,
        task: task.id.clone(),
    };
    put(shop, context, changes, build, about, draft).await
}

/// Asks how to go on with a branch that somebody else moved.
pub(crate) async fn branch_moved(
    shop: &Shop,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    found: Option<&CommitId>,
) -> Result<Option<QuestionId>, Trouble> {
    let shown = |commit: Option<&CommitId>| {
        commit.map_or_else(|| "no branch".to_owned(), ToString::to_string)
    };
    let values = BTreeMap::from([
        ("branch", build.branch.clone()),
        ("expected", shown(build.published.as_ref())),
        ("found", shown(found)),
    ]);
    let draft = shop.questions.render(Trigger::BranchMoved, &values)?;
    let about = About::Build { build: build.id };
    put(shop, context, changes, build, about, draft).await
}

/// Asks what shall become of the branch of a build that has ended.
pub(crate) async fn build_finished(
    shop: &Shop,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    counts: &TaskCounts,
) -> Result<Option<QuestionId>, Trouble> {
    let values = BTreeMap::from([
        ("idea", build.idea.to_string()),
        ("status", build.state.to_string()),
        ("complete", counts.complete.to_string()),
        ("failed", counts.failed.to_string()),
        ("skipped", counts.skipped.to_string()),
        ("branch", build.branch.clone()),
    ]);
    let draft = shop.questions.render(Trigger::BuildFinished, &values)?;
    let about = About::Build { build: build.id };
    put(shop, context, changes, build, about, draft).await
}

/// Asks whether to spend more than a budget allows.
pub(crate) async fn budget_exceeded(
    shop: &Shop,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    task: Option<&TaskId>,
    exceeded: &Exceeded,
) -> Result<Option<QuestionId>, Trouble> {
    let values = BTreeMap::from([
        ("idea", build.idea.to_string()),
        ("scope", exceeded.scope.clone()),
        ("used", exceeded.used.clone()),
        ("limit", exceeded.limit.clone()),
    ]);
    let draft = shop.questions.render(Trigger::BudgetExceeded, &values)?;
    let about = match task {
        Some(task) => About::Task {
            build: build.id,
            task: task.clone(),
        },
        None => About::Build { build: build.id },
    };
    let asking = Asking {
        topic: Some(exceeded.scope.clone()),
        ..asking(draft, about, Some(&build.idea))
    };
    put_asking(shop, context, changes, asking).await
}

/// Asks what to do about a branch that could not be merged.
pub(crate) async fn landing_refused(
    shop: &Shop,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    refusal: &LandError,
) -> Result<Option<QuestionId>, Trouble> {
    let mut why = refusal.to_string();
    if let Some(sides) = refusal.sides() {
        why.push_str("\n\n");
        why.push_str(&cut(&sides));
    }
    let values = BTreeMap::from([
        ("branch", build.branch.clone()),
        ("into", build.target.clone()),
        ("why", why),
    ]);
    let draft = shop.questions.render(Trigger::LandingRefused, &values)?;
    let about = About::Build { build: build.id };
    put(shop, context, changes, build, about, draft).await
}

/// Puts a question about a build, or about one of its tasks.
pub(crate) async fn put(
    shop: &Shop,
    context: &Context,
    changes: &mut ChangeSet,
    build: &Build,
    about: About,
    draft: QuestionDraft,
) -> Result<Option<QuestionId>, Trouble> {
    put_asking(
        shop,
        context,
        changes,
        asking(draft, about, Some(&build.idea)),
    )
    .await
}

/// Puts a question that says itself what it is about.
pub(crate) async fn put_asking(
    shop: &Shop,
    context: &Context,
    changes: &mut ChangeSet,
    asking: Asking,
) -> Result<Option<QuestionId>, Trouble> {
    let asked = questions::ask(changes, context, &shop.options.deadlines, asking).await?;
    Ok(match asked {
        Asked::Open(question) => Some(question),
        Asked::Reused(_) => None,
    })
}

/// Closes the open questions about a task that no longer matter.
pub(crate) async fn supersede(
    context: &Context,
    changes: &mut ChangeSet,
    task: &Task,
    reason: &str,
) -> Result<(), ReadError> {
    let same = |question: &Question| matches!(&question.about, About::Task { task: about, .. } if *about == task.id);
    close(context, changes, task.build, reason, same).await
}

/// Closes the open questions about a whole build.
pub(crate) async fn supersede_about(
    context: &Context,
    changes: &mut ChangeSet,
    build: BuildId,
    reason: &str,
) -> Result<(), ReadError> {
    let whole = |question: &Question| matches!(question.about, About::Build { .. });
    close(context, changes, build, reason, whole).await
}

/// Closes the open questions about a whole build that `trigger` asked.
pub(crate) async fn supersede_asked(
    context: &Context,
    changes: &mut ChangeSet,
    build: BuildId,
    trigger: Trigger,
    reason: &str,
) -> Result<(), ReadError> {
    let asked = |question: &Question| {
        question.trigger == trigger.as_str() && matches!(question.about, About::Build { .. })
    };
    close(context, changes, build, reason, asked).await
}

/// Closes the open questions about a build and about its tasks.
pub(crate) async fn supersede_all(
    context: &Context,
    changes: &mut ChangeSet,
    build: BuildId,
    reason: &str,
) -> Result<(), ReadError> {
    close(context, changes, build, reason, |_| true).await
}

/// Closes the open questions about a build and its tasks that are meant.
pub(crate) async fn close(
    context: &Context,
    changes: &mut ChangeSet,
    build: BuildId,
    reason: &str,
    is_meant: impl Fn(&Question) -> bool,
) -> Result<(), ReadError> {
    for question in open_questions(context, build).await? {
        if is_meant(&question) {
            questions::supersede(changes, context, &question, reason);
        }
    }
    Ok(())
}

/// Lists the open questions about a build and about its tasks, the oldest first.
pub(crate) async fn open_questions(
    context: &Context,
    build: BuildId,
) -> Result<Vec<Versioned<Question>>, ReadError> {
    let query = Query::new()
        .equal("state", QuestionState::Pending.as_str())
        .equal("build", build.to_string())
        .order_by("asked_at");
    context.store.list::<Question>(query).await
}

fn cut(text: &str) -> String {
    let length = text.chars().count();
    if length <= ERROR_LETTERS {
        return text.trim().to_owned();
    }
    let kept: String = text.chars().skip(length - ERROR_LETTERS).collect();
    format!("…{}", kept.trim())
}
