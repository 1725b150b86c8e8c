//! Says why a job came to nothing, in the kinds that callers tell apart.

use ropewalk_llm::{ModelError, StopReason, TimeoutKind};
use ropewalk_schemas::attempt::FailureClass;
use ropewalk_schemas::outage::Outage;
use ropewalk_store::{CommitError, ReadError};

use crate::budget::BudgetOverrun;

/// Says why a job came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model gave no acceptable result, and its repairs are used up.
    #[error("the model gave no valid `{name}` after {tries} tries: {}", .errors.join("; "))]
    Submission {
        /// The submission.
        name: String,
        /// How often it was asked.
        tries: u32,
        /// What was wrong with the last one.
        errors: Vec<String>,
    },
    /// The model stopped before its result for a reason of its own.
    #[error("the model gave no result: {}", why_it_stopped(reason))]
    Stopped {
        /// Why it stopped.
        reason: StopReason,
        /// What it said.
        text: String,
    },
    /// The model writes and does nothing.
    #[error("the model wrote {replies} replies in a row without calling a tool: {text}")]
    OnlyText {
        /// How many.
        replies: u32,
        /// What it wrote.
        text: String,
    },
    /// The model repeats itself.
    #[error("the model called `{tool}` with the same arguments again and again")]
    DoomLoop {
        /// The tool of the call that was one too many.
        tool: String,
    },
    /// The model was asked as often as is allowed.
    #[error("the job did not end within {turns} turns")]
    TurnLimit {
        /// The bound.
        turns: u32,
    },
    /// The job used as many tokens as is allowed.
    #[error("the job used {used} tokens; {limit} is the most")]
    TokenLimit {
        /// Used so far.
        used: u64,
        /// The bound.
        limit: u64,
    },
    /// A budget above that of the job is used up.
    #[error(
        "the budget `{}` is used up: {} of {}; raise it in `[budget]`, or wait for the next day",
        .0.scope, .0.used, .0.limit
    )]
    Budget(Box<BudgetOverrun>),
    /// The provider is away, and nobody is to ask it before it answers again.
    #[error("{0}")]
    Outage(Box<Outage>),
    /// A tool ended the work, for example because the attempt lost its files.
    #[error("the work was ended: {reason}")]
    Ended {
        /// Why.
        reason: String,
    },
    /// The caller gave up.
    #[error("the job was cancelled")]
    Cancelled,
    /// The job itself is wrong.
    #[error("the job cannot be run: {0}")]
    Job(String),
    /// The journal could not be read.
    #[error("cannot read the journal of model calls")]
    Read(#[from] ReadError),
    /// The journal could not be written.
    #[error("cannot write the journal of model calls")]
    Journal(#[source] CommitError),
    /// The journal holds something that is no reply.
    #[error("the journaled reply `{key}` cannot be read: {reason}")]
    JournalEntry {
        /// The journal key.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Says when another model is asked in place of one that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Succession {
    /// At once: its provider is away, its quota is used up, or it has no room for the conversation.
    AtOnce,
    /// Once it has happened a few times: a single reply that breaks off may be chance.
    OnceRepeated,
    /// Not at all: whoever is asked would fail as well.
    Never,
}

impl EngineError {
    /// Says when another model takes over the call; whether something of its reply was `heard`, the caller knows.
    pub(crate) fn succession(&self, heard: bool) -> Succession {
        match self {
            Self::Outage(_) => Succession::AtOnce,
            Self::Model(error) => model_succession(error, heard),
            Self::Submission { .. }
            | Self::Stopped { .. }
            | Self::OnlyText { .. }
            | Self::DoomLoop { .. }
            | Self::TurnLimit { .. }
            | Self::TokenLimit { .. }
            | Self::Budget(_)
            | Self::Ended { .. }
            | Self::Cancelled
            | Self::Job(_)
            | Self::Read(_)
            | Self::Journal(_)
            | Self::JournalEntry { .. } => Succession::Never,
        }
    }

    /// Returns the class of the failure; none when nothing failed (the work was ended from outside) or when the
    /// store is at fault, which is no fault of the work.
    pub fn failure_class(&self) -> Option<FailureClass> {
        match self {
            Self::Model(error) => model_class(error),
            Self::Submission { .. } | Self::Stopped { .. } | Self::OnlyText { .. } => {
                Some(FailureClass::AgentRefused)
            }
            Self::DoomLoop { .. } => Some(FailureClass::DoomLoop),
            Self::TurnLimit { .. } => Some(FailureClass::NoProgress),
            Self::TokenLimit { .. } => Some(FailureClass::Quota),
            // What is damaged in the journal stays so.
            Self::Job(_) | Self::JournalEntry { .. } => Some(FailureClass::Unknown),
            Self::Ended { .. }
            | Self::Budget(_)
            | Self::Outage(_)
            | Self::Cancelled
            | Self::Read(_)
            | Self::Journal(_) => None,
        }
    }
}

const fn model_succession(error: &ModelError, heard: bool) -> Succession {
    match error {
        // It would be the same when it is asked again.
        ModelError::RateLimited { .. }
        | ModelError::OutOfCredit { .. }
        | ModelError::ContextOverflow { .. }
        | ModelError::Timeout {
            what: TimeoutKind::Total,
        } => Succession::AtOnce,
        ModelError::Unauthorized { .. }
        | ModelError::Overloaded { .. }
        | ModelError::Network { .. }
        | ModelError::Truncated
        | ModelError::Malformed { .. }
        | ModelError::Timeout {
            what: TimeoutKind::Connect | TimeoutKind::Idle,
        } => {
            if heard {
                Succession::OnceRepeated
            } else {
                Succession::AtOnce
            }
        }
        ModelError::TooLong { .. }
        | ModelError::Refused { .. }
        | ModelError::Script { .. }
        | ModelError::Strayed { .. }
        | ModelError::Cancelled => Succession::Never,
    }
}

fn model_class(error: &ModelError) -> Option<FailureClass> {
    Some(match error {
        ModelError::RateLimited { .. } | ModelError::OutOfCredit { .. } => FailureClass::Quota,
        ModelError::Overloaded { .. }
        | ModelError::Truncated
        | ModelError::Malformed { .. }
        | ModelError::Timeout { .. } => FailureClass::ProviderDown,
        ModelError::Network { .. } => FailureClass::Network,
        ModelError::ContextOverflow { .. } => FailureClass::ContextFull,
        ModelError::TooLong { .. } => FailureClass::ReplyTooLarge,
        ModelError::Refused { .. } => FailureClass::AgentRefused,
        // Only a person can give a key, so nothing is tried again.
        ModelError::Unauthorized { .. }
        | ModelError::Script { .. }
        | ModelError::Strayed { .. } => FailureClass::Unknown,
        ModelError::Cancelled => return None,
    })
}

/// Says why a model stopped, and what may help.
fn why_it_stopped(reason: &StopReason) -> String {
    match reason {
        StopReason::MaxTokens => {
            "its reply was cut at the most tokens it may have; raise `max_output_tokens` in `[models]`, or choose another model".to_owned()
        }
        StopReason::ContentFilter => "it or its provider declined to answer".to_owned(),
        StopReason::EndTurn | StopReason::ToolUse => "it ended its reply before one".to_owned(),
        StopReason::Other(reason) => format!("its provider stopped it ({reason})"),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use ropewalk_llm::ScriptKey;
    use ropewalk_schemas::outage::OutageClass;

    use super::*;

    #[test]
    fn every_kind_of_end_has_its_class() {
        let cases = [
            (
                EngineError::Model(ModelError::RateLimited {
                    message: String::new(),
                    retry_after: None,
                }),
                Some(FailureClass::Quota),
            ),
            (
                EngineError::Model(ModelError::OutOfCredit {
                    message: String::new(),
                }),
                Some(FailureClass::Quota),
            ),
            (
                EngineError::Model(ModelError::Truncated),
                Some(FailureClass::ProviderDown),
            ),
            (
                EngineError::Model(ModelError::ContextOverflow {
                    message: String::new(),
                }),
                Some(FailureClass::ContextFull),
            ),
            (
                EngineError::Model(ModelError::TooLong { limit_bytes: 1 }),
                Some(FailureClass::ReplyTooLarge),
            ),
            (
                EngineError::OnlyText {
                    replies: 3,
                    text: String::new(),
                },
                Some(FailureClass::AgentRefused),
            ),
            (EngineError::Model(ModelError::Cancelled), None),
            (EngineError::Cancelled, None),
            (
                EngineError::DoomLoop {
                    tool: "grep".to_owned(),
                },
                Some(FailureClass::DoomLoop),
            ),
            (
                EngineError::TurnLimit { turns: 50 },
                Some(FailureClass::NoProgress),
            ),
            (
                EngineError::Stopped {
                    reason: StopReason::MaxTokens,
                    text: String::new(),
                },
                Some(FailureClass::AgentRefused),
            ),
        ];
        for (error, class) in cases {
            assert_eq!(error.failure_class(), class, "{error}");
        }
    }

    #[test]
    fn another_model_is_asked_where_the_provider_fails_and_not_the_request() {
        let message = String::new;
        let malformed = || ModelError::Malformed { message: message() };
        let total = TimeoutKind::Total;
        let (idle, connect) = (TimeoutKind::Idle, TimeoutKind::Connect);
        let (at_once, never) = (Succession::AtOnce, Succession::Never);
        let repeated = Succession::OnceRepeated;
        let cases = [
            (ModelError::Truncated, at_once, repeated),
            (malformed(), at_once, repeated),
            (ModelError::Timeout { what: total }, at_once, at_once),
            (ModelError::Timeout { what: idle }, at_once, repeated),
            (ModelError::Timeout { what: connect }, at_once, repeated),
            (
                ModelError::Overloaded {
                    status: 529,
                    message: message(),
                    retry_after: None,
                },
                at_once,
                repeated,
            ),
            (
                ModelError::RateLimited {
                    message: message(),
                    retry_after: None,
                },
                at_once,
                at_once,
            ),
            (
                ModelError::OutOfCredit { message: message() },
                at_once,
                at_once,
            ),
            (
                ModelError::Network { message: message() },
                at_once,
                repeated,
            ),
            (
                ModelError::Unauthorized {
                    variable: message(),
                    message: message(),
                },
                at_once,
                repeated,
            ),
            (
                ModelError::ContextOverflow { message: message() },
                at_once,
                at_once,
            ),
            (ModelError::TooLong { limit_bytes: 1 }, never, never),
            (
                ModelError::Refused {
                    status: 400,
                    message: message(),
                },
                never,
                never,
            ),
            (ModelError::Cancelled, never, never),
        ];
        for (error, unheard, heard) in cases {
            let error = EngineError::Model(error);
            let found = [error.succession(false), error.succession(true)];
            assert_eq!(found, [unheard, heard], "{error}");
        }
    }

    #[test]
    fn another_model_is_asked_where_a_provider_is_known_to_be_away_and_not_where_the_job_ends() {
        let outage = Outage {
            provider: "p".to_owned(),
            class: OutageClass::Unavailable,
            roles: Vec::new(),
            since: DateTime::UNIX_EPOCH,
            last_error: String::new(),
            probes: 0,
            probe_at: None,
            ended_at: None,
            met_by: Vec::new(),
        };
        let strayed = ModelError::Strayed {
            place: String::new(),
            what: String::new(),
        };
        let key = ScriptKey::default();
        let tool = "grep".to_owned();
        let (at_once, never) = (Succession::AtOnce, Succession::Never);
        for (error, succession) in [
            (EngineError::Outage(Box::new(outage)), at_once),
            (EngineError::Model(strayed), never),
            (EngineError::Model(ModelError::Script { key }), never),
            (EngineError::Cancelled, never),
            (EngineError::DoomLoop { tool }, never),
            (EngineError::TurnLimit { turns: 50 }, never),
            (EngineError::Job(String::new()), never),
        ] {
            for heard in [false, true] {
                assert_eq!(error.succession(heard), succession, "{error}");
            }
        }
    }

    #[test]
    fn a_reply_without_a_result_says_what_cut_it_and_what_helps() {
        let stopped = |reason| {
            let text = String::new();
            EngineError::Stopped { reason, text }.to_string()
        };
        assert!(stopped(StopReason::MaxTokens).contains("`max_output_tokens`"));
        assert!(stopped(StopReason::ContentFilter).contains("declined"));
        assert!(stopped(StopReason::Other("pause_turn".to_owned())).contains("(pause_turn)"));
    }
}
