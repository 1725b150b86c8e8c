//! Verb `build priority`: says how urgent a build is; what it waits for is ruled on anew.

use clap::Args;
use ropewalk_desk::builds;
use ropewalk_schemas::{BuildId, Priority};
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;

/// The build, and how urgent it is.
#[derive(Debug, Args)]
pub struct SetPriority {
    /// Its id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// 1 (highest) to 10.
    #[arg(value_name = "N", value_parser = crate::values::priority)]
    priority: Priority,
}

#[derive(Debug, Serialize)]
struct Receipt {
    build: BuildId,
    priority: Priority,
}

impl SetPriority {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let build = self.id.build(&opened).await?;
        builds::rank(&opened.context(), &build, self.priority, opened.person()?).await?;
        opened.poke_or_say(&app.output)?;
        let done = Receipt {
            build: build.id,
            priority: self.priority,
        };
        app.output.show(&done, |done| {
            format!("build {} gets priority {}", done.build, done.priority.get())
        })
    }
}
