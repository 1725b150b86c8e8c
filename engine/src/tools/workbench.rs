//! Is what the tools of one attempt share: the files, who may write which, and what was read.

mod known;
mod turns;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use ropewalk_schemas::{CommitId, RepoPath};
use ropewalk_workspace::sandbox::egress::Egress;
use ropewalk_workspace::{CommandRunner, Environment, LocalClone, PathError, SlotFiles};

use super::asker::Asker;
use super::file_grants::{FileGrants, is_test};
use super::web::SearchPort;
use crate::policy::Policy;
use crate::tool::{CacheBounds, ToolFailure};
use known::{FileKnowledge, FileState};
use turns::Turn;

/// The longest file that a tool reads or changes.
pub(super) const LONGEST_FILE_BYTES: u64 = 10 * 1024 * 1024;

/// Says where and how the tools of one attempt work.
pub struct WorkbenchOptions {
    /// The slot: all paths are relative to it.
    pub root: PathBuf,
    /// The files that may be written from the start.
    pub writable: Vec<RepoPath>,
    /// Files of the gate, which are never granted.
    pub gate_files: Vec<RepoPath>,
    /// The folder of the plan that is worked off, of which nothing is granted.
    pub plan_folder: Option<RepoPath>,
    /// Judges what is done here, beside what the work bounds.
    pub policy: Policy,
    /// Runs the commands of `bash`.
    pub runner: CommandRunner,
    /// Variables that the commands of `bash` get beside the allowed ones.
    pub variables: Vec<(String, String)>,
    /// Grants more files; without it there is no `request_file`.
    pub grants: Option<Arc<dyn FileGrants>>,
    /// Brings questions to a person; without it there is no `ask`.
    pub asker: Option<Arc<dyn Asker>>,
    /// Searches the web; without it there is no `web_search`.
    pub search: Option<Arc<dyn SearchPort>>,
    /// Leads to the hosts whose pages may be read; without it there is no `web_fetch`.
    pub egress: Option<Egress>,
    /// The history that may be looked up; without it there is no `history`.
    pub history: Option<ReadableHistory>,
    /// Bounds what of an earlier look around is told again.
    pub cache: CacheBounds,
    /// Where the commands of `bash` write down what is no part of the work; they find it by `TMPDIR`.
    pub scratch: Option<PathBuf>,
    /// Keeps the full text of outputs that were cut; outside the slot.
    pub spill_directory: PathBuf,
}

impl WorkbenchOptions {
    /// Sets up a bench on which nothing may be written.
    pub fn looking(root: PathBuf, spill_directory: PathBuf) -> Self {
        Self {
            root,
            writable: Vec::new(),
            gate_files: Vec::new(),
            plan_folder: None,
            policy: Policy::default(),
            runner: CommandRunner::new(Environment::default()),
            variables: Vec::new(),
            grants: None,
            asker: None,
            search: None,
            egress: None,
            history: None,
            cache: CacheBounds::default(),
            scratch: None,
            spill_directory,
        }
    }
}

/// The history that a job may look up.
#[derive(Clone)]
pub struct ReadableHistory {
    /// The repository.
    pub clone: LocalClone,
    /// The commit behind which it lies.
    pub base: CommitId,
    /// A directory of which nothing is told.
    pub without: Option<RepoPath>,
}

/// Is what the tools of one attempt share. Cheap to clone.
#[derive(Clone)]
pub struct Workbench(Arc<Inner>);

struct Inner {
    files: SlotFiles,
    options: WorkbenchOptions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    writable: Vec<RepoPath>,
    granted: Vec<RepoPath>,
    known: FileKnowledge,
    asked: u32,
}

impl Workbench {
    /// Opens the slot.
    pub fn open(options: WorkbenchOptions) -> Result<Self, PathError> {
        let state = State {
            writable: options.writable.clone(),
            ..State::default()
        };
        Ok(Self(Arc::new(Inner {
            files: SlotFiles::open(&options.root)?,
            state: Mutex::new(state),
            options,
        })))
    }

    /// Lists the files that were granted on request.
    pub fn granted(&self) -> Vec<RepoPath> {
        self.state().granted.clone()
    }

    /// Returns the files of the slot.
    pub(super) fn files(&self) -> &SlotFiles {
        &self.0.files
    }

    /// Returns how it was set up.
    pub(super) fn options(&self) -> &WorkbenchOptions {
        &self.0.options
    }

    /// Returns who grants more files.
    pub(super) fn grants(&self) -> Option<Arc<dyn FileGrants>> {
        self.0.options.grants.clone()
    }

    /// Returns who brings questions to a person.
    pub(super) fn asker(&self) -> Option<Arc<dyn Asker>> {
        self.0.options.asker.clone()
    }

    /// Counts a question; the first is 1.
    pub(super) fn asks(&self) -> u32 {
        let mut state = self.state();
        state.asked += 1;
        state.asked
    }

    /// Takes nothing for read any more.
    pub(super) fn forget(&self) {
        self.state().known = FileKnowledge::default();
    }

    /// Takes these files for read no more.
    pub(super) fn forget_files(&self, files: &[String]) {
        let mut state = self.state();
        for file in files {
            state.known.forget(file);
        }
    }

    /// Returns where the full text of cut outputs goes.
    pub(super) fn spill_directory(&self) -> PathBuf {
        self.0.options.spill_directory.clone()
    }

    /// Lets files be written from now on.
    pub(super) fn grant(&self, files: &[RepoPath]) {
        let mut state = self.state();
        for file in files {
            state.writable.push(file.clone());
            state.granted.push(file.clone());
        }
    }

    /// Says whether a file may be written.
    pub(super) fn may_write(&self, path: &RepoPath) -> bool {
        self.state().writable.contains(path)
    }

    /// Reads a file; none when there is nothing.
    pub(super) fn read(&self, path: &RepoPath) -> Result<Option<Vec<u8>>, ToolFailure> {
        self.files()
            .read_file(path, LONGEST_FILE_BYTES)
            .map_err(|error| refused(&error))
    }

    /// Waits until nobody else in this process changes one of `files`. Nothing that is to be true until they are written
    /// may be looked at before.
    pub(super) fn turn<'a>(&self, files: impl IntoIterator<Item = &'a RepoPath>) -> Turn {
        let root = self.files().root();
        Turn::take(files.into_iter().map(|file| root.join(file.key())))
    }

    /// Writes a file that may be written, and remembers it as known; says whether it holds something else now.
    pub(super) fn write(&self, path: &RepoPath, content: &[u8]) -> Result<bool, ToolFailure> {
        // What is too long to be read holds something else.
        let before = self.read(path).ok().flatten();
        self.files()
            .write_file(path, content)
            .map_err(|error| refused(&error))?;
        self.saw(path, content);
        Ok(before.as_deref() != Some(content))
    }

    /// Puts back what a file held, and nothing where it was not there.
    pub(super) fn restore(
        &self,
        path: &RepoPath,
        before: Option<&[u8]>,
    ) -> Result<(), ToolFailure> {
        let put = match before {
            Some(content) => self.files().write_file(path, content),
            None => self.files().remove_file(path).map(drop),
        };
        put.map_err(|error| refused(&error))?;
        match before {
            Some(content) => self.saw(path, content),
            None => self.forget_files(&[path.to_string()]),
        }
        Ok(())
    }

    /// Lists the directories above a file that are not there, the outermost first.
    pub(super) fn absent_above(&self, path: &RepoPath) -> Vec<RepoPath> {
        let path = path.as_str();
        let above = path.match_indices('/').map(|(end, _)| &path[..end]);
        let above = above.filter_map(|directory| RepoPath::parse(directory).ok());
        above
            .filter(|directory| matches!(self.files().kind(directory), Ok(None)))
            .collect()
    }

    /// Refuses a file that may not be written, or that the model does not know as it is now.
    pub(super) fn admit_write(&self, path: &RepoPath) -> Result<(), ToolFailure> {
        if !self.may_write(path) {
            let hint = if self.0.options.grants.is_none() {
                ""
            } else if is_test(path.as_str()) {
                "; make the code pass it as it is, or ask for it with `request_file` if the task makes what it says untrue"
            } else {
                "; ask for it with `request_file` if the task cannot be done without"
            };
            return Err(ToolFailure::refused(format!(
                "`{path}` is not one of the files of this task{hint}"
            )));
        }
        let Some(modified) = self.modified(path) else {
            return Ok(());
        };
        let known = self.state().known.of(path.as_str()).cloned();
        let Some(known) = known else {
            return Err(ToolFailure::refused(format!(
                "`{path}` exists and was not read yet; read it first"
            )));
        };
        let content = self.read(path).ok().flatten();
        let is_still =
            content.is_some_and(|content| known.is_still(&FileState::of(modified, &content)));
        if is_still {
            Ok(())
        } else {
            Err(ToolFailure::refused(format!(
                "`{path}` was changed since it was read; re-read it first"
            )))
        }
    }

    /// Remembers that the model knows that a file holds `content`.
    pub(super) fn saw(&self, path: &RepoPath, content: &[u8]) {
        if let Some(modified) = self.modified(path) {
            let stand = FileState::of(modified, content);
            self.state().known.remember(path.as_str(), stand);
        }
    }

    fn modified(&self, path: &RepoPath) -> Option<SystemTime> {
        self.stamp(path).map(|(modified, _)| modified)
    }

    /// Returns when what is at `path` was written, and its size in bytes; none where nothing is.
    pub(super) fn stamp(&self, path: &RepoPath) -> Option<(SystemTime, u64)> {
        let file = self.files().root().join(path.as_str());
        let metadata = std::fs::symlink_metadata(file).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the model why a file cannot be used, with the cause.
pub(super) fn refused(error: &PathError) -> ToolFailure {
    let cause = std::error::Error::source(error).map(|source| format!(": {source}"));
    ToolFailure::Refused(format!("{error}{}", cause.unwrap_or_default()))
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::known::REMEMBERED;
    use super::*;
    use crate::tool::{Tool, ToolContext, ToolOutput};
    use crate::tools::edit::Edit;
    use crate::tools::read::Read;
    use crate::tools::write::Write;
    use serde_json::Value;

    /// Is a slot in a temporary directory, for the tests of tools.
    pub(crate) struct Bench {
        pub(crate) directory: tempfile::TempDir,
        pub(crate) workbench: Workbench,
    }

    impl Bench {
        /// Makes a slot with files and lets some be written.
        pub(crate) fn new(files: &[(&str, &str)], writable: &[&str]) -> Self {
            Self::with(files, writable, None)
        }

        /// Makes a slot whose attempt may ask for more files.
        pub(crate) fn with(
            files: &[(&str, &str)],
            writable: &[&str],
            grants: Option<Arc<dyn FileGrants>>,
        ) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path().join("slot");
            for (path, content) in files {
                let file = root.join(path);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, content).unwrap();
            }
            std::fs::create_dir_all(&root).unwrap();
            let spill = directory.path().join("spill");
            let workbench = Workbench::open(WorkbenchOptions {
                writable: writable.iter().map(|path| repo_path(path)).collect(),
                gate_files: vec![repo_path("check.sh")],
                plan_folder: Some(repo_path("ideas/walks")),
                runner: CommandRunner::new(Environment::from_pairs([(
                    "PATH",
                    "/usr/local/bin:/usr/bin:/bin",
                )])),
                variables: vec![("ADDED".to_owned(), "yes".to_owned())],
                grants,
                ..WorkbenchOptions::looking(root, spill)
            })
            .unwrap();
            Self {
                directory,
                workbench,
            }
        }

        /// Opens the slot for another agent.
        pub(crate) fn beside(&self, writable: &[&str]) -> Workbench {
            let root = self.directory.path().join("slot");
            Workbench::open(WorkbenchOptions {
                writable: writable.iter().map(|path| repo_path(path)).collect(),
                ..WorkbenchOptions::looking(root, self.directory.path().join("spill"))
            })
            .unwrap()
        }

        /// Runs a tool, an error as a refused output.
        pub(crate) async fn run(&self, tool: &dyn Tool, arguments: Value) -> ToolOutput {
            run(tool, arguments).await
        }

        /// Reads a file of the slot past the tools.
        pub(crate) fn content(&self, path: &str) -> Option<String> {
            std::fs::read_to_string(self.directory.path().join("slot").join(path)).ok()
        }

        /// Moves the time of a file, as a change by somebody else would.
        pub(crate) fn touch(&self, path: &str, later: Duration) {
            let file = std::fs::File::options()
                .append(true)
                .open(self.directory.path().join("slot").join(path))
                .unwrap();
            let modified = file.metadata().unwrap().modified().unwrap();
            file.set_modified(modified + later).unwrap();
        }
    }

    /// Runs a tool, an error as a refused output.
    async fn run(tool: &dyn Tool, arguments: Value) -> ToolOutput {
        let context = ToolContext::of_test();
        match tool.execute(arguments, &context).await {
            Ok(output) => output,
            Err(ToolFailure::Refused(reason)) => ToolOutput::error(reason),
            Err(ended) => panic!("{ended}"),
        }
    }

    pub(crate) fn repo_path(text: &str) -> RepoPath {
        RepoPath::parse(text).unwrap()
    }

    #[test]
    fn only_the_last_five_hundred_files_are_remembered_as_read() {
        let names: Vec<String> = (0..=REMEMBERED)
            .map(|number| format!("f{number}"))
            .collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        let writable: Vec<&str> = names.iter().map(String::as_str).collect();
        let bench = Bench::new(&files, &writable);
        for name in &names {
            bench.workbench.saw(&repo_path(name), b"");
        }
        assert!(bench.workbench.admit_write(&repo_path("f0")).is_err());
        assert!(bench.workbench.admit_write(&repo_path("f1")).is_ok());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn two_agents_change_one_file_one_after_the_other_and_the_second_reads_it_again() {
        let bench = Bench::new(&[("a", "0\n")], &["a"]);
        let other = bench.beside(&["a"]);
        for round in 0..50 {
            let content = format!("{round}\n");
            let call = |agent: &str| {
                let new = format!("{agent} of {round}\n");
                serde_json::json!({ "path": "a", "old_text": content, "new_text": new })
            };
            let edit = |workbench: &Workbench, agent| {
                let (workbench, call) = (workbench.clone(), call(agent));
                tokio::task::spawn_blocking(move || {
                    futures::executor::block_on(run(&Edit::new(workbench), call))
                })
            };
            let read = async |workbench: &Workbench| {
                run(
                    &Read::new(workbench.clone()),
                    serde_json::json!({ "path": "a" }),
                )
                .await
            };
            read(&bench.workbench).await;
            read(&other).await;
            let (one, two) = tokio::join!(edit(&bench.workbench, "one"), edit(&other, "two"));
            let (one, two) = (one.unwrap(), two.unwrap());
            let (first, late) = if one.is_error {
                ("two", &one)
            } else {
                ("one", &two)
            };
            assert!(one.is_error != two.is_error, "{one:?} {two:?}");
            assert!(late.text.contains("re-read it first"), "{}", late.text);
            let left = bench.content("a").unwrap();
            assert_eq!(left, format!("{first} of {round}\n"));
            let late = if first == "one" {
                &other
            } else {
                &bench.workbench
            };
            read(late).await;
            let next = serde_json::json!({ "path": "a", "content": format!("{}\n", round + 1) });
            let written = run(&Write::new(late.clone()), next).await;
            assert!(!written.is_error, "{}", written.text);
        }
    }

    #[test]
    fn a_file_is_writable_in_every_spelling_that_names_it_and_no_other_is() {
        let bench = Bench::new(&[], &["src/lib.rs"]);
        assert!(bench.workbench.may_write(&repo_path("./src//lib.rs")));
        assert!(!bench.workbench.may_write(&repo_path("SRC/lib.rs")));
        assert!(!bench.workbench.may_write(&repo_path("src/main.rs")));
    }
}
