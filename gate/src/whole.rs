//! Checks a commit as a whole: the commands of a level and every landed task's own check, cold.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_schemas::attempt::{CheckKind, CheckRun, Evidence, Level, planted_beside};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{CommitId, RequirementId};
use ropewalk_workspace::{LocalClone, remove_tree};
use tokio_util::sync::CancellationToken;

use crate::candidate::{not_run, required};
use crate::checks::{Gate, SpentTime};
use crate::control::PlantedTests;
use crate::error::GateError;
use crate::runner::{Check, Findings, GateRunner};
use crate::site::Site;
use crate::{control, install};

/// What is checked.
pub struct Whole<'a> {
    /// The build.
    pub build: &'a Build,
    /// Its tasks.
    pub tasks: &'a [Task],
    /// The commit to check.
    pub commit: &'a CommitId,
    /// How deep; none for what the gate says about whole builds.
    pub level: Option<Level>,
    /// The time.
    pub now: DateTime<Utc>,
}

/// Runs everything on a clean checkout, with a target directory that nothing was built in; none when it was ended from
/// outside.
pub async fn check(
    runner: &GateRunner,
    whole: &Whole<'_>,
    cancel: &CancellationToken,
) -> Result<Option<Evidence>, GateError> {
    let build = whole.build;
    let gate = runner.gate_at(build.base.as_ref()).await?;
    let level = whole.level.unwrap_or(gate.build_level);
    let mut findings = Findings::default();
    // What one of the tasks landed with, the whole needs too.
    let landed_tasks = landed(whole.tasks);
    let installs = install::for_tasks(runner, &gate, whole.commit, landed_tasks).await?;
    let base = build.base.as_ref().unwrap_or(whole.commit);
    let history = runner.history_on(base).await?;
    let place = (whole.commit, &history);
    let prepared = Site::prepare(runner, place, &installs, cancel, &mut findings).await?;
    let Some((mut site, installed)) = prepared else {
        return Ok(None);
    };
    let mut ran = WholeRuns::default();
    if findings.is_clean() {
        let target = site.build_cold();
        clear(&target)?;
        let checks = checks(runner, &gate, level, whole);
        let place = (&mut site, &runner.clone);
        let checks = (&checks[..], (whole.commit, base));
        let accepted = &build.accepted[..];
        let controlled = run_controlled(place, (&gate, accepted), checks, cancel, &mut findings);
        let controlled = controlled.await;
        clear(&target)?;
        let Some(controlled) = controlled? else {
            return Ok(None);
        };
        ran = controlled;
    }
    let tree = runner.clone.tree_of(whole.commit).await?;
    Ok(Some(Evidence {
        build: build.id,
        task: None,
        attempt: None,
        history: Some(history.name(&tree)?),
        tree,
        commit: whole.commit.clone(),
        verdict: findings.verdict(),
        class: findings.class,
        findings: findings.lines.clone(),
        level: gate.named(level),
        requirements: landed_requirements(whole.tasks),
        not_run: [not_run(&gate, level, &ran.checks), ran.not_planted].concat(),
        blind: ran.blind,
        installs: installed,
        checks: ran.checks,
        proof: None,
        at: whole.now,
    }))
}

/// What ran.
#[derive(Default)]
struct WholeRuns {
    checks: Vec<CheckRun>,
    /// Those of which nobody has seen that they can fail, by name.
    blind: Vec<String>,
    /// What a person accepted that was not looked for.
    not_planted: Vec<String>,
}

/// Runs every check, and where all hold looks whether those that count tests could have failed, but for what a person `accepted`;
/// none when it was ended from outside.
async fn run_controlled(
    (site, clone): (&mut Site<'_>, &LocalClone),
    (gate, accepted): (&Gate, &[String]),
    (checks, commits): (&[Check<'_>], (&CommitId, &CommitId)),
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<Option<WholeRuns>, GateError> {
    let Some(runs) = run(site, gate, checks, cancel, findings).await? else {
        return Ok(None);
    };
    let is_accepted = |check: &Check<'_>| accepted.contains(&planted_beside(check.name));
    let counted = control::to_challenge(checks, &runs);
    let (left, counted): (Vec<Check<'_>>, Vec<Check<'_>>) =
        counted.into_iter().partition(is_accepted);
    let mut ran = WholeRuns {
        not_planted: left
            .iter()
            .map(|check| planted_beside(check.name))
            .collect(),
        checks: runs,
        ..WholeRuns::default()
    };
    if findings.is_clean() && !counted.is_empty() {
        let planted = PlantedTests::of(clone, commits).await?;
        let Some(blind) = control::can_fail(site, &counted, &planted, cancel, findings).await?
        else {
            return Ok(None);
        };
        ran.blind = blind;
    }
    Ok(Some(ran))
}

/// Runs every check, whatever the others show; none when it was ended from outside.
async fn run(
    site: &mut Site<'_>,
    gate: &Gate,
    checks: &[Check<'_>],
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<Option<Vec<CheckRun>>, GateError> {
    let mut runs = Vec::new();
    let mut spent = SpentTime::default();
    for check in checks {
        let check = Check {
            timeout: spent.left(gate, check.level, check.timeout),
            install: None,
            ..*check
        };
        let Some((run, ruling)) = site.run(&check, cancel).await? else {
            return Ok(None);
        };
        findings.note(ruling, &run);
        spent.add(check.level, Duration::from_millis(run.duration_ms));
        runs.push(run);
    }
    Ok(Some(runs))
}

/// As [`check`], where nobody ends it from outside.
pub async fn check_to_the_end(
    runner: &GateRunner,
    whole: &Whole<'_>,
) -> Result<Evidence, GateError> {
    let never = CancellationToken::new();
    let seen = check(runner, whole, &never).await?;
    seen.ok_or(GateError::Ended)
}

/// Lists the requirements of the landed tasks, each once.
fn landed_requirements(tasks: &[Task]) -> Vec<RequirementId> {
    let mut found: Vec<RequirementId> = landed(tasks).flat_map(required).collect();
    found.sort();
    found.dedup();
    found
}

fn landed(tasks: &[Task]) -> impl Iterator<Item = &Task> {
    tasks
        .iter()
        .filter(|task| task.state == TaskState::Complete)
}

/// Lists the distinct checks: the gate's commands, then those of the landed tasks.
fn checks<'a>(
    runner: &GateRunner,
    gate: &'a Gate,
    level: Level,
    whole: &Whole<'a>,
) -> Vec<Check<'a>> {
    // A person answers for what such a check found; it is listed as not run.
    let is_accepted = |check: &Check<'_>| {
        check.kind == Some(CheckKind::Security)
            && whole.build.accepted.iter().any(|name| name == check.name)
    };
    let mut checks: Vec<Check<'a>> = gate
        .up_to(level)
        .map(|check| Check::of(gate, check))
        .filter(|check| !is_accepted(check))
        .collect();
    for task in landed(whole.tasks) {
        let validation = &task.block.validation;
        let known = checks.iter().any(|check| {
            check.command == validation.command && check.expected == Some(&validation.expected)
        });
        if !known {
            checks.push(Check {
                name: task.id.as_str(),
                command: &validation.command,
                level: None,
                kind: None,
                expected: Some(&validation.expected),
                counts: Some(&gate.counts),
                timeout: runner.validation_timeout,
                install: None,
            });
        }
    }
    checks
}

fn clear(target: &Path) -> Result<(), GateError> {
    remove_tree(target).map_err(|source| GateError::File {
        path: target.display().to_string(),
        source,
    })
}
