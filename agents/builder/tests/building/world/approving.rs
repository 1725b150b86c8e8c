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
        let text = Document {
            title: "Habits".to_owned(),
            ..Document::default()
        };
        self.store_whole(text, tasks, other, priority).await
    }

    async fn store_whole(
        &self,
        text: Document,
        tasks: Value,
        other: Option<ContentHash>,
        priority: Priority,
    ) -> SpecId {
        let tasks: Vec<TaskBlock> = serde_json::from_value(tasks).unwrap();
        let spec = SpecId(self.services.ids.next());
        let hash = document::hash(&text, &tasks);
        let revision = Revision {
            spec,
            number: 1,
            hash: hash.clone(),
            document: text,
            tasks,
            dry_run: None,
            kept: Vec::new(),
            validation: Vec::new(),
            answers: Vec::new(),
            at: self.context.now(),
        };
        let mut changes = ChangeSet::new();
        changes.insert(&revision);
        let mut approval = self.approval(spec, other.unwrap_or(hash));
        if let Payload::SpecApproved(approved) = &mut approval.payload {
            approved.priority = priority;
        }
        changes.emit(approval);
        self.services.store.commit(changes).await.unwrap();
        spec
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
