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
use ropewalk_schemas::specification::{Approval, Price, Revision, SpecState, Specification};
use ropewalk_schemas::{Priority, Slug};

use crate::keyboard::{self, Mark};
use crate::surface::{Answer, PressAnswer, Surface, SurfaceError, Whom};
use crate::words::refusal;

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
    let newest = newest_of(surface, idea).await?;
    let Some(spec) = newest.filter(|spec| spec.state == SpecState::Generated) else {
        return Ok(None);
    };
    let Some(hash) = spec.hash.clone() else {
        return Ok(None);
    };
    if let Err(forbidden) = whom.person.demand(Right::Approve) {
        let refusal = Words::of(&forbidden);
        let asked = outline(surface, &spec).await?;
        let text =
            format!("The specification of `{idea}` waits for an approval. {refusal}\n\n{asked}");
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

/// Shows what the newest specification of an idea asks for; nothing where none was written yet.
pub(crate) async fn newest(surface: &Surface, idea: &Slug) -> Result<Option<Answer>, SurfaceError> {
    let Some(spec) = newest_of(surface, idea).await? else {
        return Ok(None);
    };
    let (revision, state) = (spec.revision, spec.state);
    let asked = outline(surface, &spec).await?;
    Ok(Some(
        format!("**Specification of `{idea}`**\nRevision {revision}, {state}.\n\n{asked}").into(),
    ))
}

async fn newest_of(surface: &Surface, idea: &Slug) -> Result<Option<Specification>, SurfaceError> {
    let rows = specification::list(&surface.services.store, Some(idea)).await?;
    Ok(rows.into_iter().next_back().map(|row| row.specification))
}

/// Says what the newest revision of a specification asks for, what changed since the one before, and what a yes lets run.
async fn outline(surface: &Surface, spec: &Specification) -> Result<String, SurfaceError> {
    let shown = specification::show(&surface.services.store, spec.clone()).await?;
    asked_for(surface, spec, shown.content.as_ref()).await
}

async fn asked_for(
    surface: &Surface,
    spec: &Specification,
    content: Option<&Revision>,
) -> Result<String, SurfaceError> {
    let Some(content) = content else {
        return Ok("Nothing of it is written yet.".to_owned());
    };
    let outline = specifications::outline(&surface.services.store, spec, content).await?;
    let lets_run = specifications::approval_told(content);
    Ok(format!("{outline}\n\n{lets_run}"))
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
        "**Build `{}`?**\n\n{}\n\n{work}. Expected price: {}.\n\n\
         Start holds for revision {} with the hash {} alone.",
        spec.idea,
        asked_for(surface, spec, content).await?,
        Price::told(spec.price.as_ref()),
        spec.revision,
        hash.unwrap_or_default(),
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
        Some(&"Start") => approve(surface, whom, &offer).await?,
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

/// Approves what was offered; one that an earlier try had approved is told in the same words.
async fn approve(
    surface: &Surface,
    whom: &Whom,
    offer: &BuildOffer,
) -> Result<String, SurfaceError> {
    let (context, person) = (surface.context(), &whom.person);
    let priority = Priority::default();
    let approved = specifications::approve(&context, offer.spec, &offer.hash, person, priority);
    let revision = match approved.await {
        Ok(approved) => approved.revision,
        Err(refused) => match approved_already(surface, whom, offer).await? {
            Some(revision) => revision,
            None => return Ok(refusal::approve(&refused)),
        },
    };
    Ok(format!("Approved: revision {revision} is built."))
}

/// Returns the revision that an earlier try had approved.
async fn approved_already(
    surface: &Surface,
    whom: &Whom,
    offer: &BuildOffer,
) -> Result<Option<u32>, SurfaceError> {
    let Some(begun) = whom.begun_before else {
        return Ok(None);
    };
    let store = &surface.services.store;
    let spec = store.get::<Specification>(&offer.spec.to_string()).await?;
    let approval = spec.and_then(|spec| spec.into_inner().approval);
    let is_it = |approval: &Approval| {
        approval.hash == offer.hash && approval.by == whom.person.name && approval.at >= begun
    };
    Ok(approval.filter(is_it).map(|approval| approval.revision))
}
