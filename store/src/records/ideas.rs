//! Rows of ideas, their sessions and messages.

use ropewalk_schemas::idea::{Idea, Message, Session};

use super::record;

record!(Idea, "ideas", |idea| idea.slug.to_string(), {
    "user": text = &idea.user,
    "state": text = idea.state,
    "created_at": integer = idea.created_at,
});

record!(Session, "sessions", |session| session.id.to_string(), {
    "idea": text = &session.idea,
    "user": text = &session.user,
    "phase": text = session.phase,
    "updated_at": integer = session.updated_at,
});

record!(Message, "messages", |message| message.id.to_string(), {
    "session": text = message.session,
    "at": integer = message.at,
});
