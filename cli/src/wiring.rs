//! Wires concrete backends together: the one place that knows which store, bus, models and agents there are.

mod again;
mod agents;
mod backups;
mod changes;
mod follow;
mod halt;
mod host;
mod models;
mod notices;
pub mod open_files;
mod open_project;
mod processes;
mod reach;
mod retention;
mod sandbox;
mod search;
mod serving;
mod traced;
mod transport;
mod vigil;

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use ropewalk_config::settings::LogFormat;
use ropewalk_config::{Environment, Locations, Origin};
use ropewalk_runtime::stderr;
use ropewalk_runtime::telemetry::{self, Format, TelemetryError};
use ropewalk_workspace::{CommandRunner, CommandSpec, Git, GitError};
use tokio_util::sync::CancellationToken;

use crate::error::CliError;
use crate::project::{self, Project};

pub use again::Again;
pub use agents::{Crew, Role};
pub(crate) use agents::{
    clipped_conventions, lander, notice, open_clone, require_commit, without_submodules,
};
pub(crate) use changes::changed_lines;
pub(crate) use halt::in_words as halt_in_words;
pub use host::Host;
pub(crate) use models::require_models;
pub use models::{ModelCheck, check_models};
pub(crate) use notices::{BELL, telegram};
pub use open_project::OpenProject;
pub(crate) use open_project::{awake, location};
pub(crate) use reach::Gone;
pub use reach::Reach;
pub(crate) use sandbox::{confinement, sandbox_of};
pub(crate) use serving::doors;
pub(crate) use traced::{begin as begin_traces, flush as flush_traces};
pub(crate) use transport::check_shared;
pub use transport::{check_bus, check_login};
pub use vigil::{UNHANDLED, Vigil};

/// What a verb logs unless the configuration says otherwise; that a database took long is nothing to be mended.
const VERB_FILTER: &str = "warn,sqlx=error";
/// What it logs to a person at a terminal: not that a message could not be handled, which it tells by itself.
const TERMINAL_FILTER: &str =
    "warn,sqlx=error,ropewalk_orchestrator::runner=error,ropewalk_bus::inbox=error";

/// How long `cargo` may take to say its version: rustup may have to fetch a toolchain first.
const RUST_LIMIT: Duration = Duration::from_mins(5);

/// Finds git.
pub async fn git(environment: &Environment) -> Result<Git, GitError> {
    Git::open(&child_environment(environment)).await
}

/// Checks that what builds Rust is there and runs: a stand-in without a toolchain behind it does not.
pub(crate) async fn check_rust(environment: &Environment) -> Result<(), CliError> {
    let asked = CommandSpec::executable("cargo", ["--version"], "/").with_timeout(RUST_LIMIT);
    let runner = CommandRunner::new(child_environment(environment));
    let told = runner.run(&asked, &CancellationToken::new()).await;
    let why = match told {
        Ok(told) if told.succeeded() => return Ok(()),
        Ok(told) if told.program_missing() => {
            let text = (
                "`cargo` is not on the PATH, and a rehearsal builds Rust code",
                "install Rust with rustup or your package manager",
            );
            return Err(CliError::refused("cargo", text));
        }
        Ok(told) => told.stderr.trim().lines().next().map(str::to_owned),
        Err(error) => Some(error.to_string()),
    };
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    let text = (
        format!("`cargo --version` fails{why}, and a rehearsal builds Rust code"),
        "run it yourself and mend what it says, for example with `rustup default stable`",
    );
    Err(CliError::refused("cargo", text))
}

/// Returns the variables that children may see.
pub(crate) fn child_environment(environment: &Environment) -> ropewalk_workspace::Environment {
    ropewalk_workspace::Environment::from_pairs(environment.pairs())
}

/// Returns the variables that commands of builds see: those of any child, and those that the configuration names.
pub(crate) fn command_environment(
    project: &Project,
    environment: &Environment,
) -> ropewalk_workspace::Environment {
    let passed = &project.config().sandbox.variables;
    let is_named = |name: &OsStr| passed.iter().any(|wanted| name == wanted.as_str());
    let named = environment.pairs().filter(|(name, _)| is_named(name));
    child_environment(environment).with(named)
}

/// Sends logs to standard error and spans to their receiver as the configuration says; a verb that is no `service` only
/// warns by default.
pub fn logging(
    project: &Project,
    environment: &Environment,
    service: bool,
) -> Result<(), CliError> {
    if service {
        stderr::detach();
    }
    let settings = &project.config().log;
    let by_default = project.loaded.origin("log.filter") == Origin::Default;
    let filter = match by_default && !service {
        true if std::io::stderr().is_terminal() => TERMINAL_FILTER,
        true => VERB_FILTER,
        false => settings.filter.as_str(),
    };
    let format = match settings.format {
        LogFormat::Text => Format::Text,
        LogFormat::Json => Format::Json,
    };
    match telemetry::init(
        format,
        filter,
        is_coloured(environment, std::io::stderr().is_terminal()),
    ) {
        // The first of several projects in one process has set it up.
        Ok(()) | Err(TelemetryError::Installed(_)) => {}
        Err(error) => return Err(error.into()),
    }
    traced::begin(project, environment)
}

/// Returns whether what is written is coloured: on a terminal, or where it is forced; who wants no colour gets none
/// (<https://no-color.org>, <https://bixense.com/clicolors>).
pub(crate) fn is_coloured(environment: &Environment, is_terminal: bool) -> bool {
    let says = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    if says("NO_COLOR").is_some() {
        return false;
    }
    let forced = says("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    forced || (is_terminal && environment.get("TERM") != Some("dumb"))
}

/// Makes the state directory of a project, unless that is the state of another repository.
fn enter_state(locations: &Locations) -> Result<(), CliError> {
    project::check(locations)?;
    make_state(&locations.state)
}

/// Makes a state directory, for this person alone.
pub(crate) fn make_state(state: &Path) -> Result<(), CliError> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state);
    made.map_err(|error| CliError::file(state, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variables = &'static [(&'static str, &'static str)];

    #[test]
    fn colour_is_for_terminals_or_whoever_forces_it_and_never_for_who_wants_none() {
        let cases: [(Variables, bool, bool); 9] = [
            (&[], true, true),
            (&[], false, false),
            (&[("TERM", "dumb")], true, false),
            (&[("CLICOLOR_FORCE", "1")], false, true),
            (&[("CLICOLOR_FORCE", "0")], false, false),
            (&[("CLICOLOR_FORCE", "")], false, false),
            (&[("CLICOLOR_FORCE", "1"), ("TERM", "dumb")], false, true),
            (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], true, false),
            (&[("NO_COLOR", "")], true, true),
        ];
        for (variables, is_terminal, expected) in cases {
            let environment = Environment::from_pairs(variables.iter().copied());
            let coloured = is_coloured(&environment, is_terminal);
            assert_eq!(coloured, expected, "{variables:?} {is_terminal}");
        }
    }
}
