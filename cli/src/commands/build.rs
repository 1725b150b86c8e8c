//! Builds: look at them and steer them.

mod asleep;
pub mod comment;
pub mod land;
pub mod lines;
pub mod list;
pub mod log;
pub mod pause;
pub mod priority;
pub mod replay;
pub mod resume;
pub mod retry;
pub mod show;
mod steer;
pub mod stop;
pub mod tell;
mod trace;
pub mod wait;

use clap::Subcommand;

use crate::app::App;
use crate::error::CliError;

/// The verbs of `build`.
#[derive(Debug, Subcommand)]
pub enum Build {
    /// Lists the builds.
    List(list::List),
    /// Shows a build with its tasks.
    Show(show::Show),
    /// Shows what a build changed, line by line.
    Lines(lines::Lines),
    /// Waits for the end of a build, and exits as it ended.
    Wait(wait::Wait),
    /// Lets running tasks end and begins no others.
    Pause(pause::Pause),
    /// Goes on with a paused, stopped or failed build.
    Resume(resume::Resume),
    /// Stops a build; what landed stays.
    Stop(stop::Stop),
    /// Tries a failed or skipped task again.
    Retry(retry::Retry),
    /// Says something to the models that work on a build.
    Tell(tell::Tell),
    /// Asks for changes of a finished build by comments on lines.
    Comment(comment::Comment),
    /// Says how urgent a build is.
    Priority(priority::SetPriority),
    /// Brings the branch of a finished build into another branch.
    Land(land::Land),
    /// Shows what happened in a build.
    Log(log::Log),
    /// Does a build again that ran, from its journal and without a model, in a fresh directory.
    Replay(replay::Replay),
}

/// Runs a verb.
pub async fn run(noun: Build, app: &App) -> Result<(), CliError> {
    match noun {
        Build::List(verb) => verb.run(app).await,
        Build::Show(verb) => verb.run(app).await,
        Build::Lines(verb) => verb.run(app).await,
        Build::Wait(verb) => Box::pin(verb.run(app)).await,
        Build::Pause(verb) => verb.run(app).await,
        Build::Resume(verb) => verb.run(app).await,
        Build::Stop(verb) => verb.run(app).await,
        Build::Retry(verb) => verb.run(app).await,
        Build::Tell(verb) => verb.run(app).await,
        Build::Comment(verb) => Box::pin(verb.run(app)).await,
        Build::Priority(verb) => verb.run(app).await,
        Build::Land(verb) => Box::pin(verb.run(app)).await,
        Build::Log(verb) => Box::pin(verb.run(app)).await,
        Build::Replay(verb) => Box::pin(verb.run(app)).await,
    }
}
