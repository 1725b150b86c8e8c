//! Takes the wish for another revision of a specification: a press first, and then the words that say what is to change.

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_desk::phones;
use ropewalk_desk::specifications::{self, RequestError};
use ropewalk_schemas::SpecId;
use ropewalk_schemas::phone::{Reply, WordsFor};
use ropewalk_schemas::specification::{SpecState, Specification};

use crate::surface::{PressAnswer, Surface, SurfaceError, Whom};
use crate::words::refusal;

/// How long the next words are for a revision after it was asked for.
const WORDS_WITHIN: TimeDelta = TimeDelta::hours(1);

/// Asks somebody what is to change.
pub(crate) async fn pressed(
    surface: &Surface,
    whom: &Whom,
    spec: SpecId,
) -> Result<PressAnswer, SurfaceError> {
    let store = &surface.services.store;
    let found = store.get::<Specification>(&spec.to_string()).await?;
    let Some(found) = found else {
        let gone = RequestError::UnknownSpecification(spec);
        return Ok(refusal::request(&gone).into());
    };
    if found.state == SpecState::Draft {
        let written = RequestError::BeingWritten {
            spec,
            revision: found.next_revision(),
        };
        return Ok(refusal::request(&written).into());
    }
    let context = surface.context();
    let until = Some(context.now() + WORDS_WITHIN);
    phones::change(&context, &whom.person.name, |phone| {
        phone.words_for = Some(WordsFor::Revision { spec, until });
    })
    .await?;
    let asked = format!("**Change `{}`:** what exactly?", found.idea);
    Ok(PressAnswer {
        reply: Some(Reply {
            wants_words: true,
            ..surface.reply(whom.chat, asked)
        }),
        ..PressAnswer::from("Write your words as the next message.".to_owned())
    })
}

/// Lets no words ask for a revision any more: whoever turns to something else means that by what they write next.
pub(crate) async fn forget(surface: &Surface, whom: &Whom) -> Result<(), SurfaceError> {
    let is_it = |words: &WordsFor| matches!(words, WordsFor::Revision { .. });
    let phone = phones::of(&surface.services.store, &whom.person.name).await?;
    if phone.words_for.as_ref().is_some_and(is_it) {
        phones::change(&surface.context(), &whom.person.name, |phone| {
            phone.words_for = phone.words_for.take().filter(|words| !is_it(words));
        })
        .await?;
    }
    Ok(())
}

/// Asks for the revision; returns what came of it, in words.
pub(crate) async fn wished(
    surface: &Surface,
    whom: &Whom,
    spec: SpecId,
    text: &str,
) -> Result<String, SurfaceError> {
    let (context, by) = (surface.context(), &whom.person.name);
    let found = context
        .store
        .get::<Specification>(&spec.to_string())
        .await?;
    let begun = whom.begun_before;
    let is_new = |found: &Specification| !is_wished(found, text, begun);
    if found.as_deref().is_none_or(is_new) {
        match specifications::revise(&context, spec, by, text).await {
            Ok(()) => {}
            Err(RequestError::Read(error)) => return Err(error.into()),
            Err(RequestError::Commit(error)) => return Err(error.into()),
            Err(refused) => return Ok(refusal::request(&refused)),
        }
    }
    let idea = found.map_or_else(String::new, |found| format!(" of `{}`", found.idea));
    Ok(format!(
        "Recorded: another revision{idea} is written by your words. You are asked before it is built, and what is built now goes on until then."
    ))
}

/// Returns whether an earlier try had asked for the revision.
fn is_wished(found: &Specification, text: &str, begun: Option<DateTime<Utc>>) -> bool {
    let is_last = found
        .feedback
        .last()
        .is_some_and(|last| last == text.trim());
    is_last && begun.is_some_and(|begun| found.updated_at >= begun)
}
