//! Stores plans as a specification agent would, and approves them as a person would.

use ropewalk_schemas::payload::SpecApproved;
use ropewalk_schemas::specification::{Document, Revision};
use ropewalk_schemas::task::TaskBlock;
use ropewalk_schemas::{
    ContentHash, Event, Payload, Priority, Slug, SpecId, Subject, UserSlug, document,
};
use ropewalk_store::ChangeSet;
use serde_json::Value;

use super::project::OpenProject;

impl OpenProject {
    /// Approves a plan for the idea `habits` and returns the specification.
    pub(crate) async fn approve(&self, tasks: Value) -> SpecId {
        self.store_plan(tasks, None, Priority::DEFAULT).await
    }

    /// Stores a specification with its plan and approves it.
    pub(crate) async fn approve_whole(&self, text: Document, tasks: Value) -> SpecId {
        self.store_whole(text, tasks, None, Priority::DEFAULT).await
    }

    /// Stores a plan and approves it, by another hash than its own if one is given.
    pub(crate) async fn store_plan(
        &self,
        tasks: Value,
        other: Option<ContentHash>,
        priority: Priority,
    ) -> SpecId {
        self.store_whole(habits(), tasks, other, priority).await
    }

    /// Stores and approves a later revision of a specification.
    pub(crate) async fn amend(&self, spec: SpecId, number: u32, tasks: Value) {
        let revision = self.revision((spec, number), habits(), tasks);
        let mut approval = self.approval(spec, revision.hash.clone());
        if let Payload::SpecApproved(approved) = &mut approval.payload {
            approved.revision = number;
        }
        let mut changes = ChangeSet::new();
        changes.insert(&revision).emit(approval);
        self.services.store.commit(changes).await.unwrap();
    }

    async fn store_whole(
        &self,
        text: Document,
        tasks: Value,
        other: Option<ContentHash>,
        priority: Priority,
    ) -> SpecId {
        let spec = SpecId(self.services.ids.next());
        let revision = self.revision((spec, 1), text, tasks);
        let mut changes = ChangeSet::new();
        changes.insert(&revision);
        let mut approval = self.approval(spec, other.unwrap_or_else(|| revision.hash.clone()));
        if let Payload::SpecApproved(approved) = &mut approval.payload {
            approved.priority = priority;
        }
        changes.emit(approval);
        self.services.store.commit(changes).await.unwrap();
        spec
    }

    fn revision(
        &self,
        (spec, number): (SpecId, u32),
        document: Document,
        tasks: Value,
    ) -> Revision {
        let tasks: Vec<TaskBlock> = serde_json::from_value(tasks).unwrap();
        Revision {
            spec,
            number,
            hash: document::hash(&document, &tasks),
            document,
            tasks,
            dry_run: None,
            kept: Vec::new(),
            validation: Vec::new(),
            answers: Vec::new(),
            at: self.context.now(),
        }
    }

    pub(crate) fn approval(&self, spec: SpecId, hash: ContentHash) -> Event {
        self.context.event(
            Subject::specification(spec),
            Payload::SpecApproved(SpecApproved {
                spec_id: spec,
                idea_slug: Slug::parse("habits").unwrap(),
                user_slug: UserSlug::parse("ada").unwrap(),
                revision: 1,
                hash,
                approved_by: UserSlug::parse("ada").unwrap(),
                priority: Priority::DEFAULT,
                price: None,
            }),
        )
    }
}

fn habits() -> Document {
    Document {
        title: "Habits".to_owned(),
        ..Document::default()
    }
}
