//! Verb `build retry`: tries a task again; a build that has ended without it runs again.

use clap::Args;
use ropewalk_desk::builds::tasks;
use ropewalk_schemas::{BuildId, TaskId};
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;

/// The task, and what to do differently.
#[derive(Debug, Args)]
pub struct Retry {
    /// The build's id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// The task, as `build show` shows it.
    task: TaskId,
    /// What to do differently.
    #[arg(long)]
    guidance: Option<String>,
    /// The same, without its flag.
    #[arg(conflicts_with = "guidance")]
    words: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Receipt {
    build: BuildId,
    task: TaskId,
    recorded: bool,
}

impl Retry {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let build = self.id.build(&opened).await?;
        let (context, person) = (opened.context(), opened.person()?);
        let said = (!self.words.is_empty()).then(|| self.words.join(" "));
        let guidance = self.guidance.or(said);
        let runs = tasks::retry(&context, &build, &self.task, person, guidance).await?;
        opened.poke_or_say(&app.output)?;
        let done = Receipt {
            build: build.id,
            task: self.task,
            recorded: true,
        };
        app.output.show(&done, |done| {
            let ends = if runs {
                "; the attempt that runs ends, and its work is kept"
            } else {
                ""
            };
            format!("asked for another try of {}{ends}", done.task)
        })
    }
}
