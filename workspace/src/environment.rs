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
/// Where programs are looked for where nobody says so.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The part of the process environment that children inherit, read once at start and passed in; it always has a `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
}

impl Default for Environment {
    /// Says where programs are, and nothing else.
    fn default() -> Self {
        Self::from_pairs::<OsString, OsString>([])
    }
}

impl Environment {
    /// Keeps the allowed variables of `pairs`, for example of `std::env::vars_os()`.
    pub fn from_pairs<Name, Value>(pairs: impl IntoIterator<Item = (Name, Value)>) -> Self
    where
        Name: Into<OsString>,
        Value: Into<OsString>,
    {
        let mut variables: Vec<(OsString, OsString)> = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .filter(|(name, _)| ALLOWED.iter().any(|allowed| name == allowed))
            .collect();
        // Each program would choose one by itself, and some of them the directory that they are in.
        if variables.iter().all(|(name, _)| name != "PATH") {
            variables.push(("PATH".into(), DEFAULT_PATH.into()));
        }
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

    #[test]
    fn where_nobody_names_a_path_there_is_one_and_one_that_is_empty_stays() {
        let named = [("HOME", "/home/ada")];
        let path = Environment::from_pairs(named).get("PATH").cloned();
        assert_eq!(path, Some(OsString::from(DEFAULT_PATH)));
        assert_eq!(Environment::default().get("PATH").cloned(), path);
        let empty = Environment::from_pairs([("PATH", "")]);
        assert_eq!(empty.get("PATH"), Some(&OsString::new()));
        assert_eq!(empty.variables().len(), 1);
    }
}
