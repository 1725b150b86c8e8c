//! Rows of specifications and their revisions.

use ropewalk_schemas::SpecId;
use ropewalk_schemas::specification::{Revision, Specification};

use super::record;

/// Returns the key of a revision.
pub fn revision_key(spec: SpecId, number: u32) -> String {
    format!("{spec}/{number}")
}

record!(Specification, "specifications", |spec| spec.id.to_string(), {
    "idea": text = &spec.idea,
    "user": text = &spec.user,
    "state": text = spec.state,
    "created_at": integer = spec.created_at,
});

record!(Revision, "revisions", |revision| revision_key(revision.spec, revision.number), {
    "spec": text = revision.spec,
    "number": integer = revision.number,
});
