use super::*;
use crate::decide::fixture::{failure, noon, task};
use FailureClass as Class;
use ropewalk_schemas::task::TaskState;

fn decide(task: &Task, class: Class, error: &str) -> Answer {
    let failure = failure(class, error);
    let happened = FailureContext {
        failure: &failure,
        quota_back: None,
        installable: false,
        certain: false,
        now: noon(),
        jitter: 1.0,
    };
    answer(task, &happened, &Limits::default())
}

/// A task that has used `tries` counted tries with different errors.
fn tried(tries: u32, class: Class) -> Task {
    let mut task = task("T-1", TaskState::Working, &[]);
    task.tries = tries;
    for letter in ["a", "b", "c"].iter().take(tries as usize) {
        task.failures.push(failure(class, letter));
    }
    task
}

#[test]
fn what_the_agent_can_mend_gets_three_tries_without_delay() {
    let retry = Answer::Retry { not_before: None };
    for class in [
        Class::SyntaxError,
        Class::ValidationFailed,
        Class::EmptyChange,
        Class::OutOfScope,
        Class::StubMarker,
        Class::SecretFound,
        Class::WeakenedTest,
        Class::Timeout,
        Class::DoomLoop,
        Class::EvalExhausted,
        Class::AgentRefused,
    ] {
        assert_eq!(decide(&tried(0, class), class, "x"), retry, "{class:?}");
        assert_eq!(decide(&tried(1, class), class, "x"), retry, "{class:?}");
        assert_eq!(
            decide(&tried(2, class), class, "x"),
            Answer::Fail { class },
            "{class:?}"
        );
    }
}

#[test]
fn the_third_identical_failure_is_no_progress() {
    let mut task = task("T-1", TaskState::Working, &[]);
    task.failures = vec![
        failure(Class::ValidationFailed, "took 3 ms"),
        failure(Class::ValidationFailed, "took 11 ms"),
    ];
    let verdict = decide(&task, Class::ValidationFailed, "took 7 ms");
    let class = Class::NoProgress;
    assert_eq!(verdict, Answer::Fail { class });
}

#[test]
fn an_outage_is_waited_out_before_it_fails_a_task() {
    let mut task = task("T-1", TaskState::Working, &[]);
    // Twelve pauses, before an outage fails a task.
    let seconds = [5, 10, 20, 40, 80, 160, 300, 300, 300, 300, 300, 300];
    for pause in seconds {
        let expected = Answer::Retry {
            not_before: Some(noon() + TimeDelta::seconds(pause)),
        };
        assert_eq!(decide(&task, Class::ProviderDown, "down"), expected);
        task.failures.push(failure(Class::Network, "down"));
    }
    let class = Class::ProviderDown;
    assert_eq!(decide(&task, class, "down"), Answer::Fail { class });
}

#[test]
fn who_could_not_go_on_rests_twice_as_long_each_time_up_to_the_cap() {
    let mut before = None;
    for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
        let rests = rest(before, &Limits::default());
        assert_eq!(rests, TimeDelta::seconds(seconds));
        before = Some(rests);
    }
    let never = Limits {
        backoff: Duration::ZERO,
        ..Limits::default()
    };
    assert_eq!(rest(Some(TimeDelta::zero()), &never), TimeDelta::zero());
    // A clock that was set back is none to count on.
    let back = Some(TimeDelta::seconds(-1));
    assert_eq!(rest(back, &Limits::default()), TimeDelta::seconds(5));
}

#[test]
fn what_was_too_much_at_once_is_counted_and_tried_again_after_a_pause() {
    for class in [Class::ContextFull, Class::ReplyTooLarge] {
        assert!(is_counted(class), "{class:?}");
        for (tries, pause) in [(0, 5), (1, 10)] {
            let expected = Answer::Retry {
                not_before: Some(noon() + TimeDelta::seconds(pause)),
            };
            assert_eq!(decide(&tried(tries, class), class, "x"), expected);
        }
        // The same words again say nothing less true of it, so the class stays.
        assert_eq!(decide(&tried(2, class), class, "x"), Answer::Fail { class });
    }
}

#[test]
fn every_other_class_has_its_row() {
    let mut rebased = task("T-1", TaskState::Landing, &[]);
    rebased.rebases = 2;
    let fresh = task("T-1", TaskState::Working, &[]);
    let quota = Answer::WaitQuota {
        until: noon() + TimeDelta::minutes(15),
    };
    let fail = |class| Answer::Fail { class };
    let rows = [
        (&fresh, Class::Conflict, Answer::RebaseAndRetry),
        (&rebased, Class::Conflict, fail(Class::Conflict)),
        (
            &fresh,
            Class::MissingDependency,
            fail(Class::MissingDependency),
        ),
        (&fresh, Class::Quota, quota),
        (&fresh, Class::ToolMissing, Answer::Hold),
        (&fresh, Class::Tampered, Answer::AskPerson),
        (&fresh, Class::SandboxDenied, fail(Class::SandboxDenied)),
        (&fresh, Class::NoProgress, fail(Class::NoProgress)),
        (&fresh, Class::Unknown, fail(Class::Unknown)),
    ];
    for (task, class, expected) in rows {
        assert_eq!(decide(task, class, "x"), expected, "{class:?}");
    }
}

#[test]
fn a_conflict_that_every_try_meets_before_anybody_works_is_asked_about_at_once() {
    let conflict = failure(Class::Conflict, "x");
    let fresh = task("T-1", TaskState::Working, &[]);
    for (certain, expected) in [
        (false, Answer::RebaseAndRetry),
        (
            true,
            Answer::Fail {
                class: Class::Conflict,
            },
        ),
    ] {
        let happened = FailureContext {
            failure: &conflict,
            quota_back: None,
            installable: false,
            certain,
            now: noon(),
            jitter: 1.0,
        };
        let follows = answer(&fresh, &happened, &Limits::default());
        assert_eq!(follows, expected, "{certain}");
    }
}

#[test]
fn what_stands_against_a_task_is_resolved_once_somebody_wants_it_tried_again() {
    let conflict = Some(Class::Conflict);
    for (earlier, now, expected) in [
        (None, None, false),
        (None, conflict, false),
        (Some(Class::ValidationFailed), conflict, false),
        (conflict, None, true),
        (conflict, Some(Class::ValidationFailed), true),
    ] {
        let mut tried = task("T-1", TaskState::Claimed, &[]);
        let of = |class| failure(class, "x");
        tried.earlier_failures.extend(earlier.map(of));
        tried.failures.extend(now.map(of));
        assert_eq!(is_to_be_resolved(&tried), expected, "{earlier:?} {now:?}");
        let met = earlier == conflict || now == conflict;
        assert_eq!(was_met(&tried), met, "{earlier:?} {now:?}");
    }
}

#[test]
fn installing_is_off_unless_allowed_and_then_bounded() {
    let missing = failure(Class::MissingDependency, "x");
    let mut task = task("T-1", TaskState::Working, &[]);
    for installs in 0..3 {
        for installable in [false, true] {
            task.installs = installs;
            let happened = FailureContext {
                failure: &missing,
                quota_back: None,
                installable,
                certain: false,
                now: noon(),
                jitter: 0.0,
            };
            let follows = answer(&task, &happened, &Limits::default());
            let installed = follows == Answer::InstallAndRetry;
            assert_eq!(installed, installable && installs < 2);
        }
    }
}

#[test]
fn a_quota_rests_until_its_provider_says_but_no_shorter_than_asking_again_makes_sense() {
    let failure = failure(Class::Quota, "slow down");
    let task = task("T-1", TaskState::Working, &[]);
    for (back, rest) in [
        (None, 15 * 60),
        (Some(0), 15 * 60),
        (Some(1), 30),
        (Some(30), 30),
        (Some(600), 600),
    ] {
        let happened = FailureContext {
            failure: &failure,
            quota_back: back.map(|seconds| noon() + TimeDelta::seconds(seconds)),
            installable: false,
            certain: false,
            now: noon(),
            jitter: 1.0,
        };
        let until = noon() + TimeDelta::seconds(rest);
        let expected = Answer::WaitQuota { until };
        assert_eq!(answer(&task, &happened, &Limits::default()), expected);
    }
}

/// Every class, in the order of its definition.
const CLASSES: [Class; 26] = [
    Class::SyntaxError,
    Class::MissingDependency,
    Class::Conflict,
    Class::ValidationFailed,
    Class::EmptyChange,
    Class::OutOfScope,
    Class::StubMarker,
    Class::SecretFound,
    Class::WeakenedTest,
    Class::Tampered,
    Class::ToolMissing,
    Class::Network,
    Class::Timeout,
    Class::Resource,
    Class::Quota,
    Class::ProviderDown,
    Class::ContextFull,
    Class::ReplyTooLarge,
    Class::DoomLoop,
    Class::EvalExhausted,
    Class::SandboxDenied,
    Class::NoProgress,
    Class::AgentRefused,
    Class::Blocked,
    Class::Interrupted,
    Class::Unknown,
];

#[test]
fn a_conversation_goes_on_after_what_time_or_somebody_else_mends() {
    let goes_on = CLASSES.into_iter();
    let goes_on: Vec<Class> = goes_on.filter(|class| !ends_conversation(*class)).collect();
    let expected = [
        Class::MissingDependency,
        Class::ToolMissing,
        Class::Network,
        Class::Resource,
        Class::Quota,
        Class::ProviderDown,
        Class::ReplyTooLarge,
    ];
    assert_eq!(goes_on, expected);
    // Whoever begins anew begins in a clean checkout after these alone.
    let left = CLASSES.into_iter();
    let left: Vec<Class> = left.filter(|class| !is_worth_keeping(*class)).collect();
    let expected = [
        Class::Conflict,
        Class::ContextFull,
        Class::DoomLoop,
        Class::NoProgress,
        Class::Interrupted,
    ];
    assert_eq!(left, expected);
}

/// So often the same class comes again in a row of the table, unless its end comes first.
const LONGEST: usize = 16;

/// Tells a class as people read it.
fn named(class: Class) -> String {
    serde_json::to_value(class)
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}

/// Tells an answer in a few words; times count from the failure.
fn told(answer: &Answer) -> String {
    let after = |time: &DateTime<Utc>| format!("after {} s", (*time - noon()).num_seconds());
    match answer {
        Answer::Retry { not_before: None } => "retry".to_owned(),
        Answer::Retry {
            not_before: Some(time),
        } => format!("retry {}", after(time)),
        Answer::RebaseAndRetry => "rebase and retry".to_owned(),
        Answer::InstallAndRetry => "install and retry".to_owned(),
        Answer::WaitQuota { until } => format!("wait for the quota, {}", after(until)),
        Answer::Hold => "hold".to_owned(),
        Answer::AskPerson => "ask for consent".to_owned(),
        Answer::Fail { class } => format!("fail as {}, and ask", named(*class)),
    }
}

/// Plays one failure of `class` after the other until the task does not go on by itself.
fn row(class: Class, same: bool, installable: bool) -> Vec<String> {
    let mut task = task("T-1", TaskState::Working, &[]);
    let mut answers = Vec::new();
    while answers.len() < LONGEST {
        let letters = "x".repeat(if same { 1 } else { answers.len() + 1 });
        let failure = failure(class, &letters);
        let happened = FailureContext {
            failure: &failure,
            quota_back: None,
            installable,
            certain: false,
            now: noon(),
            jitter: 1.0,
        };
        let answer = answer(&task, &happened, &Limits::default());
        answers.push(told(&answer));
        match answer {
            Answer::RebaseAndRetry => task.rebases += 1,
            Answer::InstallAndRetry => task.installs += 1,
            Answer::Retry { .. } => {}
            // It waits as often as it must.
            _ => break,
        }
        task.tries += u32::from(is_counted(class));
        task.failures.push(failure);
    }
    answers
}

fn table() -> String {
    let mut lines = vec![
        "# What follows each failure of a class, one after the other in one round. Written by"
            .to_owned(),
        "# `UPDATE_TABLES=1 cargo test -p ropewalk-builder failure`, read by the same test."
            .to_owned(),
    ];
    for class in CLASSES {
        for (same, label) in [(false, "another error each time"), (true, "the same error")] {
            let answers = row(class, same, false).join("; ");
            lines.push(format!("{} | {label} | {answers}", named(class)));
        }
    }
    let answers = row(Class::MissingDependency, false, true).join("; ");
    lines.push(format!("MISSING_DEPENDENCY | installs allowed | {answers}"));
    lines.push(String::new());
    lines.join("\n")
}

#[test]
fn every_class_is_answered_as_the_committed_table_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tables/failures.txt");
    let found = table();
    if std::env::var_os("UPDATE_TABLES").is_some() {
        std::fs::write(path, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(path).unwrap());
}

#[test]
fn every_end_says_what_a_person_can_do() {
    for class in CLASSES {
        assert!(recommended(class).ends_with('.'), "{class:?}");
    }
}
