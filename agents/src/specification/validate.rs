//! Checks a specification before anybody reads it: what it says, what its tasks say, and how they fit together.
//!
//! Every fault is told at once, with a way to mend it: a model that hears of one at a time is asked for the whole anew
//! each time.

mod document;
mod files;
mod stack;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_schemas::specification::{Complexity, Document};
use ropewalk_schemas::task::TaskBlock;
use ropewalk_schemas::{GlobPattern, RepoPath, RequirementId, TaskId};

use super::standing::BaseBuild;

pub use stack::{EmptyRepository, brings_code, unchosen};

/// A small idea is so many slices at most; each more has a reason.
const SLICES: usize = 3;

/// What a specification is checked against.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The title of the idea.
    pub title: String,
    /// The keys of the files at the head of the repository; none where nobody has looked, and then nothing is said about
    /// what is there.
    pub existing: Option<BTreeSet<String>>,
    /// What the symbolic links at the head lead to, by the key of their path.
    pub links: BTreeMap<String, String>,
    /// The folder of the idea, which travels with the code and is written by nobody else.
    pub idea_folder: Option<RepoPath>,
    /// The phases of the stack, in order.
    pub phases: Vec<String>,
    /// Whether the idea is small by its kind: a fix, a feature or a tool.
    pub small: bool,
    /// How much was asked for.
    pub complexity: Option<Complexity>,
    /// Files that change whenever certain others are made.
    pub shared: Vec<SharedFile>,
    /// Whether checks run in a shell that does not tell how the members of a pipeline fared.
    pub no_pipelines: bool,
    /// Whether the project describes how a test runner of its own speaks.
    pub own_runner: bool,
    /// Numbers of migrations that are taken, by directory.
    pub migrations: BTreeMap<String, BTreeSet<u32>>,
    /// The package managers that may install something.
    pub installers: Vec<String>,
    /// What is known of the repository where it holds no code yet.
    pub empty: Option<EmptyRepository>,
    /// What was built of an earlier revision.
    pub standing: Option<BaseBuild>,
    /// The requirements whose place others may take: those of the revision before, and those that they replaced.
    pub replaceable: BTreeSet<RequirementId>,
}

impl Facts {
    /// Returns whether a file is known to be at the head of the repository.
    fn has(&self, file: &RepoPath) -> bool {
        let existing = self.existing.as_ref();
        existing.is_some_and(|existing| existing.contains(&file.key()))
    }

    /// Returns whether a file is known not to be there.
    fn lacks(&self, file: &RepoPath) -> bool {
        self.existing.is_some() && !self.has(file)
    }

    /// Lists the tasks of a plan that are done already and stay as they are.
    pub fn kept(&self, document: &Document, tasks: &[TaskBlock]) -> BTreeSet<TaskId> {
        let standing = self.standing.as_ref();
        standing.map_or_else(BTreeSet::new, |standing| standing.kept(document, tasks))
    }
}

/// A file that changes whenever certain others are made, such as a router.
#[derive(Debug, Clone)]
pub struct SharedFile {
    /// The file.
    pub path: RepoPath,
    /// Those after which it changes.
    pub after: GlobPattern,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// What must be mended, in words for the model.
    pub errors: Vec<String>,
    /// What people should know.
    pub warnings: Vec<String>,
}

impl Findings {
    fn fault(&mut self, text: impl Into<String>) {
        self.errors.push(text.into());
    }

    fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }
}

/// Checks a specification.
pub fn check(document: &Document, tasks: &[TaskBlock], facts: &Facts) -> Findings {
    let mut findings = check_parts(Some(document), tasks, facts);
    document::check_against_tasks(document, tasks, &mut findings);
    tasks::check_together(tasks, &mut findings);
    files::check(document, tasks, facts, &mut findings);
    check_size(tasks.len(), facts.complexity, &mut findings);
    let kept = facts.kept(document, tasks);
    tasks::check_counts(tasks, &kept, &mut findings);
    if facts.small {
        let new = tasks.iter().filter(|task| !kept.contains(&task.id));
        check_reasons(&new.collect::<Vec<_>>(), &mut findings);
    }
    findings
}

/// Checks what could be read of a draft, each part by itself: what the rest says is not known.
pub fn check_parts(document: Option<&Document>, tasks: &[TaskBlock], facts: &Facts) -> Findings {
    let mut findings = Findings::default();
    if let Some(document) = document {
        document::check(document, facts, &mut findings);
    }
    for task in tasks {
        tasks::check(task, facts, &mut findings);
    }
    findings
}

fn check_size(count: usize, complexity: Option<Complexity>, findings: &mut Findings) {
    let Some(complexity) = complexity else { return };
    let most = most_tasks(complexity);
    if count > most {
        findings.warn(format!(
            "{count} tasks were planned; {most} is the most that this complexity usually needs"
        ));
    }
}

/// Warns of more slices than a small idea needs, where nothing says what they are worth.
fn check_reasons(tasks: &[&TaskBlock], findings: &mut Findings) {
    let more = tasks.len().saturating_sub(SLICES);
    let reasoned = tasks.iter().filter(|task| task.notes.is_some()).count();
    if reasoned < more {
        findings.warn(format!(
            "{} tasks were planned for a small idea, which is one to {SLICES}, and the notes of {reasoned} say why: whether they go on side by side, have owners of their own, or carry a risk",
            tasks.len()
        ));
    }
}

/// Returns how many tasks a plan has at most where nothing speaks for more: an idea that is small by its kind is one whatever was
/// asked for.
pub fn usual_tasks(complexity: Complexity, small: bool) -> usize {
    let most = most_tasks(complexity);
    if small { most.min(SLICES) } else { most }
}

/// Returns how many tasks a plan of this size has at most; the fewest that can be checked apart are the best.
const fn most_tasks(complexity: Complexity) -> usize {
    match complexity {
        Complexity::Simple => 8,
        Complexity::Medium => 15,
        Complexity::Complex => 30,
    }
}

#[cfg(test)]
pub(super) mod tests;
