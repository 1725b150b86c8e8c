//! Holds what every verb may use.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use ropewalk_config::{Config, Environment, LoadedConfig};
use ropewalk_desk::halt;

use crate::error::CliError;
use crate::interrupts::Interrupts;
use crate::output::Output;
use crate::project::Project;
use crate::wiring::{self, OpenProject};

/// What holds for every verb.
#[derive(Debug, Args)]
pub struct GlobalOptions {
    /// Answer in JSON: a list is an array, errors are `{code, message, next}`.
    #[arg(long, global = true)]
    pub json: bool,
    /// The directory whose project is meant.
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Sets a key of the configuration for this run; may be given again.
    #[arg(long, global = true, value_name = "SECTION.KEY=VALUE")]
    pub set: Vec<String>,
    /// Never ask, even on a terminal.
    #[arg(long, global = true)]
    pub no_input: bool,
}

/// What every verb may use.
#[derive(Debug)]
pub struct App {
    /// Where answers go.
    pub output: Output,
    /// The environment of the process.
    pub environment: Environment,
    /// What was said for every verb.
    pub global: GlobalOptions,
    /// Whether this process was asked to stop; the only ones that hear its signals.
    pub interrupts: Interrupts,
}

impl App {
    /// Loads the configuration of the directory that the verb is for.
    pub fn project(&self) -> Result<Project, CliError> {
        let project = self.project_with(&[])?;
        wiring::logging(&project, &self.environment, false)?;
        Ok(project)
    }

    /// Loads the configuration alone; there need not be a project.
    pub fn load(&self) -> Result<LoadedConfig, CliError> {
        Ok(Config::load(
            &self.directory()?,
            &self.environment,
            &self.global.set,
        )?)
    }

    /// Loads the configuration alone, though nobody may have trusted it.
    pub fn load_whoever_wrote_it(&self) -> Result<LoadedConfig, CliError> {
        Ok(Config::load_whoever_wrote_it(
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

    /// Opens the store beside whatever else runs on it. Where everything is stopped, whoever looks is told.
    pub async fn open(&self) -> Result<OpenProject, CliError> {
        let opened = OpenProject::open(self.project()?).await?;
        if let Some(halt) = halt::standing(&opened.store).await? {
            let told = wiring::halt_in_words(&halt);
            self.output.note(&format!("note: {told}"))?;
        }
        Ok(opened)
    }

    /// Returns the directory that the verb is for.
    pub fn directory(&self) -> Result<PathBuf, CliError> {
        let directory = self
            .global
            .directory
            .clone()
            .unwrap_or_else(|| PathBuf::from("."));
        // Where it really lies: above `here/../there` is not `here`.
        match std::fs::canonicalize(&directory) {
            Ok(real) if real.is_dir() => Ok(real),
            Ok(_) => Err(CliError::refused(
                "file",
                (
                    format!("`{}` is a file", directory.display()),
                    "name a directory with `-C`",
                ),
            )),
            Err(error) => Err(CliError::file(&directory, &error)),
        }
    }

    /// Asks a person a question whose yes lets the verb go on; whoever says no has cancelled.
    pub fn confirm(question: &str) -> Result<(), CliError> {
        forget_what_was_typed();
        let asked = inquire::Confirm::new(question).with_default(false).prompt();
        match asked {
            Ok(true) => Ok(()),
            Ok(false)
            | Err(
                inquire::InquireError::OperationCanceled
                | inquire::InquireError::OperationInterrupted,
            ) => Err(CliError::Cancelled),
            Err(error) => Err(CliError::failed(error)),
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

/// Forgets the keys that were typed before a question could be seen: they were meant for something else.
pub(crate) fn forget_what_was_typed() {
    // Where this fails there is no terminal, and nobody is asked.
    nix::sys::termios::tcflush(io::stdin(), nix::sys::termios::FlushArg::TCIFLUSH).ok();
}
