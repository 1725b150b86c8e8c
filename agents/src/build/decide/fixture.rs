//! Makes builds and tasks for the tables of this folder.

use chrono::{DateTime, Utc};
use ropewalk_schemas::attempt::{Failure, FailureClass};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::task::{Action, Expectation, Task, TaskBlock, TaskState, Validation};
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
    TaskBlock {
        id: id(name),
        phase: "api".to_owned(),
        action: Action::Create,
        file: RepoPath::parse(&format!("src/{name}.rs")).unwrap(),
        more_files: Vec::new(),
        requirements: Vec::new(),
        gotchas: Vec::new(),
        validation: Validation {
            command: "true".to_owned(),
            expected: Expectation::ExitZero,
        },
        code_template: None,
        depends_on: needs.iter().map(|name| id(name)).collect(),
        priority: None,
        estimate_minutes: None,
        notes: None,
    }
}

/// Makes a task in `state`.
pub(crate) fn task(name: &str, state: TaskState, needs: &[&str]) -> Task {
    Task {
        build: BuildId(Uuid::nil()),
        id: id(name),
        number: name
            .trim_start_matches(|letter: char| !letter.is_ascii_digit())
            .parse()
            .unwrap_or(1),
        block: block(name, needs),
        state,
        reason: None,
        waiting_for: None,
        waits_since: None,
        change_requests: Vec::new(),
        question: None,
        blocked_by: Vec::new(),
        attempts: 0,
        tries: 0,
        installs: 0,
        rebases: 0,
        failures: Vec::new(),
        guidance: Vec::new(),
        not_before: None,
        assigned_to: None,
        attempt: None,
        cause: None,
        resume_from: None,
        commit: None,
        claimed_at: None,
        progress_at: None,
        completed_at: None,
    }
}

/// Makes a running build.
pub(crate) fn build() -> Build {
    Build {
        id: BuildId(Uuid::nil()),
        spec: SpecId(Uuid::nil()),
        revision: 1,
        hash: ContentHash::of(b"spec"),
        idea: Slug::parse("habits").unwrap(),
        user: UserSlug::parse("ada").unwrap(),
        state: BuildState::Running,
        reason: None,
        pause_reason: None,
        pause_requested: false,
        branch: "build/habits".to_owned(),
        base: None,
        head: None,
        published: None,
        target: "main".to_owned(),
        priority: Priority::DEFAULT,
        continues: None,
        continued_by: None,
        level: None,
        accepted: Vec::new(),
        question: None,
        working_ms: 0,
        working_since: None,
        quote: None,
        spent: None,
        exhausted: None,
        raises: Vec::new(),
        merged: None,
        follows: Vec::new(),
        correlation_id: CorrelationId(Uuid::nil()),
        cause: None,
        created_at: noon(),
        started_at: None,
        completed_at: None,
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
