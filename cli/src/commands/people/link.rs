//! Verb `people link`: prints a code by which somebody's phone is linked, once.

use clap::Args;
use ropewalk_desk::phones;
use ropewalk_schemas::UserSlug;
use ropewalk_schemas::person::Right;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;

/// Whose phone it is.
#[derive(Debug, Args)]
pub struct Link {
    /// A name of `[people]`; whoever asks, where none is given.
    name: Option<UserSlug>,
}

#[derive(Debug, Serialize)]
struct Made {
    name: UserSlug,
    code: String,
}

impl Link {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let person = desk.person()?.clone();
        let name = self.name.unwrap_or_else(|| person.name.clone());
        // Who has the phone of somebody may do what that person may.
        if name != person.name {
            for right in Right::ALL {
                person.demand(right)?;
            }
        }
        let code = phones::code(&desk.context(), &desk.project.people, &name).await;
        desk.close().await?;
        let code = code.map_err(|error| CliError::refused("link", error))?;
        app.output.show(&Made { name, code }, |made| {
            format!(
                "send this to the bot from the phone of {}, within 15 minutes:\n\n/start {}",
                made.name, made.code
            )
        })
    }
}
