//! Checks that tasks form a plan: names are unique, dependencies exist and form no cycle, and each names what it changes.

use std::collections::{BTreeMap, BTreeSet};

use crate::task::TaskBlock;

/// Says why tasks form no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphFault {
    /// Two tasks have one name.
    #[error("task `{0}` occurs twice; give each task its own id")]
    Repeated(String),
    /// A dependency does not exist.
    #[error("task `{task}` depends on `{missing}`, which does not exist; correct its `depends_on`")]
    UnknownDependency {
        /// The task.
        task: String,
        /// What it names.
        missing: String,
    },
    /// Tasks wait for each other.
    #[error("tasks `{}` depend on each other in a cycle; take one out of a `depends_on`", .0.join("` → `"))]
    Cycle(Vec<String>),
    /// A task names a file twice.
    #[error("task `{task}` names `{file}` twice; name each file once")]
    RepeatedFile {
        /// The task.
        task: String,
        /// The file.
        file: String,
    },
    /// A task has no command that could check it.
    #[error("task `{0}` has an empty validation command; say how it is checked")]
    NoCommand(String),
}

impl GraphFault {
    /// Returns the task to look at.
    pub fn task(&self) -> Option<&str> {
        match self {
            Self::Repeated(task)
            | Self::UnknownDependency { task, .. }
            | Self::RepeatedFile { task, .. }
            | Self::NoCommand(task) => Some(task),
            Self::Cycle(tasks) => tasks.first().map(String::as_str),
        }
    }
}

/// Checks `tasks` as one plan; the first fault in their order is the answer.
pub fn check(tasks: &[TaskBlock]) -> Result<(), GraphFault> {
    let mut seen = BTreeSet::new();
    for task in tasks {
        if !seen.insert(&task.id) {
            return Err(GraphFault::Repeated(task.id.to_string()));
        }
        check_alone(task)?;
    }
    for task in tasks {
        if let Some(missing) = task.depends_on.iter().find(|id| !seen.contains(id)) {
            return Err(GraphFault::UnknownDependency {
                task: task.id.to_string(),
                missing: missing.to_string(),
            });
        }
    }
    match cycle(tasks) {
        Some(cycle) => Err(GraphFault::Cycle(cycle)),
        None => Ok(()),
    }
}

/// Returns how many tasks can be in work at once at most: those that need as much before them, one of each file.
pub fn width(tasks: &[TaskBlock]) -> usize {
    let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
    // So often at most does the longest chain grow.
    for _ in tasks {
        for task in tasks {
            let needed = task.depends_on.iter();
            let below = needed.filter_map(|needed| depths.get(needed.as_str()));
            let depth = below.max().map_or(0, |depth| depth + 1);
            depths.insert(task.id.as_str(), depth.min(tasks.len()));
        }
    }
    let mut files: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for task in tasks {
        let depth = depths.get(task.id.as_str()).copied().unwrap_or_default();
        files.entry(depth).or_default().insert(task.file.key());
    }
    files.values().map(BTreeSet::len).max().unwrap_or_default()
}

fn check_alone(task: &TaskBlock) -> Result<(), GraphFault> {
    let name = || task.id.to_string();
    let mut keys = BTreeSet::new();
    if let Some(file) = task.files().find(|file| !keys.insert(file.key())) {
        return Err(GraphFault::RepeatedFile {
            task: name(),
            file: file.to_string(),
        });
    }
    if task.validation.command.trim().is_empty() {
        return Err(GraphFault::NoCommand(name()));
    }
    Ok(())
}

/// Finds a cycle: takes away tasks that wait for nothing left until none is to be taken, then follows one that stays.
fn cycle(tasks: &[TaskBlock]) -> Option<Vec<String>> {
    let mut waiting: BTreeMap<_, BTreeSet<_>> = tasks
        .iter()
        .map(|task| (&task.id, task.depends_on.iter().collect()))
        .collect();
    loop {
        let free: Vec<_> = waiting
            .iter()
            .filter(|(_, needs)| !needs.iter().any(|id| waiting.contains_key(id)))
            .map(|(id, _)| *id)
            .collect();
        if free.is_empty() {
            break;
        }
        for id in free {
            waiting.remove(id);
        }
    }
    // Each that stays needs another that stays, so that following them must come back to where it was.
    let mut path = vec![*waiting.keys().next()?];
    loop {
        let next = *waiting
            .get(path.last()?)?
            .iter()
            .find(|id| waiting.contains_key(*id))?;
        if let Some(start) = path.iter().position(|id| *id == next) {
            let cycle = path.iter().skip(start).chain(std::iter::once(&next));
            return Some(cycle.map(ToString::to_string).collect());
        }
        path.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TaskId;
    use crate::repo_path::RepoPath;
    use crate::task::{Action, Validation};

    fn task(id: &str, needs: &[&str]) -> TaskBlock {
        let (id, file) = (TaskId::parse(id).unwrap(), RepoPath::parse("a").unwrap());
        TaskBlock {
            depends_on: needs.iter().map(|id| TaskId::parse(id).unwrap()).collect(),
            ..TaskBlock::new(id, "api", Action::Create, file, Validation::passes("true"))
        }
    }

    #[test]
    fn a_plan_without_cycles_is_accepted_in_any_order() {
        let plan = [task("c", &["a", "b"]), task("b", &["a"]), task("a", &[])];
        assert_eq!(check(&plan), Ok(()));
        assert_eq!(check(&[]), Ok(()));
    }

    /// Tasks by name, each with those that it needs.
    type Plan = &'static [(&'static str, &'static [&'static str])];

    #[test]
    fn what_needs_as_much_before_it_can_be_in_work_at_once() {
        let plans: [(Plan, usize); 5] = [
            (&[], 0),
            (&[("T-1", &[])], 1),
            (&[("T-3", &["T-2"]), ("T-2", &["T-1"]), ("T-1", &[])], 1),
            (&[("T-1", &[]), ("T-2", &["T-1"]), ("T-3", &["T-1"])], 2),
            (&[("T-1", &[]), ("T-2", &[]), ("T-3", &[])], 3),
        ];
        for (plan, expected) in plans {
            let own = |(id, needs): &(&str, &[&str])| TaskBlock {
                file: crate::RepoPath::parse(&format!("src/{id}.rs")).unwrap(),
                ..task(id, needs)
            };
            let tasks: Vec<TaskBlock> = plan.iter().map(own).collect();
            assert_eq!(width(&tasks), expected, "{plan:?}");
            // Of those that change the same file one is in work.
            let tasks: Vec<TaskBlock> = plan.iter().map(|(id, needs)| task(id, needs)).collect();
            assert_eq!(width(&tasks), expected.min(1), "{plan:?}");
        }
    }

    #[test]
    fn a_cycle_is_named_and_nothing_around_it() {
        let plan = [
            task("a", &["b"]),
            task("b", &["c"]),
            task("c", &["d"]),
            task("d", &["b"]),
            task("e", &[]),
        ];
        let Err(GraphFault::Cycle(cycle)) = check(&plan) else {
            panic!("no cycle found");
        };
        assert_eq!(cycle, ["b", "c", "d", "b"]);
        assert!(matches!(
            check(&[task("a", &["a"])]),
            Err(GraphFault::Cycle(_))
        ));
    }

    #[test]
    fn what_cannot_be_a_plan_names_its_task() {
        let mut twice = task("a", &[]);
        twice.more_files = vec![RepoPath::parse("A").unwrap()];
        let mut unchecked = task("a", &[]);
        unchecked.validation.command = " ".to_owned();
        for (plan, expected) in [
            (vec![task("a", &[]), task("a", &[])], "occurs twice"),
            (vec![task("a", &["z"])], "depends on `z`"),
            (vec![twice], "`A` twice"),
            (vec![unchecked], "empty validation command"),
        ] {
            let fault = check(&plan).unwrap_err();
            assert_eq!(fault.task(), Some("a"));
            assert!(fault.to_string().contains(expected), "{fault}");
        }
    }
}
