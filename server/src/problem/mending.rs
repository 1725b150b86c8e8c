//! Says of a request that was refused which request to send instead, where the terminal would name a verb; nothing where
//! what the terminal says holds here too.

use ropewalk_desk::alerts::AcknowledgeError;
use ropewalk_desk::attachments::AttachError;
use ropewalk_desk::attachments::kept::KeptError;
use ropewalk_desk::builds::SteerError;
use ropewalk_desk::builds::landing::LandingError;
use ropewalk_desk::builds::named::MisnamedBuild;
use ropewalk_desk::builds::tasks::TaskError;
use ropewalk_desk::halt::HaltError;
use ropewalk_desk::ideas::{AbandonError, ChatError};
use ropewalk_desk::specifications::{ApproveError, RequestError};
use ropewalk_orchestrator::questions::AnswerError;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::specification::SpecState;
use ropewalk_store::CommitError;

const IDEAS: &str = "`GET /api/ideation/sessions` shows them";
const SPECIFICATIONS: &str = "`GET /api/specifications` shows them";
const ANOTHER_IDEA: &str = "begin another with `POST /api/ideation/sessions`";

pub(super) fn commit(error: &CommitError) -> Option<String> {
    matches!(error, CommitError::Backlog { .. }).then(|| {
        "try again when some are done; `GET /api/dead-letters` and `GET /api/waits` show what holds them up"
            .to_owned()
    })
}

pub(super) fn chat(error: &ChatError) -> Option<String> {
    Some(match error {
        ChatError::Taken(idea) => format!(
            "choose another name, or go on with `POST /api/ideation/sessions/{idea}/messages`"
        ),
        ChatError::Abandoned(_) => ANOTHER_IDEA.to_owned(),
        ChatError::Complete { .. } => {
            "ask for its specification with `POST /api/specifications/generate`, or for a change of that with \
             `POST /api/specifications/ID/revise`"
                .to_owned()
        }
        ChatError::Unknown(_) | ChatError::UnknownSession(_) => IDEAS.to_owned(),
        _ => return None,
    })
}

pub(super) fn attachment(error: &AttachError) -> Option<String> {
    match error {
        AttachError::Empty => Some("send the bytes of the file as the body".to_owned()),
        _ => None,
    }
}

pub(super) fn kept(error: &KeptError) -> Option<String> {
    match error {
        KeptError::Unknown { idea, .. } => Some(format!(
            "`GET /api/ideation/sessions/{idea}` shows what was said and what came along"
        )),
        _ => None,
    }
}

pub(super) fn abandon(error: &AbandonError) -> Option<String> {
    matches!(error, AbandonError::Unknown(_)).then(|| IDEAS.to_owned())
}

pub(super) fn steer(error: &SteerError) -> Option<String> {
    let (build, state) = match error {
        SteerError::State { build, state, .. } => (build, state),
        SteerError::Abandoned { .. } => return Some(ANOTHER_IDEA.to_owned()),
        _ => return None,
    };
    match state {
        BuildState::Paused => Some(format!("`POST /api/builds/{build}/resume` lets it go on")),
        BuildState::Failed | BuildState::Stopped => Some(format!(
            "`POST /api/builds/{build}/resume` takes it up again"
        )),
        BuildState::Succeeded => Some(format!("`GET /api/builds/{build}` shows what came of it")),
        BuildState::Queued | BuildState::Priming | BuildState::Running | BuildState::Verifying => {
            Some(format!("`GET /api/builds/{build}` shows how it stands"))
        }
    }
}

pub(super) fn misnamed(error: &MisnamedBuild) -> Option<String> {
    let spec = error.spec;
    match (error.build, error.to_approve()) {
        (Some(_), _) => None,
        (None, Some(_)) => Some(format!(
            "`POST /api/specifications/{spec}/approve` begins its build, with the `hash` that `GET /api/specifications/{spec}` shows"
        )),
        (None, None) => Some(format!("`GET /api/specifications/{spec}` shows more")),
    }
}

pub(super) fn halt(error: &HaltError) -> Option<String> {
    match error {
        HaltError::Already(_) => Some("`DELETE /api/halt` lets it go on".to_owned()),
        HaltError::NotStopped => {
            Some("`POST /api/builds/BUILD/resume` lets one build go on".to_owned())
        }
        _ => None,
    }
}

pub(super) fn task(error: &TaskError) -> Option<String> {
    match error {
        TaskError::NoneOpen(build) => Some(format!("`GET /api/builds/{build}` shows them")),
        TaskError::Words => Some("send what you want to say as `text`".to_owned()),
        _ => None,
    }
}

pub(super) fn landing(error: &LandingError) -> Option<String> {
    match error {
        LandingError::Already { build, .. } => {
            Some(format!("`GET /api/builds/{build}` shows what came of it"))
        }
        LandingError::Unfinished {
            build,
            state,
            instead,
        } => {
            let onwards = match (instead, state) {
                (Some(instead), _) => instead.clone(),
                (None, BuildState::Paused | BuildState::Failed | BuildState::Stopped) => {
                    format!("`POST /api/builds/{build}/resume` lets it go on")
                }
                (None, _) => format!("`GET /api/builds/{build}` shows how it stands"),
            };
            Some(format!("only one that succeeded is landed: {onwards}"))
        }
        _ => None,
    }
}

pub(super) fn request(error: &RequestError) -> Option<String> {
    let revise = |spec| format!("`POST /api/specifications/{spec}/revise`");
    Some(match error {
        RequestError::UnknownIdea(_) => IDEAS.to_owned(),
        RequestError::UnknownSpecification(_) => SPECIFICATIONS.to_owned(),
        RequestError::Abandoned(_) => ANOTHER_IDEA.to_owned(),
        RequestError::OnItsWay {
            spec,
            state: SpecState::Draft,
            ..
        } => {
            format!("wait for it, or put it away with `POST /api/specifications/{spec}/reject`")
        }
        RequestError::OnItsWay { spec, .. } => {
            format!("approve it, or ask for changes with {}", revise(spec))
        }
        RequestError::Landed { spec, .. } => format!(
            "for a change say {}, for something new `POST /api/ideation/sessions`",
            revise(spec)
        ),
        RequestError::Built { plan, .. } => format!("for a change say {}", revise(&plan.spec)),
        RequestError::State {
            spec, next: None, ..
        } => format!("`GET /api/specifications/{spec}` shows what became of it"),
        RequestError::BeingWritten { spec, .. } => {
            format!("say it once that is there; `GET /api/specifications/{spec}` shows it then")
        }
        _ => return None,
    })
}

pub(super) fn approve(error: &ApproveError) -> Option<String> {
    Some(match error {
        ApproveError::Unknown(_) => SPECIFICATIONS.to_owned(),
        ApproveError::Already { .. } => "`GET /api/builds` shows its build".to_owned(),
        ApproveError::PutAway { spec, .. } => {
            format!("ask for another one with `POST /api/specifications/{spec}/revise`")
        }
        ApproveError::Abandoned(_) => ANOTHER_IDEA.to_owned(),
        ApproveError::Elsewhere { spec, plan, .. } => format!(
            "say what is to change with `POST /api/specifications/{}/revise`, and put this one away with `POST /api/specifications/{spec}/reject`",
            plan.spec
        ),
        ApproveError::NotReady {
            spec,
            state: SpecState::Draft,
        } => format!("`GET /api/specifications/{spec}` shows it once it is written"),
        _ => return None,
    })
}

pub(super) fn acknowledge(error: &AcknowledgeError) -> Option<String> {
    match error {
        AcknowledgeError::Ambiguous { .. } => {
            Some("write more of the cause (`GET /api/alerts` shows them)".to_owned())
        }
        _ => None,
    }
}

pub(super) fn answer(error: &AnswerError) -> Option<String> {
    match error {
        AnswerError::Unknown(_) => Some("`GET /api/questions` shows the open ones".to_owned()),
        AnswerError::WordsAlone { choices, .. } => Some(format!(
            "send the id of what you choose as `choice`: {choices}"
        )),
        _ => None,
    }
}
