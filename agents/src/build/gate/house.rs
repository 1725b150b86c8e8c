//! Holds what gates run in: clean checkouts, the command runner, turns to use the machine, and the commands to run.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ropewalk_config::PROJECT_FILE;
use ropewalk_config::settings::{GateSettings, PackageManager};
use ropewalk_schemas::CommitId;
use ropewalk_schemas::attempt::{CheckKind, CheckRun, FailureClass, Level, TestCounts, Verdict};
use ropewalk_schemas::task::Expectation;
use ropewalk_workspace::{
    CleanCheckout, CommandRunner, CommandSpec, CommandStatus, GatePool, LocalClone,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::checks::{Gate, GateCheck};
use super::counts;
use super::judge::{Observed, Ruling, rule};
use crate::build::crowd::SPARE_CHECKOUTS;
use crate::build::decide::install::Install;
use crate::build::ending::bounded;
use crate::build::trouble::Trouble;

/// So much of a command's output is kept as evidence.
const OUTPUT_BYTES: usize = 16 * 1024;
/// So many test runs of parents, and so many gates of base commits, are remembered.
const REMEMBERED: usize = 256;

/// What a house is made of.
pub(crate) struct GateParts {
    /// The local clone of the user's repository.
    pub clone: LocalClone,
    /// Runs the commands.
    pub runner: CommandRunner,
    /// How many loops use it.
    pub loops: usize,
    /// The gate of base commits that have no project file.
    pub gate: Gate,
    /// How long the validation of a task may take.
    pub validation_timeout: Duration,
    /// Who may install packages.
    pub package_managers: Vec<PackageManager>,
}

/// Where gates are run.
pub(crate) struct GateHouse {
    pub(crate) clone: LocalClone,
    pub(crate) validation_timeout: Duration,
    pub(crate) package_managers: Vec<PackageManager>,
    runner: CommandRunner,
    pool: GatePool,
    /// Gate runs at once; more of them would only slow each other down.
    turns: Semaphore,
    gate: Arc<Gate>,
    gates: Mutex<HashMap<CommitId, Arc<Gate>>>,
    /// What the tests of parents showed, where no evidence says it.
    parents: Mutex<HashMap<ParentTests, TestCounts>>,
}

impl GateHouse {
    /// Makes a house.
    pub(crate) fn new(parts: GateParts) -> Self {
        Self {
            pool: GatePool::new(parts.clone.clone(), parts.loops + SPARE_CHECKOUTS),
            turns: Semaphore::new(parts.loops + 1),
            clone: parts.clone,
            validation_timeout: parts.validation_timeout,
            package_managers: parts.package_managers,
            runner: parts.runner,
            gate: Arc::new(parts.gate),
            gates: Mutex::default(),
            parents: Mutex::default(),
        }
    }

    /// Returns the gate of builds that began at `base`: what the project's file says there, if there is one.
    pub(crate) async fn gate_at(&self, base: Option<&CommitId>) -> Result<Arc<Gate>, Trouble> {
        let Some(base) = base else {
            return Ok(Arc::clone(&self.gate));
        };
        if let Some(known) = self.known_gate(base) {
            return Ok(known);
        }
        let gate = match self.clone.read_file(base, PROJECT_FILE).await? {
            None => Arc::clone(&self.gate),
            Some(text) => {
                let text = String::from_utf8_lossy(&text);
                let settings = GateSettings::of_project_text(&text).map_err(|error| {
                    let base = base.short();
                    Trouble::BaseGate(format!(
                        "the gate of base commit `{base}` cannot be read: {error}"
                    ))
                })?;
                Arc::new(Gate::from(&settings))
            }
        };
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if gates.len() >= REMEMBERED {
            gates.clear();
        }
        gates.insert(base.clone(), Arc::clone(&gate));
        Ok(gate)
    }

    fn known_gate(&self, base: &CommitId) -> Option<Arc<Gate>> {
        let gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.get(base).cloned()
    }

    /// Returns what the tests of a parent showed, if they were run there.
    pub(crate) fn parent_tests(&self, key: &ParentTests) -> Option<TestCounts> {
        let parents = self.parents.lock().unwrap_or_else(PoisonError::into_inner);
        parents.get(key).cloned()
    }

    /// Remembers what the tests of a parent showed.
    pub(crate) fn keep_parent_tests(&self, key: ParentTests, tests: TestCounts) {
        let mut parents = self.parents.lock().unwrap_or_else(PoisonError::into_inner);
        if parents.len() >= REMEMBERED {
            parents.clear();
        }
        parents.insert(key, tests);
    }

    /// Runs a check on a clean checkout and notes what it finds; none when it was ended from outside.
    pub(crate) async fn execute(
        &self,
        turn: &Turn<'_>,
        target: &Path,
        check: &Check<'_>,
        cancel: &CancellationToken,
        findings: &mut Findings,
    ) -> Result<Option<CheckRun>, Trouble> {
        let place = Place {
            directory: turn.clean.root(),
            variables: &turn.variables,
            target,
        };
        let Some((run, ruling)) = self.run(&place, check, cancel).await? else {
            return Ok(None);
        };
        match ruling {
            Ruling::Holds | Ruling::Cancelled => {}
            Ruling::Fails { class, finding } => {
                findings.fail(class, format!("{finding}: {}", check.command), &run.output);
            }
            Ruling::Held { finding } => findings.hold(finding),
        }
        Ok(Some(run))
    }

    /// Runs one command and judges it; none when it was ended from outside.
    pub(crate) async fn run(
        &self,
        place: &Place<'_>,
        check: &Check<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<(CheckRun, Ruling)>, Trouble> {
        let mut spec =
            CommandSpec::shell(check.command, place.directory).with_timeout(check.timeout);
        spec.environment = place.variables.to_vec();
        for (name, value) in quiet_variables() {
            spec = spec.with_variable(name, value);
        }
        spec = spec.with_variable("CARGO_TARGET_DIR", place.target);
        let output = self.runner.run(&spec, cancel).await?;
        // What a test runner says last matters most, and it says it on standard output.
        let text = format!("{}\n{}", output.stderr.trim_end(), output.stdout.trim_end());
        let tests = counts::count(&text);
        let observed = Observed {
            status: output.status,
            program_missing: output.program_missing(),
            output: &text,
            tests: tests.as_ref(),
        };
        let ruling = rule(check.name, observed, check.expected);
        if ruling == Ruling::Cancelled {
            return Ok(None);
        }
        let run = CheckRun {
            name: check.name.to_owned(),
            level: check.level,
            kind: check.kind,
            command: check.command.to_owned(),
            exit_code: match output.status {
                CommandStatus::Exited(code) => Some(code),
                _ => None,
            },
            duration_ms: u64::try_from(output.duration.as_millis()).unwrap_or(u64::MAX),
            tests,
            output: bounded(&text, OUTPUT_BYTES),
        };
        Ok(Some((run, ruling)))
    }
}

/// Tests that were run on the tree of a parent, with these packages beside it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ParentTests {
    pub(crate) tree: String,
    pub(crate) command: String,
    pub(crate) installs: Vec<Install>,
}

/// Where a command runs.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) directory: &'a Path,
    /// What it sees beside the variables that keep tools quiet.
    pub(crate) variables: &'a [(OsString, OsString)],
    /// The directory for what cargo builds.
    pub(crate) target: &'a Path,
}

/// A command to run and what it must show.
#[derive(Clone, Copy)]
pub(crate) struct Check<'a> {
    pub(crate) name: &'a str,
    pub(crate) command: &'a str,
    pub(crate) level: Option<Level>,
    pub(crate) kind: Option<CheckKind>,
    pub(crate) expected: Option<&'a Expectation>,
    pub(crate) timeout: Duration,
}

impl<'a> From<&'a GateCheck> for Check<'a> {
    fn from(check: &'a GateCheck) -> Self {
        Self {
            name: &check.name,
            command: &check.command,
            level: check.level,
            kind: check.kind,
            expected: None,
            timeout: check.timeout,
        }
    }
}

/// Collects what does not hold; the first finding gives the class.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) class: Option<FailureClass>,
    pub(crate) lines: Vec<String>,
    held: bool,
    output: String,
}

impl Findings {
    pub(crate) fn add(&mut self, class: FailureClass, line: String) {
        self.class.get_or_insert(class);
        self.lines.push(line);
    }

    /// Notes what a command showed, with what it wrote.
    pub(crate) fn fail(&mut self, class: FailureClass, line: String, output: &str) {
        self.add(class, line);
        output.clone_into(&mut self.output);
    }

    /// Notes that a command could not run.
    pub(crate) fn hold(&mut self, line: String) {
        self.held = true;
        self.add(FailureClass::ToolMissing, line);
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.lines.is_empty()
    }

    pub(crate) const fn verdict(&self) -> Verdict {
        match (self.class, self.held) {
            (None, _) => Verdict::Passed,
            (Some(_), true) => Verdict::Held,
            (Some(_), false) => Verdict::Failed,
        }
    }

    pub(crate) fn error(&self) -> String {
        let mut text = self.lines.join("\n");
        if !self.output.trim().is_empty() {
            text.push_str("\n\n");
            text.push_str(self.output.trim());
        }
        text
    }
}

/// A clean checkout, and the turn to use the machine for it.
pub(crate) struct Turn<'a> {
    pub(crate) clean: CleanCheckout,
    /// What its commands see of the checkout.
    pub(crate) variables: Vec<(OsString, OsString)>,
    _permit: Option<tokio::sync::SemaphorePermit<'a>>,
}

impl<'a> Turn<'a> {
    /// Waits for a turn and checks `commit` out.
    pub(crate) async fn take(house: &'a GateHouse, commit: &CommitId) -> Result<Self, Trouble> {
        // The semaphore is never closed.
        let permit = house.turns.acquire().await.ok();
        let clean = house.pool.acquire(commit).await?;
        Ok(Self {
            variables: clean.variables(),
            clean,
            _permit: permit,
        })
    }
}

/// Variables that keep tools from asking, colouring and leaving caches behind.
pub(crate) const fn quiet_variables() -> [(&'static str, &'static str); 5] {
    [
        ("CI", "true"),
        ("NO_COLOR", "1"),
        ("CARGO_TERM_COLOR", "never"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("npm_config_update_notifier", "false"),
    ]
}
