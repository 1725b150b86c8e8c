//! Verb `build list`: the builds, the oldest first.

use clap::Args;
use ropewalk_schemas::Slug;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_store::Query;
use serde::Serialize;

use super::outage;
use crate::app::App;
use crate::error::CliError;
use crate::output::time;

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Only those of this idea.
    #[arg(long)]
    idea: Option<Slug>,
}

#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    build: Build,
    tasks_total: u64,
    tasks_complete: u64,
    /// The outage that it stands still for.
    #[serde(skip_serializing_if = "Option::is_none")]
    outage: Option<Outage>,
}

impl List {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let mut query = Query::new().order_by("created_at");
        if let Some(idea) = &self.idea {
            query = query.equal("idea", idea.as_str());
        }
        let outage = outage::of_builds(&desk).await?;
        let mut rows = Vec::new();
        for build in desk.store.list::<Build>(query).await? {
            let tasks = Query::new().equal("build", build.id.to_string());
            let complete = tasks.clone().equal("state", TaskState::Complete.as_str());
            rows.push(Row {
                tasks_total: desk.store.count::<Task>(tasks).await?,
                tasks_complete: desk.store.count::<Task>(complete).await?,
                outage: outage::holding(&build, outage.as_ref()).cloned(),
                build: build.record,
            });
        }
        app.output.list(
            &rows,
            ["id", "idea", "state", "tasks", "branch", "approved", "why"],
            |row| {
                [
                    row.build.id.to_string(),
                    row.build.idea.to_string(),
                    row.build.state.to_string(),
                    format!("{}/{}", row.tasks_complete, row.tasks_total),
                    row.build.branch.clone(),
                    time(row.build.created_at),
                    outage::why(&row.build, row.outage.as_ref()).unwrap_or_default(),
                ]
            },
        )
    }
}
