//! Verb `build show`: a build with its tasks, and why each of them does not run.

use std::fmt::Write as _;

use clap::Args;
use ropewalk_schemas::build::Build;
use ropewalk_schemas::task::Task;
use ropewalk_store::Query;
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::ids::IdText;
use crate::output::{self, time};

/// The build.
#[derive(Debug, Args)]
pub struct Show {
    /// Its id, as `build list` shows it.
    id: IdText,
}

#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    build: Build,
    tasks: Vec<Task>,
}

impl Show {
    /// Runs the verb.
    pub async fn run(self, app: &App) -> Result<(), CliError> {
        let desk = app.desk().await?;
        let build = self
            .id
            .find::<Build>(&desk, "build", "build list")
            .await?
            .record;
        let of_build = Query::new()
            .equal("build", build.id.to_string())
            .order_by("number");
        let tasks = desk.store.list::<Task>(of_build).await?;
        let tasks = tasks.into_iter().map(|task| task.record).collect();
        app.output.show(&Shown { build, tasks }, human)
    }
}

fn human(shown: &Shown) -> String {
    let build = &shown.build;
    let mut text = format!(
        "build {} of `{}` is {}\n",
        build.id, build.idea, build.state
    );
    // Writing to a String cannot fail.
    if let Some(reason) = &build.reason {
        writeln!(text, "why        {reason}").ok();
    }
    if let Some(question) = build.question {
        writeln!(text, "waits for  your answer to question {question}").ok();
    }
    writeln!(
        text,
        "branch     {}, to be merged into {}",
        build.branch, build.target
    )
    .ok();
    if let Some(head) = &build.head {
        writeln!(text, "head       {}", head.short()).ok();
    }
    writeln!(
        text,
        "approved   {}, revision {}",
        time(build.created_at),
        build.revision
    )
    .ok();
    if let Some(at) = build.completed_at {
        writeln!(text, "ended      {}", time(at)).ok();
    }
    let header = ["task", "state", "tries", "file", "commit", "why"];
    let rows = shown.tasks.iter().map(|task| {
        [
            task.id.to_string(),
            task.state.to_string(),
            task.attempts.to_string(),
            task.block.file.to_string(),
            task.commit
                .as_ref()
                .map_or("", |commit| commit.short())
                .to_owned(),
            why(task),
        ]
    });
    text.push('\n');
    text.push_str(&output::table(&header, rows));
    text
}

fn why(task: &Task) -> String {
    let blocked = task
        .blocked_by
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" < ");
    match (&task.reason, task.question, blocked.is_empty()) {
        (Some(reason), _, _) => reason.clone(),
        (None, Some(question), _) => format!("waits for your answer to question {question}"),
        (None, None, false) => format!("blocked by {blocked}"),
        (None, None, true) => String::new(),
    }
}
