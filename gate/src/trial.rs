//! Tries commands on a commit for whoever sets up a gate: there is no build yet, and no evidence.

use std::time::Duration;

use ropewalk_schemas::CommitId;
use ropewalk_schemas::attempt::CheckRun;
use tokio_util::sync::CancellationToken;

use crate::error::GateError;
use crate::judge::Ruling;
use crate::runner::{Check, Findings, GateRunner};
use crate::site::Site;

/// How long one of them may take.
const TIMEOUT: Duration = Duration::from_mins(10);

/// Runs the shell lines of `named` one after the other, each on a clean checkout of `commit`; says of each how it went.
pub async fn on_commit(
    runner: &GateRunner,
    commit: &CommitId,
    named: &[(&str, &str)],
) -> Result<Vec<(CheckRun, Ruling)>, GateError> {
    let never = CancellationToken::new();
    let mut findings = Findings::default();
    let prepared = Site::prepare(runner, commit, &[], &never, &mut findings).await?;
    let Some((mut site, _)) = prepared else {
        return Err(GateError::Ended);
    };
    let mut runs = Vec::new();
    for (name, command) in named {
        let check = Check::alone(name, command, TIMEOUT);
        let run = site.run(&check, &never).await?;
        runs.push(run.ok_or(GateError::Ended)?);
    }
    Ok(runs)
}
