//! Follows the configuration while the program runs: models that are named anew are asked from the next turn of each job
//! on, and what they cost and how hard they think holds with them; from the next turn on the rules hold, too, that judge what
//! models do with their tools. Whatever else was changed holds from the next start on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ropewalk_config::Environment;
use ropewalk_config::settings::{PersonRecord, PolicySettings};
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
        let project_file = project.loaded.project_file.clone();
        let user_file = ropewalk_config::user_file(environment);
        let files: Vec<PathBuf> = project_file.into_iter().chain(user_file).collect();
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
        loop {
            tokio::time::sleep(LOOK).await;
            let now = texts(files);
            if now == known {
                continue;
            }
            match self.take(environment, load) {
                Ok(project) => {
                    info!("models and rules are those of the changed configuration");
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

    fn take(
        &self,
        environment: &Environment,
        load: &impl Fn() -> Result<Project, CliError>,
    ) -> Result<Project, CliError> {
        let project = load()?;
        let works = if self.is_confined {
            Ok(())
        } else {
            Err("nothing confined commands when the program was started".into())
        };
        project.config().check_model_policy(works)?;
        let models = models::models(&project, environment, &self.clock)?;
        self.engine.use_models(models);
        self.policy
            .replace(project.config().policy.as_ref().clone());
        Ok(project)
    }
}

/// Reads the files; one that cannot be read is as one that is not there.
fn texts(files: &[PathBuf]) -> Vec<Option<String>> {
    let read = |file: &PathBuf| std::fs::read_to_string(file).ok();
    files.iter().map(read).collect()
}
