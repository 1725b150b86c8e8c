//! Gives an idea up, once whoever wants that was shown what ends with it.

use ropewalk_desk::ideas::{self, AbandonError};
use ropewalk_desk::phones;
use ropewalk_runtime::token;
use ropewalk_schemas::idea::Idea;
use ropewalk_schemas::phone::AbandonmentOffer;
use ropewalk_schemas::{Payload, Slug};

use super::meant;
use crate::keyboard;
use crate::surface::{Answer, PressAnswer, Surface, SurfaceError, Whom, told_already};
use crate::words::refusal;

/// What can be decided.
const CHOICES: [&str; 1] = ["Give it up"];

/// Shows what ends with an idea, with a button that gives it up.
pub(super) async fn abandon(
    surface: &Surface,
    whom: &Whom,
    rest: &str,
) -> Result<Answer, SurfaceError> {
    match meant(surface, whom, rest).await? {
        Ok(idea) => offer(surface, whom, &idea).await,
        Err(told) => Ok(told.into()),
    }
}

async fn offer(surface: &Surface, whom: &Whom, idea: &Slug) -> Result<Answer, SurfaceError> {
    let here = surface.context();
    let preview = match ideas::preview_abandonment(&here.store, idea, &whom.person).await {
        Ok(preview) => preview,
        Err(refused) => return Ok(refusal_told(refused, surface)?.into()),
    };
    let text = format!(
        "**Give up `{idea}`?**\n\nIt cannot be taken back: {}.",
        preview.in_words()
    );
    let nonce: String = token::fresh().chars().take(keyboard::NONCE).collect();
    let offer = AbandonmentOffer {
        nonce: nonce.clone(),
        idea: preview.idea,
        builds: preview.builds,
        until: here.now() + keyboard::OFFERED,
    };
    phones::change(&here, &whom.person.name, |phone| {
        phone.abandonment = Some(offer.clone());
    })
    .await?;
    Ok(Answer {
        text,
        buttons: keyboard::labelled(&nonce, &CHOICES),
    })
}

/// Takes a press of the button that gives an idea up, by its place below a message: with what was shown to end, and nothing else.
pub(crate) async fn pressed(
    surface: &Surface,
    whom: &Whom,
    (message, place): (i32, usize),
    offer: AbandonmentOffer,
) -> Result<PressAnswer, SurfaceError> {
    if place >= CHOICES.len() {
        return Ok("This button means nothing.".to_owned().into());
    }
    let (context, idea) = (surface.context(), &offer.idea);
    if !given_up_already(surface, whom, idea).await? {
        if context.now() > offer.until {
            return shown_anew(surface, whom, idea).await;
        }
        match ideas::abandon_as_shown(&context, idea, &whom.person, &offer.builds).await {
            Ok(()) => {}
            Err(AbandonError::Changed(_)) => return shown_anew(surface, whom, idea).await,
            Err(refused) => return Ok(refusal_told(refused, surface)?.into()),
        }
    }
    let told = format!("{idea} is given up. What of it had landed stays.");
    Ok(PressAnswer {
        reply: Some(surface.in_place(whom.chat, message, told.clone())),
        line: told,
        decided: Some(offer.nonce),
    })
}

/// Shows what ends with an idea now, where that is no longer what the button was for.
async fn shown_anew(
    surface: &Surface,
    whom: &Whom,
    idea: &Slug,
) -> Result<PressAnswer, SurfaceError> {
    let shown = offer(surface, whom, idea).await?;
    Ok(PressAnswer {
        reply: Some(surface.reply(whom.chat, shown)),
        ..PressAnswer::from("What was shown is no longer so.".to_owned())
    })
}

/// Returns whether an earlier try had given the idea up.
async fn given_up_already(
    surface: &Surface,
    whom: &Whom,
    idea: &Slug,
) -> Result<bool, SurfaceError> {
    let Some(found) = surface.services.store.get::<Idea>(idea.as_str()).await? else {
        return Ok(false);
    };
    let is_it = |payload: &Payload| {
        matches!(payload, Payload::IdeaAbandoned(told)
            if told.idea_slug == *idea && told.abandoned_by == whom.person.name)
    };
    let chain = found.correlation_id;
    told_already(surface, whom, chain, "idea.abandoned", is_it).await
}

fn refusal_told(refused: AbandonError, surface: &Surface) -> Result<String, SurfaceError> {
    match refused {
        AbandonError::Read(error) => Err(error.into()),
        AbandonError::Commit(error) => Err(error.into()),
        refused => Ok(refusal::abandon(&refused, &surface.people)),
    }
}
