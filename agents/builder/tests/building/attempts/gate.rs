//! What the gate of a build is, and what it shows.

use ropewalk_schemas::attempt::{Evidence, Level, Verdict};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::task::TaskState;
use serde_json::json;

use crate::world::project::{Project, task, writes};

const LEVELS: &str = r#"
[[gate.commands]]
name = "lint"
command = "test ! -e lint-fails"
level = "quick"

[[gate.commands]]
name = "unit"
command = "test ! -e unit-fails"
level = "standard"

[[gate.commands]]
name = "audit"
command = "false"
level = "comprehensive"
"#;

fn of_task<'a>(evidence: &'a [Evidence], id: &str) -> &'a Evidence {
    let of = |evidence: &&Evidence| {
        evidence
            .task
            .as_ref()
            .is_some_and(|task| task.as_str() == id)
    };
    evidence.iter().rfind(of).unwrap()
}

fn names(evidence: &Evidence) -> Vec<&str> {
    evidence
        .checks
        .iter()
        .map(|check| check.name.as_str())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gate_is_that_of_the_base_commit_and_each_stage_looks_as_deep_as_it_says() {
    let rules = writes("T-1", "a.txt", "good\n", None);
    let project = Project::new(&rules).with_files(&[("ropewalk.toml", LEVELS)]);
    let open = project.open().await;
    let spec = open
        .approve(json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
            "requirements": [{ "id": "FR-2", "text": "good" }],
            "validation": { "command": "grep -q good a.txt", "expected": "exit 0" },
        }]))
        .await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let evidence = open.evidence(build.id).await;
    let first = of_task(&evidence, "T-1");
    assert_eq!(names(first), ["validation", "lint"]);
    assert_eq!(first.level, Some(Level::Quick));
    assert_eq!(first.not_run, ["unit (standard)", "audit (comprehensive)"]);
    assert_eq!(first.requirements[0].as_str(), "FR-2");
    let whole = evidence.iter().find(|seen| seen.task.is_none()).unwrap();
    assert_eq!(names(whole), ["lint", "unit", "T-1"]);
    assert_eq!(
        (whole.level, whole.verdict),
        (Some(Level::Standard), Verdict::Passed)
    );
    assert_eq!(whole.not_run, ["audit (comprehensive)"]);
    assert_eq!(whole.requirements[0].as_str(), "FR-2");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quick_check_that_fails_lands_nothing_and_keeps_the_work() {
    let rules = writes("T-1", "lint-fails", "x\n", None);
    let project = Project::new(&rules)
        .with_files(&[("ropewalk.toml", LEVELS)])
        .with(|options| options.tries.tries = 1);
    let open = project.open().await;
    let spec = open
        .approve(json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "lint-fails",
            "validation": { "command": "true", "expected": "exit 0" },
        }]))
        .await;
    let (build, tasks) = open
        .until(spec, |_, tasks| {
            tasks.iter().any(|task| task.state == TaskState::Failed)
        })
        .await;
    assert_eq!(build.head, build.published);
    let failed = task(&tasks, "T-1");
    assert!(failed.commit.is_none());
    assert!(
        failed.failures[0].error.contains("`lint`"),
        "{:?}",
        failed.failures
    );
    let attempts = open.attempts(build.id, "T-1").await;
    let kept = attempts[0].preserve_ref.as_ref().unwrap();
    assert!(kept.starts_with("refs/ropewalk/preserve/"), "{kept}");
    let evidence = open.evidence(build.id).await;
    let seen = of_task(&evidence, "T-1");
    assert_eq!(seen.verdict, Verdict::Failed);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_base_commit_whose_gate_cannot_be_read_fails_the_build_and_says_so() {
    let broken = "[gate]\ntask_level = \"deep\"\n";
    let project = Project::new("[]").with_files(&[("ropewalk.toml", broken)]);
    let open = project.open().await;
    let spec = open
        .approve(json!([{
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
            "validation": { "command": "true", "expected": "exit 0" },
        }]))
        .await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Failed);
    let reason = build.reason.unwrap();
    assert!(reason.contains("gate.task_level"), "{reason}");
    open.close().await;
}
