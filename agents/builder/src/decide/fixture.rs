//! Makes builds and tasks for the tables of this folder.

use chrono::{DateTime, Utc};
use ropewalk_schemas::attempt::{Failure, FailureClass};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::SpecApproved;
use ropewalk_schemas::task::{Action, Task, TaskBlock, TaskState, Validation};
use ropewalk_schemas::{
    BuildId, ContentHash, CorrelationId, Priority, RepoPath, Slug, SpecId, TaskId, UserSlug,
};
use uuid::Uuid;

/// The time of every table.
pub(crate) fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 0).unwrap()
}

/// Parses a task id.
pub(crate) fn id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

/// Makes a task block that creates `src/<id>.rs`.
pub(crate) fn block(name: &str, needs: &[&str]) -> TaskBlock {
    let file = RepoPath::parse(&format!("src/{name}.rs")).unwrap();
    TaskBlock {
        depends_on: needs.iter().map(|name| id(name)).collect(),
        ..TaskBlock::new(
            id(name),
            "api",
            Action::Create,
            file,
            Validation::passes("true"),
        )
    }
}

/// Makes a task in `state`.
pub(crate) fn task(name: &str, state: TaskState, needs: &[&str]) -> Task {
    let number = name
        .trim_start_matches(|letter: char| !letter.is_ascii_digit())
        .parse()
        .unwrap_or(1);
    Task {
        state,
        ..Task::planned(BuildId(Uuid::nil()), number, block(name, needs))
    }
}

/// Makes a running build.
pub(crate) fn build() -> Build {
    let approval = SpecApproved {
        spec_id: SpecId(Uuid::nil()),
        idea_slug: Slug::parse("habits").unwrap(),
        user_slug: UserSlug::parse("ada").unwrap(),
        revision: 1,
        hash: ContentHash::of(b"spec"),
        approved_by: UserSlug::parse("ada").unwrap(),
        priority: Priority::DEFAULT,
        price: None,
    };
    Build {
        state: BuildState::Running,
        ..Build::queued(
            BuildId(Uuid::nil()),
            &approval,
            CorrelationId(Uuid::nil()),
            noon(),
        )
    }
}

/// Makes a failure of `class`.
pub(crate) fn failure(class: FailureClass, error: &str) -> Failure {
    Failure {
        class,
        error: error.to_owned(),
        attempt: 1,
        fingerprint: super::failure::fingerprint(class, error, &[]),
    }
}
