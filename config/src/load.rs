//! Loads the configuration of a directory: defaults < user < project < environment < flags.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::check;
use crate::environment::Environment;
use crate::error::ConfigError;
use crate::layers::{Layers, read_file};
use crate::origin::Origin;
use crate::settings::{Config, GateSettings};

/// The name of a project's file.
pub const PROJECT_FILE: &str = "ropewalk.toml";

/// The shipped defaults, with every key and its meaning.
pub const DEFAULTS: &str = include_str!("../default.toml");

/// The prefix of environment variables that set a key.
const PREFIX: &str = "ROPEWALK_";

/// A loaded configuration and where it came from.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The project's file, if one was found.
    pub project_file: Option<PathBuf>,
    /// The directory that the search began in.
    pub directory: PathBuf,
    layers: Layers,
}

/// A value of the configuration and where it was set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The key, dotted.
    pub key: String,
    /// The value; a password in an address is left out.
    pub value: Value,
    /// Where it was set.
    pub origin: Origin,
}

impl Config {
    /// Returns the shipped defaults.
    pub fn shipped() -> Result<Self, ConfigError> {
        let mut layers = Layers::default();
        layers.add_toml(DEFAULTS, &Origin::Default)?;
        read(&layers)
    }

    /// Loads the configuration for `directory`; `overrides` are `section.key=value` from flags.
    pub fn load(
        directory: &Path,
        environment: &Environment,
        overrides: &[String],
    ) -> Result<Loaded, ConfigError> {
        let mut layers = Layers::default();
        layers.add_toml(DEFAULTS, &Origin::Default)?;
        if let Some(path) = user_file(environment)
            && let Some(text) = read_file(&path)?
        {
            layers.add_toml(&text, &Origin::User { path, line: None })?;
        }
        let project_file = find_project_file(directory)?;
        if let Some(path) = project_file.clone()
            && let Some(text) = read_file(&path)?
        {
            layers.add_toml(&text, &Origin::Project { path, line: None })?;
        }
        add_environment(&mut layers, environment);
        for text in overrides {
            add_override(&mut layers, text)?;
        }
        Ok(Loaded {
            config: read(&layers)?,
            project_file,
            directory: directory.to_owned(),
            layers,
        })
    }
}

impl GateSettings {
    /// Reads the gate from the text of a project's file as a commit holds it; keys that the text does not set keep their defaults.
    pub fn of_project_text(text: &str) -> Result<Self, ConfigError> {
        let mut layers = Layers::default();
        layers.add_toml(DEFAULTS, &Origin::Default)?;
        let path = PathBuf::from(PROJECT_FILE);
        layers.add_toml(text, &Origin::Project { path, line: None })?;
        Ok(read(&layers)?.gate)
    }
}

impl Loaded {
    /// Returns where the value of `key` (dotted) was set.
    pub fn origin(&self, key: &str) -> Origin {
        self.layers.origin(key)
    }

    /// Returns every value with its origin, in the order of the defaults.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        self.collect("", &self.layers.values(), &mut entries);
        entries
    }

    fn collect(&self, path: &str, value: &Value, entries: &mut Vec<Entry>) {
        match value {
            Value::Object(table) if !path.is_empty() || !table.is_empty() => {
                for (key, inner) in table {
                    let below = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    self.collect(&below, inner, entries);
                }
            }
            _ => entries.push(Entry {
                key: path.to_owned(),
                value: without_secrets(value),
                origin: self.origin(path),
            }),
        }
    }
}

/// Returns where a user's file lies, if there can be one.
pub fn user_file(environment: &Environment) -> Option<PathBuf> {
    environment
        .config_home()
        .map(|home| home.join("ropewalk").join("config.toml"))
}

/// Searches `directory` and every directory above it for a project's file.
fn find_project_file(directory: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let start = std::path::absolute(directory).map_err(|error| ConfigError::Unreadable {
        path: directory.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(start
        .ancestors()
        .map(|above| above.join(PROJECT_FILE))
        .find(|path| path.exists()))
}

fn add_environment(layers: &mut Layers, environment: &Environment) {
    for (name, value) in environment.pairs() {
        let (Some(name), Some(text)) = (name.to_str(), value.to_str()) else {
            continue;
        };
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let path = rest.to_ascii_lowercase().replace("__", ".");
        // A name without `__` is no key, unless a key stands outside of the sections; other programs may own it.
        if path.contains('.') || layers.is_sectionless(&path) {
            layers.add_text(&path, text, &Origin::Environment(name.to_owned()));
        }
    }
}

fn add_override(layers: &mut Layers, text: &str) -> Result<(), ConfigError> {
    match text.split_once('=') {
        Some((key, value)) if is_key(key.trim()) => {
            layers.add_text(key.trim(), value.trim(), &Origin::Flag);
            Ok(())
        }
        _ => Err(ConfigError::NotAnOverride(text.to_owned())),
    }
}

fn is_key(text: &str) -> bool {
    text.split('.').all(|part| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    })
}

pub(crate) fn read(layers: &Layers) -> Result<Config, ConfigError> {
    let config: Config = serde_path_to_error::deserialize(layers.values()).map_err(|error| {
        let key = error.path().to_string();
        ConfigError::Invalid {
            origin: layers.origin(&key),
            reason: error.into_inner().to_string(),
            key,
        }
    })?;
    match check::first_fault(&config) {
        Some((key, reason)) => Err(ConfigError::Invalid {
            origin: layers.origin(&key),
            key,
            reason,
        }),
        None => Ok(config),
    }
}

fn without_secrets(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(crate::settings::without_password(text)),
        other => other.clone(),
    }
}
