//! Rows of questions.

use ropewalk_schemas::BuildId;
use ropewalk_schemas::question::{About, Question};

use super::record;

const fn build(about: &About) -> Option<BuildId> {
    match about {
        About::Build { build } | About::Task { build, .. } => Some(*build),
        About::Session { .. }
        | About::Specification { .. }
        | About::Knowledge { .. }
        | About::Nothing => None,
    }
}

record!(Question, "questions", |question| question.id.to_string(), {
    "state": text = question.state,
    "kind": text = question.kind,
    "trigger": text = &question.trigger,
    "agent": text = &question.agent,
    "idea": text = question.idea.as_ref(),
    "build": text = build(&question.about),
    "due": integer = question.due_at,
    "asked_at": integer = question.asked_at,
});
