//! Requirements as people see them: followed to their tasks, evidence and commits, and a commit back to what it is for.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use ropewalk_schemas::attempt::{Evidence, Level, Proof, TestCounts, Verdict, planted_beside};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::fulfilment::Fulfilment;
use ropewalk_schemas::specification::{Requirement, Revision};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{CommitId, InvalidId, RequirementId, TaskId};
use ropewalk_store::{Query, ReadError, Store, revision_key};
use schemars::JsonSchema;
use serde::Serialize;

use super::records;

/// The fewest digits that stand for a commit.
const FEWEST_DIGITS: usize = 6;

/// What a build has to show for one requirement.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RequirementView {
    /// The requirement.
    pub requirement: RequirementId,
    /// What it says.
    pub text: String,
    /// Whether it is shown, by more than a check that passes without the work.
    pub met: bool,
    /// How far it is shown.
    pub fulfilment: Fulfilment,
    /// The tasks that are for it.
    pub tasks: Vec<Link>,
}

/// A task with what the gate saw of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Link {
    /// The task.
    pub task: TaskId,
    /// How far it has come.
    pub state: TaskState,
    /// What it is for.
    pub requirements: Vec<RequirementId>,
    /// What landed of it.
    pub commit: Option<CommitId>,
    /// What the gate saw.
    pub evidence: Vec<EvidenceView>,
}

/// What the gate saw of one commit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EvidenceView {
    /// The commit.
    pub commit: CommitId,
    /// What the gate said.
    pub verdict: Verdict,
    /// How deep it looked.
    pub level: Option<Level>,
    /// When.
    pub at: DateTime<Utc>,
    /// What it found.
    pub findings: Vec<String>,
    /// What ran.
    pub checks: Vec<CheckView>,
    /// What did not run.
    pub not_run: Vec<String>,
    /// What a pass proves.
    pub proof: Option<Proof>,
}

/// A check that ran.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CheckView {
    /// Its name.
    pub name: String,
    /// Its command.
    pub command: String,
    /// How it exited; none where it was killed.
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration_ms: u64,
    /// The tests that it counted.
    pub tests: Option<TestCounts>,
    /// The tests that failed at first.
    pub flaky: Vec<String>,
}

/// What a commit is for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Origin {
    /// The commit.
    pub commit: CommitId,
    /// The task that it is the work of; none for a check of the whole build.
    pub task: Option<TaskId>,
    /// Whether it is what landed of that task.
    pub landed: bool,
    /// The requirements that it is for.
    pub requirements: Vec<Requirement>,
    /// What the gate saw.
    pub evidence: Vec<EvidenceView>,
}

/// Says why a commit was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// Several begin so.
    #[error("`{wanted}` fits several commits: {names}")]
    Ambiguous {
        /// What was looked for.
        wanted: String,
        /// Those that fit.
        names: String,
    },
    /// It is no commit.
    #[error(transparent)]
    Name(#[from] InvalidId),
}

/// Everything that traces of one build are made of.
pub struct Trace {
    requirements: Vec<Requirement>,
    tasks: Vec<Task>,
    evidence: Vec<Evidence>,
}

impl Trace {
    /// Loads the tasks of a build, and what it has to show.
    pub async fn load(store: &Store, build: &Build) -> Result<Self, ReadError> {
        let of_build = Query::new().equal("build", build.id.to_string());
        let key = revision_key(build.spec, build.revision);
        // On the heap, since three queries at once are much for the stack of whoever asks.
        let (tasks, revision, evidence) = futures::try_join!(
            Box::pin(store.list::<Task>(of_build.clone().order_by("number"))),
            Box::pin(store.get::<Revision>(&key)),
            Box::pin(store.list::<Evidence>(of_build.order_by("at"))),
        )?;
        let requirements = revision.map_or_else(Vec::new, |revision| {
            revision.document.all_requirements().cloned().collect()
        });
        Ok(Self {
            requirements,
            tasks: records(tasks),
            evidence: records(evidence),
        })
    }

    /// Returns the tasks, in their order.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Returns the tasks, in their order.
    pub fn into_tasks(self) -> Vec<Task> {
        self.tasks
    }

    /// Lists every requirement that the specification or a task names, with what is there for it.
    pub fn all(&self) -> Vec<RequirementView> {
        let all = self.fulfilments();
        let views = all
            .into_iter()
            .map(|(id, fulfilment)| self.of_requirement(id, fulfilment));
        views.collect()
    }

    /// Judges every requirement that the specification or a task names.
    pub fn fulfilments(&self) -> Vec<(RequirementId, Fulfilment)> {
        Fulfilment::of_all(&self.requirements, &self.tasks, &self.evidence)
    }

    /// Lists what checks of the whole build saw, the earliest first.
    pub fn of_whole(&self) -> Vec<EvidenceView> {
        let whole = self.evidence.iter().filter(|seen| seen.task.is_none());
        whole.map(EvidenceView::from).collect()
    }

    /// Returns what the newest check of the whole build saw; none where nobody has checked that.
    pub fn newest_of_whole(&self) -> Option<&Evidence> {
        let mut whole = self.evidence.iter().filter(|seen| seen.task.is_none());
        whole.next_back()
    }

    /// Says whether no gate of the project had a part in the newest check of the whole; none where nobody has checked that.
    pub fn lacks_gate(&self) -> Option<bool> {
        let whole = self.newest_of_whole()?;
        Some(lacks_gate(whole, &self.tasks))
    }

    /// Returns what is there for one requirement; none when nothing names it.
    pub fn requirement(&self, text: &str) -> Option<RequirementView> {
        let wanted = text.trim();
        self.all()
            .into_iter()
            .find(|traced| traced.requirement.as_str().eq_ignore_ascii_case(wanted))
    }

    /// Returns what a commit is for; the beginning of its id is enough, if no other begins so.
    pub fn commit(&self, text: &str) -> Result<Option<Origin>, FindError> {
        let commit = self.find(text)?;
        Ok(commit.map(|commit| self.origin(commit)))
    }

    /// Finds the commit whose id begins with `text`, among those that landed or that the gate saw.
    fn find(&self, text: &str) -> Result<Option<CommitId>, FindError> {
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
            return Err(FindError::Ambiguous {
                wanted,
                names: names.join(", "),
            });
        }
        let only = found.first().map(|name| CommitId::parse(name));
        Ok(only.transpose()?)
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
            evidence: evidence.map(EvidenceView::from).collect(),
            landed: landed.is_some(),
            task,
            commit,
        }
    }

    fn of_requirement(&self, id: RequirementId, fulfilment: Fulfilment) -> RequirementView {
        let tasks: Vec<Link> = self
            .tasks
            .iter()
            .filter(|task| task.is_for(&id))
            .map(|task| self.link(task))
            .collect();
        RequirementView {
            text: self.specified(&id).text,
            requirement: id,
            met: fulfilment.is_met(),
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
                .map(EvidenceView::from)
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
            replaces: None,
        })
    }
}

impl From<&Evidence> for EvidenceView {
    fn from(evidence: &Evidence) -> Self {
        let runs = evidence.installs.iter().chain(&evidence.checks);
        let checks = runs.map(|run| CheckView {
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

/// Says whether no gate of the project had a part in a check of the whole: it ran the own checks of the tasks alone.
pub fn lacks_gate(whole: &Evidence, tasks: &[Task]) -> bool {
    let ids = || tasks.iter().map(|task| task.id.as_str());
    // What a person accepted of the check of a task was none of a gate either.
    let is_accepted = |name: &String| ids().any(|id| *name == planted_beside(id));
    let mut runs = whole.checks.iter();
    runs.all(|run| ids().any(|id| run.name == id)) && whole.not_run.iter().all(is_accepted)
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
