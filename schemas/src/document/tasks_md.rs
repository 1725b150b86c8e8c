//! Reads, writes and edits tasks.md; a document that was read gives back the same bytes.

mod block;
mod edit;
mod read;

use std::fmt;
use std::ops::Range;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::escape::{Place, escaped};
use super::{DocumentError, yaml};
use crate::ids::{ComponentName, SpecId, TaskId};
use crate::task::{TaskBlock, TaskState};

/// The front matter of tasks.md.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksHeader {
    /// The specification.
    pub id: SpecId,
    /// The title.
    pub title: String,
    /// The revision of the specification.
    pub spec_version: u32,
    /// The number of tasks.
    pub total: usize,
    /// The number of complete tasks.
    pub completed: usize,
    /// How far the whole has come.
    pub status: PlanStatus,
}

/// Says how far the tasks as a whole have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanStatus {
    /// No task has begun.
    Pending,
    /// Some task may still move.
    Working,
    /// Every task is complete or left out.
    Complete,
    /// Nothing moves any more, and some task failed.
    Failed,
}

/// Says how far one task has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The state.
    pub status: TaskState,
    /// The loop that works on it.
    pub assigned_to: Option<ComponentName>,
    /// When its last attempt began.
    pub started_at: Option<DateTime<Utc>>,
    /// When it landed.
    pub completed_at: Option<DateTime<Utc>>,
}

impl Progress {
    /// A task that has not begun.
    pub const PENDING: Self = Self {
        status: TaskState::Pending,
        assigned_to: None,
        started_at: None,
        completed_at: None,
    };
}

/// A task as tasks.md holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskEntry {
    /// What to do.
    pub block: TaskBlock,
    /// How far it has come.
    pub progress: Progress,
    /// The line its block begins on.
    pub line: usize,
    /// Where its YAML stands.
    body: Range<usize>,
}

/// A list of tasks.md that grows while a build runs, and stands there once it says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journal {
    /// What happened.
    ExecutionLog,
    /// What was learned.
    Discoveries,
}

impl Journal {
    /// Returns the heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ExecutionLog => "Execution Log",
            Self::Discoveries => "Discoveries",
        }
    }
}

/// What tasks.md is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct TasksPlan<'a> {
    /// The specification.
    pub id: SpecId,
    /// The title.
    pub title: &'a str,
    /// The revision of the specification.
    pub spec_version: u32,
    /// What to read before the work.
    pub context: &'a [String],
    /// The tasks, in order.
    pub tasks: &'a [TaskBlock],
}

/// A tasks.md that was read; displays as the very text it was read from, with the edits made since.
#[derive(Debug, Clone, PartialEq)]
pub struct TasksDocument {
    source: String,
    header: TasksHeader,
    front: Range<usize>,
    entries: Vec<TaskEntry>,
    context: Vec<String>,
    counts: Vec<(Count, Range<usize>)>,
}

/// A number of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    Total,
    Complete,
    Failed,
    Skipped,
    Open,
}

impl Count {
    const ALL: [Self; 5] = [
        Self::Total,
        Self::Complete,
        Self::Failed,
        Self::Skipped,
        Self::Open,
    ];

    const fn label(self) -> &'static str {
        match self {
            Self::Total => "Total",
            Self::Complete => "Complete",
            Self::Failed => "Failed",
            Self::Skipped => "Skipped",
            Self::Open => "Open",
        }
    }

    fn of(self, states: &[TaskState]) -> usize {
        let counted = |state: &&TaskState| match self {
            Self::Total => true,
            Self::Complete => **state == TaskState::Complete,
            Self::Failed => **state == TaskState::Failed,
            Self::Skipped => **state == TaskState::Skipped,
            Self::Open => !matches!(
                state,
                TaskState::Complete | TaskState::Failed | TaskState::Skipped
            ),
        };
        states.iter().filter(counted).count()
    }
}

impl PlanStatus {
    /// Returns the written form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Working => "working",
            Self::Complete => "complete",
            Self::Failed => "failed",
        }
    }

    /// Sums up the states of all tasks.
    pub fn of(states: &[TaskState]) -> Self {
        let begun = |state: &TaskState| !matches!(state, TaskState::Pending | TaskState::Ready);
        let stands = |state: &TaskState| {
            matches!(
                state,
                TaskState::Complete | TaskState::Failed | TaskState::Skipped | TaskState::Blocked
            )
        };
        let lost = |state: &TaskState| matches!(state, TaskState::Failed | TaskState::Blocked);
        if !states.iter().any(begun) {
            Self::Pending
        } else if !states.iter().all(stands) {
            Self::Working
        } else if states.iter().any(lost) {
            Self::Failed
        } else {
            Self::Complete
        }
    }
}

/// Writes tasks.md with every task pending; [`parse`] gives back the same tasks.
pub fn render(plan: &TasksPlan<'_>) -> String {
    let states = vec![TaskState::Pending; plan.tasks.len()];
    let mut text = format!(
        "---\nid: {}\ntitle: {}\nspec_version: {}\ntotal: {}\ncompleted: 0\nstatus: pending\n---\n\n# Tasks: {}\n\n## Summary\n\n",
        yaml::scalar(&plan.id.to_string()),
        yaml::scalar(plan.title),
        plan.spec_version,
        plan.tasks.len(),
        escaped(plan.title, Place::Line),
    );
    for count in Count::ALL {
        let number = count.of(&states).to_string();
        text.extend(["- ", count.label(), ": ", &number, "\n"]);
    }
    text.push_str("\n## Context\n\n");
    for item in plan.context {
        text.extend(["- ", &escaped(item, Place::Line), "\n"]);
    }
    let mut phase = None;
    for task in plan.tasks {
        if phase != Some(&task.phase) {
            text.extend(["\n## Phase: ", &escaped(&task.phase, Place::Line), "\n"]);
            phase = Some(&task.phase);
        }
        text.extend(["\n", &block::rendered(task)]);
    }
    text
}

/// Reads tasks.md; a block that cannot be understood is an error and never dropped.
pub fn parse(text: &str) -> Result<TasksDocument, DocumentError> {
    read::document(text)
}

impl TasksDocument {
    /// Returns the front matter.
    pub fn header(&self) -> &TasksHeader {
        &self.header
    }

    /// Returns every task, in order.
    pub fn entries(&self) -> &[TaskEntry] {
        &self.entries
    }

    /// Returns what every task is to do, in order.
    pub fn blocks(&self) -> Vec<TaskBlock> {
        self.entries
            .iter()
            .map(|entry| entry.block.clone())
            .collect()
    }

    /// Returns what to read before the work.
    pub fn context(&self) -> &[String] {
        &self.context
    }

    /// Returns one task.
    pub fn entry(&self, task: &TaskId) -> Option<&TaskEntry> {
        self.entries.iter().find(|entry| entry.block.id == *task)
    }
}

impl fmt::Display for TasksDocument {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.source)
    }
}
