//! Makes the question that is put to people of a template that was filled in.

use ropewalk_config::QuestionDraft;
use ropewalk_orchestrator::questions::Asking;
use ropewalk_schemas::Slug;
use ropewalk_schemas::question::About;

/// Returns the question that `draft` asks about `about`.
pub(crate) fn asking(draft: QuestionDraft, about: About, idea: Option<&Slug>) -> Asking {
    Asking {
        kind: draft.kind,
        trigger: draft.trigger.as_str().to_owned(),
        text: draft.text,
        context: draft.context,
        choices: draft.choices,
        free_text: draft.free_text,
        default: draft.default,
        consequential: draft.consequential,
        about,
        topic: None,
        idea: idea.cloned(),
    }
}
