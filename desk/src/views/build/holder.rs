//! The builds that keep files from tasks of another one, and what lets those go on.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_coordination::ownership;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::task::{ChangeRequestState, Task, TaskState, WaitReason};
use ropewalk_schemas::{BuildId, Priority, RepoPath, Slug, TaskId};
use ropewalk_store::{ReadError, Store};
use schemars::JsonSchema;
use serde::Serialize;

/// A build whose files tasks of another one wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HolderView {
    /// The build.
    pub build: BuildId,
    /// The idea that it is of.
    pub idea: Slug,
    /// How far it has come.
    pub state: BuildState,
    /// What is waited for.
    pub files: BTreeSet<RepoPath>,
    /// The tasks that wait.
    pub tasks: BTreeSet<TaskId>,
    /// What lets them go on, in words that name the verbs.
    pub next: String,
}

impl HolderView {
    /// Says in a line who waits for what of whom, and what lets that go on.
    pub fn in_words(&self) -> String {
        let tasks: Vec<&str> = self.tasks.iter().map(TaskId::as_str).collect();
        let files: Vec<String> = self.files.iter().map(|file| format!("`{file}`")).collect();
        let wait = if tasks.len() == 1 { "waits" } else { "wait" };
        let (tasks, files) = (tasks.join(", "), files.join(", "));
        let Self {
            build,
            idea,
            state,
            next,
            ..
        } = self;
        format!(
            "{tasks} {wait} for {files}, which build {build} of `{idea}` owns, and that is {state}; {next}"
        )
    }
}

/// Lists the builds whose files some `tasks` of `build` wait for.
pub async fn awaited(
    store: &Store,
    build: &Build,
    tasks: &[Task],
) -> Result<Vec<HolderView>, ReadError> {
    let waits = |task: &&Task| {
        task.state == TaskState::Waiting && task.waiting_for == Some(WaitReason::Owner)
    };
    let mut holders: BTreeMap<BuildId, HolderView> = BTreeMap::new();
    for task in tasks.iter().filter(waits) {
        for file in wanted(task) {
            let Some(owner) = ownership::owner_of(store, file).await? else {
                continue;
            };
            if !owner.keeps_from(build.id) {
                continue;
            }
            let holder = ownership::successor_of(store, owner.row.build).await?;
            let Some(holder) = holder.filter(|holder| holder.id != build.id) else {
                continue;
            };
            let view = holders.entry(holder.id).or_insert_with(|| HolderView {
                build: holder.id,
                idea: holder.idea.clone(),
                state: holder.state,
                files: BTreeSet::new(),
                tasks: BTreeSet::new(),
                next: next(&holder, build),
            });
            view.files.insert(file.clone());
            view.tasks.insert(task.id.clone());
        }
    }
    Ok(holders.into_values().collect())
}

/// Lists the files that a task changes, and those that it asked owners for while it was worked on.
fn wanted(task: &Task) -> BTreeSet<&RepoPath> {
    let asked = task.change_requests.iter();
    let asked = asked.filter(|request| request.state == ChangeRequestState::Requested);
    let asked = asked.map(|request| &request.file);
    task.block.files().chain(asked).collect()
}

/// Says what ends the wait of `waiter` for `holder`: that goes on, or is given up, or has to give way.
fn next(holder: &Build, waiter: &Build) -> String {
    let (build, idea) = (holder.id, &holder.idea);
    let goes_on = if holder.rests() {
        format!("resume build {build}, which does not go on by itself")
    } else if holder.state == BuildState::Succeeded {
        format!("land build {build}")
    } else {
        "it goes on once that has landed".to_owned()
    };
    let given_up = if *idea == waiter.idea {
        // With the idea this build would end, too.
        format!("stop build {}, if that one is what you want", waiter.id)
    } else {
        format!("abandon the idea `{idea}`, which frees them")
    };
    let given = more_urgent(holder.priority, waiter.priority).map(|priority| {
        let priority = priority.get();
        format!(
            ", or give build {} the priority {priority}, which brings them over with what was landed there",
            waiter.id
        )
    });
    format!("{goes_on}, or {given_up}{}", given.unwrap_or_default())
}

/// Returns the priority by which a build gets what one of `holders` priority owns: the one that it has where that is urgent enough.
fn more_urgent(holders: Priority, own: Priority) -> Option<Priority> {
    // 1 is the most urgent.
    let least = holders.get().checked_sub(1)?;
    Priority::new(least.min(own.get())).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn build(number: u128, idea: &str, state: &str, priority: u8) -> Build {
        let id = format!("00000000-0000-0000-0000-{number:012x}");
        let build = json!({
            "id": id, "spec": id, "revision": 1, "hash": "0".repeat(64), "idea": idea, "user": "ada", "state": state,
            "pause_requested": false, "branch": "build/walks", "target": "main", "priority": priority,
            "working_ms": 0, "correlation_id": id, "created_at": "2026-03-01T08:00:00Z",
        });
        serde_json::from_value(build).unwrap()
    }

    #[test]
    fn each_holder_that_stands_still_is_named_with_the_verbs_that_end_the_wait() {
        let own = build(2, "walks", "running", 5);
        let resume = "resume build 00000000-0000-0000-0000-000000000001";
        let rows = [
            (
                "stopped",
                "walks",
                resume,
                "stop build 00000000-0000-0000-0000-000000000002",
            ),
            ("failed", "rivers", resume, "abandon the idea `rivers`"),
            ("paused", "rivers", resume, "abandon the idea `rivers`"),
            (
                "succeeded",
                "rivers",
                "land build 0",
                "abandon the idea `rivers`",
            ),
            (
                "running",
                "rivers",
                "once that has landed",
                "abandon the idea `rivers`",
            ),
        ];
        for (state, idea, goes_on, ends) in rows {
            let told = next(&build(1, idea, state, 5), &own);
            for part in [goes_on, ends, "the priority 4"] {
                assert!(told.contains(part), "{state}: no {part}: {told}");
            }
        }
        let urgent = next(&build(1, "rivers", "stopped", 1), &own);
        assert!(!urgent.contains("priority"), "{urgent}");
    }

    #[test]
    fn the_priority_that_is_named_is_more_urgent_than_that_of_the_holder() {
        let priority = |number: u8| Priority::new(number).unwrap();
        for (holders, own, expected) in [
            (5, 5, Some(4)),
            (5, 2, Some(2)),
            (2, 9, Some(1)),
            (1, 1, None),
        ] {
            let found = more_urgent(priority(holders), priority(own));
            assert_eq!(found.map(Priority::get), expected, "{holders}, {own}");
        }
    }
}
