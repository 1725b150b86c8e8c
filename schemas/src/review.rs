//! Defines reviews: what improvement found (seed pipeline §6).

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{BuildId, CommitId, KnowledgeId, RequirementId, ReviewId, Slug, SpecId, TaskId};

/// Says what was reviewed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ReviewKind {
    /// A completed build.
    Build,
    /// A completed session.
    Ideation,
    /// A generated specification.
    Specification,
}

/// Classifies a difference between plan and result.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum DivergenceClass {
    /// An addition that does good.
    Enhancement,
    /// An addition that does not.
    ScopeCreep,
    /// Left out on purpose.
    IntentionalSkip,
    /// Left out by mistake.
    MissedRequirement,
    /// A better approach.
    Optimization,
    /// A worse approach.
    Deviation,
}

/// A difference between plan and result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Divergence {
    /// Its class.
    pub class: DivergenceClass,
    /// The file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The requirement, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requirement: Option<RequirementId>,
    /// What was planned.
    pub planned: String,
    /// What was done.
    pub actual: String,
}

impl Divergence {
    /// Names what it is about: the requirement, the task, or else the file.
    pub fn place(&self) -> String {
        let task = self.task.as_ref();
        match (&self.requirement, task, &self.file) {
            (Some(requirement), Some(task), _) => format!("{requirement} of {task}"),
            (Some(requirement), None, _) => requirement.to_string(),
            (None, Some(task), Some(file)) => format!("{file} of {task}"),
            (None, Some(task), None) => task.to_string(),
            (None, None, Some(file)) => file.clone(),
            (None, None, None) => "something".to_owned(),
        }
    }
}

/// What improvement found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// Names it.
    pub id: ReviewId,
    /// What was reviewed.
    pub kind: ReviewKind,
    /// The idea.
    pub idea: Slug,
    /// The build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildId>,
    /// The specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<SpecId>,
    /// Gotchas found or confirmed.
    #[serde(default)]
    pub gotchas: Vec<KnowledgeId>,
    /// Patterns found.
    #[serde(default)]
    pub patterns: Vec<KnowledgeId>,
    /// Differences between plan and result.
    #[serde(default)]
    pub divergences: Vec<Divergence>,
    /// Metrics by name, for example `first_pass_success`.
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
    /// Remarks for people.
    #[serde(default)]
    pub notes: Vec<String>,
    /// When the build had ended that was reviewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// The head of its branch, where a model read what it had changed up to there: a later review reads what came since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
    /// When.
    pub at: DateTime<Utc>,
}

impl Review {
    /// Lists what it holds against what was built: what is missed, and what was done in a worse way than planned.
    pub fn objections(&self) -> impl Iterator<Item = &Divergence> {
        let all = self.divergences.iter();
        all.filter(|divergence| {
            matches!(
                divergence.class,
                DivergenceClass::MissedRequirement | DivergenceClass::Deviation
            )
        })
    }

    /// Counts what it holds for missed.
    pub fn missed(&self) -> usize {
        self.count(DivergenceClass::MissedRequirement)
    }

    /// Counts what it holds for done in a worse way than planned.
    pub fn deviations(&self) -> usize {
        self.count(DivergenceClass::Deviation)
    }

    fn count(&self, class: DivergenceClass) -> usize {
        let of_class = |divergence: &&Divergence| divergence.class == class;
        self.divergences.iter().filter(of_class).count()
    }
}
