//! The rounds that people asked for when a build was done first: whoever asks for one answers no question, so that it is
//! found among the events.

use ropewalk_orchestrator::Context;
use ropewalk_orchestrator::questions::AnswerError;
use ropewalk_schemas::payload::TaskRetry;
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::{BuildId, Event, EventPattern, Payload, Subject, TaskId};
use ropewalk_store::{ChangeSet, EventFilter, ReadError, Store, StoredEvent};

/// Lists the rounds that were asked for of the tasks of a build, oldest first. Those whose events are forgotten are missing.
pub(super) async fn of(store: &Store, build: BuildId) -> Result<Vec<TaskRetry>, ReadError> {
    let asked = store.events(&asked(None)).await?;
    let retries = asked.iter().filter_map(retry);
    Ok(retries.filter(|retry| retry.build_id == build).collect())
}

/// Asks for the round of a task that was asked for while `question` was open about it. Says whether it was asked for, now or
/// a moment ago.
pub(super) async fn repeat(
    context: &Context,
    retries: &[TaskRetry],
    question: &Question,
) -> Result<bool, AnswerError> {
    let About::Task { build, task } = &question.about else {
        return Ok(false);
    };
    let again = asked_again(&context.store, *build, task).await?;
    // Its question is closed with it, a moment later.
    if again
        .last()
        .is_some_and(|last| last.event.time >= question.asked_at)
    {
        return Ok(true);
    }
    let mut of_task = retries.iter().filter(|retry| retry.task_id == *task);
    let Some(retry) = of_task.nth(again.len()) else {
        return Ok(false);
    };
    let mut changes = ChangeSet::new();
    let subject = Subject::task(*build, task);
    changes.emit(context.event(subject, Payload::TaskRetry(retry.clone())));
    context.store.commit(changes).await?;
    Ok(true)
}

/// Says whether of some task more rounds were asked for than by now.
pub(super) async fn are_left(store: &Store, retries: &[TaskRetry]) -> Result<bool, ReadError> {
    let asked = store.events(&asked(None)).await?;
    Ok(asked.len() < retries.len())
}

async fn asked_again(
    store: &Store,
    build: BuildId,
    task: &TaskId,
) -> Result<Vec<StoredEvent>, ReadError> {
    store.events(&asked(Some(Subject::task(build, task)))).await
}

fn asked(subject: Option<Subject>) -> EventFilter {
    EventFilter {
        pattern: Some(EventPattern::of("task.retry")),
        subject,
        ..EventFilter::default()
    }
}

fn retry(stored: &StoredEvent) -> Option<TaskRetry> {
    match Event::try_from(&*stored.event).ok()?.payload {
        Payload::TaskRetry(retry) => Some(retry),
        _ => None,
    }
}
