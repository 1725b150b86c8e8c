//! 200 builds at once in one process: how much memory it needs at most.

use std::path::Path;

use anyhow::Result;

use crate::building::{Plan, Project};
use crate::disk;
use crate::figure::{Figure, Goal};
use crate::process::{Role, text};

/// Builds that run at once.
const BUILDS: usize = 200;
/// Tasks of each.
const TASKS: usize = 2;
/// Files of the repository that they build in.
const FILES: usize = 200;
/// Loops that share them.
const LOOPS: usize = 8;

/// Measures the peak of a process that builds them all.
pub(crate) fn run() -> Result<Vec<Figure>> {
    let directory = disk::directory()?;
    // It says that it is ready when the last build has ended.
    let child = Role::start("builds", text(directory.path())?)?;
    let peak = child.peak_bytes()? / 1_048_576.0;
    let figure = Figure::cost("200 builds at once, peak memory", "MiB", peak);
    Ok(vec![figure.goal(Goal::Value(300.0))])
}

/// Builds them all.
pub(crate) async fn build(directory: &Path) -> Result<Project> {
    let plans: Vec<Plan> = (1..=BUILDS)
        .map(|number| Plan {
            slug: format!("idea-{number}"),
            tasks: TASKS,
        })
        .collect();
    let project = Project::open(directory, FILES, LOOPS, &plans).await?;
    for plan in &plans {
        project.approve(plan).await?;
    }
    project.ended(BUILDS).await?;
    Ok(project)
}
