//! What changes a record and nothing else: `apply_alone` takes that, and refuses what brings more.

use ropewalk_builder::decide::readiness::Edges;
use ropewalk_builder::machine::build;
use ropewalk_builder::machine::task::{Files, Input, Phase, State, apply, apply_alone};
use ropewalk_schemas::{AttemptId, CommitId, QuestionId};
use uuid::Uuid;

use crate::diagram::{build_states, task_states};
use crate::samples::{self, id, noon};

/// The inputs of a task that are applied alone.
fn task_inputs() -> Vec<Input> {
    let told = String::new;
    vec![
        Input::Reach(Phase::Working),
        Input::Reach(Phase::Validating),
        Input::Reach(Phase::Landing),
        Input::Await { told: told() },
        Input::Progress,
        Input::Hear { words: 1 },
        Input::Edges(Edges::Open(vec![id(1)])),
        Input::Obstruct {
            by: Files::Locked,
            told: told(),
        },
        Input::Carry {
            commit: None,
            at: noon(),
            attempts: 1,
        },
        Input::TakeUp {
            work: None,
            guidance: vec![told()],
        },
        Input::Ask(QuestionId(Uuid::nil())),
    ]
}

/// The inputs of a build that are applied alone.
fn build_inputs() -> Vec<build::Input> {
    let commit = CommitId::parse(&"a".repeat(40)).unwrap();
    vec![
        build::Input::Prime,
        build::Input::Begin,
        build::Input::Ask(Some(QuestionId(Uuid::nil()))),
        build::Input::Ask(None),
        build::Input::Land {
            commit,
            told: String::new(),
        },
    ]
}

#[test]
fn what_is_applied_alone_brings_nothing_from_any_state() {
    for state in task_states() {
        let mut task = samples::task(2, &[1]);
        state.write(&mut task);
        for input in task_inputs() {
            let whole = apply(&task, input.clone(), noon()).map(|(after, _)| after);
            let alone = apply_alone(&task, input.clone(), noon());
            assert_eq!(alone, whole, "{} {input:?}", task.state);
        }
    }
    for state in build_states() {
        let mut build = samples::build();
        state.write(&mut build);
        for input in build_inputs() {
            let whole = build::apply(&build, input.clone(), noon()).map(|(after, _)| after);
            let alone = build::apply_alone(&build, input.clone(), noon());
            assert_eq!(alone, whole, "{} {input:?}", build.state);
        }
    }
}

#[test]
fn what_brings_more_is_not_applied_alone() {
    let (attempt, phase) = (AttemptId(Uuid::nil()), Phase::Working);
    let mut task = samples::task(1, &[]);
    State::Running { attempt, phase }.write(&mut task);
    for input in [
        Input::Extend,
        Input::Suspend { why: String::new() },
        Input::Interrupt { why: String::new() },
    ] {
        assert!(apply(&task, input.clone(), noon()).is_ok(), "{input:?}");
        let alone = apply_alone(&task, input.clone(), noon());
        assert!(alone.is_err(), "{input:?}");
    }
    let mut build = samples::build();
    build::State::Running.write(&mut build);
    let scope = "project".to_owned();
    let input = build::Input::ExhaustBudget { scope };
    assert!(build::apply(&build, input.clone(), noon()).is_ok());
    assert!(build::apply_alone(&build, input, noon()).is_err());
}
