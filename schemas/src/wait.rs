//! Defines the wait-for graph (design §3 invariant 10, §9).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{BuildId, QuestionId, TaskId};
use crate::repo_path::RepoPath;

/// One edge of the graph: somebody waits for something that somebody holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// Who waits.
    pub waiter: Party,
    /// What for.
    pub resource: Resource,
    /// Who could end the wait; none for people, quota, budget and outage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Party>,
    /// Since when.
    pub since: DateTime<Utc>,
}

/// Somebody who waits or is waited for.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Party {
    /// A task of a build.
    Task {
        /// The build.
        build: BuildId,
        /// The task.
        task: TaskId,
    },
    /// A whole build.
    Build {
        /// The build.
        build: BuildId,
    },
}

/// What is waited for.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Resource {
    /// Another task of the same build.
    Dependency {
        /// The task.
        task: TaskId,
    },
    /// A file lock.
    Lease {
        /// The file.
        path: RepoPath,
    },
    /// The ownership of a file.
    Ownership {
        /// The file.
        path: RepoPath,
    },
    /// An answer; a sink of the graph.
    Person {
        /// The question.
        question: QuestionId,
    },
    /// A provider's quota; a sink of the graph.
    Quota {
        /// The provider.
        provider: String,
    },
    /// A budget; a sink of the graph.
    Budget {
        /// What it covers.
        scope: String,
    },
    /// A provider that is away; a sink of the graph.
    Outage {
        /// The provider.
        provider: String,
    },
}

impl Resource {
    /// Returns whether nobody in the graph can be made to give it up.
    pub const fn is_sink(&self) -> bool {
        matches!(
            self,
            Self::Person { .. } | Self::Quota { .. } | Self::Budget { .. } | Self::Outage { .. }
        )
    }
}

impl std::fmt::Display for Party {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Task { build, task } => write!(formatter, "task/{build}/{task}"),
            Self::Build { build } => write!(formatter, "build/{build}"),
        }
    }
}

impl std::fmt::Display for Resource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dependency { task } => write!(formatter, "dependency/{task}"),
            Self::Lease { path } => write!(formatter, "lease/{path}"),
            Self::Ownership { path } => write!(formatter, "ownership/{path}"),
            Self::Person { question } => write!(formatter, "person/{question}"),
            Self::Quota { provider } => write!(formatter, "quota/{provider}"),
            Self::Budget { scope } => write!(formatter, "budget/{scope}"),
            Self::Outage { provider } => write!(formatter, "outage/{provider}"),
        }
    }
}
