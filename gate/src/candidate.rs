//! Runs the gate: looks at the difference, then runs every command on a clean checkout of the commit.

mod case;
mod proving;
mod weakened;

use std::time::Duration;

use ropewalk_schemas::attempt::{CheckRun, Evidence, FailureClass, Level, Proof};
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{CommitId, RequirementId};
use ropewalk_workspace::{ChangeKind, ChangedFile, History};
use tokio_util::sync::CancellationToken;

use crate::checks::{Gate, GateCheck, SpentTime};
use crate::control::{self, AllowedFiles, TestFiles};
use crate::difference::DifferenceReport;
use crate::difference::protected::{self, ProtectedChange};
use crate::error::GateError;
use crate::judge::Ruling;
use crate::packages::Install;
use crate::parent::{Parent, PassedRuns, renamed};
use crate::runner::{Check, Findings, GateRunner, ParentRun};
use crate::site::Site;
use crate::{difference, install, proof};

pub(crate) use case::checks;
pub use case::{Candidate, Precedents};

/// What the gate saw.
pub struct GateReport {
    /// What ran and what it showed.
    pub evidence: Evidence,
    /// The actual output behind the findings, for the next attempt.
    pub error: String,
    /// What a person would have to accept, where nothing else stands against the candidate.
    pub protected: Vec<ProtectedChange>,
    /// The changed files, each with a hash of what it holds now, so that two tries can be told from each other.
    pub changed: Vec<String>,
    /// Whether packages can be installed for it.
    pub installable: bool,
}

/// Checks a candidate; none when it was ended from outside.
pub async fn check(
    runner: &GateRunner,
    candidate: &Candidate<'_>,
    cancel: &CancellationToken,
) -> Result<Option<GateReport>, GateError> {
    let clone = &runner.clone;
    let changed = clone
        .changed_files(candidate.parent.as_str(), candidate.commit.as_str())
        .await?;
    let tree = clone.tree_of(candidate.commit).await?;
    let base = candidate.base.unwrap_or(candidate.parent);
    let history = runner.history_on(base).await?;
    let seen = history.name(&tree)?;
    let gate = runner.gate_at(candidate.base).await?;
    let mut verdict = Findings::default();
    let mut looked = difference::inspect(runner, &gate, candidate, &changed, &mut verdict).await?;
    let mut ran = GateRuns::default();
    let asked = async |commit| install::for_tasks(runner, &gate, commit, [candidate.task]).await;
    let mut installs = asked(candidate.commit).await?;
    if verdict.is_clean() {
        let parent_installs = asked(candidate.parent).await?;
        let passed = &candidate.precedents.passed;
        let mut job = Job {
            runner,
            candidate,
            checks: checks(runner, &gate, candidate.task),
            parent: Parent::new(
                runner,
                (candidate.parent, &history),
                parent_installs,
                passed,
            )
            .await?,
            history: &history,
            cancel,
        };
        let known = PassedRuns::of(passed, (&tree, &seen), &installs);
        let Some(all) = run_all(&mut job, &gate, known, &installs, &mut verdict).await? else {
            return Ok(None);
        };
        ran = all;
        let difference = (&changed[..], &mut looked);
        if !weigh(&mut job, difference, &installs, &mut ran, &mut verdict).await? {
            return Ok(None);
        }
    }
    let protected = to_be_asked(looked.protected, &mut verdict);
    if verdict.class == Some(FailureClass::MissingDependency) && candidate.task.installs == 0 {
        installs = install::found_at(runner, candidate.commit, [candidate.task]).await?;
    }
    let evidence = Evidence {
        build: candidate.task.build,
        task: Some(candidate.task.id.clone()),
        attempt: Some(candidate.attempt),
        commit: candidate.commit.clone(),
        tree,
        history: Some(seen),
        verdict: verdict.verdict(),
        class: verdict.class,
        findings: verdict.lines.clone(),
        level: gate.named(gate.task_level),
        requirements: required(candidate.task),
        not_run: not_run(&gate, gate.task_level, &ran.checks),
        installs: ran.installs,
        blind: Vec::new(),
        checks: ran.checks,
        proof: ran.proof,
        at: candidate.now,
    };
    Ok(Some(GateReport {
        evidence,
        error: verdict.error(),
        protected,
        changed: looked.changed,
        installable: installs.iter().any(Install::is_of_packages),
    }))
}

/// Returns what a person is asked about, which is what stands in the way last; with anything else they would be asked in vain, and who
/// mends that is told what they will be asked.
fn to_be_asked(protected: Vec<ProtectedChange>, findings: &mut Findings) -> Vec<ProtectedChange> {
    if findings.is_clean() {
        for change in &protected {
            findings.add(FailureClass::Tampered, change.why.clone());
        }
        return protected;
    }
    for change in &protected {
        let why = &change.why;
        findings.remark(format!(
            "{why}: a person is asked about it once the rest holds"
        ));
    }
    Vec::new()
}

/// Looks what a pass is worth: the tests beside those of the parent, the commands with the tests as they were, and the task's
/// own check on the parent; false when it was ended from outside.
async fn weigh(
    job: &mut Job<'_>,
    (changed, looked): (&[ChangedFile], &mut DifferenceReport),
    installs: &[Install],
    ran: &mut GateRuns,
    findings: &mut Findings,
) -> Result<bool, GateError> {
    if findings.is_clean() && may_weaken(changed) {
        let allowed = (installs, &looked.allowed);
        if !compare(job, &ran.checks, allowed, findings).await? {
            return Ok(false);
        }
    }
    if findings.is_clean() {
        let tests = (installs, &looked.tests);
        let Some(asked) = changed_tests_hold(job, tests, &ran.checks, findings).await? else {
            return Ok(false);
        };
        looked.protected.extend(asked);
    }
    Ok(!findings.is_clean() || proving::prove(job, changed, ran, findings).await?)
}

/// What the commands of a gate are run for.
struct Job<'a> {
    runner: &'a GateRunner,
    candidate: &'a Candidate<'a>,
    checks: Vec<Check<'a>>,
    parent: Parent<'a>,
    history: &'a History,
    cancel: &'a CancellationToken,
}

/// What ran.
#[derive(Default)]
struct GateRuns {
    installs: Vec<CheckRun>,
    checks: Vec<CheckRun>,
    proof: Option<Proof>,
}

/// Lists the requirements that a task is for, each once.
pub fn required(task: &Task) -> Vec<RequirementId> {
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
pub fn not_run(gate: &Gate, level: Level, runs: &[CheckRun]) -> Vec<String> {
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
    job: &mut Job<'_>,
    gate: &Gate,
    known: PassedRuns,
    installs: &[Install],
    findings: &mut Findings,
) -> Result<Option<GateRuns>, GateError> {
    let mut ran = GateRuns::default();
    let mut site = None;
    let mut spent = SpentTime::default();
    for check in job.checks.clone() {
        let again = ran.checks.iter().find(|run| run.command == check.command);
        let again = again.and_then(|run| renamed(run, &check));
        if let Some(run) = again.or_else(|| known.holds(&check)) {
            ran.checks.push(run);
            continue;
        }
        if site.is_none() {
            let place = (job.candidate.commit, job.history);
            let prepared = Site::prepare(job.runner, place, installs, job.cancel, findings);
            let Some((prepared, installed)) = prepared.await? else {
                return Ok(None);
            };
            site = Some(prepared);
            ran.installs = installed;
            if !findings.is_clean() {
                break;
            }
        }
        let Some(site) = &mut site else { continue };
        let check = Check {
            timeout: spent.left(gate, check.level, check.timeout),
            install: None,
            ..check
        };
        let Some(run) = run_one(job, site, &check, findings).await? else {
            return Ok(None);
        };
        spent.add(check.level, Duration::from_millis(run.duration_ms));
        ran.checks.push(run);
        if !findings.is_clean() {
            break;
        }
    }
    if site.is_none() {
        ran.installs = known.installs;
    }
    Ok(Some(ran))
}

/// Runs a check, and once more where tests failed that passed before; none when it was ended from outside. One that failed
/// before the work, too, says so: whoever works on the task need not look for its fault there.
///
/// The task's own check earns no second run: what the task makes is what it looks at.
async fn run_one(
    job: &mut Job<'_>,
    site: &mut Site<'_>,
    check: &Check<'_>,
    findings: &mut Findings,
) -> Result<Option<CheckRun>, GateError> {
    let Some((run, ruling)) = site.run(check, job.cancel).await? else {
        return Ok(None);
    };
    if !ruling.ran_and_failed() || check.expected.is_some() {
        findings.note(ruling, &run);
        return Ok(Some(run));
    }
    let Some(before) = job.parent.run(check, job.cancel).await? else {
        return Ok(None);
    };
    if before.ruling.ran_and_failed() {
        findings.note(ruling, &run);
        findings.remark(format!(
            "`{}` fails without this work, too: no task passes before that is mended",
            check.name
        ));
        return Ok(Some(run));
    }
    let Some(suspects) = proof::passed_before(&run, &before.run) else {
        findings.note(ruling, &run);
        return Ok(Some(run));
    };
    let Some((again, second)) = site.run(check, job.cancel).await? else {
        return Ok(None);
    };
    if second == Ruling::Holds {
        let flaky = suspects;
        return Ok(Some(CheckRun { flaky, ..again }));
    }
    findings.note(ruling, &run);
    Ok(Some(run))
}

/// Says whether a change can take anything from the tests that were there: new files alone only add, unless they steer.
fn may_weaken(changed: &[ChangedFile]) -> bool {
    changed
        .iter()
        .any(|file| file.kind != ChangeKind::Added || protected::is_steering(&file.path))
}

/// Compares the tests with those of the parent; false when it was ended from outside.
async fn compare(
    job: &mut Job<'_>,
    runs: &[CheckRun],
    (installs, allowed): (&[Install], &AllowedFiles),
    findings: &mut Findings,
) -> Result<bool, GateError> {
    for (check, run) in job.checks.clone().iter().zip(runs) {
        let before = match &run.tests {
            Some(_) => {
                let Some(before) = job.parent.run(check, job.cancel).await? else {
                    return Ok(false);
                };
                Some(before)
            }
            // Where nothing is counted now, only what was counted before can be missed.
            None => job.parent.known(check),
        };
        let before = before
            .and_then(|before| before.run.tests)
            .unwrap_or_default();
        let now = run.tests.clone().unwrap_or_default();
        let mut missed = weakened::find(&before, &now, &[]);
        if !missed.is_empty() && !allowed.changes.is_empty() {
            let Some(wanted) = run_as_allowed(job, check, installs, allowed).await? else {
                return Ok(false);
            };
            let is_known = wanted.ruling == Ruling::Holds && wanted.run.tests.is_some();
            let ran = wanted.run.tests.unwrap_or_default();
            missed = if is_known {
                weakened::find(&ran, &now, &[])
            } else if weakened::are_named(&before, &now) {
                weakened::find(&before, &now, &allowed.before)
            } else {
                // What was allowed may not hold, or even build, without the work, and may have ended early: whose tests a number
                // counts is not known, but no fewer may pass than ran there.
                weakened::fewer(&ran, &now).into_iter().collect()
            };
        }
        for line in missed {
            findings.add(FailureClass::WeakenedTest, line);
        }
    }
    Ok(true)
}

/// Runs a check on the parent with nothing but the changes that a person allowed: what does not run there is gone by that yes;
/// nothing when it was ended from outside.
async fn run_as_allowed(
    job: &Job<'_>,
    check: &Check<'_>,
    installs: &[Install],
    allowed: &AllowedFiles,
) -> Result<Option<ParentRun>, GateError> {
    let commits = (job.candidate.commit, job.candidate.parent);
    let wanted = control::with_what_was_allowed(&job.runner.clone, commits, allowed).await?;
    run_at(job, check, installs, &wanted).await
}

/// Runs a check on another commit than the candidate and its parent; nothing when it was ended from outside.
async fn run_at(
    job: &Job<'_>,
    check: &Check<'_>,
    installs: &[Install],
    commit: &CommitId,
) -> Result<Option<ParentRun>, GateError> {
    let place = (commit, job.history);
    let mut there = Parent::new(job.runner, place, installs.to_vec(), &[]).await?;
    there.run(check, job.cancel).await
}

/// Says whether the tests of a check that were there may say something else by what became of files of tests; nothing when it was
/// ended from outside. Tests that come to them are taken for what they are, unless some failed before them.
async fn may_bend(
    job: &mut Job<'_>,
    check: &Check<'_>,
    tests: &TestFiles,
) -> Result<Option<bool>, GateError> {
    if !tests.changed.is_empty() {
        return Ok(Some(true));
    }
    let is_supported = !tests.supports.is_empty();
    if !is_supported && tests.added.is_empty() {
        return Ok(Some(false));
    }
    let before = match job.parent.known(check) {
        None if is_supported => job.parent.run(check, job.cancel).await?,
        known => known,
    };
    let Some(before) = before else {
        return Ok((!is_supported).then_some(false));
    };
    // Where none ran before, there is nothing that could be bent.
    let counts = before.run.tests.unwrap_or_default();
    Ok(Some(counts.failed > 0 || is_supported && counts.passed > 0))
}

/// Runs the commands that count tests on the candidate with the tests as they were, where it changed some, or brought what runs
/// with them; returns what a person would have to accept, and nothing when it was ended from outside.
async fn changed_tests_hold(
    job: &mut Job<'_>,
    (installs, tests): (&[Install], &TestFiles),
    runs: &[CheckRun],
    findings: &mut Findings,
) -> Result<Option<Vec<ProtectedChange>>, GateError> {
    let mut counted = Vec::new();
    for check in control::of_tests(&job.checks, runs) {
        match may_bend(job, &check, tests).await? {
            Some(true) => counted.push(check),
            Some(false) => {}
            None => return Ok(None),
        }
    }
    if counted.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let clone = &job.runner.clone;
    let commits = (job.candidate.commit, job.candidate.parent);
    let mut asked: Vec<ProtectedChange> = Vec::new();
    for side in control::sides(clone, commits, tests).await? {
        let before = control::with_tests_as_they_were(clone, side.commits(), tests).await?;
        let place = (&before, job.history);
        let prepared = Site::prepare(job.runner, place, installs, job.cancel, findings).await?;
        let Some((mut site, _)) = prepared else {
            return Ok(None);
        };
        if !findings.is_clean() {
            break;
        }
        let site = (&mut site, clone);
        let missed = control::holds_as_it_was(site, &counted, &side, tests, job.cancel).await?;
        let Some(missed) = missed else {
            return Ok(None);
        };
        // Who is asked about a file sees what the tests of each branch say: a yes is one to all of it.
        for change in missed {
            let mut known = asked.iter_mut();
            if let Some(known) = known.find(|known| known.change() == change.change()) {
                known.why = format!("{}; {}", known.why, change.why);
            } else {
                asked.push(change);
            }
        }
    }
    Ok(Some(asked))
}
