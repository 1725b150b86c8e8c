//! What confinement costs a command: `true` with nothing in the way, and confined, in turn.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use ropewalk_workspace::sandbox::egress::Egress;
use ropewalk_workspace::sandbox::helper;
use ropewalk_workspace::{
    CommandRunner, CommandSpec, Environment, Limits, Sandbox, SandboxOptions,
};
use tokio_util::sync::CancellationToken;

use crate::figure::{Figure, Goal};
use crate::sample::Times;

/// How often a command runs on each side.
const RUNS: usize = 200;

pub(crate) async fn run() -> Result<Vec<Figure>> {
    let state = tempfile::tempdir()?;
    let tree = state.path().join("slots/1/tree");
    std::fs::create_dir_all(&tree)?;
    let environment = Environment::from_pairs(std::env::vars_os());
    let sandbox = Sandbox::probe(SandboxOptions {
        environment: environment.clone(),
        helper: helper().context("this program cannot start itself again")?,
        hidden: vec![state.path().to_owned()],
        objects: None,
        limits: Limits::default(),
        egress: Egress::none(),
    });
    let sandbox = sandbox.await?;
    let level = sandbox.level();
    let plain = CommandRunner::new(environment);
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
    Ok(vec![
        Figure::cost(
            format!("confinement of a command, {level}, p50"),
            "ms",
            cost,
        )
        .beside(free.millis(50)?, "the command by itself")
        .p99(fenced.millis(99)? - free.millis(50)?)
        .goal(Goal::Value(30.0)),
    ])
}
