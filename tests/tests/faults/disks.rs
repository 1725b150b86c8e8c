//! Disks that are full.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_store::Query;
use serde_json::Value;

use crate::picture::{landed, store};
use crate::project::{PATIENCE, Project};
use crate::running::{start, stop, until_events};
use crate::trial::{UNTIL_FAULT, approved, end_of, may_mount};

/// A file system of a few MiB in memory; unmounted on drop.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it over `place` with what lies there.
    pub(crate) fn over(place: &Path, mebibytes: u32) -> anyhow::Result<Self> {
        let aside = place.with_extension("aside");
        fs::rename(place, &aside)?;
        fs::create_dir(place)?;
        let options = format!("size={mebibytes}m,mode=0700");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(place)
            .status()?;
        ensure!(mount.success(), "cannot mount a tmpfs");
        let disk = Self(place.to_owned());
        let copied = Command::new("cp")
            .arg("-a")
            .arg(aside.join("."))
            .arg(place)
            .status()?;
        ensure!(copied.success(), "`{}` does not fit", place.display());
        Ok(disk)
    }

    /// Fills it to the last byte; returns the file to delete.
    pub(crate) fn fill(&self) -> anyhow::Result<PathBuf> {
        let filler = self.0.join("filler");
        let mut file = fs::File::create(&filler)?;
        for size in [65_536, 4_096, 1] {
            let chunk = vec![1; size];
            while file.write_all(&chunk).is_ok() {}
        }
        ensure!(
            fs::write(self.0.join("probe"), [1; 4_096]).is_err(),
            "the disk is not full"
        );
        Ok(filler)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.0).status());
    }
}

/// Lists the checks of the doctor that fail.
fn failing(project: &Project) -> anyhow::Result<BTreeSet<String>> {
    let looked = project.runner.run(&["doctor", "--json"], PATIENCE)?;
    let findings: Vec<Value> = serde_json::from_slice(&looked.stdout)?;
    let failed = findings.iter().filter(|one| one["verdict"] == "fail");
    let checks = failed.filter_map(|one| one["check"].as_str());
    Ok(checks.map(str::to_owned).collect())
}

#[tokio::test]
async fn a_full_disk_stops_the_work_and_room_lets_it_go_on() -> anyhow::Result<()> {
    if !may_mount("disks::a_full_disk_stops_the_work_and_room_lets_it_go_on")? {
        return Ok(());
    }
    let project = approved()?;
    let disk = SmallDisk::over(&project.path().join("state"), 64)?;
    let mut up = start(&project.runner, &["up"])?;
    until_events(project.path(), &mut up, "task.completed", 2).await?;
    let filler = disk.fill()?;
    let verb = ["idea", "new", "Another idea", "--slug", "another"];
    let began = Instant::now();
    let mut failed = false;
    while !failed && began.elapsed() < UNTIL_FAULT {
        failed = !project.runner.run(&verb, PATIENCE)?.status.success();
    }
    ensure!(failed, "writing succeeds on a full disk");
    for check in ["state", "store"] {
        ensure!(
            failing(&project)?.contains(check),
            "`doctor` passes {check}"
        );
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    ensure!(
        up.0.try_wait()?.is_none(),
        "`up` gave up: {}",
        project.said()
    );
    ensure!(!project.said().contains("panicked"), "{}", project.said());
    fs::remove_file(filler)?;
    drop(fs::remove_file(disk.0.join("probe")));
    // Back unaided: the same process goes on.
    until_events(project.path(), &mut up, "build.completed", 1)
        .await
        .with_context(|| project.said())?;
    let status = end_of(&mut up, Duration::from_millis(500)).await;
    ensure!(status.is_err(), "`up` ended by itself");
    stop(&mut up).await?;
    project.finish_and_check().await
}

#[tokio::test]
async fn a_full_disk_under_the_slots_ends_attempts_and_room_lets_the_build_end()
-> anyhow::Result<()> {
    if !may_mount("disks::a_full_disk_under_the_slots_ends_attempts_and_room_lets_the_build_end")? {
        return Ok(());
    }
    let project = approved()?;
    let slots = project.path().join("state/slots");
    fs::create_dir(&slots)?;
    let disk = SmallDisk::over(&slots, 16)?;
    let filler = disk.fill()?;
    let mut up = start(&project.runner, &["up"])?;
    until_no_space(&project).await?;
    let (states, complete) = progress(&project).await?;
    ensure!(
        states
            .iter()
            .all(|state| !matches!(state, AttemptState::Failed)),
        "a full disk is no fault of a task: {states:?}"
    );
    ensure!(
        states.contains(&AttemptState::Interrupted) && complete == 0,
        "{states:?}, {complete} complete"
    );
    ensure!(
        up.0.try_wait()?.is_none(),
        "`up` gave up: {}",
        project.said()
    );
    ensure!(!project.said().contains("panicked"), "{}", project.said());
    ensure!(landed(&project.repository(), "build/habits")?.is_empty());
    fs::remove_file(filler)?;
    drop(fs::remove_file(disk.0.join("probe")));
    until_events(project.path(), &mut up, "build.completed", 1)
        .await
        .with_context(|| project.said())?;
    stop(&mut up).await?;
    project.finish_and_check().await
}

/// Waits until two tasks say that there is no room for their attempts, and the branch of the build, which follows
/// what SQL says of it, is there.
async fn until_no_space(project: &Project) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let store = store(project.path()).await?;
        let tasks = store.list::<Task>(Query::new()).await?;
        let builds = store.list::<Build>(Query::new()).await?;
        store.close().await?;
        let published = builds.iter().all(|build| build.published.is_some());
        let held_up = tasks.iter().filter(|task| {
            let reason = task.reason.as_deref().unwrap_or_default();
            reason.contains("No space left")
        });
        if held_up.count() > 1 && published {
            return Ok(());
        }
        ensure!(
            began.elapsed() < UNTIL_FAULT,
            "no two tasks met the full disk, or no branch was made: {}",
            project.said()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns how every attempt stands, and how many tasks are complete.
async fn progress(project: &Project) -> anyhow::Result<(Vec<AttemptState>, usize)> {
    let store = store(project.path()).await?;
    let attempts = store.list::<Attempt>(Query::new()).await?;
    let tasks = store.list::<Task>(Query::new()).await?;
    store.close().await?;
    let complete = tasks
        .iter()
        .filter(|task| task.state == TaskState::Complete);
    let states = attempts.iter().map(|attempt| attempt.state).collect();
    Ok((states, complete.count()))
}
