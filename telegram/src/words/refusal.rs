//! Says on a phone why something was refused: by the names that are used there, and by what can be done there.

use ropewalk_desk::attachments::AttachError;
use ropewalk_desk::builds::SteerError;
use ropewalk_desk::builds::landing::LandingError;
use ropewalk_desk::builds::tasks::TaskError;
use ropewalk_desk::halt::HaltError;
use ropewalk_desk::ideas::{AbandonError, ChatError};
use ropewalk_desk::people::{People, PermissionError};
use ropewalk_desk::specifications::{ApproveError, RequestError};
use ropewalk_orchestrator::questions::AnswerError;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::clip;
use ropewalk_schemas::illegal;
use ropewalk_schemas::specification::SpecState;

use crate::commands::SAID_BACK;

const IDEAS: &str = "/ideas lists them";
const ANOTHER_IDEA: &str = "/newtask begins another";
const PUT_AGAIN: &str = "/questions puts what is open again";

/// Says that somebody may not do something, and who may.
pub(crate) fn forbidden(error: &PermissionError, people: &People) -> String {
    format!("{error}; {}", super::who_may(people, error.right))
}

/// Says why words were not taken.
pub(crate) fn chat(error: &ChatError) -> String {
    let next = match error {
        ChatError::Taken(idea) => {
            format!("choose another name, or go on with it: /idea {idea}")
        }
        ChatError::Abandoned(_) => ANOTHER_IDEA.to_owned(),
        ChatError::Complete { idea, .. } => {
            format!("/execute {idea} goes on with it, and {ANOTHER_IDEA}")
        }
        ChatError::Unknown(_) => IDEAS.to_owned(),
        // A session has no name here.
        ChatError::UnknownSession(_) => return format!("that idea is gone; {IDEAS}"),
        error => return Words::of(error).to_string(),
    };
    said(error, next)
}

/// Says why an idea is not given up.
pub(crate) fn abandon(error: &AbandonError, people: &People) -> String {
    match error {
        AbandonError::Forbidden(error) => forbidden(error, people),
        AbandonError::Unknown(_) => said(error, IDEAS),
        AbandonError::Already(_) | AbandonError::Landed(_) => said(error, ANOTHER_IDEA),
        error => Words::of(error).to_string(),
    }
}

/// Says why an answer was not taken.
pub(crate) fn answer(error: &AnswerError) -> String {
    let told = match error {
        AnswerError::Unknown(_) => "that question is gone".to_owned(),
        AnswerError::Closed { state, by, .. } => format!("that question is {state} already{by}"),
        AnswerError::Empty { .. } => "that says nothing, so that it decides nothing".to_owned(),
        AnswerError::NotAChoice { text, .. } => format!(
            "`{}` is none of the choices, so that it decides nothing; press a button",
            clip::letters(text, SAID_BACK)
        ),
        AnswerError::WordsAlone { .. } => "words decide nothing there; press a button".to_owned(),
        AnswerError::WordsMissing { .. } => {
            "that choice is nothing without words of yours; press its button, and write them then"
                .to_owned()
        }
        AnswerError::WordsBeside { .. } => {
            "that choice takes no words; press its button alone".to_owned()
        }
        error @ (AnswerError::Read(_) | AnswerError::Commit(_)) => {
            return Words::of(error).to_string();
        }
    };
    format!("{told}; {PUT_AGAIN}")
}

/// Says why a file was not kept.
pub(crate) fn file(error: &AttachError) -> String {
    match error {
        AttachError::Chat(error) => chat(error),
        // Where its folder lies says nothing to who is not there.
        AttachError::File { .. } => {
            "it cannot be kept where the program runs; send it again later".to_owned()
        }
        error => Words::of(error).to_string(),
    }
}

/// Says why no specification is written.
pub(crate) fn request(error: &RequestError) -> String {
    match error {
        RequestError::UnknownIdea(_) => said(error, IDEAS),
        RequestError::Abandoned(_) => said(error, ANOTHER_IDEA),
        RequestError::Landed { idea, .. } => {
            format!("the idea `{idea}` has landed; for something new, {ANOTHER_IDEA}")
        }
        RequestError::OnItsWay {
            idea,
            state: SpecState::Draft,
            ..
        } => format!("the specification of `{idea}` is being written; you are asked here then"),
        RequestError::OnItsWay { idea, state, .. } => {
            format!("the specification of `{idea}` is {state}; /spec {idea} shows it")
        }
        RequestError::Built { idea, plan } => format!(
            "`{idea}` has a specification {}; a button of /spec {idea} asks for a change of that, and /tell {idea} WORDS tells whoever \
             builds it",
            plan.progress
        ),
        RequestError::UnknownSpecification(_) => format!("that specification is gone; {IDEAS}"),
        RequestError::BeingWritten { revision, .. } => {
            format!("revision {revision} is being written; say it once /spec shows that")
        }
        RequestError::State { state, what, .. } => {
            format!("the specification is {state}, so {what}; /spec shows it")
        }
        error => Words::of(error).to_string(),
    }
}

/// Says why a build does not begin.
pub(crate) fn approve(error: &ApproveError) -> String {
    match error {
        ApproveError::Unknown(_) => format!("that specification is gone; {IDEAS}"),
        ApproveError::Already { by, at, .. } => {
            format!("it was approved by {by} at {at}; /status shows its build")
        }
        ApproveError::PutAway {
            revision, approved, ..
        } => format!("revision {revision} was rejected, and revision {approved} stands approved"),
        ApproveError::Stale { revision, .. } => {
            format!("revision {revision} is there by now; /execute shows it")
        }
        ApproveError::Abandoned(_) => said(error, ANOTHER_IDEA),
        ApproveError::Elsewhere { idea, plan, .. } => format!(
            "`{idea}` has another specification, {}; /status shows where its build stands",
            plan.progress
        ),
        ApproveError::NotReady { state, .. } => {
            format!("the specification is {state}; /spec shows it")
        }
        error => Words::of(error).to_string(),
    }
}

/// Says why a build does not do what somebody wishes.
pub(crate) fn steer(error: &SteerError, build: &Build) -> String {
    let idea = &build.idea;
    match error {
        SteerError::Continued { .. } => {
            format!("the build of `{idea}` goes on as another one; /status shows where that stands")
        }
        SteerError::Abandoned { .. } => {
            format!("the build of `{idea}` has ended for good: the idea was abandoned")
        }
        SteerError::State { state, why, .. } => {
            let next = match state {
                BuildState::Paused => format!("; /resume {idea} lets it go on"),
                BuildState::Failed | BuildState::Stopped => {
                    format!("; /resume {idea} takes it up again")
                }
                _ => String::new(),
            };
            format!("the build of `{idea}` is {state}: {why}{next}")
        }
        SteerError::Illegal(refused) => of_build(build, refused.wish),
        error => Words::of(error).to_string(),
    }
}

/// Says why a task of a build does not do what somebody wishes.
pub(crate) fn task(error: &TaskError, build: &Build, people: &People) -> String {
    let idea = &build.idea;
    match error {
        TaskError::Forbidden(error) => forbidden(error, people),
        TaskError::Unknown { task, .. } => {
            format!("the build of `{idea}` has no task `{task}`; /spec {idea} names them")
        }
        TaskError::NoneOpen(_) => format!("no task of the build of `{idea}` is open"),
        TaskError::State(refused) if illegal::run_again(build, refused.wish).is_err() => {
            of_build(build, refused.wish)
        }
        error => Words::of(error).to_string(),
    }
}

/// Says that a build has no use for a wish any more, and what its work went on as.
fn of_build(build: &Build, wish: &str) -> String {
    let Build { idea, state, .. } = build;
    let next = if build.continued_by.is_some() {
        "; another build goes on with its work, and /status shows where that stands".to_owned()
    } else if build.merged.is_some() {
        format!("; it is landed, and {ANOTHER_IDEA}")
    } else {
        String::new()
    };
    format!("the build of `{idea}` is {state}, so it cannot {wish}{next}")
}

/// Says why a build is not landed.
pub(crate) fn landing(error: &LandingError, build: &Build) -> String {
    let idea = &build.idea;
    match error {
        LandingError::Already { commit, .. } => {
            format!("the build of `{idea}` was landed already, as `{commit}`")
        }
        LandingError::Unfinished { state, .. } => {
            format!("the build of `{idea}` is {state}; only one that succeeded is landed")
        }
        LandingError::Moved { into, .. } => format!(
            "the build of `{idea}` or `{into}` has moved on; /land {idea} shows what landing comes to now"
        ),
        error => Words::of(error).to_string(),
    }
}

/// Says why everything is not stopped, or does not go on.
pub(crate) fn halt(error: &HaltError) -> String {
    match error {
        HaltError::Already(_) => said(error, "/resumeall lets it go on"),
        HaltError::NotStopped => said(error, "/resume lets one build go on"),
        error => Words::of(error).to_string(),
    }
}

fn said(error: &impl std::error::Error, next: impl Into<String>) -> String {
    Words::from((error.to_string(), next)).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ropewalk_desk::people::Person;
    use ropewalk_schemas::person::Right;
    use ropewalk_schemas::{ChoiceId, QuestionId, Slug, SpecId, UserSlug};
    use serde_json::json;

    use super::*;

    const ID: &str = "00000000-0000-7000-8000-000000000002";

    fn build() -> Build {
        let build = json!({
            "id": ID, "spec": ID, "revision": 1, "hash": "0".repeat(64), "idea": "walks", "user": "ada",
            "state": "paused", "pause_requested": false, "branch": "build/walks", "target": "main", "priority": 5,
            "working_ms": 0, "correlation_id": ID, "created_at": "2026-03-01T08:00:00Z",
        });
        serde_json::from_value(build).unwrap()
    }

    /// Ada, who may everything.
    fn people() -> People {
        People::new(BTreeMap::new(), UserSlug::parse("ada").unwrap())
    }

    #[test]
    fn who_may_not_try_a_task_again_reads_who_may() {
        let bob = Person {
            rights: [].into(),
            ..Person::alone(UserSlug::parse("bob").unwrap())
        };
        let refused = TaskError::from(bob.demand(Right::Stop).unwrap_err());
        let told = task(&refused, &build(), &people());
        assert_eq!(told, "`bob` may not stop; `ada` may");
    }

    /// What is refused about a build.
    fn of_builds(build: &Build) -> [String; 4] {
        let (id, next) = (build.id, build.id);
        let state = SteerError::State {
            build: id,
            state: BuildState::Paused,
            why: "it pauses already",
        };
        let unknown = TaskError::Unknown {
            build: id,
            task: "T-009".to_owned(),
        };
        let moved = LandingError::Moved {
            build: id,
            into: "main".to_owned(),
        };
        [
            steer(&SteerError::Continued { build: id, next }, build),
            steer(&state, build),
            task(&unknown, build, &people()),
            landing(&moved, build),
        ]
    }

    #[test]
    fn no_refusal_names_a_verb_of_the_terminal_or_an_id() {
        let (idea, build) = (Slug::parse("walks").unwrap(), build());
        let spec: SpecId = ID.parse().unwrap();
        let question: QuestionId = ID.parse().unwrap();
        let choices = format!("`{ID}` (Yes)");
        let next = "`ropewalk spec show` shows it".to_owned();
        let (by, at) = (build.user.clone(), String::new());
        let told = [
            answer(&AnswerError::Unknown(question)),
            answer(&AnswerError::NotAChoice {
                id: question,
                text: "by boat".to_owned(),
                choices: choices.clone(),
            }),
            answer(&AnswerError::Empty { choices }),
            answer(&AnswerError::WordsMissing {
                choice: ChoiceId::parse("other").unwrap(),
            }),
            chat(&ChatError::Taken(idea.clone())),
            chat(&ChatError::Abandoned(idea.clone())),
            chat(&ChatError::Unknown(idea.clone())),
            chat(&ChatError::Complete {
                idea: idea.clone(),
                next,
            }),
            request(&RequestError::UnknownIdea(idea.clone())),
            request(&RequestError::OnItsWay {
                idea: idea.clone(),
                spec,
                state: SpecState::Generated,
            }),
            request(&RequestError::Landed { idea, spec }),
            request(&RequestError::UnknownSpecification(spec)),
            request(&RequestError::BeingWritten { spec, revision: 2 }),
            request(&RequestError::State {
                spec,
                state: SpecState::Rejected,
                what: "there is no revision to change",
                next: Some("ask for a specification with `ropewalk spec generate`"),
            }),
            approve(&ApproveError::Unknown(spec)),
            approve(&ApproveError::Already { spec, by, at }),
            approve(&ApproveError::NotReady {
                spec,
                state: SpecState::Draft,
            }),
            halt(&HaltError::NotStopped),
        ];
        for told in told.into_iter().chain(of_builds(&build)) {
            let is_of_terminal = told.contains("ropewalk") || told.contains(ID);
            assert!(!is_of_terminal && told.contains('/'), "{told}");
        }
    }
}
