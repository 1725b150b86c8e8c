//! Holds what gates run in: clean checkouts, the command runner, turns to use the machine, and the commands to run.

mod toolchain;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ropewalk_config::settings::PackageManager;
use ropewalk_config::{Config, PROJECT_FILE};
use ropewalk_schemas::advice::{Advice, Words};
use ropewalk_schemas::attempt::{CheckKind, CheckRun, FailureClass, Level, Proof, Verdict};
use ropewalk_schemas::clip::{self, Weight};
use ropewalk_schemas::task::Expectation;
use ropewalk_schemas::{AttemptId, CommitId};
use ropewalk_workspace::{
    CleanCheckout, CleanPool, CommandRunner, CommandStatus, History, LocalClone,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::checks::{Gate, GateCheck};
use crate::counts::{self, Patterns};
use crate::error::GateError;
use crate::judge::{Observation, Ruling, rule};
use crate::packages::Install;
use crate::shell::Shell;

/// So much of a command's output is kept as evidence.
const OUTPUT_BYTES: usize = 16 * 1024;
/// So many test runs of parents, and so many gates of base commits, are remembered.
const REMEMBERED: usize = 256;

/// What a runner is made of.
pub struct RunnerParts {
    /// The local clone of the user's repository.
    pub clone: LocalClone,
    /// Runs the commands.
    pub runner: CommandRunner,
    /// How many gates may run at once; more of them would only slow each other down.
    pub at_once: usize,
    /// Where they find clean checkouts.
    pub pool: CleanPool,
    /// The gate of base commits that have no project file.
    pub gate: Gate,
    /// How long the validation of a task may take.
    pub validation_timeout: Duration,
    /// Who may install packages.
    pub package_managers: Vec<PackageManager>,
}

/// Where gates are run.
pub struct GateRunner {
    /// The local clone of the user's repository.
    pub clone: LocalClone,
    /// How long the validation of a task may take.
    pub validation_timeout: Duration,
    /// Who may install packages.
    pub package_managers: Vec<PackageManager>,
    runner: CommandRunner,
    shell: Shell,
    pool: CleanPool,
    /// Gate runs at once; more of them would only slow each other down.
    turns: Semaphore,
    gate: Arc<Gate>,
    gates: Mutex<HashMap<CommitId, Arc<Gate>>>,
    /// How checks fared on the trees of parents, where no evidence says it.
    parents: Mutex<HashMap<ParentKey, ParentRun>>,
    /// Who runs a check on the tree of a parent; the others wait and read what came of it.
    asking: Mutex<HashMap<ParentKey, Arc<RunLock>>>,
    /// What the passes of attempts prove that may come again.
    proofs: Mutex<HashMap<AttemptId, Proof>>,
}

impl std::fmt::Debug for GateRunner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("GateRunner");
        shown.field("clone", &self.clone).finish_non_exhaustive()
    }
}

impl GateRunner {
    /// Makes a runner.
    pub fn new(parts: RunnerParts) -> Self {
        Self {
            pool: parts.pool,
            turns: Semaphore::new(parts.at_once),
            clone: parts.clone,
            validation_timeout: parts.validation_timeout,
            package_managers: parts.package_managers,
            shell: Shell::of(&parts.runner),
            runner: parts.runner,
            gate: Arc::new(parts.gate),
            gates: Mutex::default(),
            parents: Mutex::default(),
            asking: Mutex::default(),
            proofs: Mutex::default(),
        }
    }

    /// Returns the gate of builds that began at `base`: what the project's file says there, if there is one. What whoever runs this
    /// protects stays protected.
    pub async fn gate_at(&self, base: Option<&CommitId>) -> Result<Arc<Gate>, GateError> {
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
                let config = Config::of_project_text(&text).map_err(|error| {
                    let base = base.short();
                    GateError::BaseGate(Words {
                        message: format!(
                            "the gate of base commit `{base}` cannot be read: {error}"
                        ),
                        next: error.next(),
                    })
                })?;
                Arc::new(Gate::from(&config).protecting(&self.gate.protected))
            }
        };
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if gates.len() >= REMEMBERED {
            gates.clear();
        }
        gates.insert(base.clone(), Arc::clone(&gate));
        Ok(gate)
    }

    /// Returns what commands see of what was before `base`, where a build began.
    pub(crate) async fn history_on(&self, base: &CommitId) -> Result<History, GateError> {
        let objects = self.runner.objects_of(&self.clone);
        Ok(self.clone.history_on(base, objects).await?)
    }

    fn known_gate(&self, base: &CommitId) -> Option<Arc<Gate>> {
        let gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.get(base).cloned()
    }

    /// Returns how a check fared on the tree of a parent, if it was run there.
    pub(crate) fn parent_run(&self, key: &ParentKey) -> Option<ParentRun> {
        let parents = self.parents.lock().unwrap_or_else(PoisonError::into_inner);
        parents.get(key).cloned()
    }

    /// Returns what whoever runs a check on the tree of a parent holds meanwhile.
    pub(crate) fn alone_at(&self, key: &ParentKey) -> Arc<RunLock> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        asking.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(asking.entry(key.clone()).or_default())
    }

    /// Remembers how a check fared on the tree of a parent.
    pub(crate) fn keep_parent_run(&self, key: ParentKey, run: ParentRun) {
        let mut parents = self.parents.lock().unwrap_or_else(PoisonError::into_inner);
        if parents.len() >= REMEMBERED {
            parents.clear();
        }
        parents.insert(key, run);
    }

    /// Returns what the pass of an attempt proves, if that was found out.
    pub(crate) fn proof(&self, attempt: AttemptId) -> Option<Proof> {
        let proofs = self.proofs.lock().unwrap_or_else(PoisonError::into_inner);
        proofs.get(&attempt).copied()
    }

    /// Remembers what the pass of an attempt proves.
    pub(crate) fn keep_proof(&self, attempt: AttemptId, proof: Proof) {
        let mut proofs = self.proofs.lock().unwrap_or_else(PoisonError::into_inner);
        if proofs.len() >= REMEMBERED {
            proofs.clear();
        }
        proofs.insert(attempt, proof);
    }

    /// Says whether commands find a program on their PATH.
    pub fn finds(&self, program: &str) -> bool {
        self.runner.locate(program).is_some()
    }

    /// Returns what tells the programs of a command from other versions of them.
    pub(crate) fn toolchain(&self, command: &str) -> String {
        toolchain::fingerprint(command, |program| self.runner.locate(program))
    }

    /// Returns the directory in which installs keep what they fetched; no other command finds it.
    async fn cache(&self, name: &str) -> Result<PathBuf, GateError> {
        let directory = self.clone.state().join("packages").join(name);
        match tokio::fs::create_dir_all(&directory).await {
            Ok(()) => Ok(directory),
            Err(source) => Err(GateError::File {
                path: directory.display().to_string(),
                source,
            }),
        }
    }

    /// Runs one command and judges it; none when it was ended from outside.
    pub async fn run(
        &self,
        place: &Place<'_>,
        check: &Check<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<(CheckRun, Ruling)>, GateError> {
        let directory = match check.install {
            Some(install) => place.directory.join(install.directory()),
            None => place.directory.to_owned(),
        };
        let Some(spec) = self.shell.command(check.command, &directory) else {
            let finding = format!(
                "`{}` could not run: its pipeline needs bash, and there is none on the PATH",
                check.name
            );
            return Ok(Some((run_of(check), Ruling::Held { finding })));
        };
        let mut spec = spec
            .with_timeout(check.timeout)
            .with_writable(place.directory)
            .with_writable(place.target)
            .installing(check.install.is_some_and(Install::is_of_packages));
        spec.environment = place.variables.to_vec();
        for (name, value) in quiet_variables() {
            spec = spec.with_variable(name, value);
        }
        spec = spec.with_variable("CARGO_TARGET_DIR", place.target);
        if let Some((variable, name)) = check.install.and_then(Install::cache) {
            let cache = self.cache(name).await?;
            spec = spec.with_writable(&cache).with_variable(variable, cache);
        }
        let output = self.runner.run(&spec, cancel).await?;
        // What a test runner says last matters most, and it says it on standard output.
        let text = format!("{}\n{}", output.stderr.trim_end(), output.stdout.trim_end());
        let tests = counts::count(&text, check.counts);
        let observed = Observation {
            status: output.status,
            program_missing: is_missing(output.status),
            output: &text,
            tests: tests.as_ref(),
            denial: output.denial.as_ref(),
        };
        let ruling = rule(check.name, observed, check.expected);
        if ruling == Ruling::Cancelled {
            return Ok(None);
        }
        let run = CheckRun {
            exit_code: match output.status {
                CommandStatus::Exited(code) => Some(code),
                _ => None,
            },
            duration_ms: u64::try_from(output.duration.as_millis()).unwrap_or(u64::MAX),
            tests,
            output: clip::ends(&text, OUTPUT_BYTES, Weight::Tail).into_owned(),
            ..run_of(check)
        };
        Ok(Some((run, ruling)))
    }
}

/// Returns the run of a check that nothing is known of yet.
fn run_of(check: &Check<'_>) -> CheckRun {
    CheckRun {
        name: check.name.to_owned(),
        level: check.level,
        kind: check.kind,
        command: check.command.to_owned(),
        exit_code: None,
        duration_ms: 0,
        tests: None,
        flaky: Vec::new(),
        output: String::new(),
    }
}

/// Says whether a shell, or whoever should have started it, did not find the program.
const fn is_missing(status: CommandStatus) -> bool {
    const NOT_FOUND: i32 = 127;
    matches!(
        status,
        CommandStatus::Missing | CommandStatus::Exited(NOT_FOUND)
    )
}

/// A check on the tree of a parent, with these packages beside it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ParentKey {
    pub(crate) tree: String,
    /// What its commands see of what was before.
    pub(crate) history: String,
    pub(crate) command: String,
    pub(crate) toolchain: String,
    pub(crate) installs: Vec<Install>,
}

/// Held by the one among all who want the same run that runs it.
pub(crate) type RunLock = tokio::sync::Mutex<()>;

/// How a check fared on the tree of a parent.
#[derive(Debug, Clone)]
pub(crate) struct ParentRun {
    pub(crate) ruling: Ruling,
    pub(crate) run: CheckRun,
}

/// Where a command runs.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The directory it runs in.
    pub directory: &'a Path,
    /// What it sees beside the variables that keep tools quiet.
    pub variables: &'a [(OsString, OsString)],
    /// The directory for what cargo builds.
    pub target: &'a Path,
}

/// A command to run and what it must show.
#[derive(Clone, Copy)]
pub struct Check<'a> {
    /// Its name in the evidence.
    pub name: &'a str,
    /// The shell line.
    pub command: &'a str,
    /// How deep it looks; none for the own check of a task.
    pub level: Option<Level>,
    /// What it is for.
    pub kind: Option<CheckKind>,
    /// What it must show; none for exit code 0.
    pub expected: Option<&'a Expectation>,
    /// How its tests say how they went, where no known runner does.
    pub counts: Option<&'a Patterns>,
    /// How long it may take.
    pub timeout: Duration,
    /// The install that it is, which runs in a directory of its own and reaches the hosts of packages; none for a check.
    pub install: Option<&'a Install>,
}

impl<'a> Check<'a> {
    /// Returns a command that belongs to no gate as a check: it must exit with 0.
    pub(crate) fn alone(name: &'a str, command: &'a str, timeout: Duration) -> Self {
        Self {
            name,
            command,
            level: None,
            kind: None,
            expected: None,
            counts: None,
            timeout,
            install: None,
        }
    }

    /// Returns a command of a gate as a check.
    pub(crate) fn of(gate: &'a Gate, check: &'a GateCheck) -> Self {
        Self {
            name: &check.name,
            command: &check.command,
            level: check.level,
            kind: check.kind,
            expected: None,
            counts: Some(&gate.counts),
            timeout: check.timeout,
            install: None,
        }
    }
}

/// Collects what does not hold; the first finding gives the class.
#[derive(Default)]
pub struct Findings {
    /// The class of the first finding.
    pub class: Option<FailureClass>,
    /// One line for each finding.
    pub lines: Vec<String>,
    held: bool,
    output: String,
}

impl Findings {
    /// Notes a finding.
    pub fn add(&mut self, class: FailureClass, line: String) {
        self.class.get_or_insert(class);
        self.lines.push(line);
    }

    /// Adds a line to what was found.
    pub(crate) fn remark(&mut self, line: String) {
        self.lines.push(line);
    }

    /// Notes what a command showed, with what it wrote.
    pub fn fail(&mut self, class: FailureClass, line: String, output: &str) {
        self.add(class, line);
        output.clone_into(&mut self.output);
    }

    /// Notes what follows from the run of a check.
    pub(crate) fn note(&mut self, ruling: Ruling, run: &CheckRun) {
        match ruling {
            Ruling::Holds | Ruling::Cancelled => {}
            Ruling::Fails { class, finding } => {
                self.fail(class, format!("{finding}: {}", run.command), &run.output);
            }
            Ruling::Held { finding } => self.hold(finding),
        }
    }

    /// Notes that a command could not run.
    pub fn hold(&mut self, line: String) {
        self.held = true;
        self.add(FailureClass::ToolMissing, line);
    }

    /// Notes that a command that others need could not do its work, with what it wrote.
    pub(crate) fn hold_with(&mut self, line: String, output: &str) {
        self.hold(line);
        output.clone_into(&mut self.output);
    }

    /// Says whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns what follows from the findings.
    pub const fn verdict(&self) -> Verdict {
        match (self.class, self.held) {
            (None, _) => Verdict::Passed,
            (Some(_), true) => Verdict::Held,
            (Some(_), false) => Verdict::Failed,
        }
    }

    /// Returns the findings with what the last command wrote.
    pub fn error(&self) -> String {
        let mut text = self.lines.join("\n");
        if !self.output.trim().is_empty() {
            text.push_str("\n\n");
            text.push_str(self.output.trim());
        }
        text
    }
}

/// A clean checkout, and the turn to use the machine for it.
pub struct Turn<'a> {
    /// The checkout.
    pub clean: CleanCheckout,
    /// What its commands see of the checkout.
    pub variables: Vec<(OsString, OsString)>,
    _permit: Option<tokio::sync::SemaphorePermit<'a>>,
}

impl<'a> Turn<'a> {
    /// Waits for a turn and checks `commit` out, with what its commands see of what was before.
    pub async fn take(
        runner: &'a GateRunner,
        commit: &CommitId,
        history: History,
    ) -> Result<Self, GateError> {
        // The semaphore is never closed.
        let permit = runner.turns.acquire().await.ok();
        let mut clean = runner.pool.acquire(commit).await?;
        clean.show(history).await?;
        Ok(Self {
            variables: clean.variables(),
            clean,
            _permit: permit,
        })
    }
}

/// Variables that keep tools from asking, colouring and leaving caches behind.
pub const fn quiet_variables() -> [(&'static str, &'static str); 5] {
    [
        ("CI", "true"),
        ("NO_COLOR", "1"),
        ("CARGO_TERM_COLOR", "never"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("npm_config_update_notifier", "false"),
    ]
}
