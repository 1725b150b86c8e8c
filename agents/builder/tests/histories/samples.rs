//! Makes tasks and builds to begin with.

use chrono::{DateTime, Utc};
use ropewalk_builder::machine::TopicQuestion;
use ropewalk_engine::TaskQuestion;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::payload::SpecApproved;
use ropewalk_schemas::task::{Action, Task, TaskBlock, Validation};
use ropewalk_schemas::{
    BuildId, ContentHash, CorrelationId, Priority, RepoPath, Slug, SpecId, TaskId, UserSlug,
};
use uuid::Uuid;

/// When every history begins.
pub(crate) fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 0).unwrap()
}

pub(crate) fn id(number: usize) -> TaskId {
    TaskId::parse(&format!("T-{number}")).unwrap()
}

/// A task that nothing has happened to yet.
pub(crate) fn task(number: usize, needs: &[usize]) -> Task {
    let file = RepoPath::parse(&format!("src/{number}.rs")).unwrap();
    let check = Validation::passes("true");
    let block = TaskBlock {
        depends_on: needs.iter().map(|number| id(*number)).collect(),
        ..TaskBlock::new(id(number), "api", Action::Create, file, check)
    };
    let number = u32::try_from(number).unwrap();
    Task::planned(BuildId(Uuid::nil()), number, block)
}

/// A build that nothing has happened to yet.
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
    let correlation = CorrelationId(Uuid::nil());
    Build::queued(BuildId(Uuid::nil()), &approval, correlation, noon())
}

/// Returns a question as a model puts it.
pub(crate) fn put() -> TopicQuestion {
    TopicQuestion {
        question: TaskQuestion {
            question: "Tabs or spaces?".to_owned(),
            why: "The file has both.".to_owned(),
            options: Vec::new(),
        },
        topic: "1/1".to_owned(),
    }
}
