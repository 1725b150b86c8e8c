//! A clean checkout in which the checks of a gate run one after the other, each on the commit as it is.

use std::path::PathBuf;

use ropewalk_schemas::CommitId;
use ropewalk_schemas::attempt::CheckRun;
use ropewalk_workspace::History;
use tokio_util::sync::CancellationToken;

use crate::error::GateError;
use crate::install;
use crate::judge::Ruling;
use crate::packages::Install;
use crate::runner::{Check, Findings, GateRunner, Place, Turn};

/// A checkout of a commit with its packages.
pub(crate) struct Site<'a> {
    runner: &'a GateRunner,
    turn: Turn<'a>,
    commit: CommitId,
    installs: Vec<Install>,
    /// The directory for what cargo builds.
    target: PathBuf,
    /// Whether a command ran that may have changed the checkout.
    used: bool,
}

impl<'a> Site<'a> {
    /// Waits for a checkout, whose commands see `history`, and installs its packages; none when it was ended from outside.
    pub(crate) async fn prepare(
        runner: &'a GateRunner,
        (commit, history): (&CommitId, &History),
        installs: &[Install],
        cancel: &CancellationToken,
        findings: &mut Findings,
    ) -> Result<Option<(Self, Vec<CheckRun>)>, GateError> {
        let mut turn = Turn::take(runner, commit, history.clone()).await?;
        let installed = install::in_turn(runner, &mut turn, installs, cancel, findings).await?;
        Ok(installed.map(|installed| {
            let site = Self {
                runner,
                target: turn.clean.target_directory().to_owned(),
                turn,
                commit: commit.clone(),
                installs: installs.to_vec(),
                used: false,
            };
            (site, installed)
        }))
    }

    /// Lets cargo build beside what was built there before; returns the directory, for whoever clears it.
    ///
    /// It lies beside the checkout, which is this site's alone: others may check the same build meanwhile.
    pub(crate) fn build_cold(&mut self) -> PathBuf {
        self.target = self.target.with_file_name("cold");
        self.target.clone()
    }

    /// Has the checks from now on run on another commit, with packages as that says.
    pub(crate) fn turn_to(&mut self, commit: &CommitId) {
        self.used |= self.commit != *commit;
        self.commit = commit.clone();
    }

    /// Runs a check on the commit as it is; none when it was ended from outside.
    ///
    /// What an earlier check left behind, or changed, is gone: tests are written by whoever wrote the code.
    pub(crate) async fn run(
        &mut self,
        check: &Check<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<(CheckRun, Ruling)>, GateError> {
        if self.used && !self.restore(cancel).await? {
            return Ok(None);
        }
        self.used = true;
        let place = Place {
            directory: self.turn.clean.root(),
            variables: &self.turn.variables,
            target: &self.target,
        };
        self.runner.run(&place, check, cancel).await
    }

    /// Makes the checkout the commit again, with its packages; false when it was ended from outside.
    async fn restore(&mut self, cancel: &CancellationToken) -> Result<bool, GateError> {
        self.turn.clean.move_to(&self.commit).await?;
        if self.installs.is_empty() {
            return Ok(true);
        }
        let mut findings = Findings::default();
        let installed = install::in_turn(
            self.runner,
            &mut self.turn,
            &self.installs,
            cancel,
            &mut findings,
        )
        .await?;
        if installed.is_some() && !findings.is_clean() {
            return Err(GateError::NotReady(findings.error()));
        }
        Ok(installed.is_some())
    }
}
