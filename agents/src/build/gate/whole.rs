//! Checks a commit as a whole: the commands of a level and every landed task's own check, cold.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use ropewalk_schemas::attempt::{CheckKind, CheckRun, Evidence, Level};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{CommitId, RequirementId};
use tokio_util::sync::CancellationToken;

use super::checks::{Gate, Spent};
use super::house::{Check, Findings, GateHouse, Turn};
use super::install;
use super::run::{not_run, required};
use crate::build::trouble::Trouble;

/// What is checked.
pub(crate) struct Whole<'a> {
    pub(crate) build: &'a Build,
    pub(crate) tasks: &'a [Task],
    pub(crate) commit: &'a CommitId,
    /// How deep; none for what the gate says about whole builds.
    pub(crate) level: Option<Level>,
    pub(crate) now: DateTime<Utc>,
}

/// Runs everything on a clean checkout, with a target directory that nothing was built in; none when it was ended from
/// outside.
pub(crate) async fn check(
    house: &GateHouse,
    whole: &Whole<'_>,
    cancel: &CancellationToken,
) -> Result<Option<Evidence>, Trouble> {
    let build = whole.build;
    let gate = house.gate_at(build.base.as_ref()).await?;
    let level = whole.level.unwrap_or(gate.build_level);
    let mut turn = Turn::take(house, whole.commit).await?;
    // Beside the checkout, which is this check's alone: others may check the same build meanwhile.
    let target = turn.clean.target_directory().with_file_name("cold");
    clear(&target)?;
    let mut findings = Findings::default();
    // What one of the tasks landed with, the whole needs too.
    let with_packages = landed(whole.tasks).filter(|task| task.installs > 0);
    let installs = install::found_at(house, whole.commit, with_packages).await?;
    let installed = install::in_turn(house, &mut turn, &installs, cancel, &mut findings).await?;
    let Some(installed) = installed else {
        return Ok(None);
    };
    let mut runs: Vec<CheckRun> = Vec::new();
    if findings.is_clean() {
        let site = Site {
            house,
            turn: &turn,
            target: &target,
            gate: &gate,
        };
        let ran = run(
            &site,
            &checks(house, &gate, level, whole),
            cancel,
            &mut findings,
        )
        .await;
        clear(&target)?;
        let Some(ran) = ran? else { return Ok(None) };
        runs = ran;
    }
    Ok(Some(Evidence {
        build: build.id,
        task: None,
        attempt: None,
        tree: house.clone.tree_of(whole.commit).await?,
        commit: whole.commit.clone(),
        verdict: findings.verdict(),
        class: findings.class,
        findings: findings.lines.clone(),
        level: gate.named(level),
        requirements: landed_requirements(whole.tasks),
        not_run: not_run(&gate, level, &runs),
        installs: installed,
        checks: runs,
        at: whole.now,
    }))
}

/// Where the whole is checked.
struct Site<'a> {
    house: &'a GateHouse,
    turn: &'a Turn<'a>,
    target: &'a Path,
    gate: &'a Gate,
}

/// Runs every check, whatever the others show; none when it was ended from outside.
async fn run(
    site: &Site<'_>,
    checks: &[Check<'_>],
    cancel: &CancellationToken,
    findings: &mut Findings,
) -> Result<Option<Vec<CheckRun>>, Trouble> {
    let mut runs = Vec::new();
    let mut spent = Spent::default();
    for check in checks {
        let check = Check {
            timeout: spent.left(site.gate, check.level, check.timeout),
            ..*check
        };
        let ran = site
            .house
            .execute(site.turn, site.target, &check, cancel, findings);
        let Some(run) = ran.await? else {
            return Ok(None);
        };
        spent.add(check.level, Duration::from_millis(run.duration_ms));
        runs.push(run);
    }
    Ok(Some(runs))
}

/// As [`check`], where nobody ends it from outside.
pub(crate) async fn check_to_the_end(
    house: &GateHouse,
    whole: &Whole<'_>,
) -> Result<Evidence, Trouble> {
    let never = CancellationToken::new();
    let seen = check(house, whole, &never).await?;
    seen.ok_or_else(|| Trouble::Missing("the check of the whole was ended".to_owned()))
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
    house: &GateHouse,
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
        .map(Check::from)
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
                timeout: house.validation_timeout,
            });
        }
    }
    checks
}

fn clear(target: &Path) -> Result<(), Trouble> {
    match std::fs::remove_dir_all(target) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(Trouble::File {
            path: target.display().to_string(),
            source,
        }),
        _ => Ok(()),
    }
}
