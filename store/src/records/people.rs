//! Rows of questions, of what people are told and by which phone, and of what they asked under a key.

use ropewalk_schemas::BuildId;
use ropewalk_schemas::keyed_request::KeyedRequest;
use ropewalk_schemas::notice::Notice;
use ropewalk_schemas::phone::Phone;
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

record!(KeyedRequest, "keyed_requests", |request| request.key.clone(), {
    "at": integer = request.at,
});

record!(Notice, "notices", |notice| notice.key.clone(), {
    "port": text = &notice.port,
    "subject": text = notice.subject.as_str(),
    "question": text = notice.question,
    "nonce": text = &notice.nonce,
    "open": integer = notice.is_open(),
    "due": integer = notice.due,
});

record!(Phone, "phones", |phone| phone.person.to_string(), {
    "listens": integer = phone.listens,
});
