//! A no takes back what it was said of, and nothing that was allowed before.

use ropewalk_schemas::build::BuildState;
use serde_json::json;

use crate::world::project::{Project, task, writes};

/// A test that holds only when the product says `good`.
const TEST: &str = "grep -q good product.txt && echo 'ok 1 - works'; echo '1..1'\n";
/// The same test, which always holds.
const WEAK: &str = "echo 'ok 1 - works'; echo '1..1'\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_no_to_a_later_change_of_a_file_leaves_the_one_that_was_allowed_before() {
    let file = "tests/check.sh";
    let at_try = |number: u32, rules: &str| {
        rules.replace("  turn:", &format!("  attempt: {number}\n  turn:"))
    };
    let done = json!({ "summary": "It stays so." });
    let leaves = format!(
        "- agent: build\n  task: T-1\n  turn: 1\n  reply:\n    tools:\n      - name: finish\n        input: {done}\n"
    );
    let weaker = format!("{WEAK}# and more\n");
    let rules = [
        at_try(1, &writes("T-1", file, WEAK, None)),
        at_try(2, &writes("T-1", file, &weaker, None)),
        at_try(3, &leaves),
    ];
    let files = [(file, TEST), ("product.txt", "bad\n")];
    let project = Project::new(&rules.concat()).with_files(&files);
    let open = project.open().await;
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": file,
        "validation": { "command": "sh tests/check.sh", "expected": "tests >= 1" },
    }]);
    let spec = open.approve(plan).await;
    for (attempts, answer) in [(1, "allow-and: say more"), (2, "keep")] {
        open.until(spec, |build, tasks| {
            build.state == BuildState::Paused && tasks[0].attempts == attempts
        })
        .await;
        open.answer("T-1", answer).await;
    }
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let landed = open.git(&["show", &format!("build/habits:{file}")]);
    assert_eq!(landed, WEAK.trim_end());
    let asked = open.questions("protected_files").await;
    assert_eq!(asked.len(), 2, "the yes holds still");
    let refused = "A person refused the change of `tests/check.sh` that was asked about: leave it as it was allowed before.";
    let said = "Asked about the change of `tests/check.sh`, a person said: say more";
    assert_eq!(task(&tasks, "T-1").guidance, [said, refused]);
    let told = project.prompts("T-1").pop().unwrap();
    let size = format!("- `{file}`: 1 line, {} bytes", WEAK.len());
    assert!(told.contains(&size), "{told}");
    assert!(!told.contains("A person allowed"), "{told}");
    open.close().await;
}
