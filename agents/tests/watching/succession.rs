//! A build that a later revision ended early, and what its reviews find.

use ropewalk_schemas::Payload;
use ropewalk_schemas::attempt::Attempt;
use ropewalk_schemas::build::{Build, BuildState, StopCause};
use ropewalk_schemas::document;
use ropewalk_schemas::payload::BuildCompleted;
use ropewalk_schemas::review::DivergenceClass;
use ropewalk_schemas::specification::{Document, Revision};
use ropewalk_schemas::task::{Action, Task, TaskState};

use crate::workshop::{FINDINGS, Workshop, completed, landed};
use crate::world::{build, build_id, noon, task};

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
    let world = &workshop.world;
    let task = Task {
        state: TaskState::Working,
        ..workshop.built(&[]).await
    };
    let ended = Build {
        state: BuildState::Stopped,
        stop: Some(StopCause::Amended),
        ..world.list::<Build>().await.remove(0)
    };
    world.lay(&ended, std::slice::from_ref(&task)).await;
    world
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
    world.put(&revision).await;
    workshop.review().await;
    let review = workshop.only_review().await;
    assert_eq!(review.missed(), 0, "{:?}", review.divergences);
    let mut held = review.objections();
    assert!(held.any(|one| one.class == DivergenceClass::Deviation));
}

#[tokio::test]
async fn who_reviews_an_amended_build_is_told_what_was_said_of_the_tasks_that_it_kept() {
    // The model answers who tells it so, and nobody else.
    let said = "  contains: 'its agent said: Said it well.'\n  reply:";
    let script = FINDINGS.replace("  reply:", said);
    for (state, is_kept) in [(TaskState::Complete, true), (TaskState::Failed, false)] {
        let workshop = Workshop::open(&script).await;
        let world = &workshop.world;
        let earlier = Attempt {
            summary: Some("Said it well.".to_owned()),
            ..landed(1)
        };
        workshop.built(&[earlier]).await;
        let first = world.list::<Build>().await.remove(0);
        let second = Build {
            id: build_id(2),
            revision: 2,
            continues: Some(first.id),
            ..first
        };
        let kept = Task {
            state,
            ..task(2, "T-001", "database/1.sql", Action::Create)
        };
        world.lay(&second, &[kept]).await;
        let Payload::BuildCompleted(ended) = completed(BuildState::Succeeded) else {
            panic!("no end");
        };
        let ended = Payload::BuildCompleted(BuildCompleted {
            build_id: second.id,
            ..ended
        });
        world.give(&workshop.improvement, ended).await;
        let review = workshop.only_review().await;
        let by_rules = |note: &String| note.contains("by rules alone");
        assert_ne!(review.notes.iter().any(by_rules), is_kept, "{state:?}");
    }
}
