//! Shows requirements with what is there for them, and what a commit is for.

use std::fmt::Write as _;

use ropewalk_desk::views::review::ObjectionView;
use ropewalk_desk::views::trace::{EvidenceView, Origin, RequirementView};
use ropewalk_schemas::amount::counted;
use ropewalk_schemas::attempt::Verdict;
use ropewalk_schemas::fulfilment::Fulfilment;
use ropewalk_schemas::task::Task;
use ropewalk_schemas::{BuildId, RequirementId};

use crate::output::{self, time};

/// Shows every requirement in a line for each of its tasks, and below them what shows how many of them.
pub(super) fn overview(traced: &[RequirementView], tasks: &[Task]) -> String {
    let rows = traced.iter().flat_map(|traced| {
        let met = traced.fulfilment;
        let of_tasks = traced.tasks.iter().map(move |link| {
            let passed = link
                .evidence
                .iter()
                .rfind(|seen| seen.verdict == Verdict::Passed);
            [
                traced.requirement.to_string(),
                met.to_string(),
                link.task.to_string(),
                link.state.to_string(),
                link.commit
                    .as_ref()
                    .map_or("", |commit| commit.short())
                    .to_owned(),
                passed.map(checks).unwrap_or_default(),
            ]
        });
        let none = traced.tasks.is_empty().then(|| {
            let blank = String::new;
            let id = traced.requirement.to_string();
            [
                id,
                met.to_string(),
                blank(),
                blank(),
                blank(),
                "no task is for it".to_owned(),
            ]
        });
        of_tasks.chain(none).collect::<Vec<_>>()
    });
    let header = ["requirement", "is", "task", "state", "commit", "evidence"];
    let all: Vec<(RequirementId, Fulfilment)> = traced
        .iter()
        .map(|traced| (traced.requirement.clone(), traced.fulfilment))
        .collect();
    let summed_up = Fulfilment::summed_up(&all, tasks);
    let table = output::table(&header, rows);
    format!("{table}\nrequirements: {summed_up}")
}

/// Tells what the review of a build holds against it, and what shows the whole of it; nothing where there is none.
pub(super) fn objections(build: BuildId, objections: &[ObjectionView]) -> String {
    let mut text = String::new();
    for objection in objections {
        // Writing to a String cannot fail.
        writeln!(text, "but {}", objection.told).ok();
    }
    if !objections.is_empty() {
        writeln!(text, "`ropewalk review show {build}` shows all of it").ok();
    }
    text
}

/// Shows one requirement with all that is there for it.
pub(super) fn requirement(traced: &RequirementView) -> String {
    let met = traced.fulfilment;
    let mut text = format!("{} is {met}: {}\n", traced.requirement, traced.text);
    for link in &traced.tasks {
        // Writing to a String cannot fail.
        writeln!(text, "\n{} is {}", link.task, link.state).ok();
        if let Some(commit) = &link.commit {
            writeln!(text, "  commit {commit}").ok();
        }
        for seen in &link.evidence {
            text.push_str(&told(seen));
        }
    }
    text
}

/// Shows what a commit is for.
pub(super) fn origin(origin: &Origin) -> String {
    let what = match (&origin.task, origin.landed) {
        (Some(task), true) => format!("is what landed of {task}"),
        (Some(task), false) => format!("is a try at {task} that did not land"),
        (None, _) => "was checked as a whole".to_owned(),
    };
    let mut text = format!("{} {what}\n", origin.commit);
    for requirement in &origin.requirements {
        writeln!(text, "for {}: {}", requirement.id, requirement.text).ok();
    }
    for seen in &origin.evidence {
        text.push_str(&told(seen));
    }
    text
}

fn told(seen: &EvidenceView) -> String {
    let verdict = match seen.verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::Held => "held",
    };
    let level = seen
        .level
        .map_or_else(String::new, |level| format!(" at level {level}"));
    let mut text = format!(
        "  gate {verdict}{level} on {} at {}: {}\n",
        seen.commit.short(),
        time(seen.at),
        checks(seen)
    );
    for finding in &seen.findings {
        writeln!(text, "    {finding}").ok();
    }
    if let Some(proof) = seen.proof {
        writeln!(text, "    its own check {}", proof.in_words()).ok();
    }
    if !seen.not_run.is_empty() {
        writeln!(text, "    not run: {}", seen.not_run.join(", ")).ok();
    }
    text
}

fn checks(seen: &EvidenceView) -> String {
    let told = seen.checks.iter().map(|run| {
        let result = match (run.exit_code, &run.tests) {
            (Some(0), Some(tests)) => counted(tests.passed, "test"),
            (Some(0), None) => "ok".to_owned(),
            (Some(code), _) => format!("exit {code}"),
            (None, _) => "killed".to_owned(),
        };
        let flaky = match run.flaky.as_slice() {
            [] => String::new(),
            names => format!(" at the second run, flaky: {}", names.join(" ")),
        };
        format!("{} {result}{flaky} {} ms", run.name, run.duration_ms)
    });
    told.collect::<Vec<_>>().join(", ")
}
