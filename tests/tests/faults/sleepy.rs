//! A gate that sleeps until it is woken, so that there is time to kill whoever runs it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::ensure;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::picture::git;
use crate::project::Project;
use crate::trial::UNTIL_FAULT;

/// The gate, and what its runs sleep.
pub(crate) struct SleepyGate {
    /// Runs that begin when it is there do not sleep.
    woken: PathBuf,
    /// The command line of the sleep.
    line: Vec<u8>,
}

impl SleepyGate {
    /// Commits the gate to the repository of `project`; no other test of this run may sleep just so many seconds.
    pub(crate) fn of(project: &Project, seconds: u32) -> anyhow::Result<Self> {
        let woken = project.path().join("woken");
        let seconds = format!("{seconds}.{}", std::process::id());
        // It leaves its process group, and its shell waits for it.
        let command = format!(
            "test -e {} || setsid --wait sleep {seconds}",
            woken.display()
        );
        commit_gate(project, &command)?;
        Ok(Self {
            woken,
            line: format!("sleep\0{seconds}\0").into_bytes(),
        })
    }

    /// Waits until a run of it sleeps.
    pub(crate) async fn until_asleep(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        while !self.sleeps() {
            ensure!(began.elapsed() < UNTIL_FAULT, "no gate runs");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Lets the runs that begin from now on pass at once; those that sleep go on sleeping.
    pub(crate) fn wake(&self) -> anyhow::Result<()> {
        Ok(fs::write(&self.woken, "")?)
    }

    /// Returns whether a run of it still sleeps.
    pub(crate) fn sleeps(&self) -> bool {
        !self.sleepers().is_empty()
    }

    fn sleepers(&self) -> Vec<Pid> {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let sleepers = processes.filter_map(|entry| {
            let process = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            (line == self.line).then_some(Pid::from_raw(process))
        });
        sleepers.collect()
    }
}

/// Commits a gate of one command to the repository of `project`, and lets commands reach beyond their checkouts, to what
/// these gates look at and whom they kill.
pub(crate) fn commit_gate(project: &Project, command: &str) -> anyhow::Result<()> {
    commit_commands(project, &gate_of(command))
}

/// Does the same with a command that whole builds alone meet.
pub(crate) fn commit_gate_of_builds(project: &Project, command: &str) -> anyhow::Result<()> {
    commit_commands(
        project,
        &format!("{}level = \"standard\"\n", gate_of(command)),
    )
}

fn gate_of(command: &str) -> String {
    format!("[[gate.commands]]\nname = \"gate\"\ncommand = \"{command}\"\n")
}

fn commit_commands(project: &Project, gate: &str) -> anyhow::Result<()> {
    let settings = project.path().join("ropewalk.toml");
    let confined = fs::read_to_string(&settings)?;
    fs::write(settings, format!("sandbox = \"off\"\n{confined}"))?;
    fs::write(project.repository().join("ropewalk.toml"), gate)?;
    commit_all(project, "Set the gate")
}

/// Commits whatever lies in the repository of `project`.
pub(crate) fn commit_all(project: &Project, subject: &str) -> anyhow::Result<()> {
    let repository = project.repository();
    git(&repository, &["add", "-A"])?;
    let identity = ["-c", "user.name=Pat", "-c", "user.email=pat@example.org"];
    let commit = [&identity[..], &["commit", "-q", "-m", subject]].concat();
    git(&repository, &commit)?;
    Ok(())
}

impl Drop for SleepyGate {
    fn drop(&mut self) {
        for process in self.sleepers() {
            kill(process, Signal::SIGKILL).ok();
        }
    }
}
