//! Loss of power under the real program; needs root and loop devices, so that only `./check --soak` runs it.

#[path = "../faults/ledger.rs"]
mod ledger;
#[path = "../scenarios/picture.rs"]
#[expect(dead_code, reason = "what a rehearsal needs is not needed here")]
mod picture;
#[path = "../scenarios/project.rs"]
mod project;
#[path = "../scenarios/running.rs"]
#[expect(dead_code, reason = "what a rehearsal needs is not needed here")]
mod running;
#[path = "../faults/trial.rs"]
#[expect(dead_code, reason = "what other faults need is not needed here")]
mod trial;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use nix::sys::signal::{Signal, kill};
use ropewalk_tests::soak::count;

use crate::running::{start, until_events};
use crate::trial::{approved, scatter};

/// A file that is mounted as a disk; unmounted on drop.
struct LoopDisk(PathBuf);

impl LoopDisk {
    fn mount(image: &Path, place: &Path) -> anyhow::Result<Self> {
        let mount = Command::new("mount")
            .args(["-o", "loop"])
            .args([image, place])
            .status()?;
        ensure!(
            mount.success(),
            "cannot mount `{}`: are you root?",
            image.display()
        );
        Ok(Self(place.to_owned()))
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.0).status());
    }
}

fn shell(script: &str, arguments: &[&Path]) -> anyhow::Result<()> {
    let status = Command::new("sh")
        .args(["-ec", script, "sh"])
        .args(arguments)
        .status()?;
    ensure!(status.success(), "`{script}` failed");
    Ok(())
}

/// Copies what has reached the disk, and nothing that only the memory knows.
///
/// Commands of the stopped program and the journal of the disk go on meanwhile, so a copy counts only if the disk is
/// still the same after it: else it could hold the end of a write without its beginning.
fn copy_at_once(image: &Path, copy: &Path) -> anyhow::Result<()> {
    for _ in 0..100 {
        shell("cp --sparse=always \"$1\" \"$2\"", &[image, copy])?;
        let same = Command::new("cmp").arg("-s").args([image, copy]).status()?;
        if same.success() {
            return Ok(());
        }
    }
    bail!("the disk never rested for a copy")
}

#[tokio::test]
async fn soak_a_loss_of_power_at_any_moment_loses_nothing() -> anyhow::Result<()> {
    let losses = count("ROPEWALK_SOAK_POWER_LOSSES", 2)?;
    for number in 0..losses {
        let project = approved()?;
        // In memory, so that a copy takes no time in which the disk changes.
        let images = tempfile::tempdir_in("/dev/shm")?;
        let [image, copy] = ["disk", "copy"].map(|name| images.path().join(name));
        shell("truncate -s 192M \"$1\"; mkfs.ext4 -q \"$1\"", &[&image])?;
        let aside = project.path().with_extension("aside");
        shell("mv \"$1\" \"$2\"; mkdir \"$1\"", &[project.path(), &aside])?;
        let disk = LoopDisk::mount(&image, project.path())?;
        shell(
            "cp -a \"$1\"/. \"$2\"; rm -r \"$1\"; sync",
            &[&aside, project.path()],
        )?;
        let mut up = start(&project.runner, &["up"])?;
        until_events(project.path(), &mut up, "task.started", 1).await?;
        tokio::time::sleep(scatter(number, Duration::from_millis(2_500))).await;
        kill(up.pid()?, Signal::SIGSTOP)?;
        copy_at_once(&image, &copy)?;
        project.kill(up).await?;
        drop(disk);
        let _disk = LoopDisk::mount(&copy, project.path())?;
        project
            .finish_and_check()
            .await
            .with_context(|| format!("after power loss {number}"))?;
    }
    println!("{losses} losses of power: 0 lost, 0 doubled");
    Ok(())
}
