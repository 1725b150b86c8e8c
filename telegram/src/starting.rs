//! Shows what a build comes to before it begins, with the buttons that decide it: it begins as it was shown, once.

use ropewalk_desk::phones;
use ropewalk_desk::specifications::{self, OutlineExtent};
use ropewalk_desk::views::specification;
use ropewalk_runtime::token;
use ropewalk_schemas::document::graph_width;
use ropewalk_schemas::person::Right;
use ropewalk_schemas::phone::BuildOffer;
use ropewalk_schemas::specification::{Approval, Price, Revision, SpecState, Specification};
use ropewalk_schemas::{Priority, Slug};
use ropewalk_store::{ReadError, Store};

use crate::keyboard;
use crate::surface::{Answer, PressAnswer, Surface, SurfaceError, Whom};
use crate::words::refusal;

/// What can be decided, in the order of the buttons.
const CHOICES: [&str; 2] = ["Start", "Cancel"];

/// Shows the build of an idea whose specification waits for an approval; nothing where none does.
pub(crate) async fn offer(
    surface: &Surface,
    whom: &Whom,
    idea: &Slug,
) -> Result<Option<Answer>, SurfaceError> {
    offer_of(surface, whom, idea, OutlineExtent::Brief).await
}

/// Does the same, and shows all that the specification asks for.
pub(crate) async fn offer_in_full(
    surface: &Surface,
    whom: &Whom,
    idea: &Slug,
) -> Result<Option<Answer>, SurfaceError> {
    offer_of(surface, whom, idea, OutlineExtent::Whole).await
}

async fn offer_of(
    surface: &Surface,
    whom: &Whom,
    idea: &Slug,
    extent: OutlineExtent,
) -> Result<Option<Answer>, SurfaceError> {
    let counts = specifications::counting(&surface.services.store, idea).await?;
    let Some(spec) = counts.filter(|spec| spec.state == SpecState::Generated) else {
        return Ok(None);
    };
    let Some(hash) = spec.hash.clone() else {
        return Ok(None);
    };
    let store = &surface.services.store;
    let content = specification::show(store, spec.clone()).await?.content;
    let change = keyboard::changing(spec.id);
    if let Err(forbidden) = whom.person.demand(Right::Approve) {
        let refusal = refusal::forbidden(&forbidden, &surface.people);
        let asked = asked_for(store, &spec, content.as_ref(), extent).await?;
        return Ok(Some(Answer {
            text: format!(
                "The specification of `{idea}` waits for an approval. {refusal}.\n\n{asked}"
            ),
            buttons: vec![change],
        }));
    }
    let [start, _] = CHOICES;
    let title = format!("Build `{idea}`?");
    let ways = (title.as_str(), start);
    let text = told(store, &spec, content.as_ref(), ways, extent).await?;
    let nonce: String = token::fresh().chars().take(keyboard::NONCE).collect();
    let here = surface.context();
    let offer = BuildOffer {
        nonce: nonce.clone(),
        spec: spec.id,
        hash,
        until: here.now() + keyboard::OFFERED,
    };
    phones::change(&here, &whom.person.name, |phone| {
        phone.starting = Some(offer.clone());
    })
    .await?;
    let mut buttons = keyboard::labelled(&nonce, &CHOICES);
    buttons.push(change);
    Ok(Some(Answer { text, buttons }))
}

/// Shows all that the specification of an idea that counts asks for; nothing where none was written yet.
pub(crate) async fn newest(surface: &Surface, idea: &Slug) -> Result<Option<Answer>, SurfaceError> {
    let store = &surface.services.store;
    let Some(spec) = specifications::counting(store, idea).await? else {
        return Ok(None);
    };
    let content = specification::show(store, spec.clone()).await?.content;
    let asked = asked_for(store, &spec, content.as_ref(), OutlineExtent::Whole).await?;
    let (revision, state) = (spec.revision, spec.state);
    // What is being written can be changed once it is there.
    let can_change = revision > 0 && state != SpecState::Draft;
    let change = can_change.then(|| keyboard::changing(spec.id));
    Ok(Some(Answer {
        text: format!("**Specification of `{idea}`**\nRevision {revision}, {state}.\n\n{asked}"),
        buttons: change.into_iter().collect(),
    }))
}

/// Says what a revision of a specification asks for, what changed since the one before, and what a yes lets run.
async fn asked_for(
    store: &Store,
    spec: &Specification,
    content: Option<&Revision>,
    extent: OutlineExtent,
) -> Result<String, ReadError> {
    let Some(content) = content else {
        return Ok("Nothing of it is written yet.".to_owned());
    };
    let outline = specifications::outline(store, spec, content, extent).await?;
    let rest = if outline.is_whole {
        String::new()
    } else {
        format!("\n\n/spec {} shows all of it.", spec.idea)
    };
    let lets_run = specifications::approval_told(content);
    Ok(format!("{}{rest}\n\n{lets_run}", outline.text))
}

/// Says below a title what a build would do, what it is expected to cost, and for what a yes holds that is given by pressing what
/// is `start`. It is the same however often it is sent.
pub(crate) async fn told(
    store: &Store,
    spec: &Specification,
    content: Option<&Revision>,
    (title, start): (&str, &str),
    extent: OutlineExtent,
) -> Result<String, ReadError> {
    let tasks = content.map_or(&[][..], |content| &content.tasks);
    let (hash, revision) = match content {
        Some(content) => (Some(&content.hash), content.number),
        None => (spec.hash.as_ref(), spec.revision),
    };
    let work = match tasks.len() {
        1 => "1 task".to_owned(),
        many => format!("{many} tasks, up to {} at once", graph_width(tasks)),
    };
    Ok(format!(
        "**{title}**\n\n{}\n\n{work}. Expected price: {}.\n\n\
         \"{start}\" holds for revision {revision} with the hash {} alone.",
        asked_for(store, spec, content, extent).await?,
        Price::in_words(spec.price.as_ref()),
        hash.map(ToString::to_string).unwrap_or_default(),
    ))
}

/// Takes a press of a button that decides whether a build begins, by its place below a message.
pub(crate) async fn pressed(
    surface: &Surface,
    whom: &Whom,
    (message, place): (i32, usize),
    offer: BuildOffer,
) -> Result<PressAnswer, SurfaceError> {
    let mut decided = None;
    let told = match CHOICES.get(place) {
        None => return Ok("This button means nothing.".to_owned().into()),
        Some(&"Start") if surface.services.clock.now() > offer.until => {
            "This button is too old; /execute shows it again.".to_owned()
        }
        Some(&"Start") => approve(surface, whom, &offer).await?,
        Some(_) => {
            // The button that would start it means nothing from now on.
            decided = Some(offer.nonce);
            "Nothing is started.".to_owned()
        }
    };
    Ok(PressAnswer {
        reply: Some(surface.in_place(whom.chat, message, told.clone())),
        line: told,
        decided,
    })
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
    Ok(format!("Approved: revision {revision} is being built."))
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
