//! Verb `whoami`: who sits at this keyboard, and what this person may do.

use clap::Args;

use super::list::words;
use crate::app::App;
use crate::error::CliError;

/// Takes no arguments of its own.
#[derive(Debug, Args)]
pub struct Whoami {}

impl Whoami {
    /// Runs the verb.
    pub fn run(self, app: &App) -> Result<(), CliError> {
        let project = app.project()?;
        app.output.show(project.person()?, |person| {
            format!(
                "{}\nroles   {}\nrights  {}",
                person.name,
                words(&person.roles),
                words(&person.rights)
            )
        })
    }
}
