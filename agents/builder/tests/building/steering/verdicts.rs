//! What people are asked about the validation of a build (V25), and what their answers do.

use ropewalk_schemas::attempt::{Level, Verdict};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{ChoiceId, Payload, Subject};
use serde_json::{Value, json};

use crate::world::project::{OpenProject, Project, request, writes};
use crate::world::script::{append, meet, steps};

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

async fn answer(open: &OpenProject, trigger: &str, text: &str) {
    let asked = open.questions(trigger).await;
    let pending = |question: &&Question| question.state == QuestionState::Pending;
    let question = asked.iter().find(pending).unwrap();
    open.answer_question(question.id, text).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planted_secret_is_found_at_the_chosen_level_and_a_person_answers_for_it() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let rules = steps("T-1", &[meet(&go), append("hard-coded-key", "a.txt")]);
    let project = Project::new(&rules).with_files(&[("ropewalk.toml", SCANNED)]);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    open.until(spec, |build, _| build.state == BuildState::Running)
        .await;
    let asked = open.questions("validation_level_needed").await;
    let default = asked[0].default.as_ref().map(ChoiceId::as_str);
    assert_eq!(default, Some("standard"));
    answer(&open, "validation_level_needed", "thorough").await;
    std::fs::write(&go, "").unwrap();
    let (build, _) = open.ended(spec).await;
    assert_eq!(
        (build.state, build.level),
        (BuildState::Failed, Some(Level::Thorough))
    );
    let holes = open.questions("security_vulnerability").await;
    assert_eq!(holes.len(), 1);
    for told in ["secrets", "high", "a.txt:1"] {
        assert!(holes[0].text.contains(told), "{}", holes[0].text);
    }
    assert_eq!(build.question, Some(holes[0].id));
    assert_eq!(open.questions("validation_passed").await, []);
    answer(&open, "security_vulnerability", "accept").await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    assert_eq!(build.accepted, ["secrets"]);
    let evidence = open.evidence(build.id).await;
    let whole: Vec<_> = evidence.iter().filter(|seen| seen.task.is_none()).collect();
    let passed = whole.iter().find(|seen| seen.verdict == Verdict::Passed);
    assert_eq!(passed.unwrap().not_run, ["secrets"]);
    let told = open.questions("validation_passed").await;
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
    let project = Project::new(&rules).with_files(&[("ropewalk.toml", MEASURED)]);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let low = open.questions("coverage_below_threshold").await;
    assert_eq!(low.len(), 1);
    for told in ["50%", "80%", "src/a.rs 10 9 10%"] {
        assert!(low[0].text.contains(told), "{}", low[0].text);
    }
    assert_eq!(open.questions("validation_passed").await.len(), 1);
    assert_eq!(open.questions("validation_level_needed").await, []);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finding_of_a_linter_alone_stops_the_build_and_its_landing() {
    let linted = "[[gate.commands]]\nname = \"unit\"\ncommand = \"true\"\nlevel = \"standard\"\n\
                  [[gate.commands]]\nname = \"style\"\ncommand = \"! grep -n ugly a.txt\"\nlevel = \"standard\"\nkind = \"lint\"\n";
    let rules = writes("T-1", "a.txt", "ugly\n", None);
    let project = Project::new(&rules).with_files(&[("ropewalk.toml", linted)]);
    let open = project.open().await;
    let before = open.git(&["rev-parse", "main"]);
    let spec = open.approve(plan()).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Failed, "{:?}", build.reason);
    assert_eq!(tasks[0].state, TaskState::Complete, "its own gate is quick");
    let evidence = open.evidence(build.id).await;
    let whole: Vec<_> = evidence.iter().filter(|seen| seen.task.is_none()).collect();
    assert_eq!(whole[0].verdict, Verdict::Failed);
    let ended = |name: &str| {
        let run = whole[0].checks.iter().find(|run| run.name == name);
        run.and_then(|run| run.exit_code)
    };
    assert_eq!((ended("unit"), ended("style")), (Some(0), Some(1)));
    assert!(
        whole[0].findings[0].contains("ugly"),
        "{:?}",
        whole[0].findings
    );
    assert_eq!(open.questions("validation_passed").await, []);
    assert_eq!(open.git(&["rev-parse", "main"]), before);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_failures_are_put_in_order_by_a_person() {
    let failing = "[[gate.commands]]\nname = \"unit\"\ncommand = \"echo broken; false\"\nlevel = \"standard\"\n\
                   [[gate.commands]]\nname = \"style\"\ncommand = \"echo ugly; false\"\nlevel = \"standard\"\nkind = \"lint\"\n";
    let rules = writes("T-1", "a.txt", "good\n", None);
    let project = Project::new(&rules).with_files(&[("ropewalk.toml", failing)]);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Failed);
    let asked = open.questions("multiple_failures").await;
    assert_eq!(asked.len(), 1);
    for told in ["2 issues", "- unit: broken", "- style: ugly"] {
        assert!(asked[0].text.contains(told), "{}", asked[0].text);
    }
    answer(&open, "multiple_failures", "fix-all").await;
    let (build, _) = open.until(spec, |build, _| build.question.is_none()).await;
    let reason = build.reason.unwrap();
    assert!(reason.contains("ada chose"), "{reason}");
    open.close().await;
}

const TWO_HOLES: &str = r#"
[[gate.commands]]
name = "keys"
command = "! grep -n hard-coded-key a.txt"
level = "standard"
kind = "security"

[[gate.commands]]
name = "words"
command = "! grep -n weak-password a.txt"
level = "standard"
kind = "security"
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_landed_while_it_was_checked_is_not_asked_about() {
    let signals = tempfile::tempdir().unwrap();
    let go = signals.path().join("go");
    let waiting = |gate: &str, first: &str| {
        let go = go.display();
        let waits = format!("until [ -e {go} ]; do sleep 0.02; done; {first}");
        gate.replacen(first, &waits, 1)
    };
    for (gate, ends) in [
        (waiting(TWO_HOLES, "!"), BuildState::Failed),
        (waiting(MEASURED, "echo"), BuildState::Succeeded),
    ] {
        let rules = writes("T-1", "a.txt", "hard-coded-key\nweak-password\n", None);
        let project = Project::new(&rules).with_files(&[("ropewalk.toml", &gate)]);
        let open = project.open().await;
        let spec = open.approve(plan()).await;
        let (build, _) = open
            .until(spec, |build, _| build.state == BuildState::Verifying)
            .await;
        open.change_build(build.id, |build| build.merged.clone_from(&build.head))
            .await;
        std::fs::write(&go, "").unwrap();
        let (build, _) = open.until(spec, |build, _| build.state == ends).await;
        assert_eq!(build.question, None);
        for trigger in [
            "security_vulnerability",
            "multiple_failures",
            "coverage_below_threshold",
            "validation_passed",
        ] {
            assert_eq!(open.questions(trigger).await, [], "{trigger}");
        }
        std::fs::remove_file(&go).unwrap();
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_accepts_one_risk_accepts_no_other() {
    let rules = writes("T-1", "a.txt", "hard-coded-key\nweak-password\n", None);
    let project = Project::new(&rules).with_files(&[("ropewalk.toml", TWO_HOLES)]);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Failed);
    let holes = open.questions("security_vulnerability").await;
    let about = |check: &str| {
        let named = |hole: &&Question| hole.text.contains(check);
        holes.iter().find(named).unwrap().id
    };
    let accepts = "accept";
    open.answer_question(about("weak-password"), accepts).await;
    let (build, _) = open
        .until(spec, |build, _| !build.accepted.is_empty())
        .await;
    open.settled().await;
    assert_eq!(build.accepted, ["words"]);
    assert_eq!(
        build.state,
        BuildState::Failed,
        "the other one still stands"
    );
    assert_eq!(build.question, Some(about("hard-coded-key")));
    let state = |open: Vec<Question>| -> Vec<QuestionState> {
        let keys = about("hard-coded-key");
        let same = open.into_iter().filter(|question| question.id == keys);
        same.map(|question| question.state).collect()
    };
    let asked = open.questions("security_vulnerability").await;
    assert_eq!(state(asked), [QuestionState::Pending]);
    open.answer_question(about("hard-coded-key"), accepts).await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    assert_eq!(build.accepted, ["words", "keys"]);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_build_that_is_resumed_asks_no_longer_about_its_failure() {
    let signals = tempfile::tempdir().unwrap();
    let mended = signals.path().join("mended");
    let command = |name: &str| {
        format!(
            "[[gate.commands]]\nname = \"{name}\"\ncommand = \"test -e {}\"\nlevel = \"standard\"\n",
            mended.display()
        )
    };
    let gate = [command("unit"), command("style")].concat();
    // The gate of a task looks less deep.
    let gate = format!("[gate]\ntask_level = \"quick\"\n{gate}");
    let rules = writes("T-1", "a.txt", "good\n", None);
    let project = Project::new(&rules).with_files(&[("ropewalk.toml", &gate)]);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Failed);
    let asked = open.questions("multiple_failures").await;
    assert_eq!(build.question, Some(asked[0].id));
    std::fs::write(&mended, "").unwrap();
    let again = Payload::BuildResume(request(build.id));
    open.emit(Subject::build(build.id), again).await;
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    assert_eq!(
        open.questions("multiple_failures").await[0].state,
        QuestionState::Superseded
    );
    let finished = open.questions("build_finished").await;
    assert_eq!(build.question, Some(finished[0].id));
    open.close().await;
}
