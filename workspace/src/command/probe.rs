//! Finds what confines commands on this machine: one is run in each way that may work, as every command is.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{CommandRunner, CommandSpec};
use crate::process::CommandStatus;
use crate::sandbox::{Hold, Level, Sandbox, SandboxError, SandboxOptions, Surroundings};

/// How long a trial may take.
const TRIAL: Duration = Duration::from_secs(10);
const TRIAL_OUTPUT_BYTES: usize = 4096;
/// What the command of a trial exits with, as nothing else on the way does.
const TRIED: i32 = 42;

impl Sandbox {
    /// Finds the best level that works on this machine, by trying.
    pub async fn probe(options: SandboxOptions) -> Result<Self, SandboxError> {
        let surroundings = Surroundings::find(options);
        let bubblewrap = match Self::best(Level::Bubblewrap, &surroundings).await {
            Ok(sandbox) => return Ok(sandbox),
            Err(reason) => reason,
        };
        Self::best(Level::Namespaces, &surroundings)
            .await
            .map_err(|namespaces| SandboxError {
                bubblewrap,
                namespaces,
            })
    }

    /// Makes a sandbox of one level, with the best hold that works; where none does, says why.
    pub async fn at(level: Level, options: SandboxOptions) -> Result<Self, String> {
        Self::best(level, &Surroundings::find(options)).await
    }

    /// Makes a sandbox of one level and one hold; where it does not work, says why.
    pub async fn of(level: Level, hold: Hold, options: SandboxOptions) -> Result<Self, String> {
        Self::tried(level, hold, &Surroundings::find(options)).await
    }

    async fn best(level: Level, surroundings: &Surroundings) -> Result<Self, String> {
        let mut reason = String::new();
        for hold in Hold::ALL {
            match Self::tried(level, hold, surroundings).await {
                Ok(sandbox) => return Ok(sandbox),
                Err(why) => reason = why,
            }
        }
        Err(reason)
    }

    async fn tried(level: Level, hold: Hold, surroundings: &Surroundings) -> Result<Self, String> {
        let runner = CommandRunner::new(surroundings.environment().clone());
        let sandbox = Self::untried(level, hold, surroundings)?;
        try_out(&runner.confined(Some(sandbox.clone()))).await?;
        Ok(sandbox)
    }
}

async fn try_out(runner: &CommandRunner) -> Result<(), String> {
    let spec = CommandSpec {
        output_limit_bytes: TRIAL_OUTPUT_BYTES,
        ..CommandSpec::shell(format!("exit {TRIED}"), "/").with_timeout(TRIAL)
    };
    // Without a way to hosts: where none can be opened, each command says so.
    let tried = runner
        .run_by(None, &spec, &CancellationToken::new(), None)
        .await;
    let output = tried.map_err(|error| error.to_string())?;
    match output.status {
        CommandStatus::Exited(TRIED) => Ok(()),
        CommandStatus::Missing => Err("`sh` is not on the PATH".to_owned()),
        status => {
            let mut lines = output.stderr.lines().rev().map(str::trim);
            let line = lines.find(|line| !line.is_empty());
            Err(line.map_or_else(|| format!("{status:?}"), str::to_owned))
        }
    }
}
