//! Verb `build priority`: says how urgent a build is; what it waits for is ruled on anew.

use clap::Args;
use ropewalk_builder::machine::build::{self, Input};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::payload::BuildPriority;
use ropewalk_schemas::{BuildId, Payload, Priority, Subject};
use ropewalk_store::ChangeSet;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;

/// The build, and how urgent it is.
#[derive(Debug, Args)]
pub struct SetPriority {
    /// Its id, as `build list` shows it.
    id: IdText,
    /// 1 (highest) to 10.
    #[arg(value_name = "N", value_parser = crate::values::priority)]
    priority: Priority,
}

#[derive(Debug, Serialize)]
struct Done {
    build: BuildId,
    priority: Priority,
}

impl SetPriority {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let build = self.id.find::<Build>(&desk, "build", "build list").await?;
        let context = desk
            .context()
            .for_claim(build.correlation_id, Priority::URGENT);
        // The build agent decides the same when it takes the wish; here a refusal reaches who asks.
        let rank = Input::Rank {
            priority: self.priority,
        };
        build::apply(&build, rank, context.now())
            .map_err(|refused| CliError::refused("build-state", refused.to_string()))?;
        let mut changes = ChangeSet::new();
        changes.emit(context.event(
            Subject::build(build.id),
            Payload::BuildPriority(BuildPriority {
                build_id: build.id,
                priority: self.priority,
                requested_by: desk.person()?.name.to_string(),
            }),
        ));
        desk.store.commit(changes).await?;
        desk.poke_or_say(&app.output)?;
        let done = Done {
            build: build.id,
            priority: self.priority,
        };
        app.output.show(&done, |done| {
            format!("build {} gets priority {}", done.build, done.priority.get())
        })
    }
}
