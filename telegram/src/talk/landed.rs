//! Says of words for an idea that has landed that they change nothing of it, and begins another idea with them.

use ropewalk_desk::{ideas, phones};
use ropewalk_runtime::token;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::idea::{Idea, IdeaState};
use ropewalk_schemas::phone::OpeningOffer;
use ropewalk_store::{Query, Versioned};

use crate::keyboard;
use crate::surface::{Answer, PressAnswer, Surface, SurfaceError, Whom};

/// What is pressed to begin it.
const BEGIN: &str = "New idea";

/// Says that an idea has landed, with what becomes of the words; nothing of one that has not.
pub(crate) async fn told(
    surface: &Surface,
    whom: &Whom,
    idea: &Idea,
    text: &str,
) -> Result<Option<Answer>, SurfaceError> {
    let of_idea = Query::new().equal("idea", idea.slug.as_str());
    let builds = surface.services.store.list::<Build>(of_idea).await?;
    let builds: Vec<Build> = builds.into_iter().map(Versioned::into_inner).collect();
    if ideas::standing(idea.clone(), &builds).state != IdeaState::Landed {
        return Ok(None);
    }
    let newest = builds.iter().max_by_key(|build| build.created_at);
    let change = newest.map(|build| keyboard::changing(build.spec));
    if text.trim().is_empty() {
        return Ok(Some(Answer {
            text: format!(
                "`{}` has landed, so that nothing that is sent changes it any more. Another revision changes what landed, and \
                 /newtask begins a new idea.",
                idea.slug
            ),
            buttons: change.into_iter().collect(),
        }));
    }
    let context = surface.context();
    let nonce: String = token::fresh().chars().take(keyboard::NONCE).collect();
    let offer = OpeningOffer {
        nonce: nonce.clone(),
        words: text.to_owned(),
        until: context.now() + keyboard::OFFERED,
    };
    phones::change(&context, &whom.person.name, |phone| {
        phone.opening = Some(offer.clone());
    })
    .await?;
    let mut buttons = keyboard::labelled(&nonce, &[BEGIN]);
    buttons.extend(change);
    Ok(Some(Answer {
        text: format!(
            "`{}` has landed, so that words change nothing of it any more; nobody was told these. Begin a new idea with them, or \
             change what landed by another revision.",
            idea.slug
        ),
        buttons,
    }))
}

/// Takes a press of the button that begins an idea with words that were said.
pub(crate) async fn pressed(
    surface: &Surface,
    whom: &Whom,
    message: i32,
    offer: OpeningOffer,
) -> Result<PressAnswer, SurfaceError> {
    if surface.services.clock.now() > offer.until {
        let old = "This button is too old; write the words again.";
        return Ok(old.to_owned().into());
    }
    let begun = super::begin(surface, whom, &offer.words).await?;
    Ok(PressAnswer {
        reply: Some(surface.in_place(whom.chat, message, begun.clone())),
        line: begun,
        decided: Some(offer.nonce),
    })
}
