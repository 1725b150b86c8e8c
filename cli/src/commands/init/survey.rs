//! Looks at a repository for `init`: its stacks, and whether their tests pass on it as it is.

use std::collections::BTreeMap;
use std::time::Duration;

use ropewalk_config::{Environment, StackProfiles};
use ropewalk_gate::checks::Gate;
use ropewalk_gate::judge::Ruling;
use ropewalk_gate::runner::{GateRunner, RunnerParts};
use ropewalk_gate::trial;
use ropewalk_schemas::CommitId;
use ropewalk_schemas::advice::Words;
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::attempt::CheckRun;
use ropewalk_workspace::sandbox::egress::Egress;
use ropewalk_workspace::{CleanPool, CommandRunner, LocalClone};
use serde::Serialize;

use crate::app::App;
use crate::error::CliError;
use crate::wiring;

/// What was seen.
#[derive(Debug, Default, Serialize)]
pub(super) struct Survey {
    /// The stacks, for people.
    pub(super) stacks: Vec<String>,
    /// Their tests.
    pub(super) checks: Vec<CheckTrial>,
}

/// A check with what came of it.
#[derive(Debug, Serialize)]
pub(super) struct CheckTrial {
    pub(super) name: String,
    pub(super) command: String,
    /// Whether it belongs into the gate: it passed.
    pub(super) passed: bool,
    /// How it went, or why it was not run.
    pub(super) told: String,
}

/// Looks at the head of `clone` and tries the tests that it finds, unless `untried`.
pub(super) async fn look(app: &App, clone: &LocalClone, untried: bool) -> Result<Survey, CliError> {
    let profiles = StackProfiles::shipped()?;
    let head = clone.default_branch_head().await?.commit;
    let blobs = clone.list_blobs(&head).await?;
    let paths: Vec<&str> = blobs.iter().map(|blob| blob.path.as_str()).collect();
    let manifests = profiles.to_read(&paths);
    let contents = clone.read_files(&head, &manifests).await?;
    let texts: BTreeMap<String, String> = manifests
        .iter()
        .zip(contents)
        .filter_map(|(path, bytes)| {
            Some((
                (*path).to_owned(),
                String::from_utf8_lossy(&bytes?).into_owned(),
            ))
        })
        .collect();
    let found = profiles.find(&paths, &texts);
    let checks: Vec<(String, String, String)> = found
        .iter()
        .filter_map(|found| found.check.clone())
        .map(|check| (check.name, check.tool, check.command))
        .collect();
    Ok(Survey {
        stacks: found
            .iter()
            .map(|found| in_words(&found.profile.title, &found.directory))
            .collect(),
        checks: if untried {
            checks
                .into_iter()
                .map(|check| put_off(check, "not run, as asked"))
                .collect()
        } else {
            attempt(app, clone, &head, checks).await?
        },
    })
}

fn in_words(title: &str, directory: &str) -> String {
    match directory {
        "" => title.to_owned(),
        _ => format!("{title} in `{directory}`"),
    }
}

fn put_off((name, _, command): (String, String, String), why: &str) -> CheckTrial {
    CheckTrial {
        name,
        command,
        passed: false,
        told: why.to_owned(),
    }
}

/// Tries the checks whose programs are there, confined; without confinement none is run.
async fn attempt(
    app: &App,
    clone: &LocalClone,
    head: &CommitId,
    checks: Vec<(String, String, String)>,
) -> Result<Vec<CheckTrial>, CliError> {
    if checks.is_empty() {
        return Ok(Vec::new());
    }
    let runner = match confined(clone, &app.environment).await {
        Ok(runner) => runner,
        Err(why) => {
            let why = format!("not run: {why}");
            return Ok(checks
                .into_iter()
                .map(|check| put_off(check, &why))
                .collect());
        }
    };
    let gate = GateRunner::new(RunnerParts {
        clone: clone.clone(),
        runner: runner.clone(),
        at_once: 1,
        pool: CleanPool::for_plans(clone.clone()),
        gate: Gate::default(),
        validation_timeout: Duration::ZERO,
        package_managers: Vec::new(),
    });
    let mut tried = Vec::new();
    for check in checks {
        if runner.locate(&check.1).is_none() {
            let why = format!("not run: `{}` is not on the PATH", check.1);
            tried.push(put_off(check, &why));
            continue;
        }
        app.output.note(&format!("trying `{}` …", check.2))?;
        let ran = trial::on_commit(&gate, head, &[(&check.0, &check.2)]).await;
        let ran = ran.map_err(|error| CliError::advised("failed", error))?;
        tried.extend(ran.into_iter().map(|(run, ruling)| judged(run, ruling)));
    }
    Ok(tried)
}

async fn confined(clone: &LocalClone, environment: &Environment) -> Result<CommandRunner, Words> {
    let places = (clone.state(), clone.user().path.as_path());
    let sandbox = wiring::sandbox_of(places, environment, Egress::none()).await?;
    let runner = CommandRunner::new(wiring::child_environment(environment));
    Ok(runner.confined(Some(sandbox)))
}

fn judged(run: CheckRun, ruling: Ruling) -> CheckTrial {
    let seconds = run.duration_ms.div_ceil(1_000);
    let (passed, told) = match (ruling, &run.tests) {
        (Ruling::Holds, Some(tests)) if tests.passed == 0 => (
            true,
            "passed, but there was no test that it ran; where yours are for another runner, put its command into `[gate]`"
                .to_owned(),
        ),
        (Ruling::Holds, Some(tests)) => (
            true,
            format!("passed, {} in {seconds} s", counted(tests.passed, "test")),
        ),
        (Ruling::Holds, None) => (true, format!("passed in {seconds} s, not counted")),
        (Ruling::Fails { finding, .. } | Ruling::Held { finding }, _) => (false, finding),
        (Ruling::Cancelled, _) => (false, "not run: it was ended".to_owned()),
    };
    CheckTrial {
        name: run.name,
        command: run.command,
        passed,
        told,
    }
}
