//! What is said of each error of this crate, beside what is wrong: how to mend it.

use ropewalk_schemas::BuildId;
use ropewalk_schemas::advice::Advice;
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::specification::SpecState;

use crate::alerts::AcknowledgeError;
use crate::attachments::AttachError;
use crate::attachments::kept::KeptError;
use crate::builds::SteerError;
use crate::builds::again::AgainError;
use crate::builds::landing::LandingError;
use crate::builds::named::MisnamedBuild;
use crate::builds::tasks::TaskError;
use crate::comments::CommentError;
use crate::dead_letters::DeadLetterError;
use crate::halt::HaltError;
use crate::ideas::{AbandonError, ChatError};
use crate::knowledge::RemarkError;
use crate::people::{PermissionError, Stranger};
use crate::phones::LinkError;
use crate::questions::RefusedAnswer;
use crate::specifications::{ApproveError, RequestError};
use crate::subscribers::ReplayError;
use crate::views::specification::CompareError;
use crate::views::trace::FindError;
use crate::views::transcript::TranscriptError;

const IDEAS: &str = "`ropewalk idea list` shows them";
const SPECIFICATIONS: &str = "`ropewalk spec list` shows them";
const ANOTHER_IDEA: &str = "begin another with `ropewalk idea new`";

impl Advice for PermissionError {
    fn next(&self) -> Option<String> {
        let Self { person, right } = self;
        Some(format!(
            "add `{right}` to `rights` of `[people.{person}]`, or let somebody do it who may"
        ))
    }
}

impl Advice for Stranger {
    fn next(&self) -> Option<String> {
        Some(match self {
            Self::User(user) => format!("set `user = \"{user}\"` for one of them"),
            Self::Token => "`ropewalk people token NAME` makes another".to_owned(),
        })
    }
}

impl Advice for LinkError {
    fn next(&self) -> Option<String> {
        Some(match self {
            Self::Unknown(name) => format!(
                "`ropewalk people token {name}` prints the section that somebody new needs, and `ropewalk people list` shows who is there"
            ),
            Self::Code => "`ropewalk people link` prints another".to_owned(),
            Self::Read(error) => return error.next(),
            Self::Commit(error) => return error.next(),
        })
    }
}

impl Advice for ChatError {
    fn next(&self) -> Option<String> {
        Some(match self {
            Self::Empty => "write what you want to say".to_owned(),
            Self::TooLong(_) => "put the rest into another message".to_owned(),
            Self::LongTitle(_) => "say it in a few words; the message holds the rest".to_owned(),
            Self::Taken(idea) => {
                format!("choose another name, or go on with `ropewalk idea chat {idea}`")
            }
            Self::Abandoned(_) => ANOTHER_IDEA.to_owned(),
            Self::Complete { idea, next } => {
                format!("{next}, or say more with `ropewalk idea chat {idea}`")
            }
            Self::Unknown(_) => IDEAS.to_owned(),
            Self::UnknownSession(_) => "`ropewalk idea list` shows the ideas".to_owned(),
            Self::Read(error) => return error.next(),
            Self::Commit(error) => return error.next(),
        })
    }
}

impl Advice for AttachError {
    fn next(&self) -> Option<String> {
        match self {
            Self::TooLarge(_) => Some("send a part of it, or say what is in it".to_owned()),
            Self::Full { .. } => Some("say in words what else there is".to_owned()),
            Self::Chat(error) => error.next(),
            Self::Empty | Self::File { .. } => None,
        }
    }
}

impl Advice for KeptError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Unknown { idea, .. } => Some(format!(
                "`ropewalk idea show {idea}` shows what was said and what came along"
            )),
            Self::Changed(_) => None,
            Self::Read(error) => error.next(),
        }
    }
}

impl Advice for AbandonError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Unknown(_) => Some(IDEAS.to_owned()),
            Self::Forbidden(error) => error.next(),
            Self::Already(_) | Self::Landed(_) | Self::Changed(_) => None,
            Self::TooLong(error) => error.next(),
            Self::Read(error) => error.next(),
            Self::Commit(error) => error.next(),
        }
    }
}

impl Advice for RequestError {
    fn next(&self) -> Option<String> {
        Some(match self {
            Self::UnknownIdea(_) => IDEAS.to_owned(),
            Self::UnknownSpecification(_) => SPECIFICATIONS.to_owned(),
            Self::Abandoned(_) => ANOTHER_IDEA.to_owned(),
            Self::OnItsWay {
                spec,
                state: SpecState::Draft,
                ..
            } => format!("wait for it, or put it away with `ropewalk spec reject {spec}`"),
            Self::OnItsWay { spec, .. } => {
                format!("approve it, or ask for changes with `ropewalk spec revise {spec} WORDS`")
            }
            Self::State {
                next: Some(next), ..
            } => (*next).to_owned(),
            Self::Landed { spec, .. } => format!(
                "for a change say `ropewalk spec revise {spec} WORDS`, for something new `ropewalk idea new`"
            ),
            Self::Built { plan, .. } => {
                let spec = plan.spec;
                let goes_on = plan.progress.at_rest().map_or_else(String::new, |build| {
                    format!("`ropewalk build resume {build}` lets that go on; ")
                });
                format!("{goes_on}for a change say `ropewalk spec revise {spec} WORDS`")
            }
            Self::State { spec, .. } => {
                format!("`ropewalk spec show {spec}` shows what became of it")
            }
            Self::BeingWritten { .. } => {
                "say it once that is there; `ropewalk spec generate IDEA` waits for it, and has it written where nobody is at it".to_owned()
            }
            Self::Forbidden(error) => return error.next(),
            Self::Newer { .. } => "look at it again, then decide".to_owned(),
            Self::Text => "say what to change".to_owned(),
            Self::Read(error) => return error.next(),
            Self::Commit(error) => return error.next(),
        })
    }
}

impl Advice for CommentError {
    fn next(&self) -> Option<String> {
        Some(match self {
            Self::Unfinished(_) => "wait for its end, or tell its models something now".to_owned(),
            Self::Amended(_) => "comment on what the other one changed".to_owned(),
            Self::Changed | Self::NoLine { .. } => {
                "look at its lines again, and say it about those".to_owned()
            }
            Self::Count => "say something about at least one line".to_owned(),
            Self::Document(error) => return error.next(),
            Self::Request(error) => return error.next(),
        })
    }
}

impl Advice for ApproveError {
    fn next(&self) -> Option<String> {
        Some(match self {
            Self::Unknown(_) => SPECIFICATIONS.to_owned(),
            Self::Already { .. } => "`ropewalk build list` shows its build".to_owned(),
            Self::PutAway { spec, .. } => {
                format!("ask for another one with `ropewalk spec revise {spec} WORDS`")
            }
            // Whoever copied the new hash from here would approve what nobody has read.
            Self::Stale { revision, .. } => {
                format!("read revision {revision}, then approve the hash that it is shown with")
            }
            Self::Forbidden(error) => return error.next(),
            Self::Abandoned(_) => ANOTHER_IDEA.to_owned(),
            Self::Elsewhere { spec, plan, .. } => format!(
                "say what is to change with `ropewalk spec revise {} WORDS`, and put this one away with `ropewalk spec reject {spec}`",
                plan.spec
            ),
            Self::NotReady {
                spec,
                state: SpecState::Draft,
            } => format!("`ropewalk spec show {spec}` shows it once it is written"),
            Self::NotReady { .. } => return None,
            Self::Read(error) => return error.next(),
            Self::Commit(error) => return error.next(),
        })
    }
}

impl Advice for SteerError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Forbidden(error) => error.next(),
            Self::Continued { next, .. } => Some(format!("build `{next}` goes on with its work")),
            Self::Illegal(refused) => refused.instead.clone(),
            Self::State { build, state, .. } => Some(onwards(*build, *state)),
            Self::Abandoned { .. } => Some(ANOTHER_IDEA.to_owned()),
            Self::TooLong(error) => error.next(),
            Self::Read(error) => error.next(),
            Self::Commit(error) => error.next(),
        }
    }
}

/// Says how a build gets on, which something still lets go on, or what shows where it has come to.
fn onwards(build: BuildId, state: BuildState) -> String {
    match state {
        BuildState::Paused => format!("`ropewalk build resume {build}` lets it go on"),
        // Also where no task of it is left to be tried again.
        BuildState::Failed | BuildState::Stopped => {
            format!("`ropewalk build resume {build}` takes it up again")
        }
        BuildState::Succeeded => format!("`ropewalk build show {build}` shows what came of it"),
        BuildState::Queued | BuildState::Priming | BuildState::Running | BuildState::Verifying => {
            format!("`ropewalk build wait {build}` waits for its end")
        }
    }
}

impl Advice for TaskError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Forbidden(error) => error.next(),
            Self::Unknown { build, .. } => {
                Some(format!("`ropewalk build show {build}` shows them"))
            }
            Self::NoneOpen(build) => Some(format!(
                "`ropewalk build show {build}` shows them; what they made is changed with `ropewalk spec revise IDEA WORDS`"
            )),
            Self::State(refused) => refused.instead.clone(),
            Self::Words => None,
            Self::TooLong(error) => error.next(),
            Self::Read(error) => error.next(),
            Self::Commit(error) => error.next(),
        }
    }
}

impl Advice for LandingError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Forbidden(error) => error.next(),
            Self::Already { build, .. } => Some(format!(
                "`ropewalk build land {build} --push REMOTE` sends it somewhere"
            )),
            Self::Unfinished {
                build,
                state,
                instead,
            } => {
                let next = instead.clone();
                let next = next.unwrap_or_else(|| onwards(*build, *state));
                Some(format!("only one that succeeded is landed: {next}"))
            }
            Self::Moved { .. } => Some("look at what landing comes to now".to_owned()),
            Self::Commit(error) => error.next(),
        }
    }
}

impl Advice for HaltError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Forbidden(error) => error.next(),
            Self::Already(_) => Some("`ropewalk resume` lets it go on".to_owned()),
            Self::TooLong(_) => Some("stop it with fewer words, or without any".to_owned()),
            Self::NotStopped => {
                Some("`ropewalk build resume BUILD` lets one build go on".to_owned())
            }
            Self::Read(error) => error.next(),
            Self::Commit(error) => error.next(),
        }
    }
}

impl Advice for CompareError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Missing { newest, .. } => Some(format!("its newest is {newest}")),
            Self::Alone(_) => None,
            Self::Read(error) => error.next(),
        }
    }
}

impl Advice for FindError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Ambiguous { .. } => Some("write more digits".to_owned()),
            Self::Name(_) => None,
        }
    }
}

impl Advice for AcknowledgeError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Unknown(_) => Some("`ropewalk alert list` shows them".to_owned()),
            Self::Ambiguous { .. } => {
                Some("write more of the cause (`ropewalk alert list` shows them)".to_owned())
            }
            Self::Already { .. } => None,
            Self::Read(error) => error.next(),
            Self::Commit(error) => error.next(),
        }
    }
}

impl Advice for DeadLetterError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Unknown(_) => Some("`ropewalk dead-letter list` shows them".to_owned()),
            Self::Forbidden(error) => error.next(),
            Self::Read(error) => error.next(),
            Self::Commit(error) => error.next(),
        }
    }
}

impl Advice for ReplayError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Unknown { known, .. } if known.is_empty() => {
                Some("`ropewalk up` makes them when it first runs".to_owned())
            }
            Self::Unknown { known, .. } => {
                let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                Some(format!("there are {}", names.join(", ")))
            }
            Self::Forbidden(error) => error.next(),
            Self::Read(error) => error.next(),
            Self::Commit(error) => error.next(),
        }
    }
}

impl Advice for RefusedAnswer {
    fn next(&self) -> Option<String> {
        match self {
            Self::Forbidden(error) => error.next(),
            Self::TooLong(error) => error.next(),
            Self::Answer(error) => error.next(),
        }
    }
}

impl Advice for AgainError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Open { .. } => Some("replay it when it has ended".to_owned()),
            Self::Groundless(_) => None,
            Self::Read(error) => error.next(),
            Self::Commit(error) => error.next(),
        }
    }
}

impl Advice for MisnamedBuild {
    fn next(&self) -> Option<String> {
        let spec = self.spec;
        Some(match (self.build, self.to_approve()) {
            (Some(build), _) => format!("name that: `{build}`"),
            (None, Some(hash)) => {
                format!("`ropewalk spec approve {spec} --hash {hash}` begins its build")
            }
            (None, None) => format!("`ropewalk spec show {spec}` shows more"),
        })
    }
}

impl Advice for RemarkError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Refused(refusal) => refusal.next(),
            Self::Read(error) => error.next(),
            Self::Commit(error) => error.next(),
        }
    }
}

impl Advice for TranscriptError {
    fn next(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.next(),
            Self::File { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_schemas::advice::Words;
    use ropewalk_store::CommitError;

    use super::*;

    #[test]
    fn a_build_that_cannot_be_done_again_says_what_can() {
        let build: BuildId = "00000000-0000-0000-0000-000000000000".parse().unwrap();
        let open = AgainError::Open {
            build,
            state: BuildState::Running,
        };
        assert_eq!(
            Words::of(&open),
            (
                "build `00000000-0000-0000-0000-000000000000` is running",
                "replay it when it has ended"
            )
                .into()
        );
        assert_eq!(AgainError::Groundless(build).next(), None);
    }

    #[test]
    fn what_is_not_landed_yet_names_the_verb_of_its_state() {
        let build: BuildId = "00000000-0000-0000-0000-000000000000".parse().unwrap();
        for (state, verb) in [
            (BuildState::Queued, "wait"),
            (BuildState::Running, "wait"),
            (BuildState::Verifying, "wait"),
            (BuildState::Paused, "resume"),
            (BuildState::Stopped, "resume"),
            (BuildState::Failed, "resume"),
        ] {
            let unfinished = |instead| LandingError::Unfinished {
                build,
                state,
                instead,
            };
            let next = unfinished(None).next().unwrap_or_default();
            let named = format!("`ropewalk build {verb} {build}`");
            assert!(next.contains(&named), "{state}: {next}");
            // What nothing lets go on any more has no verb.
            let over = "the idea `walks` was abandoned".to_owned();
            let next = unfinished(Some(over)).next();
            let told = "only one that succeeded is landed: the idea `walks` was abandoned";
            assert_eq!(next.as_deref(), Some(told));
        }
    }

    #[test]
    fn a_wish_that_is_refused_names_a_verb_in_every_state() {
        let build: BuildId = "00000000-0000-0000-0000-000000000000".parse().unwrap();
        for state in BuildState::ALL {
            let why = "it has no use for that";
            let next = SteerError::State {
                build,
                state: *state,
                why,
            }
            .next();
            let next = next.unwrap_or_default();
            assert!(next.contains("`ropewalk build "), "{state}: {next}");
        }
        let nobody = TaskError::NoneOpen(build).next().unwrap_or_default();
        assert!(nobody.contains("`ropewalk spec revise "), "{nobody}");
    }

    #[test]
    fn the_store_says_how_it_is_mended() {
        let full = ChatError::from(CommitError::NoSpace);
        let words = (
            "the disk of the database is full",
            "make room and try again",
        );
        assert_eq!(Words::of(&full), words.into());
        assert_eq!(
            RemarkError::from(CommitError::Busy).next().as_deref(),
            Some("try again")
        );
    }
}
