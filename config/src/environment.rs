//! Holds the process environment, read once.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use crate::settings::{credentials, is_secret};

/// The environment of the process as it was at the start.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    /// Where whoever manages the machine says what holds for everybody on it.
    managed: Option<PathBuf>,
}

/// Where that lies; no variable names another place, since then everybody could.
const MANAGED: &str = "/etc/ropewalk/managed.toml";

// Values may be secrets, so that only names are ever printed.
impl fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_set()
            .entries(self.variables.keys())
            .finish()
    }
}

impl Environment {
    /// Reads the environment of this process; call it once, at the start.
    pub fn from_process() -> Self {
        Self::from_pairs(std::env::vars_os()).managed_by(Path::new(MANAGED))
    }

    /// Lets the file at `path` hold over all else, if there is one.
    #[must_use]
    pub fn managed_by(mut self, path: &Path) -> Self {
        self.managed = Some(path.to_owned());
        self
    }

    /// Returns the file that holds over all else; there need not be one.
    pub fn managed(&self) -> Option<&Path> {
        self.managed.as_deref()
    }

    /// Makes an environment of `pairs`, on a machine that nobody manages.
    pub fn from_pairs<Name, Value>(pairs: impl IntoIterator<Item = (Name, Value)>) -> Self
    where
        Name: Into<OsString>,
        Value: Into<OsString>,
    {
        let variables = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Self {
            variables,
            managed: None,
        }
    }

    /// Returns the value of `name` when it is set, not empty and UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(std::ffi::OsStr::new(name))
            .and_then(|value| value.to_str())
            .filter(|value| !value.is_empty())
    }

    /// Returns the value of `name` as a secret.
    pub fn secret(&self, name: &str) -> Option<SecretString> {
        self.get(name).map(SecretString::from)
    }

    /// Returns the values of the variables that are secrets by their names, and what addresses in any of them log in with.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let texts = self.variables.iter();
        let texts = texts.filter_map(|(name, value)| Some((name, value.to_str()?)));
        texts.flat_map(|(name, value)| {
            // A file with secrets is named in the open.
            let is_named = is_secret(&name.to_string_lossy()) && !names_file(Path::new(value));
            let whole = is_named.then_some(value);
            whole.into_iter().chain(credentials(value))
        })
    }

    /// Returns every variable, for the parts that start other programs.
    pub fn pairs(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.variables.iter()
    }

    /// Returns the home directory.
    pub fn home(&self) -> Option<PathBuf> {
        self.absolute("HOME")
    }

    /// Returns where a user's configuration lies (XDG).
    pub fn config_home(&self) -> Option<PathBuf> {
        self.base("XDG_CONFIG_HOME", ".config")
    }

    /// Returns where state lies that outlives a restart (XDG).
    pub fn state_home(&self) -> Option<PathBuf> {
        self.base("XDG_STATE_HOME", ".local/state")
    }

    /// Returns where sockets of this user lie while somebody is logged in (XDG); there need not be such a place.
    pub fn runtime_home(&self) -> Option<PathBuf> {
        self.absolute("XDG_RUNTIME_DIR")
    }

    fn base(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        self.absolute(variable)
            .or_else(|| self.home().map(|home| home.join(below_home)))
    }

    // The XDG specification has relative paths ignored.
    fn absolute(&self, variable: &str) -> Option<PathBuf> {
        self.variables
            .get(std::ffi::OsStr::new(variable))
            .map(PathBuf::from)
            .filter(|path| Path::is_absolute(path))
    }
}

/// Says that `value` is the path of a file that is there, or that lies where others do. A key begins with `/` as well, as
/// every 64th does that base64 writes, and leads nowhere.
fn names_file(value: &Path) -> bool {
    let mut below_root = value.ancestors().filter(|place| place.parent().is_some());
    let is_there = |place: &Path| match place.try_exists() {
        Ok(is_there) => is_there,
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    };
    value.is_absolute() && below_root.any(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_directories_fall_back_to_home_and_ignore_relative_paths() {
        let environment = Environment::from_pairs([
            ("HOME", "/home/ada"),
            ("XDG_CONFIG_HOME", "relative"),
            ("XDG_STATE_HOME", "/var/state"),
        ]);
        assert_eq!(
            environment.config_home(),
            Some(PathBuf::from("/home/ada/.config"))
        );
        assert_eq!(environment.state_home(), Some(PathBuf::from("/var/state")));
        assert_eq!(Environment::default().state_home(), None);
        assert_eq!(environment.runtime_home(), None);
        for (set, expected) in [("run", None), ("/run/user/7", Some("/run/user/7"))] {
            let environment = Environment::from_pairs([("XDG_RUNTIME_DIR", set)]);
            assert_eq!(environment.runtime_home(), expected.map(PathBuf::from));
        }
    }

    #[test]
    fn secrets_are_known_by_the_names_of_their_variables() {
        let environment = Environment::from_pairs([
            ("ANTHROPIC_API_KEY", "canary-1"),
            ("PGPASSWORD", "canary-2"),
            ("AWS_SECRET_ACCESS_KEY", "/canary+of/forty-letters-in-all"),
            ("SIGNING_KEY", "/canary-of-one-part"),
            ("nats_token", "canary-3"),
            ("MYSQL_PWD", "canary-4"),
            ("DATABASE_URL", "postgres://ada:canary-5@host/walks"),
            ("REMOTE", "https://canary-of-twenty-letters@host/x"),
            ("PLAIN", "https://ada@host/x"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/file.json"),
            ("KEY_FILE", "/etc/not/there/yet.pem"),
            ("TOKEN_FILE", "/etc/passwd"),
            ("HOME", "/home/ada"),
        ]);
        let secrets: Vec<&str> = environment.secrets().collect();
        let expected = [
            "canary-1",
            "/canary+of/forty-letters-in-all",
            "canary-5",
            "canary-4",
            "canary-2",
            "canary-of-twenty-letters",
            "/canary-of-one-part",
            "canary-3",
        ];
        assert_eq!(secrets, expected);
    }

    #[test]
    fn values_are_never_printed() {
        let environment = Environment::from_pairs([("API_KEY", "canary")]);
        assert_eq!(format!("{environment:?}"), "{\"API_KEY\"}");
    }
}
