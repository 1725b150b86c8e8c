//! A build that a later revision ended early, and what its reviews find.

use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::document;
use ropewalk_schemas::review::DivergenceClass;
use ropewalk_schemas::specification::{Document, Revision};
use ropewalk_schemas::task::{Task, TaskState};

use crate::house::{build, build_id, noon};
use crate::workshop::Workshop;

#[tokio::test]
async fn a_build_that_a_revision_ended_early_misses_nothing_that_goes_on() {
    let script = r#"
- agent: improvement
  contains: ['Revision 2 ended it early', 'goes on from what landed, with T-001']
  reply:
    tools:
      - name: review
        input:
          divergences:
            - { class: missed-requirement, task: T-001, planned: "a table", actual: "none" }
            - { class: deviation, task: T-001, planned: "a loop", actual: "a table" }
"#;
    let workshop = Workshop::open(script).await;
    let house = &workshop.house;
    let task = Task {
        state: TaskState::Working,
        ..workshop.built(&[]).await
    };
    let ended = Build {
        state: BuildState::Stopped,
        stop: Some(StopCause::Amended),
        ..house.list::<Build>().await.remove(0)
    };
    house.lay(&ended, std::slice::from_ref(&task)).await;
    house
        .put(&Build {
            id: build_id(2),
            revision: 2,
            continues: Some(ended.id),
            ..build(1)
        })
        .await;
    let document = Document::default();
    let revision = Revision {
        spec: ended.spec,
        number: 2,
        hash: document::hash(&document, &[]),
        document,
        tasks: vec![task.block],
        dry_run: None,
        kept: Vec::new(),
        validation: Vec::new(),
        answers: Vec::new(),
        at: noon(),
    };
    house.put(&revision).await;
    workshop.review().await;
    let review = workshop.only_review().await;
    assert_eq!(review.missed(), 0, "{:?}", review.divergences);
    let mut held = review.objections();
    assert!(held.any(|one| one.class == DivergenceClass::Deviation));
}
