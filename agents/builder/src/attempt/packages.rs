//! Makes the slot of an attempt ready: runs what the project says, and installs packages where its task missed some before.
//!
//! Nothing is decided by it: the gate installs anew, for what the manifest says then.

pub(super) mod products;

use std::ffi::OsString;

use ropewalk_schemas::attempt::CheckRun;
use ropewalk_workspace::Slot;
use tracing::info;

use super::work::Work;
use crate::error::BuilderError;
use ropewalk_gate::install;
use ropewalk_gate::runner::{Findings, Place};
use ropewalk_schemas::clip::{self, Weight};

/// So much of what a package manager wrote is told.
const OUTPUT_BYTES: usize = 4 * 1024;

/// What came of installing.
#[derive(Debug, Default)]
pub(super) struct Packages {
    /// What commands in the slot need to find the packages.
    pub(super) variables: Vec<(OsString, OsString)>,
    /// What the model is told.
    pub(super) told: Option<String>,
}

/// Runs what the gate runs before its checks, at the base of the attempt; none when the attempt was ended from outside.
pub(super) async fn install(
    work: &Work<'_>,
    slot: &mut Slot,
) -> Result<Option<Packages>, BuilderError> {
    let task = &work.claim.task;
    let gate = &work.shared.gate;
    let of_base = gate.gate_at(work.claim.build.base.as_ref()).await?;
    let installs = install::for_tasks(gate, &of_base, &work.base(), [task]).await?;
    if installs.is_empty() {
        return Ok(Some(Packages::default()));
    }
    let mut findings = Findings::default();
    let (variables, target) = (slot.variables(), products::directory(work));
    let place = Place {
        directory: slot.root(),
        variables: &variables,
        target: &target,
    };
    let runs = install::run(gate, &place, &installs, &work.cancel, &mut findings).await?;
    let Some(runs) = runs else { return Ok(None) };
    let python_path = install::python_path(slot.root(), &installs);
    let ran_well = findings.is_clean();
    if ran_well {
        install::note_strays(&slot.changed_files().await?, &installs, &mut findings);
    }
    if ran_well && !findings.is_clean() {
        slot.restore(work.context.now()).await?;
    }
    info!(task.id = %task.id, "made the checkout of `{}` ready: {}", task.id, named(&runs));
    Ok(Some(Packages {
        variables: python_path.into_iter().collect(),
        told: Some(told(&runs, &findings)),
    }))
}

fn named(runs: &[CheckRun]) -> String {
    let lines: Vec<String> = runs
        .iter()
        .map(|run| format!("`{}`", run.command))
        .collect();
    lines.join(", ")
}

fn told(runs: &[CheckRun], findings: &Findings) -> String {
    let ran = format!(
        "Before you began, this was run in the checkout: {}.",
        named(runs)
    );
    let again = "The gate runs it again, on what you hand in.";
    if findings.is_clean() {
        return format!("{ran} {again}");
    }
    let output = clip::ends(&findings.error(), OUTPUT_BYTES, Weight::Tail).into_owned();
    format!("{ran} It failed:\n```\n{output}\n```\n{again}")
}
