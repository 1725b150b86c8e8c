//! Tries commands on a commit before there is a build, and without evidence: for whoever sets up a gate, and for a plan whose
//! checks should fail on the commit that it begins at.

use std::time::{Duration, Instant};

use ropewalk_schemas::CommitId;
use ropewalk_schemas::attempt::{CheckRun, FailureClass, Proof};
use ropewalk_schemas::task::Validation;
use tokio_util::sync::CancellationToken;

use crate::checks::Gate;
use crate::error::GateError;
use crate::install;
use crate::judge::Ruling;
use crate::obstacle::{self, Obstacle};
use crate::proof;
use crate::runner::{Check, Findings, GateRunner};
use crate::site::Site;

/// How long one command of a gate to be may take.
const TIMEOUT: Duration = Duration::from_mins(10);

/// Runs the shell lines of `named` one after the other, each on a clean checkout of `commit`; says of each how it went.
pub async fn on_commit(
    runner: &GateRunner,
    commit: &CommitId,
    named: &[(&str, &str)],
) -> Result<Vec<(CheckRun, Ruling)>, GateError> {
    let never = CancellationToken::new();
    let gate = runner.gate_at(Some(commit)).await?;
    let mut site = site(runner, (commit, &gate), &never).await?;
    let mut runs = Vec::new();
    for (name, command) in named {
        let check = Check::alone(name, command, TIMEOUT);
        let run = site.run(&check, &never).await?;
        runs.push(run.ok_or(GateError::Ended)?);
    }
    Ok(runs)
}

/// How the check of a task fared before any work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// How it went.
    pub ruling: Ruling,
    /// What its pass would be worth after the work.
    pub proof: Proof,
    /// Whether its tests were looked for, and none was selected.
    pub selected_no_test: bool,
    /// Whether a number of tests is asked for, and what it said tells none.
    pub uncounted: bool,
    /// Whether it ended as what holds does.
    pub ended_well: bool,
    /// What kept it from running.
    pub obstacle: Option<Obstacle>,
}

/// Runs the checks of tasks, each on a clean checkout of `commit`, and says of each how it went; none for those that `time` did
/// not suffice for.
pub async fn of_validations(
    runner: &GateRunner,
    commit: &CommitId,
    validations: &[&Validation],
    time: Duration,
) -> Result<Vec<Option<Trial>>, GateError> {
    let never = CancellationToken::new();
    let gate = runner.gate_at(Some(commit)).await?;
    let mut site = site(runner, (commit, &gate), &never).await?;
    let begun = Instant::now();
    let mut trials = Vec::with_capacity(validations.len());
    for validation in validations {
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            trials.push(None);
            continue;
        }
        let check = Check {
            expected: Some(&validation.expected),
            counts: Some(&gate.counts),
            ..Check::alone(
                "validation",
                &validation.command,
                runner.validation_timeout.min(left),
            )
        };
        let ran = site.run(&check, &never).await?;
        let (run, ruling) = ran.ok_or(GateError::Ended)?;
        // Only the time of its own counts against a check.
        let cut = check.timeout < runner.validation_timeout && is_timeout(&ruling);
        let expected = &validation.expected;
        let proof = proof::of(&ruling, (&run, None), expected, false);
        trials.push((!cut).then_some(Trial {
            selected_no_test: proof::selected_no_test(&run),
            uncounted: proof::is_uncounted(&run, expected),
            ended_well: run.exit_code == Some(0),
            obstacle: obstacle::of(&run),
            ruling,
            proof,
        }));
    }
    Ok(trials)
}

fn is_timeout(ruling: &Ruling) -> bool {
    matches!(ruling, Ruling::Fails { class, .. } if *class == FailureClass::Timeout)
}

async fn site<'a>(
    runner: &'a GateRunner,
    (commit, gate): (&CommitId, &Gate),
    never: &CancellationToken,
) -> Result<Site<'a>, GateError> {
    let mut findings = Findings::default();
    let history = runner.history_on(commit).await?;
    let installs = install::for_tasks(runner, gate, commit, []).await?;
    let place = (commit, &history);
    let prepared = Site::prepare(runner, place, &installs, never, &mut findings).await?;
    let (site, _) = prepared.ok_or(GateError::Ended)?;
    if findings.is_clean() {
        Ok(site)
    } else {
        Err(GateError::NotReady(findings.error()))
    }
}
