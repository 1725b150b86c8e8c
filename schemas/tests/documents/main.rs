//! Reads, writes and edits whole documents, also ones that a person has written into.

mod fuzz;
mod round_trip;

use ropewalk_schemas::document::tasks_md::{self, Journal, PlanStatus, Progress, TasksPlan};
use ropewalk_schemas::document::{self, DocumentError, Fault};
use ropewalk_schemas::task::{Expectation, TaskBlock, TaskState};
use ropewalk_schemas::{ComponentName, SpecId, TaskId};
use uuid::Uuid;

/// A tasks.md as a person has left it: own comments, own fields, own spacing.
const EDITED: &str = "---
id: 00000000-0000-0000-0000-000000000001
title: Habit streaks   # working title
owner: ada
spec_version: 2
total: 2
completed: 0
status: pending
---

# Tasks: Habit streaks

Read me first.

## Summary

- Total: 2
- Complete: 0
- Failed: 0
- Skipped: 0
- Open: 2

## Context

- build/spec.md

## Phase: types

### T-001: CREATE src/date.rs

```yaml
# The date comes first.
id: T-001
phase: types
action: CREATE
file:   src/date.rs
status: pending   # set by the build
reviewer: ada     # not a field we know
requirements:
  - Leap years are right
  - id: FR-2
    text: \"Days: ends of months\"
gotchas:
validation: { command: cargo test, expected: tests >= 2 }
code_template: |
  ```
  status: not mine
  ```
```

Some words between.

```text
not a task
```

## Phase: api

```yml
id: T-002
phase: api
action: UPDATE
file: src/lib.rs
more_files: [src/main.rs]
validation:
  command: cargo test
  expected: exit 0
depends_on: [T-001]
```

## Notes of mine

1. keep this
";

fn edited() -> String {
    // The template above holds a fence of three, so that the block needs one of four.
    EDITED
        .replacen("```yaml\n# The", "````yaml\n# The", 1)
        .replacen("  ```\n```\n", "  ```\n````\n", 1)
}

fn task_id(text: &str) -> Result<TaskId, anyhow::Error> {
    Ok(TaskId::parse(text)?)
}

fn refusal(text: &str) -> String {
    match tasks_md::parse(text) {
        Ok(_) => String::from("no refusal"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_document_edited_by_a_person_gives_back_the_same_bytes() -> anyhow::Result<()> {
    let unix = edited();
    let windows = format!("\u{feff}{}", unix.replace('\n', "\r\n"));
    for text in [unix, windows] {
        let document = tasks_md::parse(&text)?;
        assert_eq!(document.to_string(), text);
        assert_eq!(document.header().title, "Habit streaks");
        assert_eq!(document.context(), ["build/spec.md"]);
        let blocks = document.blocks();
        assert_eq!(blocks.len(), 2);
        let first = &blocks[0];
        assert_eq!(first.requirements.len(), 2);
        assert_eq!(first.validation.expected, Expectation::Tests(2));
        assert_eq!(
            first.code_template.as_deref(),
            Some("```\nstatus: not mine\n```\n")
        );
    }
    Ok(())
}

#[test]
fn a_status_is_set_in_place_and_the_counts_follow() -> anyhow::Result<()> {
    for newline in ["\n", "\r\n"] {
        let text = edited().replace('\n', newline);
        let mut document = tasks_md::parse(&text)?;
        let progress = Progress {
            status: TaskState::Complete,
            assigned_to: Some(ComponentName::parse("loop-1")?),
            started_at: None,
            completed_at: chrono::DateTime::from_timestamp_millis(1_800_000_000_123),
        };
        document.set_status(&task_id("T-001")?, &progress)?;
        assert_eq!(document.header().completed, 1);
        assert_eq!(document.header().status, PlanStatus::Working);
        let expected = edited()
            .replacen(
                "status: pending   # set by the build",
                "status: complete   # set by the build\nassigned_to: loop-1\ncompleted_at: \"2027-01-15T08:00:00.123+00:00\"",
                1,
            )
            .replacen("completed: 0\nstatus: pending", "completed: 1\nstatus: working", 1)
            .replacen("- Complete: 0", "- Complete: 1", 1)
            .replacen("- Open: 2", "- Open: 1", 1)
            .replace('\n', newline);
        assert_eq!(document.to_string(), expected);

        document.set_status(&task_id("T-001")?, &Progress::PENDING)?;
        assert_eq!(document.to_string(), text);
    }
    Ok(())
}

#[test]
fn a_block_without_a_status_gets_one() -> anyhow::Result<()> {
    let mut document = tasks_md::parse(&edited())?;
    let progress = Progress {
        status: TaskState::Failed,
        ..Progress::PENDING
    };
    document.set_status(&task_id("T-002")?, &progress)?;
    assert!(
        document
            .to_string()
            .contains("depends_on: [T-001]\nstatus: failed\n```")
    );
    let unknown = document.set_status(&task_id("T-9")?, &progress);
    assert_eq!(
        unknown.map_err(|error| error.fault),
        Err(Fault::UnknownTask("T-9".to_owned()))
    );
    Ok(())
}

#[test]
fn an_edit_that_would_break_the_block_changes_nothing() -> anyhow::Result<()> {
    let text = edited().replace(
        "id: T-002\nphase: api\naction: UPDATE\nfile: src/lib.rs\nmore_files: [src/main.rs]\nvalidation:\n  command: cargo test\n  expected: exit 0\ndepends_on: [T-001]\n",
        "{id: T-002, phase: api, action: UPDATE, file: src/lib.rs, validation: {command: cargo test, expected: exit 0}}\n",
    );
    let mut document = tasks_md::parse(&text)?;
    let progress = Progress {
        status: TaskState::Skipped,
        ..Progress::PENDING
    };
    let refused = document.set_status(&task_id("T-002")?, &progress);
    assert!(refused.is_err_and(|error| error.to_string().contains("one key a line")));
    assert_eq!(document.to_string(), text);
    Ok(())
}

#[test]
fn journals_grow_at_their_end() -> anyhow::Result<()> {
    let mut document = tasks_md::parse(&edited())?;
    document.append(Journal::Discoveries, "one\ntwo")?;
    document.append(Journal::Discoveries, "## three")?;
    assert_eq!(
        document.journal(Journal::Discoveries),
        ["one\ntwo", "## three"]
    );
    assert!(document.to_string().starts_with(edited().trim_end()));
    assert!(document.journal(Journal::ExecutionLog).is_empty());

    let plan = rendered(&[]);
    let mut fresh = tasks_md::parse(&plan)?;
    fresh.append(Journal::ExecutionLog, "began")?;
    fresh.append(Journal::Discoveries, "one")?;
    fresh.append(Journal::ExecutionLog, "ended")?;
    let said = "## Execution Log\n\n- began\n- ended\n\n## Discoveries\n\n- one\n";
    assert_eq!(fresh.to_string(), format!("{}\n\n{said}", plan.trim_end()));
    Ok(())
}

fn refuses(cases: &[(String, &str)]) {
    for (text, expected) in cases {
        let refusal = refusal(text);
        assert!(refusal.contains(expected), "{refusal}\n  lacks: {expected}");
        assert_eq!(refusal.lines().count(), 1, "{refusal}");
    }
}

#[test]
fn a_malformed_document_is_refused_with_line_task_and_cure() {
    let good = edited();
    let cases = [
        (String::new(), "line 1: no front matter"),
        (
            "\u{0}\u{1}binary".to_owned(),
            "line 1: the document is not UTF-8 text",
        ),
        (
            "x".repeat(2 << 20),
            "line 1: the document has 2097152 bytes",
        ),
        (
            good.replace("total: 2", "total: 3"),
            "`total: 3`, but there are 2",
        ),
        (
            good.replace("completed: 0", "completed: 1"),
            "`completed: 1`, but there are 0",
        ),
        (
            good.replace("spec_version: 2", "spec_version: new"),
            "line 5: the front matter cannot be read",
        ),
        (
            good.replace("id: T-002", "id: T-001"),
            "line 59: task `T-001` occurs twice",
        ),
        (
            good.replace("depends_on: [T-001]", "depends_on: [T-7]"),
            "line 59: task `T-002` depends on `T-7`",
        ),
        (
            good.replace("depends_on: [T-001]", "depends_on: [T-002]"),
            "`T-002` → `T-002` depend on each other in a cycle",
        ),
        (
            good.replace("[src/main.rs]", "[../x]"),
            "line 64: task `T-002` cannot be read: `../x` leaves the repository; take out the `..`",
        ),
    ];
    refuses(&cases);
}

#[test]
fn a_malformed_block_is_refused_and_never_dropped() {
    let good = edited();
    let cases = [
        (
            good.replace("action: UPDATE", "action: PATCH"),
            "line 62: task `T-002` cannot be read: ",
        ),
        (
            good.replace("file: src/lib.rs\n", ""),
            "task `T-002` cannot be read: missing field `file`",
        ),
        (
            good.replace("phase: api", "phase: ui"),
            "task `T-002` has phase `ui` but stands under `api`",
        ),
        (
            good.replace("## Phase: api", "## Later"),
            "line 59: a yaml block stands outside of a phase",
        ),
        (good.replace("id: T-002", "id: [T-002"), "cannot be read"),
        (
            good.replace("depends_on: [T-001]\n```", "depends_on: [T-001]"),
            "line 59: the block that begins here never ends",
        ),
        (
            good.replace("id: T-002\n", ""),
            "the task block cannot be read: missing field `id`",
        ),
        (
            good.replace("expected: exit 0", "expected: works"),
            "`works` is not an expectation",
        ),
        (
            good.replace("phase: api\n", "phase: api\nphase: api\n"),
            "task `T-002` cannot be read: ",
        ),
    ];
    refuses(&cases);
}

#[test]
fn fifty_megabytes_and_deep_nesting_are_refused_at_once() {
    let large = vec![b'-'; 50 << 20];
    assert!(matches!(
        document::text(&large),
        Err(DocumentError {
            fault: Fault::TooLarge(_),
            ..
        })
    ));
    let nested = edited().replace(
        "depends_on: [T-001]",
        &format!("deep: {}", "[".repeat(100_000)),
    );
    assert!(refusal(&nested).contains("cannot be read"));
    let bomb = (1..20).fold(String::new(), |text, level| {
        let below = level - 1;
        text + &format!("a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}]\n")
    });
    let bomb = edited().replace("depends_on: [T-001]", &format!("a0: &a0 [x, x]\n{bomb}"));
    assert!(refusal(&bomb).contains("T-002"));
}

fn rendered(tasks: &[TaskBlock]) -> String {
    tasks_md::render(&TasksPlan {
        id: SpecId(Uuid::from_u128(9)),
        title: "A plan",
        spec_version: 1,
        context: &[],
        tasks,
    })
}
