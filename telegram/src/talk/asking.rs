//! Puts an open question to somebody who asks for it, or who comes to where it waits for an answer.

use ropewalk_orchestrator::notices;
use ropewalk_schemas::notice::Notice;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_store::{
    ChangeSet, CommitOrRead, Query, ReadError, Store, Versioned, retry_on_conflict,
};

use crate::port;
use crate::surface::{Surface, SurfaceError, Whom};

/// Puts a question to a person, once more where it was; one that is on its way need not be.
pub(crate) async fn put(
    surface: &Surface,
    whom: &Whom,
    question: &Question,
) -> Result<(), SurfaceError> {
    let (store, now) = (&surface.services.store, surface.services.clock.now());
    let asks = (port::NAME, question, whom.person.name.as_str());
    // Whoever changed a notice meanwhile may have told somebody else.
    retry_on_conflict!(CommitOrRead, question.id, {
        let known = known(store, question).await?;
        let mut changes = ChangeSet::new();
        notices::asked_for(&mut changes, &known, asks, now);
        if !changes.is_empty() {
            store.commit(changes).await?;
        }
        Ok(Some(()))
    })?;
    Ok(())
}

/// Puts a question to a person who was not told of it.
pub(super) async fn put_first(
    surface: &Surface,
    whom: &Whom,
    question: &Question,
) -> Result<(), SurfaceError> {
    if question.state != QuestionState::Pending {
        return Ok(());
    }
    let known = known(&surface.services.store, question).await?;
    let is_theirs = |told: &Versioned<Notice>| told.receiver == whom.person.name.as_str();
    if !known.iter().any(is_theirs) {
        put(surface, whom, question).await?;
    }
    Ok(())
}

/// Lists what people are told of a question here.
async fn known(store: &Store, question: &Question) -> Result<Vec<Versioned<Notice>>, ReadError> {
    let of_it = Query::new()
        .equal("question", question.id)
        .equal("port", port::NAME);
    store.list::<Notice>(of_it).await
}
