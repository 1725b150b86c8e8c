//! Holds the built-in tools: they work in one slot, read anywhere in it and write only where the work may.

mod ask;
mod asker;
mod bash;
mod code_outline;
mod edit;
mod file_grants;
mod glob;
mod grep;
mod history;
mod ignored;
mod ls;
mod read;
mod request_file;
mod todo;
mod walk;
mod web;
mod workbench;
mod write;

use std::sync::Arc;

use ropewalk_schemas::RepoPath;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::mode::AgentMode;
use crate::tool::{Tool, ToolFailure, Toolbox, ToolboxError, plain_schema_of};

pub use asker::{AskReply, Asker, TaskOption, TaskQuestion};
pub use file_grants::{FileGrants, GrantReply};
pub use web::{SearchError, SearchHit, SearchPort, Searxng, SearxngAccess};
pub use workbench::{ReadableHistory, Workbench, WorkbenchOptions};

/// Returns the tools of `mode` that can work on this bench.
pub fn tools_of(mode: AgentMode, workbench: &Workbench) -> Result<Toolbox, ToolboxError> {
    let options = workbench.options();
    let policy = options.policy.clone().rooted_at(workbench.files().root());
    let mut tools = everything(workbench);
    tools.retain(|tool| mode.has(tool.name()));
    Ok(Toolbox::new(tools)?
        .in_mode(mode)
        .guarded_by(policy)
        .caching(options.cache)
        .spill_to(workbench.spill_directory()))
}

/// Returns all that can work on a bench, whatever it is for.
fn everything(workbench: &Workbench) -> Vec<Arc<dyn Tool>> {
    let options = workbench.options();
    let list = todo::TodoList::default();
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(read::Read::new(workbench.clone())),
        Arc::new(ls::Ls::new(workbench.clone())),
        Arc::new(glob::Glob::new(workbench.clone())),
        Arc::new(grep::Grep::new(workbench.clone())),
        Arc::new(code_outline::CodeOutline::new(workbench.clone())),
        Arc::new(write::Write::new(workbench.clone())),
        Arc::new(edit::Edit::new(workbench.clone())),
        Arc::new(bash::Bash::new(workbench.clone())),
        Arc::new(todo::TodoWrite(list.clone())),
        Arc::new(todo::TodoRead(list)),
    ];
    if let Some(history) = &options.history {
        tools.push(Arc::new(history::History::new(history.clone())));
    }
    if let Some(egress) = &options.egress {
        tools.push(Arc::new(web::WebFetch::new(egress.clone())));
    }
    if let Some(search) = &options.search {
        tools.push(Arc::new(web::WebSearch::new(search.clone())));
    }
    if let Some(grants) = workbench.grants() {
        let request = request_file::RequestFile::new(workbench.clone(), grants);
        tools.push(Arc::new(request));
    }
    if let Some(asker) = workbench.asker() {
        tools.push(Arc::new(ask::Ask::new(workbench.clone(), asker)));
    }
    tools
}

/// Reads arguments that the schema has let pass.
fn arguments<T: DeserializeOwned>(value: Value) -> Result<T, ToolFailure> {
    serde_json::from_value(value)
        .map_err(|error| ToolFailure::refused(format!("the arguments do not fit: {error}")))
}

/// Returns the path that a call names, if it does.
fn path_of(arguments: &Value) -> Vec<String> {
    let path = arguments["path"].as_str();
    path.into_iter().map(str::to_owned).collect()
}

/// Reads a path of the repository.
fn path(text: &str) -> Result<RepoPath, ToolFailure> {
    RepoPath::parse(text).map_err(|error| ToolFailure::refused(error.to_string()))
}

/// Reads a directory: none for the root, however it is written.
fn directory(text: Option<&str>) -> Result<Option<RepoPath>, ToolFailure> {
    match text.map(str::trim) {
        None | Some("" | "." | "./") => Ok(None),
        Some(text) => path(text).map(Some),
    }
}

#[cfg(test)]
mod tests;
