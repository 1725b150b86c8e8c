//! What confinement costs a command: `true` with nothing in the way, and confined by each level that works here, in turn.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use ropewalk_workspace::sandbox::egress::Egress;
use ropewalk_workspace::sandbox::helper;
use ropewalk_workspace::{
    CommandRunner, CommandSpec, Environment, Level, Limits, Sandbox, SandboxOptions,
};
use tokio_util::sync::CancellationToken;

use crate::figure::{Figure, Goal};
use crate::sample::Times;

/// How often a command runs on each side.
const RUNS: usize = 200;

pub(crate) async fn run() -> Result<Vec<Figure>> {
    let state = tempfile::tempdir()?;
    let mut figures = Vec::new();
    for level in [Level::Bubblewrap, Level::Namespaces] {
        let options = SandboxOptions {
            environment: Environment::from_pairs(std::env::vars_os()),
            helper: helper().context("this program cannot start itself again")?,
            hidden: vec![state.path().to_owned()],
            objects: None,
            limits: Limits::default(),
            egress: Egress::none(),
        };
        // Where one does not work, the other is what commands get.
        if let Ok(sandbox) = Sandbox::at(level, options).await {
            figures.push(measure(state.path(), sandbox).await?);
        }
    }
    ensure!(!figures.is_empty(), "nothing confines commands here");
    Ok(figures)
}

async fn measure(state: &Path, sandbox: Sandbox) -> Result<Figure> {
    let tree = state.join("slots/1/tree");
    std::fs::create_dir_all(&tree)?;
    let level = sandbox.level();
    let plain = CommandRunner::new(Environment::from_pairs(std::env::vars_os()));
    let confined = plain.clone().confined(Some(sandbox));
    let spec = CommandSpec::shell("true", &tree).with_writable(&tree);
    let (mut free, mut fenced) = (Times::default(), Times::default());
    for _ in 0..RUNS {
        for (runner, times) in [(&plain, &mut free), (&confined, &mut fenced)] {
            let begun = Instant::now();
            let output = runner.run(&spec, &CancellationToken::new()).await?;
            times.add(begun.elapsed());
            ensure!(output.succeeded(), "{output:?}");
        }
    }
    let cost = fenced.millis(50)? - free.millis(50)?;
    let name = format!("confinement of a command, {level}, p50");
    Ok(Figure::cost(name, "ms", cost)
        .beside(free.millis(50)?, "the command by itself")
        .p99(fenced.millis(99)? - free.millis(50)?)
        .goal(Goal::Value(30.0)))
}
