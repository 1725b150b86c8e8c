//! Makes work trees with git alone, as the raw limit of a task.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::building;
use crate::disk;
use crate::sample::Times;

/// How often a work tree is made.
const RUNS: usize = 3;

/// Measures `git worktree add` in a repository of `files` files.
pub(crate) fn worktree(files: usize) -> Result<Times> {
    let directory = disk::directory()?;
    let repo = directory.path().join("repo");
    building::repository(&repo, files)?;
    let mut times = Times::default();
    for number in 0..RUNS {
        let place = directory.path().join(format!("tree-{number}"));
        let begun = Instant::now();
        add(&repo, &place)?;
        times.add(begun.elapsed());
    }
    Ok(times)
}

fn add(repo: &Path, place: &Path) -> Result<()> {
    let status = Command::new("git")
        .args(["worktree", "add", "-q", "--detach"])
        .arg(place)
        .current_dir(repo)
        .status()
        .context("git is missing")?;
    ensure!(status.success(), "git worktree add failed");
    Ok(())
}
