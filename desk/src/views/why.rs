//! Says why builds and tasks stand as they do, in the same words on every surface.

use ropewalk_schemas::build::{Build, BuildState, PauseReason};
use ropewalk_schemas::clip;
use ropewalk_schemas::outage::Outage;
use ropewalk_schemas::task::{Task, TaskState};

/// So many letters are told of what the gate found; the page of the task and its evidence hold all of it.
const FOUND_LETTERS: usize = 120;

/// Says why a build stands as it does: for an outage that holds it, else for a reason of its own.
pub fn build(build: &Build, outage: Option<&Outage>) -> Option<String> {
    match outage {
        Some(outage) => Some(outage.to_string()),
        None => build.reason.clone(),
    }
}

/// Says why a task does not run, if there is anything to say; since when it waits and who left it out, where that is known.
pub fn task(build: &Build, outage: Option<&Outage>, task: &Task) -> String {
    if let Some(next) = build.continued_by
        && !matches!(task.state, TaskState::Complete | TaskState::Skipped)
    {
        return format!("build {next} goes on with it");
    }
    // What made it ready tells nothing about why it does not run.
    if task.state == TaskState::Ready && outage.is_some() {
        return "ready; waits for the provider".to_owned();
    }
    if task.state == TaskState::Ready
        && let Some(why) = standstill(build)
    {
        return why;
    }
    let reason = reason(task);
    let Some(since) = task.waiting_since else {
        return reason;
    };
    let since = since.format("waiting since %Y-%m-%d %H:%M:%S UTC");
    match reason.as_str() {
        "" => since.to_string(),
        reason => format!("{reason} ({since})"),
    }
}

/// Says why a task stands as it does, and who left it out, where that is known; empty where there is nothing to say.
pub fn reason(task: &Task) -> String {
    let reason = own_reason(task);
    match &task.skipped_by {
        // Not everybody says why.
        Some(by) if reason.is_empty() => format!("skipped by {by}"),
        Some(by) => format!("skipped by {by}: {reason}"),
        None => reason,
    }
}

/// Says why a task stands as it does: for a reason of its own, else for what it holds.
fn own_reason(task: &Task) -> String {
    let blocked = task
        .blocked_by
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" < ");
    match (&task.reason, task.question, blocked.is_empty()) {
        (Some(reason), _, _) => reason.clone(),
        (None, Some(question), _) => format!("waits for an answer to question {question}"),
        (None, None, false) => format!("blocked by {blocked}"),
        (None, None, true) => mended(task).unwrap_or_default(),
    }
}

/// Says what a task that is worked on mends: what failed last in this round, with the first line of what was found.
fn mended(task: &Task) -> Option<String> {
    let is_worked_on = matches!(task.state, TaskState::Claimed | TaskState::Working);
    let failure = task.failures.last().filter(|_| is_worked_on)?;
    let mut lines = failure.error.lines().map(str::trim);
    let found = lines.find(|line| !line.is_empty()).unwrap_or_default();
    let what = failure.class.in_words();
    Some(match clip::letters(found, FOUND_LETTERS) {
        found if found.is_empty() => format!("mends what failed: {what}"),
        found => format!("mends what failed: {what}: {found}"),
    })
}

/// Says why no ready task of a build begins, if none does.
fn standstill(build: &Build) -> Option<String> {
    let reason = match build.pause_reason {
        Some(PauseReason::Person) | None => "paused",
        Some(PauseReason::Quota) => "paused until the quota is back",
        Some(PauseReason::Outage) => "paused until the provider is back",
        Some(PauseReason::Budget) => "paused for want of budget",
        Some(PauseReason::Conflict) => "paused for a conflict",
    };
    match build.state {
        BuildState::Paused => Some(format!("ready; waits, since the build is {reason}")),
        BuildState::Running if build.pause_requested => {
            Some("ready; waits, since the build is about to pause".to_owned())
        }
        BuildState::Running if build.exhausted.is_some() => {
            Some("ready; waits, since a budget is used up".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn build(change: Value) -> Build {
        let mut whole = json!({
            "id": "00000000-0000-7000-8000-000000000001",
            "spec": "00000000-0000-7000-8000-000000000002",
            "revision": 1, "hash": "0".repeat(64), "idea": "habits", "user": "ada",
            "state": "running", "pause_requested": false, "branch": "build/habits",
            "target": "main", "priority": 5, "working_ms": 0,
            "correlation_id": "00000000-0000-7000-8000-000000000003",
            "created_at": "2026-03-01T08:00:00Z",
        });
        if let (Value::Object(whole), Value::Object(change)) = (&mut whole, change) {
            whole.extend(change);
        }
        serde_json::from_value(whole).unwrap()
    }

    fn task(change: Value) -> Task {
        let mut whole = json!({
            "build": "00000000-0000-7000-8000-000000000001", "id": "T-1", "number": 1, "state": "waiting",
            "block": {
                "id": "T-1", "action": "CREATE", "file": "a.txt",
                "validation": { "command": "true", "expected": "exit 0" },
            },
            "attempts": 0, "tries": 0, "installs": 0, "rebases": 0,
        });
        if let (Value::Object(whole), Value::Object(change)) = (&mut whole, change) {
            whole.extend(change);
        }
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn a_task_says_since_when_it_waits_and_who_left_it_out_where_that_is_known() {
        let since = "2026-03-01T08:00:07Z";
        let question = "00000000-0000-7000-8000-000000000004";
        let rows = [
            (
                json!({ "reason": "waits for `a.txt`", "waiting_since": since }),
                "waits for `a.txt` (waiting since 2026-03-01 08:00:07 UTC)",
            ),
            (
                json!({ "question": question, "waiting_since": since }),
                "waits for an answer to question 00000000-0000-7000-8000-000000000004 \
                 (waiting since 2026-03-01 08:00:07 UTC)",
            ),
            (
                json!({ "waiting_since": since }),
                "waiting since 2026-03-01 08:00:07 UTC",
            ),
            // Nothing is made up for a record of before; and since when it wants its files is something else.
            (
                json!({ "reason": "waits for `a.txt`", "waits_since": since }),
                "waits for `a.txt`",
            ),
            (
                json!({ "state": "skipped", "reason": "nobody wants it", "skipped_by": "ada" }),
                "skipped by ada: nobody wants it",
            ),
            (
                json!({ "state": "skipped", "reason": "", "skipped_by": "ada" }),
                "skipped by ada",
            ),
            (
                json!({ "state": "skipped", "reason": "skipped by ada: nobody wants it" }),
                "skipped by ada: nobody wants it",
            ),
            (
                json!({ "state": "skipped", "reason": "needs `T-2`, which was skipped", "blocked_by": ["T-2"] }),
                "needs `T-2`, which was skipped",
            ),
        ];
        for (change, told) in rows {
            let task = task(change.clone());
            assert_eq!(
                super::task(&build(json!({})), None, &task),
                told,
                "{change}"
            );
        }
    }

    #[test]
    fn a_task_that_mends_what_the_gate_sent_back_says_what_was_found() {
        let failure = |error: &str| {
            json!([
                { "class": "TIMEOUT", "error": "too long", "attempt": 1, "fingerprint": "" },
                { "class": "VALIDATION_FAILED", "error": error, "attempt": 2, "fingerprint": "" },
            ])
        };
        let found = "\n  assertion failed: 3 != 4\n  more of it\n";
        let long = "x".repeat(500);
        let cut = format!("mends what failed: a check failed: {}…", "x".repeat(119));
        let told = "mends what failed: a check failed: assertion failed: 3 != 4";
        for (state, error, expected) in [
            ("working", found, told),
            ("claimed", found, told),
            ("working", " \n", "mends what failed: a check failed"),
            ("working", long.as_str(), cut.as_str()),
            // The gate looks at other work by now.
            ("validating", found, ""),
            ("complete", found, ""),
        ] {
            let task = task(json!({ "state": state, "failures": failure(error) }));
            let said = super::task(&build(json!({})), None, &task);
            assert_eq!(said, expected, "{state}");
        }
        let task = task(json!({ "state": "working" }));
        assert_eq!(super::task(&build(json!({})), None, &task), "");
    }

    #[test]
    fn a_ready_task_says_why_its_build_lets_it_wait() {
        let rows = [
            (
                json!({ "state": "paused", "pause_reason": "person" }),
                "the build is paused",
            ),
            (
                json!({ "state": "paused", "pause_reason": "quota" }),
                "until the quota is back",
            ),
            (
                json!({ "state": "paused", "pause_reason": "budget" }),
                "for want of budget",
            ),
            (
                json!({ "state": "paused", "pause_reason": "conflict" }),
                "for a conflict",
            ),
            (json!({ "pause_requested": true }), "about to pause"),
            (json!({ "exhausted": "project" }), "a budget is used up"),
        ];
        for (change, told) in rows {
            let said = standstill(&build(change.clone())).unwrap();
            assert!(said.contains(told), "{change}: {said}");
        }
        for state in ["running", "stopped", "succeeded"] {
            assert_eq!(standstill(&build(json!({ "state": state }))), None);
        }
    }
}
