//! Says of an answer that comes too late what becomes of it, and what changes the matter now.

use ropewalk_schemas::build::Build;
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::specification::{SpecState, Specification};
use ropewalk_store::{Query, ReadError, Store};

use super::AnswerOutcome;
use crate::api::Button;
use crate::keyboard;
use crate::surface::Answer;
use crate::talk;

/// Says who was first, whether what somebody answered now is kept beside it, where they did, and what changes the matter.
pub(super) async fn told(
    store: &Store,
    question: &Question,
    is_kept: Option<bool>,
) -> Result<AnswerOutcome, ReadError> {
    let first = question.answer.as_ref();
    let mut line = first.map_or_else(
        || question.without_answer(),
        |first| {
            format!(
                "Answered already, by {} over {}: {}",
                first.by,
                first.channel,
                question.answer_in_words(first)
            )
        },
    );
    let beside = match is_kept {
        Some(true) => "What you answered is kept beside it and changes nothing.",
        Some(false) => {
            "As many late answers are kept beside it as may be, and yours is not; it changes nothing."
        }
        None => "",
    };
    if !beside.is_empty() {
        line = format!("{line}. {beside}");
    }
    let more = now(store, question).await?.map(|(how, buttons)| Answer {
        text: format!("{line}\n{how}"),
        buttons,
    });
    Ok(AnswerOutcome {
        line,
        more,
        is_taken: false,
    })
}

/// Says what changes the matter of a closed question now; nothing where nothing does.
async fn now(
    store: &Store,
    question: &Question,
) -> Result<Option<(String, Vec<Button>)>, ReadError> {
    let Some(idea) = &question.idea else {
        return Ok(None);
    };
    if matches!(question.about, About::Session { .. }) {
        let how = format!("To change it, say so in its conversation: /idea {idea}");
        return Ok(Some((how, talk::turning(idea).into_iter().collect())));
    }
    let of_idea = || Query::new().equal("idea", idea.as_str());
    let builds = store.list::<Build>(of_idea().order_by("created_at"));
    let builds = builds.await?;
    let runs = builds.iter().any(|build| build.completed_at.is_none());
    let built = match builds.last() {
        Some(build) => store.get::<Specification>(&build.spec.to_string()).await?,
        None => None,
    };
    let specs = store.list::<Specification>(of_idea().order_by("created_at"));
    let spec = built.or(specs.await?.pop());
    let spec = spec.filter(|spec| spec.revision > 0 && spec.state != SpecState::Draft);
    let tells = format!("/tell {idea} WORDS tells whoever builds it");
    let changes = "the button below asks for another revision";
    let how = match (runs, &spec) {
        (true, Some(_)) => format!("To change it, {tells}, and {changes}."),
        (true, None) => format!("To change it, {tells}."),
        (false, Some(_)) => format!("To change it, {changes}."),
        (false, None) => return Ok(None),
    };
    let button = spec.map(|spec| keyboard::changing(spec.id));
    Ok(Some((how, button.into_iter().collect())))
}
