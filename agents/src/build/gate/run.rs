//! Runs the gate: looks at the difference, then runs every command on a clean checkout of the commit.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use ropewalk_orchestrator::Context;
use ropewalk_schemas::attempt::{CheckRun, Evidence, FailureClass, Level};
use ropewalk_schemas::question::{About, Question, QuestionState};
use ropewalk_schemas::task::{Action, Task};
use ropewalk_schemas::{AttemptId, CommitId, ContentHash, RepoPath, RequirementId};
use ropewalk_store::Query;
use ropewalk_workspace::{ChangeKind, ChangedFile};
use tokio_util::sync::CancellationToken;

use super::checks::{Gate, GateCheck, Spent};
use super::house::{Check, Findings, GateHouse, ParentTests, Turn};
use super::judge::{Observed, Ruling, rule};
use super::{install, scope, stubs, tamper, weakened};
use crate::build::decide::answer::{Consent, consent};
use crate::build::decide::install::Install;
use crate::build::trouble::Trouble;

/// The name of a task's own check in the evidence.
const VALIDATION: &str = "validation";

/// A candidate before the gate.
pub(crate) struct Candidate<'a> {
    pub(crate) task: &'a Task,
    pub(crate) attempt: AttemptId,
    pub(crate) commit: &'a CommitId,
    /// What it stands on.
    pub(crate) parent: &'a CommitId,
    /// What its build began with, which says what the gate is.
    pub(crate) base: Option<&'a CommitId>,
    /// The files that it may change.
    pub(crate) allowed: &'a [RepoPath],
}

/// What the gate saw.
pub(crate) struct Seen {
    pub(crate) evidence: Evidence,
    /// The actual output behind the findings, for the next attempt.
    pub(crate) error: String,
    /// What a person would have to accept.
    pub(crate) protected: Vec<String>,
    /// The changed files, each with a hash of what it holds now, so that two tries can be told from each other.
    pub(crate) changed: Vec<String>,
    /// Whether packages can be installed for it.
    pub(crate) installable: bool,
}

/// Checks a candidate; none when it was ended from outside.
pub(crate) async fn candidate(
    house: &GateHouse,
    context: &Context,
    candidate: &Candidate<'_>,
    cancel: &CancellationToken,
) -> Result<Option<Seen>, Trouble> {
    let clone = &house.clone;
    let changed = clone
        .changed_files(candidate.parent.as_str(), candidate.commit.as_str())
        .await?;
    let tree = clone.tree_of(candidate.commit).await?;
    let gate = house.gate_at(candidate.base).await?;
    let mut verdict = Findings::default();
    let looked = inspect(house, &gate, context, candidate, &changed, &mut verdict).await?;
    let mut ran = Ran::default();
    let mut installs = asked_installs(house, candidate.commit, candidate.task).await?;
    if verdict.is_clean() {
        let job = Job {
            house,
            context,
            candidate,
            checks: checks(house, &gate, candidate.task),
            cancel,
        };
        let known = passed_before(&job, &tree, &installs).await?;
        let Some(all) = run_all(&job, &gate, known, &installs, &mut verdict).await? else {
            return Ok(None);
        };
        ran = all;
        let shrinking = changed.iter().any(|file| file.kind != ChangeKind::Added);
        if verdict.is_clean() && shrinking && !compare(&job, &ran.checks, &mut verdict).await? {
            return Ok(None);
        }
    }
    if verdict.class == Some(FailureClass::MissingDependency) && candidate.task.installs == 0 {
        installs = install::found_at(house, candidate.commit, [candidate.task]).await?;
    }
    let evidence = Evidence {
        build: candidate.task.build,
        task: Some(candidate.task.id.clone()),
        attempt: Some(candidate.attempt),
        commit: candidate.commit.clone(),
        tree,
        verdict: verdict.verdict(),
        class: verdict.class,
        findings: verdict.lines.clone(),
        level: gate.named(gate.task_level),
        requirements: required(candidate.task),
        not_run: not_run(&gate, gate.task_level, &ran.checks),
        installs: ran.installs,
        checks: ran.checks,
        at: context.now(),
    };
    Ok(Some(Seen {
        evidence,
        error: verdict.error(),
        protected: looked.protected,
        changed: looked.changed,
        installable: !installs.is_empty(),
    }))
}

/// Lists the installs that a task asks for at a commit: those of a round in which something was missing before.
async fn asked_installs(
    house: &GateHouse,
    commit: &CommitId,
    task: &Task,
) -> Result<Vec<Install>, Trouble> {
    if task.installs == 0 {
        return Ok(Vec::new());
    }
    install::found_at(house, commit, [task]).await
}

/// What the commands of a gate are run for.
struct Job<'a> {
    house: &'a GateHouse,
    context: &'a Context,
    candidate: &'a Candidate<'a>,
    checks: Vec<Check<'a>>,
    cancel: &'a CancellationToken,
}

/// What ran.
#[derive(Default)]
struct Ran {
    installs: Vec<CheckRun>,
    checks: Vec<CheckRun>,
}

/// What the difference alone shows, beside findings.
#[derive(Default)]
struct Looked {
    /// What a person would have to accept.
    protected: Vec<String>,
    /// The changed files, each with a hash of its content.
    changed: Vec<String>,
}

/// Looks at the difference alone.
async fn inspect(
    house: &GateHouse,
    gate: &Gate,
    context: &Context,
    candidate: &Candidate<'_>,
    changed: &[ChangedFile],
    findings: &mut Findings,
) -> Result<Looked, Trouble> {
    let verifies = candidate.task.block.action == Action::Verify;
    if changed.is_empty() != verifies {
        let line = if verifies {
            "the task only verifies, but files were changed"
        } else {
            "nothing was changed"
        };
        findings.add(FailureClass::EmptyChange, line.to_owned());
    }
    for file in scope::sort(changed, candidate.allowed).outside {
        let path = &file.path;
        let line = format!("`{path}` was changed, but is not a file of this task");
        findings.add(FailureClass::OutOfScope, line);
    }
    if changed.is_empty() {
        return Ok(Looked::default());
    }
    let lines = inspect_lines(house, candidate, changed, findings).await?;
    let commands: Vec<&str> = checks(house, gate, candidate.task)
        .iter()
        .map(|check| check.command)
        .collect();
    let mut protected = tamper::find(changed, &commands, |path| {
        lines.lost.get(path).copied().unwrap_or(true)
    });
    protected.extend(lines.scripts);
    if !protected.is_empty() && has_consent(context, candidate.task, &protected).await? {
        protected.clear();
    }
    for line in &protected {
        findings.add(FailureClass::Tampered, line.clone());
    }
    let changed = lines.contents;
    Ok(Looked { protected, changed })
}

/// What the lines of a difference show beside stubs.
struct Lines {
    /// Whether a file loses lines.
    lost: HashMap<String, bool>,
    /// The changed scripts of manifests.
    scripts: Vec<String>,
    /// Each file with a hash of its content after the change.
    contents: Vec<String>,
}

/// Looks for stubs in the added lines, and at what else the lines show.
async fn inspect_lines(
    house: &GateHouse,
    candidate: &Candidate<'_>,
    changed: &[ChangedFile],
    findings: &mut Findings,
) -> Result<Lines, Trouble> {
    let paths: Vec<&str> = changed.iter().map(|file| file.path.as_str()).collect();
    let of = |commit| paths.iter().map(move |path| (commit, *path));
    let places: Vec<(&CommitId, &str)> = of(candidate.parent).chain(of(candidate.commit)).collect();
    let mut before = house.clone.read_places(&places).await?;
    let after = before.split_off(paths.len());
    let text = |bytes: &Option<Vec<u8>>| {
        String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
    };
    let mut lost = HashMap::new();
    let mut scripts = Vec::new();
    let mut contents = Vec::new();
    for ((path, before), after) in paths.iter().zip(&before).zip(&after) {
        let hash = ContentHash::of(after.as_deref().unwrap_or_default());
        contents.push(format!("{path} {hash}"));
        let (before, after) = (text(before), text(after));
        for stub in stubs::find_added(path, &before, &after) {
            let line = format!(
                "`{}` line {} is a stub: {}",
                stub.file, stub.line, stub.text
            );
            findings.add(FailureClass::StubMarker, line);
        }
        scripts.extend(tamper::changed_scripts(path, &before, &after));
        lost.insert((*path).to_owned(), tamper::loses_lines(&before, &after));
    }
    Ok(Lines {
        lost,
        scripts,
        contents,
    })
}

/// Looks for a person's yes to exactly these changes.
async fn has_consent(
    context: &Context,
    task: &Task,
    protected: &[String],
) -> Result<bool, Trouble> {
    let query = Query::new()
        .equal("build", task.build.to_string())
        .equal("state", QuestionState::Answered.as_str())
        .equal("trigger", ropewalk_config::Trigger::ProtectedFiles.as_str());
    let asked = context.store.list::<Question>(query).await?;
    Ok(asked.iter().any(|question| {
        let about = matches!(&question.about, About::Task { task: about, .. } if *about == task.id);
        let yes = question
            .answer
            .as_ref()
            .is_some_and(|answer| consent(&answer.text) == Consent::Given);
        about && yes && protected.iter().all(|line| question.text.contains(line))
    }))
}

/// Lists the commands of a task's gate, its own first; a command is run once.
fn checks<'a>(house: &GateHouse, gate: &'a Gate, task: &'a Task) -> Vec<Check<'a>> {
    let validation = &task.block.validation;
    let mut checks = vec![Check {
        name: VALIDATION,
        command: &validation.command,
        level: None,
        kind: None,
        expected: Some(&validation.expected),
        timeout: house.validation_timeout,
    }];
    checks.extend(gate.up_to(gate.task_level).map(Check::from));
    checks
}

/// Lists the requirements that a task is for, each once.
pub(crate) fn required(task: &Task) -> Vec<RequirementId> {
    let mut found: Vec<RequirementId> = Vec::new();
    for line in &task.block.requirements {
        if let Some(id) = &line.id
            && !found.contains(id)
        {
            found.push(id.clone());
        }
    }
    found
}

/// Names the checks of a gate that did not run: after one that did not hold, or of a deeper level.
pub(crate) fn not_run(gate: &Gate, level: Level, runs: &[CheckRun]) -> Vec<String> {
    let ran = |check: &&GateCheck| !runs.iter().any(|run| run.name == check.name);
    let left = gate
        .up_to(level)
        .filter(ran)
        .map(|check| check.name.clone());
    let deeper = gate.beyond(level).map(|check| {
        let of = check.level.map_or("", Level::as_str);
        format!("{} ({of})", check.name)
    });
    left.chain(deeper).collect()
}

/// Installs what is to be installed and runs the commands until one does not hold; none when it was ended from outside.
async fn run_all(
    job: &Job<'_>,
    gate: &Gate,
    known: Known,
    installs: &[Install],
    findings: &mut Findings,
) -> Result<Option<Ran>, Trouble> {
    let mut ran = Ran::default();
    let mut checkout = None;
    let mut spent = Spent::default();
    for check in &job.checks {
        if let Some(run) = known.holds(check) {
            ran.checks.push(run);
            continue;
        }
        if checkout.is_none() {
            let turn = prepared(job, job.candidate.commit, installs, findings).await?;
            let Some((turn, installed)) = turn else {
                return Ok(None);
            };
            checkout = Some(turn);
            ran.installs = installed;
            if !findings.is_clean() {
                break;
            }
        }
        let Some(turn) = &checkout else { continue };
        let target = turn.clean.target_directory().to_owned();
        let check = Check {
            timeout: spent.left(gate, check.level, check.timeout),
            ..*check
        };
        let run = job
            .house
            .execute(turn, &target, &check, job.cancel, findings);
        let Some(run) = run.await? else {
            return Ok(None);
        };
        spent.add(check.level, Duration::from_millis(run.duration_ms));
        ran.checks.push(run);
        if !findings.is_clean() {
            break;
        }
    }
    if checkout.is_none() {
        ran.installs = known.installs;
    }
    Ok(Some(ran))
}

/// Takes a clean checkout with its packages; none when it was ended from outside.
async fn prepared<'a>(
    job: &Job<'a>,
    commit: &CommitId,
    installs: &[Install],
    findings: &mut Findings,
) -> Result<Option<(Turn<'a>, Vec<CheckRun>)>, Trouble> {
    let mut turn = Turn::take(job.house, commit).await?;
    let installed = install::in_turn(job.house, &mut turn, installs, job.cancel, findings).await?;
    Ok(installed.map(|installed| (turn, installed)))
}

/// The runs of a tree that held, with the installs that came before them.
#[derive(Default)]
struct Known {
    installs: Vec<CheckRun>,
    checks: BTreeMap<String, CheckRun>,
}

impl Known {
    /// Returns the run of a check that need not be run again.
    fn holds(&self, check: &Check<'_>) -> Option<CheckRun> {
        let run = self.checks.get(check.command)?;
        still_holds(run, check).then(|| CheckRun {
            name: check.name.to_owned(),
            level: check.level,
            ..run.clone()
        })
    }
}

/// Returns the runs of this very tree, beside the same installs, that held.
async fn passed_before(job: &Job<'_>, tree: &str, installs: &[Install]) -> Result<Known, Trouble> {
    let query = Query::new()
        .equal("build", job.candidate.task.build.to_string())
        .equal("tree", tree)
        .equal("verdict", "passed");
    let mut known = Known::default();
    for evidence in job.context.store.list::<Evidence>(query).await? {
        let evidence = evidence.into_inner();
        if !install::are_of(&evidence.installs, installs) {
            continue;
        }
        known.installs = evidence.installs;
        let runs = evidence.checks.into_iter();
        known
            .checks
            .extend(runs.map(|run| (run.command.clone(), run)));
    }
    Ok(known)
}

fn still_holds(run: &CheckRun, check: &Check<'_>) -> bool {
    let observed = Observed {
        status: match run.exit_code {
            Some(code) => ropewalk_workspace::CommandStatus::Exited(code),
            None => return false,
        },
        program_missing: false,
        output: &run.output,
        tests: run.tests.as_ref(),
    };
    rule(check.name, observed, check.expected) == Ruling::Holds
}

/// Compares the tests with those of the parent; false when it was ended from outside.
async fn compare(
    job: &Job<'_>,
    runs: &[CheckRun],
    findings: &mut Findings,
) -> Result<bool, Trouble> {
    let (house, parent) = (job.house, job.candidate.parent);
    let tree = house.clone.tree_of(parent).await?;
    let installs = asked_installs(house, parent, job.candidate.task).await?;
    let known = passed_before(job, &tree, &installs).await?;
    let mut checkout = None;
    for (check, run) in job.checks.iter().zip(runs) {
        if run.tests.is_none() && !looks_like_tests(check.command) {
            continue;
        }
        let key = ParentTests {
            tree: tree.clone(),
            command: check.command.to_owned(),
            installs: installs.clone(),
        };
        let kept = known.checks.get(check.command);
        let cached = kept
            .map(|run| run.tests.clone().unwrap_or_default())
            .or_else(|| house.parent_tests(&key));
        let before = if let Some(tests) = cached {
            tests
        } else {
            // How the parent fares is no finding about the candidate.
            let mut ignored = Findings::default();
            if checkout.is_none() {
                let Some((turn, _)) = prepared(job, parent, &installs, &mut ignored).await? else {
                    return Ok(false);
                };
                checkout = Some(turn);
            }
            let Some(turn) = &checkout else { continue };
            let target = turn.clean.target_directory().to_owned();
            let ran = house
                .execute(turn, &target, check, job.cancel, &mut ignored)
                .await?;
            let Some(ran) = ran else { return Ok(false) };
            let tests = ran.tests.unwrap_or_default();
            house.keep_parent_tests(key, tests.clone());
            tests
        };
        let now = run.tests.clone().unwrap_or_default();
        for line in weakened::find(&before, &now) {
            findings.add(FailureClass::WeakenedTest, line);
        }
    }
    Ok(true)
}

fn looks_like_tests(command: &str) -> bool {
    ["test", "jest", "spec", "check"]
        .iter()
        .any(|word| command.contains(word))
}
