//! Loads the configuration of a directory: defaults < user < project < environment < flags < whoever manages the machine.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::check;
use crate::entry::{Entry, without_secrets};
use crate::environment::Environment;
use crate::error::ConfigError;
use crate::given::{add_environment, add_override, variable};
use crate::layers::{Layers, read_file};
use crate::origin::Origin;
use crate::otel::OtelVariables;
use crate::settings::{Config, credentials, tokens_of_hook, without_password};
use crate::trust::{TrustRequest, refuse_strangers};

/// The name of a project's file.
pub const PROJECT_FILE: &str = "ropewalk.toml";

/// The shipped defaults, with every key and its meaning.
pub const DEFAULTS: &str = include_str!("../default.toml");

/// A loaded configuration and where it came from.
#[derive(Debug)]
pub struct LoadedConfig {
    /// The configuration.
    pub config: Config,
    /// The project's file, if one was found.
    pub project_file: Option<PathBuf>,
    /// The directory that the search began in.
    pub directory: PathBuf,
    /// What the project's file needs the word of a person for, if anything.
    pub trust: Option<Box<TrustRequest>>,
    layers: Layers,
}

impl Config {
    /// Returns the shipped defaults.
    pub fn shipped() -> Result<Self, ConfigError> {
        let mut layers = Layers::default();
        layers.add_toml(DEFAULTS, &Origin::Default)?;
        read(&layers)
    }

    /// Loads the configuration for `directory`; `overrides` are `section.key=value` from flags. A project's file that
    /// loosens something that nobody has trusted is refused.
    pub fn load(
        directory: &Path,
        environment: &Environment,
        overrides: &[String],
    ) -> Result<LoadedConfig, ConfigError> {
        let loaded = Self::load_whoever_wrote_it(directory, environment, overrides)?;
        match &loaded.trust {
            Some(request) => request.demand(environment).map(|()| loaded),
            None => Ok(loaded),
        }
    }

    /// Loads the configuration though nobody may have trusted the project's file: for showing what it asks for, or where
    /// this program has just written it.
    pub fn load_whoever_wrote_it(
        directory: &Path,
        environment: &Environment,
        overrides: &[String],
    ) -> Result<LoadedConfig, ConfigError> {
        Self::laid(directory, environment, overrides, |path, text, layers| {
            let trust = TrustRequest::of(path, text, layers)?.map(Box::new);
            let path = path.to_owned();
            layers.add_toml(text, &Origin::Project { path, line: None })?;
            Ok(trust)
        })
    }

    /// Lays all layers over each other; `lay` lays what holds of the project's file, if there is one.
    pub(crate) fn laid(
        directory: &Path,
        environment: &Environment,
        overrides: &[String],
        lay: impl FnOnce(&Path, &str, &mut Layers) -> Result<Option<Box<TrustRequest>>, ConfigError>,
    ) -> Result<LoadedConfig, ConfigError> {
        let mut layers = Layers::default();
        layers.add_toml(DEFAULTS, &Origin::Default)?;
        if let Some(path) = user_file(environment)
            && let Some(text) = read_file(&path)?
        {
            layers.add_toml(&text, &Origin::User { path, line: None })?;
        }
        let project_file = find_project_file(directory)?;
        let mut trust = None;
        if let Some(path) = &project_file
            && let Some(text) = read_file(path)?
        {
            trust = lay(path, &text, &mut layers)?;
        }
        add_environment(&mut layers, environment);
        for text in overrides {
            add_override(&mut layers, text)?;
        }
        add_managed(&mut layers, environment)?;
        Ok(LoadedConfig {
            config: read(&layers)?,
            project_file,
            directory: directory.to_owned(),
            trust,
            layers,
        })
    }

    /// Reads the text of a project's file as a commit holds it; keys that the text does not set keep their defaults.
    pub fn of_project_text(text: &str) -> Result<Self, ConfigError> {
        let mut layers = Layers::default();
        layers.add_toml(DEFAULTS, &Origin::Default)?;
        let path = PathBuf::from(PROJECT_FILE);
        layers.add_toml(text, &Origin::Project { path, line: None })?;
        read(&layers)
    }
}

impl LoadedConfig {
    /// Returns where the value of `key` (dotted) was set.
    pub fn origin(&self, key: &str) -> Origin {
        self.layers.origin(key)
    }

    /// Returns the secrets that this configuration names: keys and tokens of `environment`, passwords in addresses, the
    /// path of a hook, and what the files hold by which it logs in to a broker.
    pub fn secrets(&self, environment: &Environment) -> Vec<String> {
        let providers = self.config.providers.values();
        let search = self.config.tools.web_search.as_ref();
        let variables = providers
            .filter_map(|provider| provider.key_variable.as_deref())
            .chain(search.and_then(|search| search.key_variable.as_deref()))
            .chain(self.config.bus.token_variable.as_deref())
            .chain(self.config.notices.webhook_secret_variable.as_deref())
            .chain(self.config.telegram.token_variable.as_deref())
            .chain(self.config.telemetry.headers.values().map(String::as_str));
        let values = variables.filter_map(|name| environment.get(name).map(str::to_owned));
        let headers = OtelVariables::of(environment).headers.into_iter();
        let values = values.chain(headers.map(|(_, value)| value));
        let leaves = self.layers.leaves();
        let texts = leaves.iter().filter_map(|(_, value)| value.as_str());
        let passwords = texts.flat_map(credentials).map(str::to_owned);
        let hook = self.config.notices.webhook_url.as_ref();
        // Who knows the address of a hook may write to it.
        let tokens = hook.into_iter().flat_map(tokens_of_hook);
        let values = values.chain(tokens.map(str::to_owned));
        values.chain(passwords).chain(self.logins()).collect()
    }

    /// Returns the seeds and tokens in the files of the bus; one that cannot be read is told where it is needed.
    fn logins(&self) -> Vec<String> {
        let bus = &self.config.bus;
        let files = [
            ("bus.nkey_file", &bus.nkey_file),
            ("bus.credentials_file", &bus.credentials_file),
        ];
        let files = files.into_iter();
        let texts = files.filter_map(|(key, file)| {
            let path = self.resolve(key, file.as_deref()?).ok()?;
            std::fs::read_to_string(path).ok()
        });
        let is_login = |line: &&str| !line.contains(' ') && !line.starts_with(['-', '*', '#']);
        let mut found = Vec::new();
        for text in texts {
            let lines = text.lines().map(str::trim).filter(is_login);
            found.extend(lines.map(str::to_owned));
        }
        found
    }

    /// Names the logins that stand in a file which everybody on this machine may read, a line each, and how to mend that.
    pub fn exposed(&self) -> Vec<String> {
        let leaves = self.layers.leaves().into_iter();
        let exposed = leaves.filter_map(|(key, value)| {
            let origin = self.origin(&key);
            let place = origin.file().filter(|place| is_open_to_all(place))?;
            credentials(value.as_str()?).next()?;
            let place = place.display();
            Some(format!(
                "{origin}: `{key}` holds a login, and everybody on this machine may read the file; `chmod o= {place}`, or set `${}` instead",
                variable(&key)
            ))
        });
        exposed.collect()
    }

    /// Returns every value with its origin, in the order of the defaults; keys of their sections that nobody has set have
    /// none.
    pub fn entries(&self) -> Vec<Entry> {
        let leaves = self.layers.leaves().into_iter();
        let entries = leaves.map(|(key, value)| Entry {
            value: without_secrets(&value),
            origin: self.origin(&key),
            key,
        });
        let mut entries: Vec<Entry> = entries.collect();
        for (section, key) in keys_without_default() {
            let key = format!("{section}.{key}");
            if self.layers.at(&key).is_some() {
                continue;
            }
            let below = format!("{section}.");
            let last = entries
                .iter()
                .rposition(|entry| entry.key.starts_with(&below));
            let unset = Entry {
                value: serde_json::Value::Null,
                origin: Origin::Default,
                key,
            };
            entries.insert(last.map_or(entries.len(), |last| last + 1), unset);
        }
        entries
    }
}

/// Lists the keys that the defaults explain and give no value, each with its section: they stand there as comments. What
/// stands below a heading that is itself a comment is an example.
fn keys_without_default() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut section = None;
    DEFAULTS.lines().filter_map(move |line| {
        let heading = |line: &'static str| line.strip_prefix('[')?.split(']').next();
        if let Some(named) = heading(line) {
            section = Some(named);
            return None;
        }
        let comment = line.strip_prefix("# ")?;
        if heading(comment).is_some() {
            section = None;
            return None;
        }
        let (key, _) = comment.split_once(" = ")?;
        let is_name = key
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        section.filter(|_| is_name).map(|section| (section, key))
    })
}

/// Says that everybody on this machine may read the file at `path`; nobody reads one that is not there.
pub fn is_open_to_all(path: &Path) -> bool {
    const OTHERS: u32 = 0o004;
    let mode = std::fs::metadata(path).map(|found| found.permissions().mode());
    mode.is_ok_and(|mode| mode & OTHERS != 0)
}

/// Returns where a user's file lies, if there can be one.
pub fn user_file(environment: &Environment) -> Option<PathBuf> {
    environment
        .config_home()
        .map(|home| home.join("ropewalk").join("config.toml"))
}

/// Searches `directory`, where it really lies, and every directory above it for a project's file.
fn find_project_file(directory: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let start = directory
        .canonicalize()
        .map_err(|error| ConfigError::Unreadable {
            path: directory.to_owned(),
            reason: error.to_string().into(),
        })?;
    let found = start
        .ancestors()
        .map(|above| above.join(PROJECT_FILE))
        .find(|path| path.exists());
    if let Some(path) = &found {
        refuse_strangers(path)?;
    }
    Ok(found)
}

fn is_flag(layers: &Layers, key: &str) -> bool {
    layers.origin(key) == Origin::Flag
}

/// Lays what holds for everybody on this machine over the rest; a flag that says otherwise is refused, so that nobody
/// believes it holds.
fn add_managed(layers: &mut Layers, environment: &Environment) -> Result<(), ConfigError> {
    let Some(path) = environment.managed() else {
        return Ok(());
    };
    let Some(text) = read_file(path)? else {
        return Ok(());
    };
    refuse_strangers(path)?;
    let mut flags = layers.leaves();
    flags.retain(|(key, _)| is_flag(layers, key) && *key != Origin::Flag.rules());
    let path = path.to_owned();
    let origin = Origin::Managed { path, line: None };
    let mut own = Layers::default();
    own.add_toml(&text, &origin)?;
    if own.at("gate").is_some() {
        return Err(ConfigError::Invalid {
            origin: own.origin("gate"),
            key: "gate".to_owned(),
            reason: (
                "is decided by the `ropewalk.toml` of the commit that a build begins at",
                "drop it here",
            )
                .into(),
        });
    }
    layers.add_toml(&text, &origin)?;
    let refused = flags
        .into_iter()
        .find(|(key, value)| !is_flag(layers, key) && layers.at(key) != Some(value));
    match refused {
        None => Ok(()),
        Some((key, _)) => Err(ConfigError::Invalid {
            origin: Origin::Flag,
            reason: (
                format!(
                    "is set for everybody on this machine by {}",
                    layers.origin(&key)
                ),
                "leave it out, or ask whoever manages the machine",
            )
                .into(),
            key,
        }),
    }
}

pub(crate) fn read(layers: &Layers) -> Result<Config, ConfigError> {
    let config: Config = serde_path_to_error::deserialize(layers.values()).map_err(|error| {
        let key = error.path().to_string();
        ConfigError::Invalid {
            origin: layers.origin(&key),
            reason: without_logins(error.into_inner().to_string(), layers).into(),
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

/// Returns what is said of a value that cannot be read, which quotes it, without what addresses log in with: nobody knows
/// the secrets of a configuration that was not read.
fn without_logins(reason: String, layers: &Layers) -> String {
    let leaves = layers.leaves();
    let texts = leaves.iter().filter_map(|(_, value)| value.as_str());
    texts.fold(reason, |reason, text| {
        let shown = without_password(text);
        if shown == text {
            return reason;
        }
        let as_rust_writes_it = text.escape_debug().to_string();
        reason
            .replace(text, &shown)
            .replace(&as_rust_writes_it, &shown)
    })
}
