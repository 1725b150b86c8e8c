//! Lets agents look into the repository at the commit that they plan on: tools that only read, and a digest.

mod bounds;
mod conventions;
mod digest;
mod ideas;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ropewalk_config::settings::PolicySettings;
use ropewalk_engine::outline::{Language, Symbol, outline};
use ropewalk_engine::{
    AgentMode, CurrentValue, Policy, ReadableHistory, SearchPort, Toolbox, Workbench,
    WorkbenchOptions, tools_of,
};
use ropewalk_gate::counts::can_count;
use ropewalk_gate::project::{Machine, Project, Versions};
use ropewalk_orchestrator::AgentError;
use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_workspace::clone::{Blob, HistoryPart};
use ropewalk_workspace::{CleanCheckout, CleanPool, GitError, LocalClone};
use serde_json::{Value, json};

use crate::failure;

pub(crate) use conventions::FoundConventions;
pub(crate) use ideas::{OtherIdea, others};

/// So many commits of the history are told.
const COMMITS: usize = 12;
/// What who plans is told to look with, as far as rules leave it.
const LOOKS_WITH: [&str; 6] = ["code_outline", "read", "grep", "glob", "ls", "history"];
/// Stands in the line of a stack before the command by which it may be tested.
const TESTED_BY: &str = ", tested by `";
/// So many outlines are remembered; beyond that all are made anew.
const REMEMBERED: usize = 4_000;

/// The repository as agents read it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Repository {
    clone: LocalClone,
    pool: CleanPool,
    machine: Machine,
    versions: Versions,
    rules: CurrentValue<PolicySettings>,
    search: Option<Arc<dyn SearchPort>>,
    known: Arc<Mutex<RepositoryCache>>,
}

/// What was found out before: the newest tree, and outlines by the content that they are of.
#[derive(Debug, Default)]
struct RepositoryCache {
    tree: Option<Arc<Tree>>,
    outlines: HashMap<String, Arc<Vec<Symbol>>>,
}

/// A tree with its digest.
#[derive(Debug)]
struct Tree {
    id: String,
    blobs: Vec<Blob>,
    /// The symbolic links, with where they lead.
    links: Vec<(String, String)>,
    digest: String,
    project: Project,
}

/// The tools of a mode, and the checkout in which they look. That is free again when this is dropped.
pub(crate) struct ReadingTools {
    /// The tools.
    pub(crate) tools: Toolbox,
    checkout: CleanCheckout,
}

/// Takes a folder out of what is looked at; the next who looks has it again.
fn leave_out(checkout: &CleanCheckout, folder: &RepoPath) -> Result<(), AgentError> {
    match std::fs::remove_dir_all(checkout.root().join(folder.as_str())) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(AgentError::transient(error))
        }
        _ => Ok(()),
    }
}

/// A look at one commit. Its checkout is free again when this is dropped.
pub(crate) struct Look {
    /// The commit.
    pub(crate) commit: CommitId,
    /// What reads in it.
    pub(crate) tools: Toolbox,
    branch: Option<String>,
    recent: String,
    tree: Arc<Tree>,
    _checkout: CleanCheckout,
}

impl Look {
    /// Lists the paths of all files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.tree.blobs.iter().map(|blob| blob.path.as_str())
    }

    /// Lists the symbolic links, with where they lead.
    pub(crate) fn links(&self) -> impl Iterator<Item = (&str, &str)> {
        let links = self.tree.links.iter();
        links.map(|(link, target)| (link.as_str(), target.as_str()))
    }

    /// Lists what this machine has to build with, where there is no code yet.
    pub(crate) fn choices(&self) -> &[String] {
        &self.tree.project.choices
    }

    /// Returns what a prompt says of it.
    pub(crate) fn told(&self) -> Value {
        let tools = LOOKS_WITH.into_iter();
        json!({
            "tools": tools.filter(|tool| self.tools.contains(tool)).collect::<Vec<_>>(),
            "commit": self.commit.as_str().get(..12),
            "branch": self.branch,
            "digest": self.tree.digest,
            "recent": self.recent,
            "project": bounds::project(tested_once(json!(self.tree.project))),
        })
    }

    /// Returns how many bytes a file has; none where there is none.
    pub(crate) fn bytes_of(&self, path: &RepoPath) -> Option<u64> {
        let mut blobs = self.tree.blobs.iter();
        let found = blobs.find(|blob| blob.path == path.as_str());
        found.map(|blob| blob.bytes)
    }
}

/// Says of the only stack no command by which it may be tested where the gate has one that may run tests: two for the same leave
/// open which one counts. Of several stacks the gate may test one alone, so that what each has is told.
fn tested_once(mut project: Value) -> Value {
    let gate = project["gate"].as_array().into_iter().flatten();
    let is_tested = gate.filter_map(Value::as_str).any(can_count);
    if !is_tested {
        return project;
    }
    let stacks = project["stacks"].as_array_mut().map(Vec::as_mut_slice);
    if let Some([stack]) = stacks
        && let Some((title, _)) = stack.as_str().and_then(|line| line.split_once(TESTED_BY))
    {
        *stack = json!(title);
    }
    project
}

impl Repository {
    /// Reads what `clone` holds, on this machine; models see of it what `rules` let them.
    pub fn new(clone: LocalClone, machine: Machine, rules: CurrentValue<PolicySettings>) -> Self {
        Self {
            pool: CleanPool::for_readers(clone.clone()),
            clone,
            machine,
            versions: Versions::default(),
            rules,
            search: None,
            known: Arc::default(),
        }
    }

    /// Lets models search the web while they look, where there is somebody to do so.
    #[must_use]
    pub fn searching(self, search: Option<Arc<dyn SearchPort>>) -> Self {
        Self { search, ..self }
    }

    /// Returns the local clone.
    pub fn local_clone(&self) -> &LocalClone {
        &self.clone
    }

    /// Looks at the head of the default branch, with the tools of `mode`.
    pub(crate) async fn look(&self, mode: AgentMode) -> Result<Look, AgentError> {
        let head = self
            .clone
            .default_branch_head()
            .await
            .map_err(|error| failure::of_repository(&error))?;
        self.look_at(mode, head.commit, head.branch).await
    }

    /// Looks at `commit`, the head of `branch`, with the tools of `mode`.
    pub(crate) async fn look_at(
        &self,
        mode: AgentMode,
        commit: CommitId,
        branch: Option<String>,
    ) -> Result<Look, AgentError> {
        let reading = self.tools_at(mode, &commit, None).await?;
        let tree = self
            .tree(&commit, reading.checkout.root())
            .await
            .map_err(|error| failure::of_repository(&error))?;
        let all = HistoryPart::default();
        let recent = self.clone.log_lines(&commit, all, COMMITS).await;
        Ok(Look {
            tools: reading.tools,
            branch,
            recent: bounds::commits(&recent.map_err(|error| failure::of_repository(&error))?),
            commit,
            tree,
            _checkout: reading.checkout,
        })
    }

    /// Reads what people wrote at `commit` for whoever works on the repository, as far as it matters to who plans.
    pub(crate) async fn conventions(
        &self,
        commit: &CommitId,
    ) -> Result<Option<FoundConventions>, AgentError> {
        let found = FoundConventions::read(&self.clone, commit).await;
        found.map_err(|error| failure::of_repository(&error))
    }

    /// Lets the tools of `mode` look at `commit`, and at nothing of the folder `without`.
    pub(crate) async fn tools_at(
        &self,
        mode: AgentMode,
        commit: &CommitId,
        without: Option<&RepoPath>,
    ) -> Result<ReadingTools, AgentError> {
        let checkout = self
            .pool
            .acquire(commit)
            .await
            .map_err(|error| failure::of_repository(&error))?;
        if let Some(folder) = without {
            leave_out(&checkout, folder)?;
        }
        let spill = checkout.home().join("spill");
        let bench = Workbench::open(WorkbenchOptions {
            policy: Policy::following(self.rules.clone()),
            search: self.search.clone(),
            egress: self.machine.runner.egress().cloned(),
            history: Some(ReadableHistory {
                clone: self.clone.clone(),
                base: commit.clone(),
                without: without.cloned(),
            }),
            ..WorkbenchOptions::looking(checkout.root().to_owned(), spill)
        });
        let tools = tools_of(mode, &bench.map_err(AgentError::transient)?);
        Ok(ReadingTools {
            tools: tools.map_err(AgentError::permanent)?,
            checkout,
        })
    }

    /// Returns the tree of `commit` with its digest. Made once; after a change only what changed is outlined again.
    async fn tree(&self, commit: &CommitId, checkout: &Path) -> Result<Arc<Tree>, GitError> {
        let id = self.clone.tree_of(commit).await?;
        let known = self.known().tree.clone();
        if let Some(tree) = known.filter(|tree| tree.id == id) {
            return Ok(tree);
        }
        let blobs = self.clone.list_blobs(commit).await?;
        let links = self.clone.list_links(commit).await?;
        let digest = self.digest(commit, &blobs).await?;
        let paths: Vec<&str> = blobs.iter().map(|blob| blob.path.as_str()).collect();
        let machine = (&self.machine, &self.versions);
        let project = Project::read(machine, &self.clone, (commit, checkout), &paths).await?;
        let tree = Arc::new(Tree {
            id,
            blobs,
            links,
            digest,
            project,
        });
        self.known().tree = Some(tree.clone());
        Ok(tree)
    }

    async fn digest(&self, commit: &CommitId, blobs: &[Blob]) -> Result<String, GitError> {
        let files = digest::main_files(blobs);
        let unknown: Vec<&Blob> = {
            let known = self.known();
            let of = |blob: &&&Blob| !known.outlines.contains_key(&blob.id);
            files.iter().filter(of).copied().collect()
        };
        let paths: Vec<&str> = unknown.iter().map(|blob| blob.path.as_str()).collect();
        let contents = self.clone.read_files(commit, &paths).await?;
        let sources: Vec<(String, String, Vec<u8>)> = unknown
            .iter()
            .zip(contents)
            .map(|(blob, content)| {
                (
                    blob.id.clone(),
                    blob.path.clone(),
                    content.unwrap_or_default(),
                )
            })
            .collect();
        // Parsing takes a while and must not hold up everybody else.
        let made = tokio::task::spawn_blocking(move || sources.into_iter().map(outlined).collect())
            .await
            .unwrap_or_else(|_| Vec::new());
        let mut known = self.known();
        if known.outlines.len() > REMEMBERED {
            known.outlines.clear();
        }
        known.outlines.extend(made);
        let outlines: Vec<(&str, Arc<Vec<Symbol>>)> = files
            .iter()
            .filter_map(|blob| Some((blob.path.as_str(), known.outlines.get(&blob.id)?.clone())))
            .collect();
        drop(known);
        let shown: Vec<(&str, &[Symbol])> = outlines
            .iter()
            .map(|(path, symbols)| (*path, symbols.as_slice()))
            .collect();
        Ok(digest::render(blobs, &shown))
    }

    fn known(&self) -> MutexGuard<'_, RepositoryCache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file that cannot be outlined is told by its name alone.
fn outlined((id, path, content): (String, String, Vec<u8>)) -> (String, Arc<Vec<Symbol>>) {
    let symbols = Language::of(&path)
        .and_then(|language| outline(language, &String::from_utf8_lossy(&content)).ok());
    (id, Arc::new(symbols.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::tested_once;

    #[test]
    fn one_command_tests_a_project_where_its_gate_does() {
        const DETECTED: &str = "Python, tested by `python3 -m pytest -q`";
        const WEB: &str = "Go in `web`, tested by `cd web && go test ./...`";
        let rows: [(&[&str], &[&str], &[&str]); 5] = [
            (&[DETECTED], &["python -m pytest -q test"], &["Python"]),
            (&[DETECTED], &["ruff check ."], &[DETECTED]),
            (&[DETECTED], &[], &[DETECTED]),
            (&["Python"], &["python -m pytest -q test"], &["Python"]),
            (
                &[DETECTED, WEB],
                &["python -m pytest -q test"],
                &[DETECTED, WEB],
            ),
        ];
        for (stacks, gate, told) in rows {
            let project = json!({ "stacks": stacks, "gate": gate, "tools": [] });
            let found = tested_once(project);
            assert_eq!(
                found,
                json!({ "stacks": told, "gate": gate, "tools": [] }),
                "{stacks:?} {gate:?}"
            );
        }
    }
}
