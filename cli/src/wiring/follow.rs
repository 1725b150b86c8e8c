//! Follows the configuration while the program runs: models that are named anew are asked from the next turn of each job
//! on, and what they cost and how hard they think holds with them; from the next turn on the rules hold, too, that judge what
//! models do with their tools. Whatever else was changed holds from the next start on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ropewalk_config::settings::{ModelPolicy, PersonRecord, PolicySettings, SandboxMode};
use ropewalk_config::{Config, ConfigError, Environment};
use ropewalk_engine::{CurrentValue, Engine};
use ropewalk_runtime::{Clock, Supervisor};
use ropewalk_schemas::UserSlug;
use tracing::{info, warn};

use super::models;
use crate::error::CliError;
use crate::project::Project;

/// How often is looked whether a file was changed.
const LOOK: Duration = Duration::from_secs(1);

/// What follows the configuration. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Follower {
    /// Asks the models.
    pub(super) engine: Engine,
    /// What models may do with their tools.
    pub(super) policy: CurrentValue<PolicySettings>,
    /// Whether commands are confined.
    pub(super) is_confined: bool,
    /// What the start said where they are not.
    pub(super) warning: Option<String>,
    /// Who was on the project at the start; they stay.
    pub(super) people: BTreeMap<UserSlug, PersonRecord>,
    /// What time it is.
    pub(super) clock: Clock,
}

impl Follower {
    /// Follows what `load` reads, until the program stops. A cassette is of one configuration, which is not followed.
    pub(super) fn begin(
        self,
        project: &Project,
        environment: &Environment,
        load: impl Fn() -> Result<Project, CliError> + Send + Sync + 'static,
        supervisor: &Supervisor,
    ) {
        let settings = &project.config().models;
        if settings.record.is_some() || settings.replay.is_some() {
            return;
        }
        let files = files(project.loaded.project_file.as_deref(), environment);
        let (environment, stop) = (environment.clone(), supervisor.shutdown().soft().clone());
        let load = Arc::new(load);
        supervisor.keep("configuration", move || {
            let (follower, files) = (self.clone(), files.clone());
            let (environment, load) = (environment.clone(), Arc::clone(&load));
            let stop = stop.clone();
            async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = follower.follow(&files, &environment, load.as_ref()) => {}
                }
            }
        });
    }

    /// Takes what the files say whenever one of them was changed.
    async fn follow(
        &self,
        files: &[PathBuf],
        environment: &Environment,
        load: &impl Fn() -> Result<Project, CliError>,
    ) {
        let mut known = texts(files);
        let (mut refused, mut people) = (None, self.people.clone());
        let mut unconfined = self.warning.clone();
        loop {
            tokio::time::sleep(LOOK).await;
            let now = texts(files);
            if now == known {
                continue;
            }
            match self.take(environment, load) {
                Ok((project, warning)) => {
                    info!("models and rules are those of the changed configuration");
                    // As loudly as at a start, and once as long as it says the same.
                    if let Some(warning) = &warning
                        && unconfined.as_ref() != Some(warning)
                    {
                        warn!("{warning}");
                    }
                    unconfined = warning;
                    // Once for each change of them, whatever else is changed after it.
                    let named = project.config().people.as_ref();
                    if *named != people && *named != self.people {
                        warn!("what `[people]` says holds once the program is started anew");
                    }
                    people.clone_from(named);
                    known = now;
                }
                // It may be trusted or mended later.
                Err(error) if refused.as_ref() != Some(&now) => {
                    warn!("the changed configuration does not hold: {error}");
                    refused = Some(now);
                }
                Err(_) => {}
            }
        }
    }

    /// Takes what the configuration says now, and returns what has to be said about it.
    fn take(
        &self,
        environment: &Environment,
        load: &impl Fn() -> Result<Project, CliError>,
    ) -> Result<(Project, Option<String>), CliError> {
        let project = load()?;
        let warning = warning_of(project.config(), self.is_confined)?;
        let models = models::models(&project, environment, &self.clock)?;
        self.engine.use_models(models);
        self.policy
            .replace(project.config().policy.as_ref().clone());
        Ok((project, warning))
    }
}

/// Refuses models that need the sandbox which the program was started without; returns what has to be said of those that
/// go without it from now on.
fn warning_of(config: &Config, is_confined: bool) -> Result<Option<String>, ConfigError> {
    let works = if is_confined {
        Ok(())
    } else {
        Err("nothing confined commands when the program was started".into())
    };
    match config.check_model_policy(works)? {
        // The sandbox of the start stays; and of scripted models alone it was said then.
        ModelPolicy::Warn(warning) if !is_confined && config.sandbox.mode == SandboxMode::Off => {
            Ok(Some(warning))
        }
        ModelPolicy::Warn(_) | ModelPolicy::Safe => Ok(None),
    }
}

/// Lists the files that a configuration comes from, though not all of them need be there.
fn files(project: Option<&Path>, environment: &Environment) -> Vec<PathBuf> {
    let user = ropewalk_config::user_file(environment);
    let managed = environment.managed().map(Path::to_owned);
    let project = project.map(Path::to_owned);
    project.into_iter().chain(user).chain(managed).collect()
}

/// Reads the files; one that cannot be read is as one that is not there.
fn texts(files: &[PathBuf]) -> Vec<Option<String>> {
    let read = |file: &PathBuf| std::fs::read_to_string(file).ok();
    files.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use ropewalk_config::settings::ModelChoice;

    use super::*;

    #[test]
    fn every_file_that_says_something_is_looked_at() {
        let (project, managed) = (Path::new("/repo/ropewalk.toml"), Path::new("/etc/m.toml"));
        let environment = Environment::from_pairs([("HOME", "/home/ada")]);
        let user = Path::new("/home/ada/.config/ropewalk/config.toml");
        assert_eq!(files(None, &environment), [user]);
        let environment = environment.managed_by(managed);
        assert_eq!(files(Some(project), &environment), [project, user, managed]);
    }

    #[test]
    fn models_that_nothing_confines_from_now_on_are_told_of() {
        use SandboxMode::{Off, Required};
        for (model, mode, is_confined, expected) in [
            ("ollama/qwen", Off, false, Some(true)),
            ("ollama/qwen", Off, true, Some(false)),
            ("ollama/qwen", Required, false, None),
            ("scripted/rehearsal", Off, false, Some(false)),
            ("scripted/rehearsal", Required, false, Some(false)),
        ] {
            let mut config = Config::shipped().unwrap();
            let models = &mut config.models;
            for role in [
                &mut models.chat,
                &mut models.spec,
                &mut models.build,
                &mut models.small,
            ] {
                *role = ModelChoice::try_from(model.to_owned()).unwrap();
            }
            config.sandbox.mode = mode;
            let told = warning_of(&config, is_confined).ok();
            let told = told.map(|warning| warning.is_some());
            assert_eq!(told, expected, "{model} {mode:?} {is_confined}");
        }
    }
}
