//! Verb `build stop`: stops a build; what landed stays.

use clap::Args;

use ropewalk_desk::builds::{self, StopPreview, Wish};
use ropewalk_schemas::amount::counted;

use super::steer::{named, steer};
use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;

/// The build and the reason.
#[derive(Debug, Args)]
pub struct Stop {
    /// Its id, as `build list` shows it, or the name of its idea for the newest.
    id: IdText,
    /// Why.
    #[arg(long)]
    reason: Option<String>,
    /// Says what would end and what would stay, and stops nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Stop {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        if self.dry_run {
            return preview(&self.id, app).await;
        }
        Box::pin(steer(Wish::Stop, &self.id, self.reason, app)).await
    }
}

async fn preview(id: &IdText, app: &App) -> Result<(), CliError> {
    let opened = app.open().await?;
    let person = opened.person()?;
    let build = named(id, &opened, person).await?;
    let preview = builds::preview_stop(&opened.store, &build, person).await?;
    app.output.show(&preview, told)
}

/// Says what ends with a build.
fn told(preview: &StopPreview) -> String {
    format!(
        "with build {} ends the work on {}; what {} brought stays; nothing was stopped",
        preview.build,
        counted(preview.interrupts.len(), "task"),
        counted(preview.landed.len(), "complete task"),
    )
}
