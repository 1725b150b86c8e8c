//! What people are asked about the validation of a build (V25), and what their answers do.

use ropewalk_schemas::attempt::{Level, Verdict};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_store::Query;
use serde_json::{Value, json};

use crate::house::{House, Open, writes, writes_slowly};

const SCANNED: &str = r#"
[[gate.commands]]
name = "lint"
command = "true"
level = "quick"
kind = "lint"

[[gate.commands]]
name = "secrets"
command = "! grep -rn hard-coded-key --include=*.txt ."
level = "thorough"
kind = "security"
"#;

const MEASURED: &str = r#"
[[gate.commands]]
name = "coverage"
command = "echo 'src/a.rs 10 9 10%'; echo 'TOTAL 20 10 50%'"
level = "standard"
kind = "coverage"
"#;

fn plan() -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
        "validation": { "command": "test -s a.txt", "expected": "exit 0" },
    }])
}

async fn questions(open: &Open, trigger: &str) -> Vec<Question> {
    let query = Query::new().equal("trigger", trigger);
    let rows = open.services.store.list::<Question>(query).await.unwrap();
    rows.into_iter().map(|row| row.record).collect()
}

async fn answer(open: &Open, trigger: &str, text: &str) {
    let asked = questions(open, trigger).await;
    let pending = |question: &&Question| question.state == QuestionState::Pending;
    let question = asked.iter().find(pending).unwrap();
    ropewalk_orchestrator::questions::answer(&open.context, question.id, text, "ada", "cli")
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planted_secret_is_found_at_the_chosen_level_and_a_person_answers_for_it() {
    let rules = writes_slowly("T-1", "a.txt", "hard-coded-key\n", 3_000);
    let house = House::new(&rules).with_files(&[("ropewalk.toml", SCANNED)]);
    let open = house.open().await;
    let spec = open.approve(plan()).await;
    open.until(spec, |build, _| build.state == BuildState::Running)
        .await;
    let asked = questions(&open, "validation_level_needed").await;
    assert_eq!(asked[0].default.as_deref(), Some("Standard"));
    answer(&open, "validation_level_needed", "Thorough").await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(
        (build.state, build.level),
        (BuildState::Failed, Some(Level::Thorough))
    );
    let holes = questions(&open, "security_vulnerability").await;
    assert_eq!(holes.len(), 1);
    for told in ["secrets", "high", "a.txt:1"] {
        assert!(holes[0].text.contains(told), "{}", holes[0].text);
    }
    assert_eq!(build.question, Some(holes[0].id));
    assert_eq!(questions(&open, "validation_passed").await, []);
    answer(
        &open,
        "security_vulnerability",
        "Accept the risk (not recommended)",
    )
    .await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    assert_eq!(build.accepted, ["secrets"]);
    let evidence = open.evidence(build.id).await;
    let whole: Vec<_> = evidence.iter().filter(|seen| seen.task.is_none()).collect();
    let passed = whole.iter().find(|seen| seen.verdict == Verdict::Passed);
    assert_eq!(passed.unwrap().not_run, ["secrets"]);
    let told = questions(&open, "validation_passed").await;
    assert!(told[0].text.contains("Lint: passed"), "{}", told[0].text);
    assert!(
        told[0].text.contains("Security: not run"),
        "{}",
        told[0].text
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_that_cover_too_little_are_asked_about_and_stop_nothing() {
    let rules = writes("T-1", "a.txt", "good\n", None);
    let house = House::new(&rules).with_files(&[("ropewalk.toml", MEASURED)]);
    let open = house.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let low = questions(&open, "coverage_below_threshold").await;
    assert_eq!(low.len(), 1);
    for told in ["50%", "80%", "src/a.rs 10 9 10%"] {
        assert!(low[0].text.contains(told), "{}", low[0].text);
    }
    assert_eq!(questions(&open, "validation_passed").await.len(), 1);
    assert_eq!(questions(&open, "validation_level_needed").await, []);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_failures_are_put_in_order_by_a_person() {
    let failing = "[[gate.commands]]\nname = \"unit\"\ncommand = \"echo broken; false\"\nlevel = \"standard\"\n\
                   [[gate.commands]]\nname = \"style\"\ncommand = \"echo ugly; false\"\nlevel = \"standard\"\nkind = \"lint\"\n";
    let rules = writes("T-1", "a.txt", "good\n", None);
    let house = House::new(&rules).with_files(&[("ropewalk.toml", failing)]);
    let open = house.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Failed);
    let asked = questions(&open, "multiple_failures").await;
    assert_eq!(asked.len(), 1);
    for told in ["2 issues", "- unit: broken", "- style: ugly"] {
        assert!(asked[0].text.contains(told), "{}", asked[0].text);
    }
    answer(&open, "multiple_failures", "Fix all before proceeding").await;
    let (build, _) = open.until(spec, |build, _| build.question.is_none()).await;
    let reason = build.reason.unwrap();
    assert!(reason.contains("spec revise"), "{reason}");
    open.close().await;
}
