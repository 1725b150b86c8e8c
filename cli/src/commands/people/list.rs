//! Verb `people list`: who works on the project.

use clap::Args;

use crate::app::App;
use crate::error::CliError;

/// Takes no arguments of its own.
#[derive(Debug, Args)]
pub struct List {}

impl List {
    /// Runs the verb.
    pub fn run(self, app: &App) -> Result<(), CliError> {
        let people = app.project()?.people.all();
        app.output
            .list(&people, ["name", "roles", "rights"], |person| {
                [
                    person.name.to_string(),
                    words(&person.roles),
                    words(&person.rights),
                ]
            })
    }
}

/// Joins roles or rights for people.
pub(crate) fn words<'a, T: ToString + 'a>(items: impl IntoIterator<Item = &'a T>) -> String {
    let words: Vec<String> = items.into_iter().map(ToString::to_string).collect();
    words.join(" ")
}
