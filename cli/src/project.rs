//! Holds the loaded configuration of one project, with the paths and the person that follow from it.

mod belonging;

use std::path::{Path, PathBuf};

use ropewalk_agents::places::Places;
use ropewalk_config::settings::VariableName;
use ropewalk_config::{Config, ConfigError, Environment, LoadedConfig, Locations};
use ropewalk_desk::people::{People, Person, Stranger};
use ropewalk_runtime::secrets;
use ropewalk_schemas::UserSlug;
use ropewalk_schemas::advice::Words;

use crate::error::CliError;
pub(crate) use belonging::{check, claim, is_own};

/// The variable with the token of whoever runs a verb as somebody else than the user of the system.
const TOKEN: &str = "ROPEWALK_TOKEN";

/// The configuration of one project and what follows from it.
#[derive(Debug)]
pub struct Project {
    /// The configuration with its origins.
    pub loaded: LoadedConfig,
    /// Where repository and state lie.
    pub locations: Locations,
    /// Whose ideas those of a rehearsal are.
    pub user: UserSlug,
    /// Everybody who works on it.
    pub people: Box<People>,
    /// Who sits at the keyboard.
    seated: Box<Result<Person, Stranger>>,
}

impl Project {
    /// Loads the configuration of `directory`; `overrides` are `section.key=value`.
    pub fn load(
        directory: &Path,
        overrides: &[String],
        environment: &Environment,
    ) -> Result<Self, CliError> {
        let loaded = Config::load(directory, environment, overrides)?;
        if loaded.project_file.is_none() && loaded.config.project.repo.is_none() {
            return Err(CliError::refused(
                "no-project",
                (
                    format!("no `ropewalk.toml` in `{}` or above", directory.display()),
                    "run `ropewalk init` in your repository, or name it with `-C`",
                ),
            ));
        }
        Self::of(loaded, environment)
    }

    /// Finds what follows from a loaded configuration.
    pub fn of(loaded: LoadedConfig, environment: &Environment) -> Result<Self, CliError> {
        secrets::keep(loaded.secrets(environment));
        refuse_keys(&loaded)?;
        let locations = loaded.locations(environment)?;
        let user = loaded.person(environment)?;
        let people = People::new(*loaded.config.people.clone(), user.clone());
        let seated = match environment.get(TOKEN) {
            Some(token) if people.are_named() => people.with_token(token),
            _ => people.at_terminal(&system_user()),
        };
        Ok(Self {
            loaded,
            locations,
            user,
            people: Box::new(people),
            seated: Box::new(seated),
        })
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// Returns who sits at the keyboard.
    pub fn person(&self) -> Result<&Person, CliError> {
        let seated = self.seated.as_ref().as_ref();
        seated.map_err(|stranger| CliError::refused("stranger", Words::of(stranger)))
    }

    /// Returns the state directory.
    pub fn state(&self) -> &Path {
        &self.locations.state
    }

    /// Returns where repository and state lie, as agents take it.
    pub fn places(&self) -> Places {
        Places {
            repo: self.locations.repository.clone(),
            state: self.locations.state.clone(),
        }
    }

    /// Returns the file that `key` names, absolute.
    pub fn file(&self, key: &str, path: &Path) -> Result<PathBuf, CliError> {
        Ok(self.loaded.resolve(key, path)?)
    }
}

/// Returns the user of the operating system that runs this process, by number where it has no name.
pub(crate) fn system_user() -> String {
    let id = nix::unistd::getuid();
    let entry = nix::unistd::User::from_uid(id).ok().flatten();
    entry.map_or_else(|| id.to_string(), |user| user.name)
}

/// Refuses to give commands the key of a provider, the token of a broker, a bot or a receiver, or the secret of a webhook.
fn refuse_keys(loaded: &LoadedConfig) -> Result<(), ConfigError> {
    let config = &loaded.config;
    let named = config.providers.values();
    let search = config.tools.web_search.as_ref();
    let keys: Vec<String> = named
        .filter_map(|provider| provider.key_variable.clone())
        .chain(search.and_then(|search| search.key_variable.clone()))
        .chain(config.bus.token_variable.clone())
        .chain(config.notices.webhook_secret_variable.clone())
        .chain(config.telegram.token_variable.clone())
        .chain(config.telemetry.headers.values().cloned())
        .chain(ropewalk_llm::shipped_key_variables())
        .collect();
    let is_key = |(_, name): &(usize, &VariableName)| keys.iter().any(|key| key == name.as_str());
    let mut variables = config.sandbox.variables.iter().enumerate();
    let Some((index, name)) = variables.find(is_key) else {
        return Ok(());
    };
    let key = format!("sandbox.variables[{index}]");
    Err(ConfigError::Invalid {
        origin: loaded.origin(&key),
        reason: (
            format!("`{name}` holds a key of this program, which no command gets"),
            "drop it",
        )
            .into(),
        key,
    })
}
