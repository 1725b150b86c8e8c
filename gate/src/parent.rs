//! Runs checks on the tree that a candidate stands on, where that can say anything, and once for all who ask.

use std::collections::BTreeMap;

use ropewalk_schemas::CommitId;
use ropewalk_schemas::attempt::{CheckRun, Evidence};
use ropewalk_workspace::{CommandStatus, History};
use tokio_util::sync::CancellationToken;

use crate::error::GateError;
use crate::install;
use crate::judge::{Observation, Ruling, rule};
use crate::packages::Install;
use crate::runner::{Check, Findings, GateRunner, ParentKey, ParentRun};
use crate::site::Site;

/// The runs of a tree that held, with the installs that came before them.
#[derive(Default)]
pub(crate) struct PassedRuns {
    pub(crate) installs: Vec<CheckRun>,
    checks: BTreeMap<String, CheckRun>,
}

impl PassedRuns {
    /// Gathers the runs of a tree that held, beside the same installs and with the same `seen` of what was before.
    pub(crate) fn of(
        passed: &[Evidence],
        (tree, seen): (&str, &str),
        installs: &[Install],
    ) -> Self {
        let mut known = Self::default();
        let of_tree = passed
            .iter()
            .filter(|evidence| evidence.tree == tree && evidence.history.as_deref() == Some(seen));
        for evidence in of_tree {
            if !install::are_of(&evidence.installs, installs) {
                continue;
            }
            known.installs.clone_from(&evidence.installs);
            let runs = evidence.checks.iter();
            known
                .checks
                .extend(runs.map(|run| (run.command.clone(), run.clone())));
        }
        known
    }

    /// Returns the run of a check that need not be run again.
    pub(crate) fn holds(&self, check: &Check<'_>) -> Option<CheckRun> {
        renamed(self.checks.get(check.command)?, check)
    }
}

/// Returns a run as that of another check with the same command, if it holds for that too.
pub(crate) fn renamed(run: &CheckRun, check: &Check<'_>) -> Option<CheckRun> {
    let observed = Observation {
        status: CommandStatus::Exited(run.exit_code?),
        program_missing: false,
        output: &run.output,
        tests: run.tests.as_ref(),
        denial: None,
    };
    let holds = rule(check.name, observed, check.expected) == Ruling::Holds;
    holds.then(|| CheckRun {
        name: check.name.to_owned(),
        level: check.level,
        kind: check.kind,
        ..run.clone()
    })
}

/// The tree that a candidate stands on.
pub(crate) struct Parent<'a> {
    runner: &'a GateRunner,
    commit: &'a CommitId,
    tree: String,
    history: History,
    /// Names what its commands see of what was before.
    seen: String,
    installs: Vec<Install>,
    known: PassedRuns,
    site: Option<Site<'a>>,
}

impl<'a> Parent<'a> {
    /// Makes ready for checks on `commit`, without any checkout yet.
    pub(crate) async fn new(
        runner: &'a GateRunner,
        (commit, history): (&'a CommitId, &History),
        installs: Vec<Install>,
        passed: &[Evidence],
    ) -> Result<Self, GateError> {
        let tree = runner.clone.tree_of(commit).await?;
        let seen = history.name(&tree)?;
        Ok(Self {
            known: PassedRuns::of(passed, (&tree, &seen), &installs),
            runner,
            commit,
            tree,
            history: history.clone(),
            seen,
            installs,
            site: None,
        })
    }

    /// Returns how a check fared there, if that is known already.
    pub(crate) fn known(&self, check: &Check<'_>) -> Option<ParentRun> {
        let held = self.known.holds(check).map(|run| ParentRun {
            ruling: Ruling::Holds,
            run,
        });
        held.or_else(|| self.runner.parent_run(&self.key(check)))
    }

    /// Returns how a check fares there; none when it was ended from outside.
    pub(crate) async fn run(
        &mut self,
        check: &Check<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<ParentRun>, GateError> {
        let key = self.key(check);
        let turn = self.runner.alone_at(&key);
        let _alone = tokio::select! {
            turn = turn.lock() => turn,
            () = cancel.cancelled() => return Ok(None),
        };
        if let Some(known) = self.known(check) {
            return Ok(Some(known));
        }
        if self.site.is_none() {
            // How the parent fares is no finding about the candidate.
            let mut ignored = Findings::default();
            let site = Site::prepare(
                self.runner,
                (self.commit, &self.history),
                &self.installs,
                cancel,
                &mut ignored,
            )
            .await?;
            let Some((site, _)) = site else {
                return Ok(None);
            };
            self.site = Some(site);
        }
        let Some(site) = &mut self.site else {
            return Ok(None);
        };
        let Some((run, ruling)) = site.run(check, cancel).await? else {
            return Ok(None);
        };
        let seen = ParentRun { ruling, run };
        self.runner.keep_parent_run(key, seen.clone());
        Ok(Some(seen))
    }

    fn key(&self, check: &Check<'_>) -> ParentKey {
        ParentKey {
            tree: self.tree.clone(),
            history: self.seen.clone(),
            // The same command may have to show different things.
            command: match check.expected {
                Some(expected) => format!("{} => {expected}", check.command),
                None => check.command.to_owned(),
            },
            toolchain: self.runner.toolchain(check.command),
            installs: self.installs.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn what_held_on_a_tree_holds_no_more_once_its_commands_see_another_tag() {
        let evidence = json!({
            "build": "00000000-0000-0000-0000-000000000001", "commit": "a".repeat(40), "tree": "tree",
            "history": "head-with-v1", "verdict": "passed", "at": "2026-03-01T08:00:00Z",
            "checks": [{ "name": "tests", "command": "make test", "exit_code": 0, "duration_ms": 1, "output": "" }],
        });
        let passed: [Evidence; 1] = [serde_json::from_value(evidence).unwrap()];
        let check = Check::alone("tests", "make test", Duration::from_secs(1));
        for (tree, seen, expected) in [
            ("tree", "head-with-v1", true),
            ("tree", "head-with-v1-and-v2", false),
            ("another", "head-with-v1", false),
        ] {
            let known = PassedRuns::of(&passed, (tree, seen), &[]);
            assert_eq!(known.holds(&check).is_some(), expected, "{tree} {seen}");
        }
    }
}
