//! The world of `building`.

#[path = "../building/world/approving.rs"]
mod approving;
#[path = "../building/world/listener.rs"]
pub(crate) mod listener;
#[path = "../building/world/meeting.rs"]
pub(crate) mod meeting;
#[path = "../building/world/patience.rs"]
pub(crate) mod patience;
#[path = "../building/world/people.rs"]
mod people;
#[path = "../building/world/project.rs"]
pub(crate) mod project;
#[path = "../building/world/script.rs"]
pub(crate) mod script;
