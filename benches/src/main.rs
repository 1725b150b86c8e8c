//! Measures Ropewalk against the raw limits of the machine it runs on.
//!
//! Each benchmark runs the real store, bus and frame, and in the same run does the same work without them: the same
//! rows through one database connection, the same messages through one broker connection. The figure is the ratio.
//!
//! What it is not: no test. A missed goal is a figure like any other; only a benchmark that cannot run is an error.
//!
//! To add a benchmark: write `async fn run(&Settings) -> Result<Vec<Figure>>` in a module of its own, measure the raw
//! limit in the same run, and name both in [`suite`].

mod arguments;
mod broker;
mod building;
mod builds;
mod chain;
mod disk;
mod figure;
mod lone;
mod pages;
mod pipeline;
mod process;
mod raw;
mod reading;
mod sample;
mod settings;
mod suite;
mod tasks;
mod turns;
mod words;

use std::io::Write;
use std::process::ExitCode;

use arguments::Command;

fn main() -> ExitCode {
    // Before any thread: confined commands are started by this program, which then is a helper.
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(code) = ropewalk_workspace::sandbox::enter(&words) {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nowhere is left to say that standard error is closed.
            writeln!(std::io::stderr(), "error: {error:#}").unwrap_or_default();
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let command = arguments::parse(&words)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    match command {
        Command::Measure(settings) => runtime.block_on(suite::run(&settings)),
        Command::Child(role) => runtime.block_on(process::child::run(&role)),
        Command::Help => {
            writeln!(std::io::stdout(), "{}", arguments::usage())?;
            Ok(())
        }
    }
}
