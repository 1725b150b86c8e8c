//! Defines how commands are confined, and what they get of the world outside.

use std::fmt;

use ropewalk_schemas::HostPattern;
use serde::{Deserialize, Serialize};

/// How commands that a model asks for are confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxSettings {
    /// Whether they are.
    pub mode: SandboxMode,
    /// The hosts that commands reach.
    pub hosts: Vec<HostPattern>,
    /// The hosts that installs of packages reach beside.
    pub package_hosts: Vec<HostPattern>,
    /// The variables of this program's environment that commands get beside the few that say where tools are.
    pub variables: Vec<VariableName>,
}

/// Whether commands that a model asks for are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// They are confined, or do not run.
    Required,
    /// They run with the rights of the user.
    Off,
}

/// The name of a variable that commands may be given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VariableName(String);

/// Says that commands are given no variable of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVariable {
    /// It is no name.
    #[error("`{0}` names no variable; write its name alone, for example `RUST_LOG`")]
    NotAName(String),
    /// The system loads what it names into each program.
    #[error("`{0}` decides what is loaded into a program before it is confined; drop it")]
    Loads(String),
}

impl VariableName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for VariableName {
    type Error = InvalidVariable;

    fn try_from(text: String) -> Result<Self, InvalidVariable> {
        let is_name = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name || text.is_empty() || text.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(InvalidVariable::NotAName(text));
        }
        if text.starts_with("LD_") {
            return Err(InvalidVariable::Loads(text));
        }
        Ok(Self(text))
    }
}

impl From<VariableName> for String {
    fn from(name: VariableName) -> Self {
        name.0
    }
}

impl fmt::Display for VariableName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_named_by_what_a_shell_could_set() {
        for good in ["RUST_LOG", "_", "npm_config_cache", "A1"] {
            let parsed = VariableName::try_from(good.to_owned());
            assert_eq!(parsed.map(String::from).as_deref(), Ok(good));
        }
        for bad in ["", "1A", "A-B", "A=1", "$A", "A B", "A\n", "ä"] {
            let refused = VariableName::try_from(bad.to_owned());
            assert_eq!(refused, Err(InvalidVariable::NotAName(bad.to_owned())));
        }
        let loads = VariableName::try_from("LD_PRELOAD".to_owned());
        assert_eq!(loads, Err(InvalidVariable::Loads("LD_PRELOAD".to_owned())));
    }
}
