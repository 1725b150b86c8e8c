//! Tasks of a build one after the other: what each costs beside model and validation.

use std::collections::HashMap;

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use ropewalk_schemas::TaskId;
use ropewalk_schemas::attempt::{Attempt, Evidence};
use ropewalk_store::Query;

use crate::building::{Plan, Project};
use crate::disk;
use crate::figure::{Figure, Goal};
use crate::raw::git;
use crate::sample::Times;

/// Tasks of a build; the first ones warm the checkouts up.
const TASKS: usize = 40;
/// So many of them are not counted.
const WARMING: usize = 5;

/// Measures a task in a repository of 1,000 files and in one of 10,000.
pub(crate) async fn run() -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (files, goal) in [(1_000, 60.0), (10_000, 150.0)] {
        let times = tasks(files).await?;
        let raw = git::worktree(files)?;
        let name = format!("a task without model and validation, {files} files, p50");
        let figure = Figure::cost(name, "ms", times.millis(50)?)
            .p99(times.millis(99)?)
            .beside(raw.millis(50)?, "`git worktree add`")
            .goal(Goal::Value(goal));
        figures.push(figure);
    }
    Ok(figures)
}

/// Returns the times from one landing to the next on one loop, without what the commands of the gate took.
async fn tasks(files: usize) -> Result<Times> {
    let directory = disk::directory()?;
    let plan = Plan {
        slug: "habits".to_owned(),
        tasks: TASKS,
    };
    let project = Project::open(directory.path(), files, 1, std::slice::from_ref(&plan)).await?;
    project.approve(&plan).await?;
    project.ended(1).await?;
    let commands = commands(&project).await?;
    let mut landed: Vec<(DateTime<Utc>, TaskId)> = Vec::new();
    let store = &project.world.services.store;
    for attempt in store.list::<Attempt>(Query::new()).await? {
        let at = attempt.ended_at.context("an attempt has ended")?;
        landed.push((at, attempt.task.clone()));
    }
    landed.sort();
    let mut times = Times::default();
    for pair in landed.windows(2).skip(WARMING) {
        let whole = (pair[1].0 - pair[0].0).to_std()?;
        let gate = commands.get(&pair[1].1).copied().unwrap_or_default();
        times.add(whole.saturating_sub(std::time::Duration::from_millis(gate)));
    }
    project.world.close().await?;
    Ok(times)
}

/// Returns how many milliseconds the commands of the gate took for each task.
async fn commands(project: &Project) -> Result<HashMap<TaskId, u64>> {
    let mut commands = HashMap::new();
    let store = &project.world.services.store;
    for evidence in store.list::<Evidence>(Query::new()).await? {
        let spent = evidence.checks.iter().map(|check| check.duration_ms).sum();
        if let Some(task) = evidence.task.clone() {
            commands.insert(task, spent);
        }
    }
    Ok(commands)
}
