//! Puts an open question to somebody who asks for it, or who comes to where it waits for an answer.

use ropewalk_orchestrator::notices;
use ropewalk_schemas::notice::{Notice, NoticeState};
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_store::{ChangeSet, CommitError, Query, Versioned};

use crate::port;
use crate::surface::{Surface, SurfaceError, Whom};

/// Puts a question to a person, once more where it was; one that is on its way need not be.
pub(crate) async fn put(
    surface: &Surface,
    whom: &Whom,
    question: &Question,
) -> Result<(), SurfaceError> {
    let (receiver, now) = (whom.person.name.as_str(), surface.services.clock.now());
    let mut changes = ChangeSet::new();
    match told(surface, whom, question).await? {
        None => {
            changes.insert(&notices::asking(port::NAME, question, receiver, now));
        }
        Some(notice) if matches!(notice.state, NoticeState::Sent | NoticeState::Dead) => {
            let again = Notice {
                state: NoticeState::Waiting,
                due: now,
                ..notice.record.clone()
            };
            changes.update(&notice, &again);
        }
        Some(_) => return Ok(()),
    }
    match surface.services.store.commit(changes).await {
        // Whoever changed it meanwhile has just told of it.
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Puts a question to a person who was not told of it.
pub(super) async fn put_first(
    surface: &Surface,
    whom: &Whom,
    question: &Question,
) -> Result<(), SurfaceError> {
    let is_open = question.state == QuestionState::Pending;
    if is_open && told(surface, whom, question).await?.is_none() {
        put(surface, whom, question).await?;
    }
    Ok(())
}

/// Returns by what a person was told of a question.
async fn told(
    surface: &Surface,
    whom: &Whom,
    question: &Question,
) -> Result<Option<Versioned<Notice>>, SurfaceError> {
    let of_it = Query::new()
        .equal("question", question.id)
        .equal("port", port::NAME);
    let told = surface.services.store.list::<Notice>(of_it).await?;
    let is_theirs = |told: &Versioned<Notice>| told.receiver == whom.person.name.as_str();
    Ok(told.into_iter().find(is_theirs))
}
