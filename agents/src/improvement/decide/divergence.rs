//! Finds where a build differs from its plan, and classes the differences.

use std::collections::BTreeSet;

use ropewalk_schemas::TaskId;
use ropewalk_schemas::clip;
use ropewalk_schemas::review::{Divergence, DivergenceClass};
use ropewalk_schemas::task::{Action, TaskState};
use ropewalk_workspace::{ChangeKind, ChangedFile};

/// Where the folders of ideas lie, which are no work.
pub const IDEAS: &str = "ideas/";

/// So much is told of what is wanted of a task.
const PLANNED_LETTERS: usize = 120;

/// What is said of the plan where there is none.
const UNPLANNED: &str = "no task names the file";

/// What a task was to do, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedTask {
    /// The task.
    pub task: TaskId,
    /// What it does to its primary file.
    pub action: Action,
    /// Its primary file, then the others.
    pub files: Vec<String>,
    /// What it must fulfil, in one line.
    pub text: String,
    /// How it ended.
    pub state: TaskState,
    /// Why it ended so.
    pub reason: String,
    /// Who left it out, where a word was about itself.
    pub skipped_by: Option<String>,
    /// Whether this build need not answer for it: the one before does, in which it landed, or one after, which ended this one early,
    /// or nobody, since a person ended this one before it was begun.
    pub elsewhere: bool,
    /// Files that it was given on request.
    pub granted: Vec<String>,
}

/// Compares the plan with what changed: additions, omissions, modifications.
pub fn divergences(plan: &[PlannedTask], actual: &[ChangedFile]) -> Vec<Divergence> {
    let mut found: Vec<Divergence> = plan
        .iter()
        .filter(|task| !task.elsewhere)
        .flat_map(|task| match task.state {
            TaskState::Complete => changed_otherwise(task, actual),
            _ => vec![left_out(task)],
        })
        .collect();
    found.extend(actual.iter().filter_map(|change| addition(plan, change)));
    found
}

fn left_out(task: &PlannedTask) -> Divergence {
    let on_purpose = task.state == TaskState::Skipped;
    let class = if on_purpose {
        DivergenceClass::IntentionalSkip
    } else {
        DivergenceClass::MissedRequirement
    };
    Divergence {
        class,
        file: task.files.first().cloned(),
        task: Some(task.task.clone()),
        requirement: None,
        planned: task
            .files
            .first()
            .map_or_else(String::new, |file| planned(task, file)),
        actual: ended(task),
    }
}

/// Says how a task ended, by whom where it was left out, and why.
fn ended(task: &PlannedTask) -> String {
    let by = task.skipped_by.as_ref();
    let by = by.map_or_else(String::new, |by| format!(" by {by}"));
    format!("{}{by}: {}", task.state, task.reason)
}

/// Names a file of a task, and how what is wanted of the task begins.
fn planned(task: &PlannedTask, file: &str) -> String {
    match clip::line(&task.text, PLANNED_LETTERS) {
        text if text.is_empty() => format!("`{file}`"),
        text => format!("`{file}`, for {text}"),
    }
}

/// Lists how a task that landed did something else to its files than was planned.
fn changed_otherwise(task: &PlannedTask, actual: &[ChangedFile]) -> Vec<Divergence> {
    if task.action == Action::Verify {
        return Vec::new();
    }
    let of = |file: &str| {
        actual
            .iter()
            .find(|change| change.path == file)
            .map(|change| change.kind)
    };
    let difference = |class, file: &str, told: &str| Divergence {
        class,
        file: Some(file.to_owned()),
        task: Some(task.task.clone()),
        requirement: None,
        planned: planned(task, file),
        actual: told.to_owned(),
    };
    let mut files = task.files.iter();
    let primary = files.next().and_then(|file| {
        let told = match (task.action, of(file)) {
            (_, None) => {
                let class = DivergenceClass::MissedRequirement;
                return Some(difference(class, file, "the file is as it was"));
            }
            (Action::Create, Some(ChangeKind::Modified)) => {
                "the file was there already and was changed"
            }
            (Action::Update, Some(ChangeKind::Added)) => "the file was not there and was made",
            (Action::Create | Action::Update | Action::Add, Some(ChangeKind::Deleted)) => {
                "the file was removed"
            }
            (Action::Delete, Some(ChangeKind::Added | ChangeKind::Modified)) => {
                "the file is still there"
            }
            _ => return None,
        };
        Some(difference(DivergenceClass::Deviation, file, told))
    });
    let others = files.filter(|file| of(file).is_none()).map(|file| {
        // A further file is offered, not demanded: a task that lands without it has chosen so.
        difference(
            DivergenceClass::IntentionalSkip,
            file,
            "the file was not needed",
        )
    });
    primary.into_iter().chain(others).collect()
}

/// Classes a changed file that no task names.
fn addition(plan: &[PlannedTask], change: &ChangedFile) -> Option<Divergence> {
    let named = plan.iter().any(|task| task.files.contains(&change.path));
    if named || is_product(&change.path) {
        return None;
    }
    let granted = plan.iter().find(|task| task.granted.contains(&change.path));
    let beneficial = granted.is_some() || is_test_or_document(&change.path);
    Some(Divergence {
        class: if beneficial {
            DivergenceClass::Enhancement
        } else {
            DivergenceClass::ScopeCreep
        },
        file: Some(change.path.clone()),
        task: granted.map(|task| task.task.clone()),
        requirement: None,
        planned: UNPLANNED.to_owned(),
        actual: match change.kind {
            ChangeKind::Added => "the file was added".to_owned(),
            ChangeKind::Modified => "the file was changed".to_owned(),
            ChangeKind::Deleted => "the file was removed".to_owned(),
        },
    })
}

/// A lock file follows its manifest; the idea folder travels with every build.
fn is_product(path: &str) -> bool {
    const LOCKS: [&str; 9] = [
        "Cargo.lock",
        "package-lock.json",
        "pnpm-lock.yaml",
        "yarn.lock",
        "bun.lock",
        "poetry.lock",
        "uv.lock",
        "go.sum",
        "Gemfile.lock",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    path.starts_with(IDEAS) || LOCKS.contains(&name)
}

fn is_test_or_document(path: &str) -> bool {
    let plain = path.to_lowercase();
    let name = plain.rsplit('/').next().unwrap_or(&plain);
    let in_directory = |names: &[&str]| plain.split('/').any(|part| names.contains(&part));
    in_directory(&["tests", "test", "__tests__", "docs"])
        || ["_test.", ".test.", ".spec.", "test_"]
            .iter()
            .any(|part| name.contains(part))
        || std::path::Path::new(name)
            .extension()
            .is_some_and(|ending| ending == "md")
}

/// Adds what a model saw. Where it speaks of a file that a rule has classed, its class and words count: it has read
/// the change. A failed or skipped task stays what it is.
pub fn interpreted(found: Vec<Divergence>, seen: Vec<Divergence>) -> Vec<Divergence> {
    let files: BTreeSet<String> = seen.iter().filter_map(|one| one.file.clone()).collect();
    found
        .into_iter()
        .filter(|one| {
            let spoken_of = one.file.as_ref().is_some_and(|file| files.contains(file));
            !(spoken_of && one.planned == UNPLANNED)
        })
        .chain(seen)
        .collect()
}

#[cfg(test)]
mod tests;
