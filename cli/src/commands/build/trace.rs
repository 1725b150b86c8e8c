//! Follows a requirement to its tasks, evidence and commits, and a commit back to what it is for.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use ropewalk_schemas::attempt::{Evidence, Level, Proof, TestCounts, Verdict};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::fulfilment::Fulfilment;
use ropewalk_schemas::specification::{Requirement, Revision};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{CommitId, RequirementId, TaskId};
use ropewalk_store::{Query, Store, revision_key};
use serde::Serialize;

use crate::error::CliError;
use crate::output::{self, time};

/// The fewest digits that stand for a commit.
const FEWEST_DIGITS: usize = 6;

/// What a build has to show for one requirement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Traced {
    pub(super) requirement: RequirementId,
    pub(super) text: String,
    /// Whether it is shown, by more than a check that passed before the work too.
    pub(super) met: bool,
    /// How far it is shown.
    pub(super) fulfilment: Fulfilment,
    pub(super) tasks: Vec<Link>,
}

/// A task with what the gate saw of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Link {
    pub(super) task: TaskId,
    pub(super) state: TaskState,
    pub(super) requirements: Vec<RequirementId>,
    pub(super) commit: Option<CommitId>,
    pub(super) evidence: Vec<Seen>,
}

/// What the gate saw of one commit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Seen {
    pub(super) commit: CommitId,
    pub(super) verdict: Verdict,
    pub(super) level: Option<Level>,
    pub(super) at: DateTime<Utc>,
    pub(super) findings: Vec<String>,
    pub(super) checks: Vec<Ran>,
    pub(super) not_run: Vec<String>,
    pub(super) proof: Option<Proof>,
}

/// A check that ran.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Ran {
    pub(super) name: String,
    pub(super) command: String,
    pub(super) exit_code: Option<i32>,
    pub(super) duration_ms: u64,
    pub(super) tests: Option<TestCounts>,
    /// The tests that failed at first.
    pub(super) flaky: Vec<String>,
}

/// What a commit is for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Origin {
    pub(super) commit: CommitId,
    /// The task that it is the work of; none for a check of the whole build.
    pub(super) task: Option<TaskId>,
    /// Whether it is what landed of that task.
    pub(super) landed: bool,
    pub(super) requirements: Vec<Requirement>,
    pub(super) evidence: Vec<Seen>,
}

/// Everything that traces of one build are made of.
pub(super) struct Trace {
    requirements: Vec<Requirement>,
    tasks: Vec<Task>,
    evidence: Vec<Evidence>,
}

impl Trace {
    /// Loads what a build has to show.
    pub(super) async fn load(
        store: &Store,
        build: &Build,
        tasks: &[Task],
    ) -> Result<Self, CliError> {
        let key = revision_key(build.spec, build.revision);
        let revision = store.get::<Revision>(&key).await?;
        let requirements = revision.map_or_else(Vec::new, |revision| {
            let document = revision.record.document;
            let mut all = document.requirements;
            all.extend(document.quality);
            all
        });
        let of_build = Query::new()
            .equal("build", build.id.to_string())
            .order_by("at");
        let evidence = store.list::<Evidence>(of_build).await?;
        Ok(Self {
            requirements,
            tasks: tasks.to_vec(),
            evidence: evidence.into_iter().map(|row| row.record).collect(),
        })
    }

    /// Lists every requirement that the specification or a task names, with what is there for it.
    pub(super) fn all(&self) -> Vec<Traced> {
        let mut ids: Vec<RequirementId> = Vec::new();
        let specified = self.requirements.iter().map(|known| &known.id);
        for id in specified.cloned().chain(self.tasks.iter().flat_map(named)) {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids.iter().map(|id| self.of_requirement(id)).collect()
    }

    /// Returns what is there for one requirement; none when nothing names it.
    pub(super) fn requirement(&self, text: &str) -> Option<Traced> {
        let wanted = text.trim();
        self.all()
            .into_iter()
            .find(|traced| traced.requirement.as_str().eq_ignore_ascii_case(wanted))
    }

    /// Returns what a commit is for; the beginning of its id is enough, if no other begins so.
    pub(super) fn commit(&self, text: &str) -> Result<Option<Origin>, CliError> {
        let commit = self.find(text)?;
        Ok(commit.map(|commit| self.origin(commit)))
    }

    /// Finds the commit whose id begins with `text`, among those that landed or that the gate saw.
    fn find(&self, text: &str) -> Result<Option<CommitId>, CliError> {
        let wanted = text.trim().to_ascii_lowercase();
        if wanted.len() < FEWEST_DIGITS {
            return Ok(None);
        }
        let landed = self.tasks.iter().filter_map(|task| task.commit.as_ref());
        let seen = self.evidence.iter().map(|seen| &seen.commit);
        let found: BTreeSet<&str> = landed
            .chain(seen)
            .map(CommitId::as_str)
            .filter(|commit| commit.starts_with(&wanted))
            .collect();
        if found.len() > 1 {
            let names: Vec<String> = found.iter().map(|name| format!("`{name}`")).collect();
            let text = format!(
                "`{wanted}` fits several commits: {}; write more digits",
                names.join(", ")
            );
            return Err(CliError::refused("ambiguous-id", text));
        }
        let only = found.first().map(|name| CommitId::parse(name));
        only.transpose().map_err(CliError::from)
    }

    fn origin(&self, commit: CommitId) -> Origin {
        let is_it = |known: &CommitId| *known == commit;
        let landed = self
            .tasks
            .iter()
            .find(|task| task.commit.as_ref().is_some_and(is_it));
        let seen = self.evidence.iter().find(|seen| is_it(&seen.commit));
        let task = landed
            .map(|task| task.id.clone())
            .or_else(|| seen.and_then(|seen| seen.task.clone()));
        let of_task = self
            .tasks
            .iter()
            .find(|known| Some(&known.id) == task.as_ref());
        let ids = match of_task {
            Some(task) => named(task),
            None => seen.map_or_else(Vec::new, |seen| seen.requirements.clone()),
        };
        let requirements = ids.iter().map(|id| self.specified(id)).collect();
        let evidence = self.evidence.iter().filter(|seen| seen.commit == commit);
        Origin {
            requirements,
            evidence: evidence.map(Seen::from).collect(),
            landed: landed.is_some(),
            task,
            commit,
        }
    }

    fn of_requirement(&self, id: &RequirementId) -> Traced {
        let tasks: Vec<Link> = self
            .tasks
            .iter()
            .filter(|task| named(task).contains(id))
            .map(|task| self.link(task))
            .collect();
        let fulfilment = Fulfilment::of(id, &self.tasks, &self.evidence);
        Traced {
            requirement: id.clone(),
            text: self.specified(id).text,
            met: fulfilment == Fulfilment::Met,
            fulfilment,
            tasks,
        }
    }

    fn link(&self, task: &Task) -> Link {
        let of_task = |seen: &&Evidence| seen.task.as_ref() == Some(&task.id);
        Link {
            task: task.id.clone(),
            state: task.state,
            requirements: named(task),
            commit: task.commit.clone(),
            evidence: self
                .evidence
                .iter()
                .filter(of_task)
                .map(Seen::from)
                .collect(),
        }
    }

    /// Returns what the specification says, or what the tasks say of a requirement that it does not list.
    fn specified(&self, id: &RequirementId) -> Requirement {
        let known = self.requirements.iter().find(|known| known.id == *id);
        let lines = self.tasks.iter().flat_map(|task| &task.block.requirements);
        known.cloned().unwrap_or_else(|| Requirement {
            id: id.clone(),
            text: lines
                .clone()
                .find(|line| line.id.as_ref() == Some(id))
                .map(|line| line.text.clone())
                .unwrap_or_default(),
            priority: String::new(),
            acceptance: String::new(),
            source: String::new(),
        })
    }
}

impl From<&Evidence> for Seen {
    fn from(evidence: &Evidence) -> Self {
        let runs = evidence.installs.iter().chain(&evidence.checks);
        let checks = runs.map(|run| Ran {
            name: run.name.clone(),
            command: run.command.clone(),
            exit_code: run.exit_code,
            duration_ms: run.duration_ms,
            tests: run.tests.clone(),
            flaky: run.flaky.clone(),
        });
        Self {
            commit: evidence.commit.clone(),
            verdict: evidence.verdict,
            level: evidence.level,
            at: evidence.at,
            findings: evidence.findings.clone(),
            checks: checks.collect(),
            not_run: evidence.not_run.clone(),
            proof: evidence.proof,
        }
    }
}

fn named(task: &Task) -> Vec<RequirementId> {
    let mut ids: Vec<RequirementId> = Vec::new();
    for line in &task.block.requirements {
        if let Some(id) = &line.id
            && !ids.contains(id)
        {
            ids.push(id.clone());
        }
    }
    ids
}

/// Shows every requirement in a line for each of its tasks.
pub(super) fn overview(traced: &[Traced]) -> String {
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
    output::table(&header, rows)
}

/// Shows one requirement with all that is there for it.
pub(super) fn requirement(traced: &Traced) -> String {
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

fn told(seen: &Seen) -> String {
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
        writeln!(text, "    its own check {}", proof.told()).ok();
    }
    if !seen.not_run.is_empty() {
        writeln!(text, "    not run: {}", seen.not_run.join(", ")).ok();
    }
    text
}

fn checks(seen: &Seen) -> String {
    let told = seen.checks.iter().map(|run| {
        let result = match (run.exit_code, &run.tests) {
            (Some(0), Some(tests)) => format!("{} tests", tests.passed),
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
