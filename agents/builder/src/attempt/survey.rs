//! Tells which tools a build finds on this machine, once for all attempts at it.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ropewalk_gate::project::{Machine, Project, Versions};
use ropewalk_schemas::CommitId;
use ropewalk_workspace::{GitError, LocalClone};

/// So many base commits are remembered; beyond that all are looked at anew.
const REMEMBERED: usize = 16;

/// Knows the tools of the base commits that were asked for.
pub(crate) struct Survey {
    machine: Machine,
    versions: Versions,
    known: Mutex<Vec<(CommitId, Vec<String>)>>,
}

impl Survey {
    /// Knows nothing yet.
    pub(crate) fn new(machine: Machine) -> Self {
        Self {
            machine,
            versions: Versions::default(),
            known: Mutex::default(),
        }
    }

    /// Lists the tools of the stacks at `base` that this machine has; they are asked for their versions in `directory`.
    pub(super) async fn tools(
        &self,
        clone: &LocalClone,
        base: &CommitId,
        directory: &Path,
    ) -> Result<Vec<String>, GitError> {
        let known = |known: &[(CommitId, Vec<String>)]| {
            let found = known.iter().find(|(commit, _)| commit == base);
            found.map(|(_, tools)| tools.clone())
        };
        let remembered = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tools) = known(&remembered()) {
            return Ok(tools);
        }
        let files = clone.list_files(base, "").await?;
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let machine = (&self.machine, &self.versions);
        let project = Project::read(machine, clone, (base, directory), &paths).await?;
        let mut all = remembered();
        if all.len() >= REMEMBERED {
            all.clear();
        }
        all.push((base.clone(), project.tools.clone()));
        Ok(project.tools)
    }
}
