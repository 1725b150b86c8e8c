//! Runs one verb: what it was asked for, and how it is stopped.

use ropewalk_config::Environment;

use crate::app::App;
use crate::arguments::{Arguments, Command};
use crate::error::CliError;
use crate::interrupts::Interrupts;
use crate::output::Output;
use crate::{commands, rehearse, wiring};

/// Runs the verb that `arguments` name; Ctrl-C ends it.
pub async fn run(arguments: Arguments, environment: Environment) -> Result<(), CliError> {
    let Arguments { global, command } = arguments;
    let output = Output::new(global.json);
    let interrupts = Interrupts::start()?;
    let app = App {
        output,
        environment,
        global,
        interrupts: interrupts.clone(),
    };
    // A verb that runs agents heeds signals itself, since it has to put the work away first.
    let hosts = command.hosts_agents();
    let outcome = tokio::select! {
        outcome = Box::pin(dispatch(command, &app)) => outcome,
        () = interrupts.insisted() => return Err(CliError::Cancelled),
        () = interrupts.requested(), if !hosts => Err(CliError::Cancelled),
    };
    wiring::flush_traces().await;
    outcome
}

async fn dispatch(command: Command, app: &App) -> Result<(), CliError> {
    match command {
        Command::Rehearse(arguments) => rehearse::run(arguments, app).await,
        Command::Init(verb) => verb.run(app).await,
        Command::Trust(verb) => verb.run(app),
        Command::Up(verb) => verb.run(app).await,
        Command::Agent(verb) => verb.run(app).await,
        Command::Export(verb) => verb.run(app).await,
        Command::Import(verb) => Box::pin(verb.run(app)).await,
        Command::Doctor(verb) => verb.run(app).await,
        Command::Idea(noun) => commands::idea::run(noun, app).await,
        Command::Spec(noun) => Box::pin(commands::spec::run(noun, app)).await,
        Command::Build(noun) => Box::pin(commands::build::run(noun, app)).await,
        Command::Question(noun) => commands::question::run(noun, app).await,
        Command::Knowledge(noun) => Box::pin(commands::knowledge::run(noun, app)).await,
        Command::Review(noun) => commands::review::run(noun, app).await,
        Command::Alert(noun) => commands::alert::run(noun, app).await,
        Command::Notice(noun) => commands::notice::run(noun, app).await,
        Command::Event(noun) => Box::pin(commands::event::run(noun, app)).await,
        Command::DeadLetter(noun) => commands::dead_letter::run(noun, app).await,
        Command::Lock(noun) => commands::lock::run(noun, app).await,
        Command::Wait(noun) => commands::wait::run(noun, app).await,
        Command::People(noun) => commands::people::run(noun, app).await,
        Command::Whoami(verb) => verb.run(app),
        Command::Stop(verb) => verb.run(app).await,
        Command::Resume(verb) => verb.run(app).await,
        Command::Top(verb) => verb.run(app).await,
        Command::Usage(verb) => verb.run(app).await,
        Command::Metrics(verb) => verb.run(app).await,
        Command::Config(noun) => commands::config::run(noun, app),
        Command::Schema(verb) => verb.run(app),
        Command::Completions(verb) => verb.run(app),
        Command::Man(verb) => verb.run(app),
    }
}
