//! Verb `config check`: reads the configuration and says what is wrong with it.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use ropewalk_config::settings::{BusSettings, ModelPolicy, Transport};
use ropewalk_runtime::Clock;
use ropewalk_schemas::advice::Words;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::project::Project;
use crate::wiring;

/// Takes no arguments of its own.
#[derive(Debug, Args)]
pub struct Check {}

#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    file: Option<PathBuf>,
    name: String,
    repository: PathBuf,
    state: PathBuf,
    warnings: Vec<String>,
}

impl Check {
    /// Runs the verb.
    pub fn run(self, app: &App) -> Result<(), CliError> {
        let project = app.project()?;
        let warnings = warnings(app, &project)?;
        let checked = Report {
            ok: true,
            file: project.loaded.project_file.clone(),
            name: project.locations.name.to_string(),
            repository: project.locations.repository.clone(),
            state: project.locations.state.clone(),
            warnings,
        };
        app.output.show(&checked, |checked| {
            let file = checked.file.as_ref().map(|file| file.display().to_string());
            let mut text = format!(
                "{} is sound\nproject     {}\nrepository  {}\nstate       {}\n",
                file.unwrap_or_else(|| "the configuration".to_owned()),
                checked.name,
                checked.repository.display(),
                checked.state.display()
            );
            for warning in &checked.warnings {
                // Writing to a String cannot fail.
                writeln!(text, "warning: {warning}").ok();
            }
            text
        })
    }
}

/// Refuses values that no run could use, and returns what a run would miss today.
fn warnings(app: &App, project: &Project) -> Result<Vec<String>, CliError> {
    wiring::location(project)?;
    let repository = &project.locations.repository;
    if !repository.is_dir() {
        let text = (
            format!("project.repo: `{}` is no directory", repository.display()),
            "name your repository",
        );
        return Err(CliError::refused("config", text));
    }
    let mut warnings = match project.config().check_model_policy(Ok(())) {
        Ok(ModelPolicy::Safe) => Vec::new(),
        Ok(ModelPolicy::Warn(warning)) => vec![warning],
        Err(error) => vec![Words::of(&error).to_string()],
    };
    for check in wiring::check_models(project, &app.environment, &Clock::system()) {
        match check.fault {
            Some(CliError::Credentials(missing)) => warnings.push(missing.to_string()),
            Some(fault) => return Err(fault),
            None => {}
        }
    }
    match wiring::check_login(project, &app.environment) {
        Ok(_) => {}
        Err(CliError::Credentials(missing)) => warnings.push(missing.to_string()),
        Err(fault) => return Err(fault),
    }
    warnings.extend(unused(&project.config().bus));
    warnings.extend(project.loaded.exposed());
    Ok(warnings)
}

/// Names the settings of the bus that its transport has no use for.
fn unused(bus: &BusSettings) -> Option<String> {
    if matches!(bus.transport, Transport::NatsAt(_)) {
        return None;
    }
    let given = [
        ("`bus.root_certificates`", bus.root_certificates.is_some()),
        ("`bus.inbox_prefix`", bus.inbox_prefix.is_some()),
    ];
    let given: Vec<&str> = given
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
        .collect();
    (!given.is_empty()).then(|| {
        format!(
            "the bus is `{}`, which has no use for {}; only a server at `nats://host:port` has",
            bus.transport,
            given.join(" and ")
        )
    })
}
