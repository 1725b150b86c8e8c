//! Verb `spec revise`: asks for changes to the newest revision, and waits for the next one.

use clap::Args;
use ropewalk_desk::specifications;
use ropewalk_schemas::specification::Specification;

use super::writing::{self, WantedRevision};
use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;
use crate::wiring::{Crew, Reach};

/// The specification and what to change.
#[derive(Debug, Args)]
pub struct Revise {
    /// Its id, as `spec list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// What to change.
    #[arg(required = true)]
    feedback: Vec<String>,
}

impl Revise {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let opened = app.open().await?;
        let found = self.id.specification(&opened).await;
        opened.close().await?;
        let found = found?.record;
        let (reach, _) = Reach::open(app, Crew::Specification, &found.idea.clone().into()).await?;
        let written = write(app, &reach, &found, &self.feedback.join(" ")).await;
        let closed = reach.close().await;
        written.and(closed)
    }
}

async fn write(
    app: &App,
    reach: &Reach,
    found: &Specification,
    feedback: &str,
) -> Result<(), CliError> {
    reach.require(writing::ROLE).await?;
    let (context, user) = (reach.context()?, &reach.person()?.name);
    specifications::revise(&context, found.id, user, feedback).await?;
    let wanted = WantedRevision {
        idea: found.idea.clone(),
        spec: found.id,
        number: found.next_revision(),
    };
    let title = format!("writing another revision for `{}`", found.idea);
    writing::show_written(app, reach, &wanted, &title).await
}
