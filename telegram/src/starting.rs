//! Shows what a build comes to before it begins, with the buttons that decide it: it begins as it was shown, once.

use chrono::TimeDelta;
use ropewalk_desk::phones;
use ropewalk_desk::specifications;
use ropewalk_desk::views::specification;
use ropewalk_runtime::token;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::document::graph_width;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::phone::{BuildOffer, Reply};
use ropewalk_schemas::specification::{Price, SpecState, Specification};
use ropewalk_schemas::{Priority, Slug};

use crate::keyboard::{self, Mark};
use crate::surface::{Answer, PressAnswer, Surface, SurfaceError, Whom};

/// How long a build may be decided after it was shown.
const OFFERED: TimeDelta = TimeDelta::days(14);
/// What can be decided, in the order of the buttons.
const CHOICES: [&str; 2] = ["Start", "Cancel"];

/// Shows the build of an idea whose specification waits for an approval; nothing where none does.
pub(crate) async fn offer(
    surface: &Surface,
    whom: &Whom,
    idea: &Slug,
) -> Result<Option<Answer>, SurfaceError> {
    let store = &surface.services.store;
    let rows = specification::list(store, Some(idea)).await?;
    let newest = rows.into_iter().next_back().map(|row| row.specification);
    let Some(spec) = newest.filter(|spec| spec.state == SpecState::Generated) else {
        return Ok(None);
    };
    let Some(hash) = spec.hash.clone() else {
        return Ok(None);
    };
    if let Err(forbidden) = whom.person.demand(Right::Approve) {
        let refusal = Words::of(&forbidden);
        let text = format!("The specification of `{idea}` waits for an approval. {refusal}");
        return Ok(Some(text.into()));
    }
    let text = told(surface, &spec).await?;
    let nonce: String = token::fresh().chars().take(keyboard::NONCE).collect();
    let context = surface.context();
    let offer = BuildOffer {
        nonce: nonce.clone(),
        spec: spec.id,
        hash,
        until: context.now() + OFFERED,
    };
    phones::change(&context, &whom.person.name, |phone| {
        phone.starting = Some(offer.clone());
    })
    .await?;
    Ok(Some(Answer {
        text,
        buttons: keyboard::labelled(&nonce, &CHOICES),
    }))
}

/// Says what a build would do, and what it is expected to cost.
async fn told(surface: &Surface, spec: &Specification) -> Result<String, SurfaceError> {
    let shown = specification::show(&surface.services.store, spec.clone()).await?;
    let content = shown.content.as_ref();
    let tasks = content.map_or(&[][..], |content| &content.tasks);
    let hash = spec.hash.as_ref().map(ToString::to_string);
    let work = match tasks.len() {
        1 => "1 task".to_owned(),
        many => format!("{many} tasks, up to {} at once", graph_width(tasks)),
    };
    Ok(format!(
        "**Build `{}`?**\n\n{work}. Expected price: {}.\n\n\
         Start holds for revision {} with the hash {} alone.\n\n{}",
        spec.idea,
        Price::told(spec.price.as_ref()),
        spec.revision,
        hash.unwrap_or_default(),
        content
            .map(specifications::approval_told)
            .unwrap_or_default(),
    ))
}

/// Takes a press of a button that decides whether a build begins; nothing where it is the button of something else.
pub(crate) async fn pressed(
    surface: &Surface,
    whom: &Whom,
    message: i32,
    mark: Mark<'_>,
) -> Result<Option<PressAnswer>, SurfaceError> {
    let phone = phones::of(&surface.services.store, &whom.person.name).await?;
    let Some(offer) = phone.starting.filter(|offer| offer.nonce == mark.nonce) else {
        return Ok(None);
    };
    let context = surface.context();
    let mut decided = None;
    let told = match CHOICES.get(mark.place) {
        None => return Ok(Some("This button means nothing.".to_owned().into())),
        Some(&"Start") if context.now() > offer.until => {
            "This button is too old; /execute shows it again.".to_owned()
        }
        Some(&"Start") => {
            let (spec, person) = (offer.spec, &whom.person);
            let approved =
                specifications::approve(&context, spec, &offer.hash, person, Priority::default());
            match approved.await {
                Ok(approved) => format!("Approved: revision {} is built.", approved.revision),
                Err(refused) => Words::of(&refused).to_string(),
            }
        }
        Some(_) => {
            // The button that would start it means nothing from now on.
            decided = Some(offer.nonce);
            "Nothing is started.".to_owned()
        }
    };
    Ok(Some(PressAnswer {
        reply: Some(Reply {
            edits: Some(message),
            ..surface.reply(whom.chat, told.clone())
        }),
        line: told,
        decided,
    }))
}
