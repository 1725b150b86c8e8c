//! Whole processes: from the start to the first durable step, and what an idle one holds.

pub(crate) mod child;
pub(crate) mod confined;
mod serving;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::disk;
use crate::figure::{Figure, Goal};
use crate::sample::Times;
use crate::settings::{CHILD, READY};

/// How often a process is started.
const STARTS: usize = 11;

/// How long a process is left alone before its memory is read.
const SETTLE: Duration = Duration::from_secs(3);

/// This program in another role, killed when dropped.
pub(crate) struct Role {
    child: Child,
    /// From before the start to the line that says it is ready.
    pub(crate) ready_after: Duration,
}

impl Role {
    /// Starts this program as a child and waits until it is ready.
    pub(crate) fn start(role: &str, argument: &str) -> Result<Self> {
        let program = std::env::current_exe()?;
        let begun = Instant::now();
        let mut child = Command::new(program)
            .args([CHILD, role, argument])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().context("a child without an output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let role_child = Self {
            child,
            ready_after: begun.elapsed(),
        };
        ensure!(
            line.trim_end() == READY,
            "the child `{role}` ended before it was ready"
        );
        Ok(role_child)
    }

    /// Returns how much memory it has, in bytes.
    pub(crate) fn memory_bytes(&self) -> Result<f64> {
        status_bytes(self.child.id(), "VmRSS:")
    }

    /// Returns how much memory it has had at most, in bytes.
    pub(crate) fn peak_bytes(&self) -> Result<f64> {
        status_bytes(self.child.id(), "VmHWM:")
    }
}

/// Returns how much memory this process has had at most, in bytes.
pub(crate) fn own_peak_bytes() -> Result<f64> {
    status_bytes(std::process::id(), "VmHWM:")
}

fn status_bytes(process: u32, name: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let kib: u32 = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .with_context(|| format!("no {name}"))?
        .parse()?;
    Ok(f64::from(kib) * 1_024.0)
}

impl Drop for Role {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// Measures start and idle memory.
pub(crate) async fn run() -> Result<Vec<Figure>> {
    let ours = starts("first-step")?;
    let raw = starts("raw-first-step")?;
    let start = Figure::cost(
        "process start to the first durable step, new database, p50",
        "ms",
        ours.millis(50)?,
    )
    .p99(ours.millis(99)?)
    .beside(
        raw.millis(50)?,
        "a process that makes a table and commits a row",
    )
    .goal(Goal::Value(80.0));
    let idle = memory("idle")?.await?;
    let raw_idle = memory("raw-first-step")?.await?;
    let idle = Figure::cost("idle memory, frame with six agents", "MiB", idle)
        .beside(raw_idle, "a process with one connection")
        .goal(Goal::Value(15.0));
    Ok(vec![start, idle, serving::idle().await?])
}

fn starts(role: &str) -> Result<Times> {
    let mut times = Times::default();
    for _ in 0..STARTS {
        let directory = disk::directory()?;
        times.add(Role::start(role, text(directory.path())?)?.ready_after);
    }
    Ok(times)
}

fn memory(role: &'static str) -> Result<impl Future<Output = Result<f64>>> {
    let directory = disk::directory()?;
    let child = Role::start(role, text(directory.path())?)?;
    Ok(async move {
        tokio::time::sleep(SETTLE).await;
        let size = child.memory_bytes()?;
        drop(directory);
        Ok(size / 1_048_576.0)
    })
}

/// Returns a path as an argument.
pub(crate) fn text(path: &Path) -> Result<&str> {
    path.to_str()
        .context("the directory for temporary files is no text")
}
