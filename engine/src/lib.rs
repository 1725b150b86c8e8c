//! Runs the agentic loop: asks a model, runs the tools it calls, and asks again until it is done.
//!
//! What it is not: it knows no agent, no event and no build; it holds no prompt, and it decides nothing about a
//! failure: its errors only say which class a failure has. Every reply is journaled in the store before it is acted
//! on, so that a job that runs again after a crash replays what was answered.
//!
//! To add one more tool: write `tools/<name>.rs` with a struct that implements [`Tool`], and name it in
//! `tools.rs` and, with the modes that have it, in the palette of [`AgentMode`]; models read the comments of its arguments, and
//! `tests/tables/tools.json` shows all that they are told. To add a language to outlines: see [`mod@outline`]. To add a section of context: give [`SectionKind`] a variant and its priority.

pub mod budget;
mod compaction;
pub mod context;
pub mod conventions;
mod current_value;
pub mod engine;
pub mod error;
pub mod event;
pub mod job;
mod journal;
mod mode;
pub mod outages;
pub mod outline;
pub mod policy;
pub mod steering;
pub mod submission;
pub mod tool;
pub mod tools;
mod traced;

/// The words of models that jobs are made of, for agents, which do not import that crate themselves.
pub use ropewalk_llm as llm;

pub use budget::{Allowance, BudgetOverrun, Budgets};
pub use compaction::CompactionPolicy;
pub use context::{BuiltContext, ContextBuilder, SectionKind};
pub use current_value::CurrentValue;
pub use engine::{Engine, RecalledJob, Session};
pub use error::EngineError;
pub use event::{JobEvent, Observer, SilentObserver};
pub use job::{Job, Limits, ModelEntry, ModelRole, Models, Outcome, UsageScope};
pub use journal::WentOn;
pub use mode::AgentMode;
pub use policy::{Approval, ApprovalRequest, Approver, AskedBy, Policy};
pub use steering::{NoSteering, Steering};
pub use submission::{Amendable, Submission};
pub use tool::{
    CacheBounds, Effect, FileChange, Freshness, Keep, Tool, ToolContext, ToolFailure, ToolOutput,
    Toolbox, ToolboxError, plain_schema_of, schema_of,
};
pub use tools::{
    AskReply, Asker, FileGrants, GrantReply, ReadableHistory, SearchError, SearchHit, SearchPort,
    Searxng, SearxngAccess, TaskOption, TaskQuestion, Workbench, WorkbenchOptions, tools_of,
};
