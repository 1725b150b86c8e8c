//! Reads whatever somebody may have made of a tasks.md.

use ropewalk_schemas::document::tasks_md::{self, Progress};
use ropewalk_schemas::task::TaskState;

/// What is read is given back byte by byte, and still read after a state was written into it.
#[test]
fn fuzz_tasks_md() {
    let check = |input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        let mut document = match tasks_md::parse(&text) {
            Ok(document) => document,
            Err(error) => {
                return error
                    .to_string()
                    .split('`')
                    .next()
                    .unwrap_or_default()
                    .to_owned();
            }
        };
        assert_eq!(document.to_string(), text);
        let blocks = document.blocks();
        let Some(first) = blocks.first() else {
            return "none".to_owned();
        };
        let progress = Progress {
            status: TaskState::Working,
            assigned_to: None,
            started_at: None,
            completed_at: None,
        };
        let set = document.set_status(&first.id, &progress).is_ok();
        if set {
            let again = tasks_md::parse(&document.to_string());
            assert!(again.is_ok_and(|again| again.blocks() == blocks));
        }
        format!("{} {set}", blocks.len().min(9))
    };
    let words = [
        "---\n",
        "```yaml\n",
        "```\n",
        "````\n",
        "id: T-001\n",
        "status: pending\n",
        "action: CREATE\n",
        "file: a\n",
        "validation: { command: x, expected: exit 0 }\n",
        "depends_on: [T-001]\n",
        "phase: x\n",
        "## Phase: x\n",
        "### T-001\n",
        "- ",
        "  ",
        "\t",
        "|\n",
        "# ",
        "\"",
        "&a ",
        "*a ",
        "!!int ",
    ];
    ropewalk_tests::fuzz::Target {
        name: "tasks-md",
        words: &words,
        check: &check,
    }
    .run();
}
