//! Payloads of alerts, conflicts and decisions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::alert::Severity;
use crate::ids::{AttemptId, BuildId, ChoiceId, ComponentName, Slug, TaskId};
use crate::outage::OutageClass;
use crate::repo_path::RepoPath;

/// A task makes no progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StuckTask {
    /// The build.
    pub build_id: BuildId,
    /// The task.
    pub task_id: TaskId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The loop that works on it.
    pub loop_name: ComponentName,
    /// Minutes of working time without progress.
    pub idle_minutes: u64,
    /// How bad it is; events from before this was told have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}

/// The cause of an alert is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertCleared {
    /// The cause, as the alert named it.
    pub cause: String,
    /// One line for people.
    pub message: String,
}

/// What an alert tells has grown worse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertEscalated {
    /// The cause, as the alert named it.
    pub cause: String,
    /// One line for people.
    pub message: String,
    /// How bad it is by now.
    pub severity: Severity,
}

/// A cycle of waits was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadlockDetected {
    /// The members, each waiting for the next.
    #[serde(default)]
    pub cycle: Vec<String>,
    /// Who gave way, if the cycle is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub victim: Option<String>,
    /// Whether the cycle is broken already.
    pub resolved: bool,
    /// How bad it is; events from before this was told have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}

/// A component gives no sign of life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComponentDown {
    /// The component.
    pub component: ComponentName,
    /// Seconds since its last sign of life.
    pub silent_seconds: u64,
    /// How bad it is; events from before this was told have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}

/// A provider of models is away: nobody asks it until it answers again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderDown {
    /// The provider.
    pub provider: String,
    /// Who can end it.
    pub class: OutageClass,
    /// What the call met that found it.
    pub error: String,
    /// How bad it is; events from before this was told have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}

/// A checkout could not be made clean any more, and another has its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlotRetired {
    /// The checkout.
    pub checkout: String,
    /// Where it lies now.
    pub place: String,
    /// What stood against its use.
    pub reason: String,
    /// How bad it is; events from before this was told have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}

/// A build failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildFailedAlert {
    /// The build.
    pub build_id: BuildId,
    /// The idea.
    pub idea_slug: Slug,
    /// Why.
    pub reason: String,
    /// The tasks that failed.
    #[serde(default)]
    pub failed_tasks: Vec<TaskId>,
    /// How bad it is; events from before this was told have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}

/// Two builds want one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConflictDetected {
    /// The build that asks.
    pub build_id: BuildId,
    /// The task that asks.
    pub task_id: TaskId,
    /// The build that owns the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<BuildId>,
    /// The file.
    pub file: RepoPath,
}

/// Work cannot go on without a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionRequested {
    /// The build.
    pub build_id: BuildId,
    /// The task, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// What is to be decided.
    pub question: String,
    /// The choices, of those of `decision_needed`.
    #[serde(default)]
    pub options: Vec<ChoiceId>,
    /// The recommended choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommended: Option<ChoiceId>,
    /// The rule that leaves it to a person, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The call that was refused, where a person may allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<RefusedCall>,
}

/// What a model wanted to do with a tool and may not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedCall {
    /// The agent that wanted it, by the key of its work.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// What it wanted to do: a path, or a command, whole.
    pub subject: String,
}

/// PM decided something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionMade {
    /// The build it concerns.
    pub build_id: BuildId,
    /// The task it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// What was decided.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// The file it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<RepoPath>,
    /// The person whose answer decided it; none where PM did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
}

impl DecisionMade {
    /// Says what PM decided about a task.
    pub fn of_task((build, task): (BuildId, &TaskId), verdict: Verdict, reason: String) -> Self {
        Self {
            build_id: build,
            task_id: Some(task.clone()),
            verdict,
            reason,
            file: None,
            decided_by: None,
        }
    }
}

/// A budget is used up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetExceeded {
    /// What the budget covers, for example `day` or `build/<id>`.
    pub scope: String,
    /// The limit.
    pub limit: String,
    /// What was used.
    pub used: String,
    /// The build that hit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<BuildId>,
}

/// What PM decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The file goes to the build that asked.
    Grant,
    /// The owner gives way.
    Preempt,
    /// The owner keeps the file.
    Deny,
    /// The attempt ends and its work is kept.
    Interrupt,
    /// The task is left out.
    Skip,
    /// The task is tried again.
    Retry,
    /// Nothing is done for now.
    Watch,
}
