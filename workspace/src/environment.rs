//! Holds the few variables of the process environment that a child may see.

use std::ffi::OsString;

/// The names that pass; everything else, secrets above all, stays behind.
const ALLOWED: [&str; 6] = [
    "PATH",
    "HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "LANG",
    "TMPDIR",
];

/// The part of the process environment that children inherit, read once at start and passed in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Keeps the allowed variables of `pairs`, for example of `std::env::vars_os()`.
    pub fn from_pairs<Name, Value>(pairs: impl IntoIterator<Item = (Name, Value)>) -> Self
    where
        Name: Into<OsString>,
        Value: Into<OsString>,
    {
        let variables = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .filter(|(name, _)| ALLOWED.iter().any(|allowed| name == allowed))
            .collect();
        Self { variables }
    }

    /// Adds what a person lets commands have beside.
    pub fn with<Name, Value>(mut self, named: impl IntoIterator<Item = (Name, Value)>) -> Self
    where
        Name: Into<OsString>,
        Value: Into<OsString>,
    {
        let named = named
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        self.variables.extend(named);
        self
    }

    /// Returns the variables that children inherit.
    pub fn variables(&self) -> &[(OsString, OsString)] {
        &self.variables
    }

    /// Returns the value of one allowed variable.
    pub fn get(&self, name: &str) -> Option<&OsString> {
        self.variables
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_git_settings_stay_behind() {
        let environment = Environment::from_pairs([
            ("PATH", "/bin"),
            ("ANTHROPIC_API_KEY", "secret"),
            ("GIT_DIR", "/elsewhere"),
        ]);
        assert_eq!(
            environment.variables(),
            [(OsString::from("PATH"), OsString::from("/bin"))]
        );
    }
}
