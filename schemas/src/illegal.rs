//! Says what cannot be asked of builds and tasks as they stand: the verbs of people and the machines of the build agent
//! hold to the same, so that a refusal reaches who asks before anything is recorded.

use crate::build::{Build, BuildState, StopCause};
use crate::task::{ChangeRequest, ChangeRequestState, Task, TaskState, WaitReason};

/// So many words wait at most for the next turn of a model (LOOP-8 of the capability list).
const MOST_UNHEARD: usize = 10;

/// Says that a state has no use for what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", self.what(), advice(.instead.as_deref()))]
pub struct IllegalRequest {
    /// The task or the build.
    pub of: String,
    /// The state it is in.
    pub state: &'static str,
    /// What was wanted of it.
    pub wish: &'static str,
    /// What can be done instead.
    pub instead: Option<String>,
}

impl IllegalRequest {
    /// Says what a task cannot do.
    pub fn of_task(task: &Task, wish: &'static str, instead: Option<String>) -> Self {
        Self {
            of: format!("task `{}`", task.id),
            state: task.state.as_str(),
            wish,
            instead,
        }
    }

    /// Says what a build cannot do.
    pub fn of_build(build: &Build, wish: &'static str, instead: Option<String>) -> Self {
        Self {
            of: format!("build `{}`", build.id),
            state: build.state.as_str(),
            wish,
            instead,
        }
    }

    /// Says what is wrong, without what can be done instead.
    pub fn what(&self) -> String {
        let Self {
            of, state, wish, ..
        } = self;
        format!("{of} is {state}, so it cannot {wish}")
    }
}

fn advice(instead: Option<&str>) -> String {
    instead.map_or_else(String::new, |instead| format!("; {instead}"))
}

/// Returns whether another round of tries can be asked for.
pub fn retry(task: &Task) -> Result<(), IllegalRequest> {
    let instead = match (task.state, task.blocked_by.last()) {
        (TaskState::Complete, _) => None,
        // It would be left out again at once.
        (TaskState::Skipped, Some(first)) => Some(format!(
            "it was left out with `{first}`, which it needs: try that one again"
        )),
        (TaskState::Blocked, Some(first)) => Some(format!(
            "it needs `{first}`, which failed: try that one again"
        )),
        // It would wait again at once.
        (TaskState::Waiting, _) if task.waiting_for == Some(WaitReason::Owner) => {
            Some(until_given(task))
        }
        _ => return Ok(()),
    };
    Err(IllegalRequest::of_task(task, "be tried again", instead))
}

/// Says what lets a task go on that waits for the owners of files.
fn until_given(task: &Task) -> String {
    let open = task.change_requests.iter();
    let mut open = open.filter(|request| {
        use ChangeRequestState::{Rejected, Requested};
        matches!(request.state, Requested | Rejected)
    });
    match open.next_back() {
        Some(ChangeRequest { file, owner, .. }) => format!(
            "it waits for `{file}`, which build `{owner}` owns, and goes on when that is landed or its idea abandoned"
        ),
        None => "it waits for a file that another build owns, and goes on when that is landed or its idea abandoned".to_owned(),
    }
}

/// Returns whether something can be said to whoever works on a task.
pub fn advise(task: &Task) -> Result<(), IllegalRequest> {
    match task.state {
        TaskState::Complete | TaskState::Skipped => {
            Err(IllegalRequest::of_task(task, "be advised", None))
        }
        _ => Ok(()),
    }
}

/// Returns whether one more thing can be said to whoever works on a task: so much waits for its model at most.
pub fn tell(task: &Task) -> Result<(), IllegalRequest> {
    advise(task)?;
    if task.unheard() < MOST_UNHEARD {
        return Ok(());
    }
    let instead = format!("{MOST_UNHEARD} words wait for the next turn of its model");
    Err(IllegalRequest::of_task(task, "be told more", Some(instead)))
}

/// Returns whether a build can go on, so that a task of it is tried again.
pub fn revive(build: &Build, wish: &'static str) -> Result<(), IllegalRequest> {
    // Its branch belongs to the build that goes on from it.
    let instead = if let Some(next) = build.continued_by {
        format!("build `{next}` goes on with its work")
    } else if is_abandoned(build) {
        format!("the idea `{}` was abandoned", build.idea)
    } else {
        return Ok(());
    };
    Err(IllegalRequest::of_build(build, wish, Some(instead)))
}

/// Returns whether tasks of a build can run again, where it may have been landed.
pub fn run_again(build: &Build, wish: &'static str) -> Result<(), IllegalRequest> {
    revive(build, wish)?;
    if build.state == BuildState::Succeeded && build.merged.is_some() {
        let spec = build.spec;
        let instead =
            format!("it is landed: ask for a revision with `ropewalk spec revise {spec}`");
        return Err(IllegalRequest::of_build(build, wish, Some(instead)));
    }
    Ok(())
}

/// Returns whether a build can be given a priority.
pub fn rank(build: &Build) -> Result<(), IllegalRequest> {
    if is_over_for_good(build) {
        return Err(IllegalRequest::of_build(build, "be given a priority", None));
    }
    Ok(())
}

/// Returns whether nothing that a person wishes makes a build move again.
pub fn is_over_for_good(build: &Build) -> bool {
    is_abandoned(build) || build.merged.is_some() || build.continued_by.is_some()
}

fn is_abandoned(build: &Build) -> bool {
    build.state == BuildState::Stopped && build.stop == Some(StopCause::Abandoned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(state: TaskState) -> Task {
        let block = serde_json::from_value(json!({
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
            "validation": { "command": "true", "expected": "exit 0" },
        }));
        let build = uuid::Uuid::from_u128(1).into();
        Task {
            state,
            ..Task::planned(build, 1, block.unwrap())
        }
    }

    #[test]
    fn what_waits_for_an_owner_is_not_tried_again_before_that_lets_go() {
        let mut task = task(TaskState::Waiting);
        task.waiting_for = Some(WaitReason::Lock);
        assert_eq!(retry(&task), Ok(()));
        task.waiting_for = Some(WaitReason::Owner);
        let refused = retry(&task).unwrap_err().to_string();
        assert!(
            refused.contains("a file that another build owns"),
            "{refused}"
        );
        task.change_requests = serde_json::from_value(json!([{
            "file": "a.txt", "owner": uuid::Uuid::from_u128(2), "state": "requested",
            "requested_at": "2026-03-01T08:00:00Z",
        }]))
        .unwrap();
        let refused = retry(&task).unwrap_err().to_string();
        let told = "`a.txt`, which build `00000000-0000-0000-0000-000000000002` owns";
        assert!(refused.contains(told), "{refused}");
    }

    #[test]
    fn no_more_than_ten_words_wait_for_one_task() {
        let mut task = task(TaskState::Working);
        task.guidance = vec!["faster".to_owned(); MOST_UNHEARD - 1];
        assert_eq!(tell(&task), Ok(()));
        task.guidance.push("slower".to_owned());
        let refused = tell(&task).unwrap_err();
        assert!(refused.to_string().contains("10 words wait"), "{refused}");
        // What was heard makes room.
        task.hear(1);
        assert_eq!(tell(&task), Ok(()));
    }
}
