//! Draws both machines from what they do: `docs/machine.md` is what every input makes of every state.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use ropewalk_builder::decide::failure::Answer;
use ropewalk_builder::decide::readiness::Edges;
use ropewalk_builder::machine::build;
use ropewalk_builder::machine::task::{
    Blocker, FailedAttempt, Files, Input, On, Phase, Skipper, State, apply,
};
use ropewalk_engine::BudgetOverrun;
use ropewalk_schemas::attempt::{Failure, FailureClass};
use ropewalk_schemas::build::{BuildState, PauseReason, StopCause};
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{AttemptId, BuildId, CommitId, QuestionId, RepoPath};
use uuid::Uuid;

use crate::samples::{self, id, noon};

/// The ways from state to state, with the inputs that take them.
type Ways = BTreeMap<(&'static str, &'static str), BTreeSet<String>>;

/// Lists the states of a task.
pub(crate) fn task_states() -> Vec<State> {
    let attempt = AttemptId(Uuid::nil());
    let question = Some(QuestionId(Uuid::nil()));
    let phases = [
        Phase::Claimed,
        Phase::Working,
        Phase::Validating,
        Phase::Landing,
    ];
    let running = phases.map(|phase| State::Running { attempt, phase });
    let waiting = [
        On::Files(Files::Locked),
        On::Files(Files::Owned),
        On::Person { question },
        On::Quota { until: None },
        On::Outage,
        On::Budget { question: None },
        On::Check { question },
    ]
    .map(|on| State::Waiting {
        on,
        since: Some(noon()),
    });
    let chain = vec![id(1)];
    let mut states = vec![
        State::Pending,
        State::Ready { not_before: None },
        State::Blocked {
            by: Blocker::Failed(chain.clone()),
        },
        State::Blocked { by: Blocker::Owner },
        State::Failed { question },
        State::Skipped {
            by: Skipper::Person {
                name: Some("ada".to_owned()),
            },
        },
        State::Skipped {
            by: Skipper::Needed(chain),
        },
        State::Complete {
            commit: None,
            at: noon(),
        },
    ];
    states.extend(running);
    states.extend(waiting);
    states.extend(states_of_before());
    states
}

/// Lists the states as records hold them that are older than a field.
fn states_of_before() -> [State; 2] {
    [
        State::Waiting {
            on: On::Outage,
            since: None,
        },
        State::Skipped {
            by: Skipper::Person { name: None },
        },
    ]
}

fn failure() -> Failure {
    Failure {
        class: FailureClass::ValidationFailed,
        error: "error".to_owned(),
        attempt: 1,
        fingerprint: String::new(),
    }
}

fn failed(answer: Answer) -> Input {
    Input::Fail(Box::new(FailedAttempt {
        failure: failure(),
        answer,
        kept: None,
        turn: None,
        shown: None,
        protected: Vec::new(),
        provider: "scripted".to_owned(),
    }))
}

fn task_inputs() -> Vec<(&'static str, Input)> {
    let attempt = AttemptId(Uuid::nil());
    let text = String::new;
    let obstruct = Input::Obstruct {
        by: Files::Locked,
        told: text(),
    };
    let cut_off = Input::CutOff {
        why: text(),
        not_before: None,
        counts: true,
    };
    let carry = Input::Carry {
        commit: None,
        at: noon(),
        attempts: 1,
    };
    let class = FailureClass::ValidationFailed;
    let mut inputs = vec![
        (
            "all it needs is complete",
            Input::Edges(Edges::Complete(None)),
        ),
        (
            "it needs what is not complete",
            Input::Edges(Edges::Open(vec![id(1)])),
        ),
        (
            "what it needs failed",
            Input::Edges(Edges::Failed(vec![id(1)])),
        ),
        (
            "what it needs was left out",
            Input::Edges(Edges::Skipped(vec![id(1)])),
        ),
        (
            "what was to resolve its conflict was left out",
            Input::Edges(Edges::Unresolved {
                left_out: vec![id(1)],
                others: Box::new(Edges::Complete(None)),
            }),
        ),
        ("an earlier build landed it", carry),
        (
            "claimed",
            Input::Claim {
                attempt,
                goes_on: false,
                resumes: false,
            },
        ),
        ("others have its files", obstruct),
        ("the agent works", Input::Reach(Phase::Working)),
        ("the gate runs", Input::Reach(Phase::Validating)),
        ("the gate passed", Input::Reach(Phase::Landing)),
        ("landed", Input::Land { commit: None }),
        ("sent back by the gate", Input::SendBack(failure())),
        (
            "failed, tried again",
            failed(Answer::Retry { not_before: None }),
        ),
        (
            "used up a quota",
            failed(Answer::WaitQuota { until: noon() }),
        ),
        ("a check could not run", failed(Answer::Hold)),
        ("asks for consent", failed(Answer::AskPerson)),
        ("tries are used up", failed(Answer::Fail { class })),
        ("cut off", cut_off),
    ];
    inputs.extend(standstill_inputs());
    inputs.extend(waiting_inputs());
    inputs
}

/// What keeps an attempt from going on through no fault of its own.
fn standstill_inputs() -> Vec<(&'static str, Input)> {
    let text = String::new;
    let exceeded = Box::new(BudgetOverrun {
        scope: text(),
        limit: text(),
        used: text(),
    });
    vec![
        ("interrupted", Input::Interrupt { why: text() }),
        ("stands still", Input::Suspend { why: text() }),
        (
            "its model asks",
            Input::PutQuestion(Box::new(samples::put())),
        ),
        (
            "loses its provider",
            Input::LoseProvider {
                provider: text(),
                told: text(),
            },
        ),
        (
            "used up a budget",
            Input::ExhaustBudget {
                exceeded,
                own: true,
            },
        ),
    ]
}

/// What ends a wait, and what people say.
fn waiting_inputs() -> Vec<(&'static str, Input)> {
    let file = || RepoPath::parse("src/a.rs").unwrap();
    let text = String::new;
    vec![
        ("its files are free", Input::FilesFree),
        ("the quota is back", Input::Tick),
        ("the provider answers again", Input::ProviderBack),
        ("there is budget again", Input::Fund),
        ("its build is resumed", Input::Resume),
        (
            "the owner hands over",
            Input::HandOver {
                file: file(),
                why: text(),
            },
        ),
        ("a file changes owner", Input::ChangeOwner { file: file() }),
        ("the owner keeps the file", Input::Deny { why: text() }),
        (
            "its change is allowed",
            Input::Allow {
                shown: None,
                overruled: Vec::new(),
                told: None,
            },
        ),
        (
            "its change is forbidden",
            Input::Forbid {
                overruled: Vec::new(),
                told: vec![text()],
            },
        ),
        ("its model is answered", Input::Answer),
        ("its check is tried again", Input::Recheck),
        ("retry", Input::Retry { guidance: None }),
        ("left to a person", Input::Leave { told: text() }),
        (
            "skip",
            Input::Skip {
                by: text(),
                why: text(),
            },
        ),
        ("its build was stopped", Input::LayDown),
    ]
}

fn task_ways() -> Ways {
    let mut ways = Ways::new();
    for state in task_states() {
        let mut task = samples::task(2, &[1]);
        let from = state.written().as_str();
        state.write(&mut task);
        task.reason = Some("a reason".to_owned());
        for (name, input) in task_inputs() {
            if let Ok((after, _)) = apply(&task, input, noon()) {
                let to = after.state.as_str();
                if to != from {
                    ways.entry((from, to)).or_default().insert(name.to_owned());
                }
            }
        }
    }
    ways
}

/// Lists the states of a build.
pub(crate) fn build_states() -> Vec<build::State> {
    let at = noon();
    let mut states = vec![
        build::State::Queued,
        build::State::Priming,
        build::State::Running,
        build::State::Verifying,
        build::State::Succeeded { at },
        build::State::Failed { at },
    ];
    for at in [None, Some(at)] {
        let why = StopCause::Failures;
        states.push(build::State::Stopped { why, at });
    }
    for why in [PauseReason::Person, PauseReason::Budget] {
        states.push(build::State::Paused { why });
    }
    states
}

fn build_inputs() -> Vec<(&'static str, build::Input)> {
    let text = String::new;
    let rest = build::Input::Rest {
        why: PauseReason::Person,
        detail: text(),
    };
    let stop = build::Input::Stop {
        why: StopCause::Person,
        told: text(),
    };
    let amend = build::Input::Amend {
        by: BuildId(Uuid::nil()),
        revision: 2,
    };
    let accept = build::Input::AcceptRisk {
        check: text(),
        by: text(),
        left: None,
    };
    let commit = CommitId::parse(&"a".repeat(40)).unwrap();
    let land = build::Input::Land {
        commit,
        told: text(),
    };
    vec![
        ("its ground is being laid", build::Input::Prime),
        ("its ground is laid", build::Input::Begin),
        ("a pause is wanted", build::Input::Pause { told: text() }),
        ("nothing can move", rest),
        ("it is held", build::Input::Hold { detail: text() }),
        (
            "its branch was moved",
            build::Input::Contest { detail: text() },
        ),
        ("its branch is settled", build::Input::SettleBranch),
        ("what held it is over", build::Input::GoOn),
        ("resume", build::Input::Resume),
        (
            "a task is tried again",
            build::Input::Revive { express: true },
        ),
        ("all landed or left out", build::Input::Verify),
        ("the whole passed", build::Input::Pass { told: None }),
        (
            "the goal is out of reach",
            build::Input::Fail { why: text() },
        ),
        ("stop, or a limit", stop),
        (
            "its idea is abandoned",
            build::Input::Abandon { told: text() },
        ),
        ("its last attempt ended", build::Input::Conclude),
        ("a later revision is built", amend),
        ("there is budget again", build::Input::Fund { left: None }),
        ("a risk is accepted", accept),
        ("landed on a branch", land),
    ]
}

fn build_ways() -> Ways {
    let mut ways = Ways::new();
    for state in build_states() {
        let mut build = samples::build();
        let from = state.written().as_str();
        state.write(&mut build);
        for (name, input) in build_inputs() {
            if let Ok((after, _)) = build::apply(&build, input, noon()) {
                let to = after.state.as_str();
                if to != from {
                    ways.entry((from, to)).or_default().insert(name.to_owned());
                }
            }
        }
    }
    ways
}

fn drawn(ways: &Ways) -> String {
    let mut text = String::from("```mermaid\nstateDiagram-v2\n");
    for ((from, to), inputs) in ways {
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        writeln!(text, "    {from} --> {to}: {}", inputs.join(" / ")).unwrap();
    }
    text.push_str("```\n");
    text
}

#[test]
fn the_diagrams_show_what_the_machines_do() {
    let text = format!(
        "# How tasks and builds move\n\n\
         Drawn by a test from `agents/builder/src/machine`: every way from one state to another, and what takes it. What\n\
         is not here is refused. `agents/builder/tests/histories` says of each state who moves it next.\n\n\
         ## Task\n\n{}\n## Build\n\n{}",
        drawn(&task_ways()),
        drawn(&build_ways())
    );
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/machine.md");
    if std::env::var_os("UPDATE_DIAGRAMS").is_some() {
        std::fs::write(&page, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&page).unwrap_or_default();
    let cure = "run `UPDATE_DIAGRAMS=1 cargo test -p ropewalk-builder --test histories`";
    assert!(kept == text, "`docs/machine.md` is stale; {cure}");
}

#[test]
fn the_records_allow_what_the_machines_do_and_nothing_else() {
    for state in TaskState::ALL {
        let ways = task_ways();
        let to = ways.keys().filter(|(from, _)| *from == state.as_str());
        let to: BTreeSet<&str> = to.map(|(_, to)| *to).collect();
        let told = state.successors().iter().map(|next| next.as_str());
        assert_eq!(told.collect::<BTreeSet<_>>(), to, "{state}");
    }
    for state in BuildState::ALL {
        let ways = build_ways();
        let to = ways.keys().filter(|(from, _)| *from == state.as_str());
        let to: BTreeSet<&str> = to.map(|(_, to)| *to).collect();
        let told = state.successors().iter().map(|next| next.as_str());
        assert_eq!(told.collect::<BTreeSet<_>>(), to, "{state}");
    }
}

#[test]
fn a_record_keeps_its_state_and_a_state_its_record() {
    for state in task_states() {
        let mut task = samples::task(2, &[1]);
        state.clone().write(&mut task);
        assert_eq!(State::of(&task), state);
        let mut again = task.clone();
        State::of(&task).write(&mut again);
        assert_eq!(again, task);
    }
    for state in build_states() {
        let mut build = samples::build();
        state.clone().write(&mut build);
        assert_eq!(build::State::of(&build), state);
        let mut again = build.clone();
        build::State::of(&build).write(&mut again);
        assert_eq!(again, build);
    }
}

#[test]
fn a_build_that_was_stopped_before_causes_were_stored_tells_its_cause_by_its_words() {
    for (reason, cause) in [
        ("stop requested by ada", StopCause::Person),
        (
            "time limit: 120 minutes of working time are used up",
            StopCause::WorkingTime,
        ),
        ("too many failures: `T-1`", StopCause::Failures),
    ] {
        let mut build = samples::build();
        build.state = BuildState::Stopped;
        build.reason = Some(reason.to_owned());
        let expected = build::State::Stopped {
            why: cause,
            at: None,
        };
        assert_eq!(build::State::of(&build), expected, "{reason}");
    }
}
