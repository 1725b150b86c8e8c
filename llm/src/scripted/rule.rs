//! Holds the rules of a script as they are written in YAML.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{ModelError, TimeoutKind};
use crate::reply::StopReason;
use crate::request::ScriptKey;

/// Says what to answer to which calls; a missing condition holds always.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The role that asks.
    pub agent: Option<String>,
    /// The slug of the idea.
    pub idea: Option<String>,
    /// The task or step.
    pub task: Option<String>,
    /// The try, from 1.
    pub attempt: Option<u32>,
    /// The call within the try, from 1.
    pub turn: Option<u32>,
    /// Texts that the request must hold, all of them.
    #[serde(default)]
    pub contains: OneOrMany,
    /// Texts that the request must not hold, none of them.
    #[serde(default)]
    pub absent: OneOrMany,
    /// What to answer.
    pub reply: Answer,
}

impl Rule {
    /// Tells whether this rule answers a call.
    pub(super) fn matches(&self, key: &ScriptKey, text: &str) -> bool {
        fn holds<T: PartialEq>(wanted: Option<&T>, found: &T) -> bool {
            wanted.is_none_or(|wanted| wanted == found)
        }
        holds(self.agent.as_ref(), &key.agent)
            && holds(self.idea.as_ref(), &key.idea)
            && holds(self.task.as_ref(), &key.task)
            && holds(self.attempt.as_ref(), &key.attempt)
            && holds(self.turn.as_ref(), &key.turn)
            && self.contains.all(|wanted| text.contains(wanted))
            && self.absent.all(|unwanted| !text.contains(unwanted))
    }

    /// Finds what YAML alone would let pass.
    pub(super) fn check(&self) -> Result<(), String> {
        let reply = &self.reply;
        let says = reply.text.is_some() || !reply.tools.is_empty();
        if says == reply.error.is_some() {
            return Err("a reply has either `text` and `tools` or an `error`".to_owned());
        }
        let both = |tool: &&ScriptedTool| tool.malformed.is_some() && !tool.input.is_empty();
        match reply.tools.iter().find(both) {
            Some(tool) => Err(format!(
                "tool `{}` has either `input` or `malformed`",
                tool.name
            )),
            None => Ok(()),
        }
    }
}

/// Is one text or a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One text.
    One(String),
    /// Any number of texts.
    Many(Vec<String>),
}

impl Default for OneOrMany {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl OneOrMany {
    fn all(&self, condition: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::One(text) => condition(text),
            Self::Many(texts) => texts.iter().all(|text| condition(text)),
        }
    }
}

/// Is what a rule answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What the model says.
    pub text: Option<String>,
    /// The tools that it calls, after the text.
    #[serde(default)]
    pub tools: Vec<ScriptedTool>,
    /// Why it stops; by default for its tools, else because it has said all.
    pub stop: Option<StopReason>,
    /// How long it takes before it begins, in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
    /// It does not begin before this file is there.
    pub until: Option<PathBuf>,
    /// How it fails instead.
    pub error: Option<ScriptedError>,
}

impl Answer {
    /// Returns whether the file that it waits for is not there.
    pub(super) fn is_held(&self) -> bool {
        self.until.as_ref().is_some_and(|file| !file.exists())
    }
}

/// Is a scripted tool call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedTool {
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub input: Map<String, Value>,
    /// What the model writes instead of arguments, as a model that makes a mistake would.
    pub malformed: Option<String>,
}

/// Is a scripted failure.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedError {
    /// Which failure.
    pub kind: ScriptedErrorKind,
    /// What the provider says of it.
    #[serde(default)]
    pub message: String,
    /// How long the provider asks to wait.
    pub retry_after_seconds: Option<u64>,
    /// The HTTP status of `overloaded` (529) and `refused` (400).
    pub status: Option<u16>,
}

/// Names a failure that can be scripted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedErrorKind {
    /// See [`ModelError::Unauthorized`].
    Unauthorized,
    /// See [`ModelError::RateLimited`].
    RateLimited,
    /// See [`ModelError::Overloaded`].
    Overloaded,
    /// See [`ModelError::ContextOverflow`].
    ContextOverflow,
    /// See [`ModelError::Network`].
    Network,
    /// See [`ModelError::Timeout`]; it is the idle one.
    Timeout,
    /// See [`ModelError::Truncated`].
    Truncated,
    /// See [`ModelError::Malformed`].
    Malformed,
    /// See [`ModelError::Refused`].
    Refused,
}

impl ScriptedError {
    pub(super) fn to_model_error(&self) -> ModelError {
        let message = self.message.clone();
        let retry_after = self.retry_after_seconds.map(Duration::from_secs);
        match self.kind {
            ScriptedErrorKind::Unauthorized => ModelError::Unauthorized {
                variable: "SCRIPTED_KEY".to_owned(),
                message,
            },
            ScriptedErrorKind::RateLimited => ModelError::RateLimited {
                message,
                retry_after,
            },
            ScriptedErrorKind::Overloaded => ModelError::Overloaded {
                status: self.status.unwrap_or(529),
                message,
                retry_after,
            },
            ScriptedErrorKind::ContextOverflow => ModelError::ContextOverflow { message },
            ScriptedErrorKind::Network => ModelError::Network { message },
            ScriptedErrorKind::Timeout => ModelError::Timeout {
                what: TimeoutKind::Idle,
            },
            ScriptedErrorKind::Truncated => ModelError::Truncated,
            ScriptedErrorKind::Malformed => ModelError::Malformed { message },
            ScriptedErrorKind::Refused => ModelError::Refused {
                status: self.status.unwrap_or(400),
                message,
            },
        }
    }
}
