//! Runs one verb: what it was asked for, what it may use, and how it is stopped.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use ropewalk_config::{Config, Environment, Loaded};

use crate::arguments::{Arguments, Command, Global};
use crate::error::CliError;
use crate::interrupts::Interrupts;
use crate::output::Output;
use crate::project::Project;
use crate::wiring::{self, Desk};
use crate::{commands, rehearse};

/// What every verb may use.
#[derive(Debug)]
pub struct App {
    /// Where answers go.
    pub output: Output,
    /// The environment of the process.
    pub environment: Environment,
    global: Global,
}

impl App {
    /// Loads the configuration of the directory that the verb is for.
    pub fn project(&self) -> Result<Project, CliError> {
        let project = self.project_with(&[])?;
        wiring::logging(&project, false)?;
        Ok(project)
    }

    /// Loads the configuration alone; there need not be a project.
    pub fn load(&self) -> Result<Loaded, CliError> {
        Ok(Config::load(
            &self.directory()?,
            &self.environment,
            &self.global.set,
        )?)
    }

    /// Loads the configuration with further settings from the flags of a verb.
    pub fn project_with(&self, settings: &[String]) -> Result<Project, CliError> {
        let mut overrides = self.global.set.clone();
        overrides.extend_from_slice(settings);
        Project::load(&self.directory()?, &overrides, &self.environment)
    }

    /// Opens the store beside whatever else runs on it.
    pub async fn desk(&self) -> Result<Desk, CliError> {
        Desk::open(self.project()?).await
    }

    /// Returns the directory that the verb is for.
    pub fn directory(&self) -> Result<PathBuf, CliError> {
        let directory = self
            .global
            .directory
            .clone()
            .unwrap_or_else(|| PathBuf::from("."));
        let absolute =
            std::path::absolute(&directory).map_err(|error| CliError::file(&directory, &error))?;
        match std::fs::metadata(&absolute) {
            Ok(found) if found.is_dir() => Ok(absolute),
            Ok(_) => Err(CliError::refused(
                "file",
                format!(
                    "`{}` is a file; name a directory with `-C`",
                    directory.display()
                ),
            )),
            Err(error) => Err(CliError::file(&directory, &error)),
        }
    }

    /// Returns whether a person can be asked.
    pub fn can_ask(&self) -> bool {
        !self.global.no_input
            && !self.output.is_json()
            && io::stdin().is_terminal()
            && io::stderr().is_terminal()
    }
}

/// Runs the verb that `arguments` name; Ctrl-C ends it.
pub async fn run(arguments: Arguments) -> Result<(), CliError> {
    let Arguments { global, command } = arguments;
    let output = Output::new(global.json);
    let environment = Environment::from_process();
    let app = App {
        output,
        environment,
        global,
    };
    let interrupts = Interrupts::start();
    // A verb that runs agents hears signals itself, since it has to put the work away first.
    let hosts = command.hosts_agents();
    tokio::select! {
        outcome = Box::pin(dispatch(command, &app)) => outcome,
        () = interrupts.insisted() => Err(CliError::Cancelled),
        () = interrupts.requested(), if !hosts => Err(CliError::Cancelled),
    }
}

async fn dispatch(command: Command, app: &App) -> Result<(), CliError> {
    match command {
        Command::Rehearse(arguments) => {
            rehearse::run(arguments, &app.environment, &app.output).await
        }
        Command::Init(verb) => verb.run(app).await,
        Command::Up(verb) => verb.run(app).await,
        Command::Agent(verb) => verb.run(app).await,
        Command::Doctor(verb) => verb.run(app).await,
        Command::Idea(noun) => commands::idea::run(noun, app).await,
        Command::Spec(noun) => commands::spec::run(noun, app).await,
        Command::Build(noun) => Box::pin(commands::build::run(noun, app)).await,
        Command::Question(noun) => commands::question::run(noun, app).await,
        Command::Knowledge(noun) => commands::knowledge::run(noun, app).await,
        Command::Event(noun) => commands::event::run(noun, app).await,
        Command::DeadLetter(noun) => commands::dead_letter::run(noun, app).await,
        Command::Lock(noun) => commands::lock::run(noun, app).await,
        Command::Wait(noun) => commands::wait::run(noun, app).await,
        Command::Config(noun) => commands::config::run(noun, app),
    }
}
