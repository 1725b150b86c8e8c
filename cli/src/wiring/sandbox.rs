//! Finds what confines commands on this machine, and whether the models of a project may do without.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ropewalk_config::Environment;
use ropewalk_config::settings::{ModelPolicy, SandboxMode};
use ropewalk_schemas::advice::Words;
use ropewalk_workspace::sandbox::egress::{Egress, Internet, Upstream};
use ropewalk_workspace::sandbox::{Limits, Sandbox, SandboxOptions, helper};
use ropewalk_workspace::{LocalClone, source};

use crate::error::CliError;
use crate::project::Project;

/// What confines the commands of a project, and what has to be said about it.
pub(crate) struct Confinement {
    /// None where commands run with the rights of the user.
    pub(crate) sandbox: Option<Sandbox>,
    /// What must be told, loudly.
    pub(crate) warning: Option<String>,
}

/// Finds it; refuses models that need a sandbox where none works.
pub(crate) async fn confinement(
    project: &Project,
    environment: &Environment,
) -> Result<Confinement, CliError> {
    let config = project.config();
    let found = match config.sandbox.mode {
        SandboxMode::Off => Err("the sandbox is off".into()),
        SandboxMode::Required => {
            let places = (project.state(), project.locations.repository.as_path());
            sandbox_of(places, environment, egress(project, environment)?).await
        }
    };
    let works = found.as_ref().map(drop).map_err(Clone::clone);
    let warning = match config.check_model_policy(works)? {
        ModelPolicy::Safe => None,
        ModelPolicy::Warn(warning) => Some(warning),
    };
    Ok(Confinement {
        sandbox: found.ok(),
        warning,
    })
}

/// Returns what commands reach; a proxy of this machine that cannot be used is no hindrance where nothing is listed.
fn egress(project: &Project, environment: &Environment) -> Result<Egress, CliError> {
    let config = project.config();
    let hosts = config.sandbox.hosts.clone();
    if hosts.is_empty() && config.build.package_managers.is_empty() {
        return Ok(Egress::none());
    }
    let upstream = Upstream::of(|name| environment.get(name));
    Ok(Egress {
        hosts,
        package_hosts: config.sandbox.package_hosts.clone(),
        upstream: upstream.map_err(|error| CliError::advised("proxy", error))?,
        outside: Arc::new(Internet),
    })
}

/// Finds what confines commands of the project whose state and repository these are; the error says why none works.
pub(crate) async fn sandbox_of(
    (state, repository): (&Path, &Path),
    environment: &Environment,
    egress: Egress,
) -> Result<Sandbox, Words> {
    let helper = helper().ok_or("this program cannot start itself again")?;
    let [state, repository] = [state, repository]
        .map(|place| std::path::absolute(place).unwrap_or_else(|_| place.to_owned()));
    let settings =
        ropewalk_config::user_file(environment).and_then(|file| file.parent().map(PathBuf::from));
    // Of a linked worktree both lie elsewhere, and so does the checkout around the one that it shares.
    let git_directories = source::git_directories(&repository);
    let is_of_checkout = |place: &&PathBuf| place.ends_with(".git");
    let main = git_directories.first().filter(is_of_checkout);
    let main = main.and_then(|shared| shared.parent().map(PathBuf::from));
    let options = SandboxOptions {
        environment: super::child_environment(environment),
        helper,
        // What a person has in the checkout beside what is committed is nobody else's: `.env`, addresses with tokens.
        hidden: [state.clone(), repository]
            .into_iter()
            .chain(git_directories)
            .chain(main)
            .chain(settings)
            .collect(),
        objects: Some(LocalClone::objects_below(&state)),
        limits: Limits::default(),
        egress,
    };
    let found = Sandbox::probe(options).await;
    found.map_err(|unavailable| Words::of(&unavailable))
}
