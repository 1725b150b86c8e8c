use chrono::TimeDelta;
use ropewalk_engine::BudgetOverrun;
use ropewalk_schemas::attempt::FailureClass;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::decide::failure::Answer;
use crate::decide::fixture::{failure, id, noon, task};
use crate::decide::readiness::Edges;
use crate::machine::Effect;

fn minutes_later(minutes: i64) -> DateTime<Utc> {
    noon() + TimeDelta::minutes(minutes)
}

/// Returns the task after an input that it has a use for, so many minutes later.
fn after(task: &Task, input: Input, minutes: i64) -> Task {
    let (after, _) = apply(task, input, minutes_later(minutes)).unwrap();
    after
}

fn obstruct(by: Files) -> Input {
    Input::Obstruct {
        by,
        told: "waits for `src/T-1.rs`".to_owned(),
    }
}

fn claim() -> Input {
    Input::Claim {
        attempt: AttemptId(Uuid::nil()),
        goes_on: false,
        resumes: false,
    }
}

fn skip() -> Input {
    Input::Skip {
        by: "ada".to_owned(),
        why: "nobody wants it".to_owned(),
    }
}

fn skipped_by(name: Option<&str>) -> State {
    let name = name.map(str::to_owned);
    State::Skipped {
        by: Skipper::Person { name },
    }
}

/// Returns a record as a program wrote it that knew none of these fields.
fn of_before(task: &Task) -> Task {
    let mut record = serde_json::to_value(task).unwrap();
    let fields = record.as_object_mut().unwrap();
    fields.remove("waiting_since");
    fields.remove("skipped_by");
    serde_json::from_value(record).unwrap()
}

#[test]
fn a_wait_for_files_goes_on_over_another_obstacle_and_begins_anew_after_it_ended() {
    let mut waiting = task("T-1", TaskState::Ready, &[]);
    for (minutes, by) in [(0, Files::Locked), (3, Files::Locked), (7, Files::Owned)] {
        waiting = after(&waiting, obstruct(by), minutes);
        let expected = State::Waiting {
            on: On::Files(by),
            since: Some(noon()),
        };
        assert_eq!(State::of(&waiting), expected, "{minutes}");
    }
    let free = after(&waiting, Input::FilesFree, 9);
    assert_eq!(free.waiting_since, None);
    // It wants its files all the time, and does not wait all the time.
    let again = after(&free, obstruct(Files::Locked), 10);
    assert_eq!(
        (again.waiting_since, again.wants_files_since),
        (Some(minutes_later(10)), Some(noon()))
    );
    let claimed = after(&after(&again, Input::FilesFree, 11), claim(), 12);
    assert_eq!(
        (claimed.waiting_since, claimed.wants_files_since),
        (None, None)
    );
}

#[test]
fn whatever_a_task_waits_for_after_its_files_it_waits_for_since_then() {
    let waiting = after(
        &task("T-1", TaskState::Ready, &[]),
        obstruct(Files::Locked),
        0,
    );
    let running = after(&after(&waiting, Input::FilesFree, 1), claim(), 2);
    let text = || "scripted".to_owned();
    let failed = |answer| {
        Input::Fail(Box::new(FailedAttempt {
            failure: failure(FailureClass::Unknown, "error"),
            answer,
            kept: None,
            turn: None,
            shown: None,
            protected: Vec::new(),
            provider: text(),
        }))
    };
    let exceeded = Box::new(BudgetOverrun {
        scope: text(),
        limit: text(),
        used: text(),
    });
    let until = noon();
    let question = None;
    for (input, on) in [
        (Input::Suspend { why: text() }, On::Person { question }),
        (failed(Answer::AskPerson), On::Person { question }),
        (failed(Answer::Hold), On::Check { question }),
        (
            failed(Answer::WaitQuota { until }),
            On::Quota { until: Some(until) },
        ),
        (
            Input::LoseProvider {
                provider: text(),
                told: text(),
            },
            On::Outage,
        ),
        (
            Input::ExhaustBudget {
                exceeded,
                own: true,
            },
            On::Budget { question },
        ),
    ] {
        let expected = State::Waiting {
            on,
            since: Some(minutes_later(5)),
        };
        assert_eq!(State::of(&after(&running, input, 5)), expected);
    }
}

#[test]
fn a_question_that_is_attached_lets_the_wait_go_on() {
    let asked = QuestionId(Uuid::nil());
    let kinds: [fn(Option<QuestionId>) -> On; 3] = [
        |question| On::Person { question },
        |question| On::Check { question },
        |question| On::Budget { question },
    ];
    for on in kinds {
        // A record of before has no time, and gets none that is made up.
        for since in [Some(noon()), None] {
            let mut waiting = task("T-1", TaskState::Ready, &[]);
            State::Waiting {
                on: on(None),
                since,
            }
            .write(&mut waiting);
            let expected = State::Waiting {
                on: on(Some(asked)),
                since,
            };
            let waiting = after(&waiting, Input::Ask(asked), 5);
            assert_eq!(State::of(&waiting), expected);
        }
    }
}

#[test]
fn what_is_waited_for_is_of_one_kind_whoever_has_it_and_whatever_is_asked() {
    let question = Some(QuestionId(Uuid::nil()));
    let until = Some(noon());
    let kinds = [
        [On::Files(Files::Locked), On::Files(Files::Owned)],
        [On::Person { question: None }, On::Person { question }],
        [On::Quota { until: None }, On::Quota { until }],
        [On::Budget { question: None }, On::Budget { question }],
        [On::Check { question: None }, On::Check { question }],
        [On::Outage, On::Outage],
    ];
    for (place, [one, _]) in kinds.iter().enumerate() {
        for (other_place, [_, other]) in kinds.iter().enumerate() {
            let expected = place == other_place;
            assert_eq!(one.is_like(other), expected, "{one:?} {other:?}");
        }
    }
}

#[test]
fn who_left_a_task_out_is_in_its_state_and_only_why_in_its_reason() {
    let needs = task("T-2", TaskState::Pending, &["T-1"]);
    let chain = vec![id("T-1")];
    let along = after(&needs, Input::Edges(Edges::Skipped(chain.clone())), 0);
    let expected = State::Skipped {
        by: Skipper::Needed(chain),
    };
    assert_eq!(
        (State::of(&along), along.skipped_by.as_deref()),
        (expected, None)
    );
    // What was left out with another task can be left out by itself, too.
    for before in [task("T-1", TaskState::Ready, &[]), along] {
        let (skipped, effects) = apply(&before, skip(), noon()).unwrap();
        assert_eq!(State::of(&skipped), skipped_by(Some("ada")));
        assert_eq!(skipped.reason.as_deref(), Some("nobody wants it"));
        let told = Effect::TellSkipped {
            by: "ada".to_owned(),
            why: "nobody wants it".to_owned(),
        };
        assert!(effects.contains(&told), "{effects:?}");
        assert!(apply(&skipped, skip(), noon()).is_err());
        let again = after(&skipped, Input::Retry { guidance: None }, 1);
        assert_eq!((again.state, again.skipped_by), (TaskState::Ready, None));
    }
}

#[test]
fn a_record_of_before_reads_and_nothing_is_made_up_for_it() {
    let ready = task("T-1", TaskState::Ready, &[]);
    let waiting = of_before(&after(&ready, obstruct(Files::Owned), 0));
    let unknown = |by| State::Waiting {
        on: On::Files(by),
        since: None,
    };
    assert_eq!(State::of(&waiting), unknown(Files::Owned));
    let still = after(&waiting, obstruct(Files::Locked), 5);
    assert_eq!(State::of(&still), unknown(Files::Locked));
    assert_eq!(still.wants_files_since, Some(noon()));

    let mut skipped = of_before(&after(&ready, skip(), 0));
    skipped.reason = Some("skipped by ada: nobody wants it".to_owned());
    assert_eq!(State::of(&skipped), skipped_by(None));
    assert!(apply(&skipped, skip(), noon()).is_err());
}

#[test]
fn a_record_names_when_a_wait_began_and_since_when_files_are_wanted_apart() {
    let ready = task("T-1", TaskState::Ready, &[]);
    let waiting = after(&ready, obstruct(Files::Locked), 0);
    let waiting = after(&waiting, Input::FilesFree, 3);
    let waiting = after(&waiting, obstruct(Files::Locked), 5);
    let record = serde_json::to_value(&waiting).unwrap();
    // By this name programs of before know it.
    assert_eq!(record["waits_since"], json!(noon()));
    assert_eq!(record["waiting_since"], json!(minutes_later(5)));
    assert_eq!(serde_json::from_value::<Task>(record).unwrap(), waiting);
    let record = serde_json::to_value(after(&waiting, skip(), 6)).unwrap();
    assert_eq!(
        (record.get("waiting_since"), &record["skipped_by"]),
        (None, &json!("ada"))
    );
    let record = serde_json::to_value(&ready).unwrap();
    assert_eq!(
        (record.get("waiting_since"), record.get("skipped_by")),
        (None, None)
    );
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "left out with no task")]
fn a_task_that_is_left_out_with_others_names_one_of_them() {
    let by = Skipper::Needed(Vec::new());
    State::Skipped { by }.write(&mut task("T-1", TaskState::Ready, &[]));
}
