//! Is the command line of Ropewalk, and the only place that wires concrete backends together.
//!
//! What it is not: it decides nothing. A verb parses its arguments, reads or commits through the store, and shows what
//! is there; the work is done by the agents on the frame that [`wiring::Host`] starts.
//!
//! To add a verb: write `commands/<noun>/<verb>.rs` with its arguments and a `run`, and name it in the enum of its noun.
//! Answers go to standard output through [`output::Output`], everything else to standard error; a failure is a
//! [`CliError`], one line with an exit code. To add a backend: choose it in `wiring/` by what the configuration says.

pub mod app;
pub mod archive;
pub mod arguments;
pub mod commands;
mod comments;
pub mod dispatch;
pub mod error;
pub mod ids;
pub mod interrupts;
pub mod output;
pub mod progress;
pub mod project;
pub mod rehearse;
pub mod scripted;
pub mod top;
pub mod values;
pub mod wiring;

use std::ffi::OsString;
use std::process::ExitCode;

use ropewalk_config::Environment;
use ropewalk_runtime::{secrets, stderr};

pub use app::App;
pub use error::{CliError, Exit};
pub use wiring::{Host, OpenProject};

/// Runs the program with `arguments`, its own name first, and returns how it should exit.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // Before any thread, and before anything of this process is read.
    if let Some(code) = ropewalk_workspace::sandbox::enter(&arguments) {
        return code;
    }
    // A mistake in the arguments is reported in the form that they ask for.
    let json = arguments.iter().any(|argument| argument == "--json");
    let code = match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::report(&error, json);
            ExitCode::from(error.exit().code())
        }
    };
    stderr::finish();
    code
}

fn run(arguments: &[OsString]) -> Result<(), CliError> {
    // Whatever this process starts has the same user, and could read its keys.
    secrets::hide_process().map_err(CliError::failed)?;
    let environment = Environment::from_process();
    secrets::keep(environment.secrets());
    output::strike_panics();
    let Some(arguments) = arguments::parse(arguments)? else {
        return Ok(());
    };
    ropewalk_runtime::http::install_tls_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(CliError::failed)?;
    let outcome = runtime.block_on(dispatch::run(arguments, environment));
    // A thread that still reads the terminal must not keep the process.
    runtime.shutdown_background();
    outcome
}
