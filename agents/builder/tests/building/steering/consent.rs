//! A yes binds to content (V37), and each answer does what it says.

use std::os::unix::fs::PermissionsExt as _;

use ropewalk_orchestrator::questions::{self, AnswerError};
use ropewalk_schemas::attempt::{Evidence, FailureClass};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::payload::{QuestionAnswered, TaskRetry};
use ropewalk_schemas::question::{Content, FileChange, Question, QuestionState};
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{ContentHash, Payload, Subject};
use ropewalk_store::Query;
use ropewalk_world::questions::means_nothing;
use serde_json::{Value, json};

use crate::world::project::{OpenProject, Project, task, writes};
use crate::world::script::{Step, steps};

/// A test that holds only when the product says `good`.
const TEST: &str = "grep -q good product.txt && echo 'ok 1 - works'; echo '1..1'\n";
/// The same test, which always holds.
const WEAK: &str = "echo 'ok 1 - works'; echo '1..1'\n";

fn plan() -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": "tests/check.sh",
        "validation": { "command": "sh tests/check.sh", "expected": "tests >= 1" },
    }])
}

/// A project whose task declares an existing test.
fn project(rules: &str) -> Project {
    Project::new(rules).with_files(&[("tests/check.sh", TEST), ("product.txt", "bad\n")])
}

async fn asked(open: &OpenProject) -> Question {
    let asked = open.questions("protected_files").await;
    let pending = |question: &&Question| question.state == QuestionState::Pending;
    asked.iter().find(pending).cloned().expect("a question")
}

fn change(before: &str, after: &str) -> FileChange {
    FileChange {
        path: "tests/check.sh".to_owned(),
        before: Some(ContentHash::of(before.as_bytes())),
        after: Some(ContentHash::of(after.as_bytes())),
    }
}

fn changes(question: &Question) -> Vec<FileChange> {
    match &question.content {
        Some(Content::Files { changes, .. }) => changes.clone(),
        other => panic!("{other:?}"),
    }
}

/// The same rules, for one try only.
fn at_try(number: u32, rules: &str) -> String {
    rules.replace("  turn:", &format!("  attempt: {number}\n  turn:"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_lands_the_work_that_was_shown_and_no_model_runs() {
    let project = project(&writes("T-1", "tests/check.sh", WEAK, None));
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let question = asked(&open).await;
    assert_eq!(changes(&question), [change(TEST, WEAK)]);
    let best = question.choices.iter().find(|choice| choice.recommended);
    assert_eq!(best, None, "the approved plan names the file");
    assert!(means_nothing(&question), "nothing here reads a label");
    for line in [
        "the approved plan names the file",
        "-grep -q good",
        "+echo 'ok 1 - works'",
    ] {
        assert!(question.text.contains(line), "{}", question.text);
    }
    let paused = open.events().await;
    let (_, paused) = paused
        .iter()
        .find(|(kind, _)| kind == "build.paused")
        .unwrap();
    assert_eq!(paused["counts"]["total"], 1);

    // Words decide nothing.
    let prose = "ok, but not yet";
    let refused = questions::answer(&open.context, question.id, prose, "ada", "cli").await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(&refused, AnswerError::NotAChoice { choices, .. } if choices.contains("`allow`")),
        "{refused}"
    );
    assert_eq!(asked(&open).await.id, question.id, "it is still open");

    open.answer("T-1", "allow").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(
        open.git(&["show", "build/habits:tests/check.sh"]),
        WEAK.trim_end()
    );
    assert_eq!(task(&tasks, "T-1").attempts, 1, "the try that was shown");
    assert_eq!(project.prompts("T-1").len(), 1, "no model is asked again");
    let learned = open.services.store.list::<KnowledgeItem>(Query::new());
    let learned: Vec<String> = learned
        .await
        .unwrap()
        .into_iter()
        .map(|one| one.record.content)
        .collect();
    assert_eq!(learned, [""; 0], "what was allowed was no mistake");
    // What is stored names the content, the person, the channel and the time.
    let stored = open.questions("protected_files").await.remove(0);
    let answer = stored.answer.clone().unwrap();
    assert_eq!(changes(&stored), [change(TEST, WEAK)]);
    assert_eq!(
        (
            answer.choice.unwrap().as_str(),
            answer.by.as_str(),
            answer.channel.as_str()
        ),
        ("allow", "ada", "cli")
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_with_words_keeps_what_was_shown_and_tells_them_before_it_lands() {
    let rules = [
        at_try(1, &writes("T-1", "tests/check.sh", WEAK, None)),
        at_try(2, &writes("T-1", "product.txt", "fair\n", Some("say fair"))),
    ];
    let project = project(&rules.concat());
    let open = project.open().await;
    let mut plan = plan();
    plan[0]["more_files"] = json!(["product.txt"]);
    let spec = open.approve(plan).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    open.answer("T-1", "allow-and: say fair").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let landed = |path: &str| open.git(&["show", &format!("build/habits:{path}")]);
    assert_eq!(
        (landed("tests/check.sh"), landed("product.txt")),
        (WEAK.trim_end().to_owned(), "fair".to_owned())
    );
    let asked = open.questions("protected_files").await;
    assert_eq!(asked.len(), 1, "the yes holds for what it was shown");
    let said = "Asked about the change of `tests/check.sh`, a person said: say fair";
    let allowed = "A person allowed the change of `tests/check.sh` that was asked about: keep that change as it is.";
    let ended = task(&tasks, "T-1");
    assert_eq!((ended.attempts, ended.failures.len()), (2, 0));
    assert_eq!(ended.guidance, [said]);
    let prompt = project.prompts("T-1").pop().unwrap();
    for line in [allowed, said] {
        assert!(prompt.contains(line), "{prompt}");
    }
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_to_one_content_opens_nothing_to_another() {
    let fussy = format!("grep -q bad product.txt && {WEAK}");
    let rules = [
        at_try(1, &writes("T-1", "tests/check.sh", &fussy, None)),
        writes("T-2", "product.txt", "better\n", None),
        // The first is shown to the gate again as the second try, and fails there beside what has landed.
        at_try(3, &writes("T-1", "tests/check.sh", WEAK, None)),
    ];
    let project = project(&rules.concat()).with(|options| options.loops = 1);
    let open = project.open().await;
    let mut both = plan();
    let other = json!({
        "id": "T-2", "phase": "ui", "action": "UPDATE", "file": "product.txt",
        "validation": { "command": "grep -q better product.txt", "expected": "exit 0" },
    });
    both.as_array_mut().unwrap().push(other);
    let spec = open.approve(both).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let first = asked(&open).await;
    open.answer("T-1", "allow").await;
    open.until(spec, |build, tasks| {
        build.state == BuildState::Paused && tasks[0].attempts == 3
    })
    .await;
    let second = asked(&open).await;
    assert_eq!(
        (changes(&first), changes(&second)),
        (vec![change(TEST, &fussy)], vec![change(TEST, WEAK)])
    );
    assert!(
        second.text.contains("+echo 'ok 1 - works'"),
        "{}",
        second.text
    );
    let branch = open.git(&["show", "build/habits:tests/check.sh"]);
    assert_eq!(branch, TEST.trim_end(), "nothing landed");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_no_takes_away_what_was_refused_and_leaves_the_rest_of_the_work() {
    let (made, weak) = (
        "echo good > product.txt",
        format!("printf '%s' \"{WEAK}\" > tests/check.sh"),
    );
    let steps = steps("T-1", &[Step::Shell(format!("{made}; {weak}"))]);
    let done = json!({ "summary": "The rest was done." });
    let again = format!(
        "- agent: build\n  task: T-1\n  attempt: 2\n  turn: 1\n  reply:\n    tools:\n      - name: finish\n        input: {done}\n"
    );
    let project = project(&format!("{again}{steps}"));
    let open = project.open().await;
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": "product.txt", "more_files": ["tests/check.sh"],
        "validation": { "command": "sh tests/check.sh", "expected": "tests >= 1" },
    }]);
    let spec = open.approve(plan).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let question = asked(&open).await;
    assert_eq!(changes(&question).len(), 1, "{}", question.text);
    open.answer("T-1", "keep").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(task(&tasks, "T-1").attempts, 2);
    let landed = |path: &str| open.git(&["show", &format!("build/habits:{path}")]);
    assert_eq!(
        (landed("product.txt"), landed("tests/check.sh")),
        ("good".to_owned(), TEST.trim_end().to_owned())
    );
    let told = project.prompts("T-1").pop().unwrap();
    let less = "less the changes that a person refused";
    assert!(told.contains(less), "{told}");
    // The files are told of as they lie there.
    for size in [
        format!("- also `tests/check.sh`: 1 line, {} bytes", TEST.len()),
        "- `product.txt`: 1 line, 5 bytes".to_owned(),
    ] {
        assert!(told.contains(&size), "{size}: {told}");
    }
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_changed_makefile_brings_in_is_shown_and_bound_with_it() {
    let work = "echo good > product.txt; printf 'include more.mk\\n' > Makefile; \
                printf 'check:\\n\\tgrep -q good product.txt\\n' > more.mk";
    let project = Project::new(&steps("T-1", &[Step::Shell(work.to_owned())])).with_files(&[
        ("Makefile", "check:\n\tgrep -q good product.txt\n"),
        ("product.txt", "bad\n"),
    ]);
    let open = project.open().await;
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": "product.txt",
        "more_files": ["Makefile", "more.mk"],
        "validation": { "command": "make check", "expected": "exit 0" },
    }]);
    let spec = open.approve(plan).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let question = asked(&open).await;
    let paths: Vec<String> = changes(&question)
        .into_iter()
        .map(|change| change.path)
        .collect();
    assert_eq!(paths, ["Makefile", "more.mk"]);
    assert!(
        question.text.contains("+\tgrep -q good"),
        "{}",
        question.text
    );
    open.answer("T-1", "allow").await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_was_done_again_is_asked_about_anew_and_the_older_question_is_over() {
    let other = format!("{WEAK}# another\n");
    let rules = [
        at_try(1, &writes("T-1", "tests/check.sh", WEAK, None)),
        at_try(2, &writes("T-1", "tests/check.sh", &other, None)),
    ];
    let project = project(&rules.concat());
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let first = asked(&open).await;
    let retry = TaskRetry {
        build_id: build.id,
        task_id: task(&tasks, "T-1").id.clone(),
        requested_by: "ada".to_owned(),
        may_resume: false,
        guidance: None,
    };
    open.emit(Subject::build(build.id), Payload::TaskRetry(retry))
        .await;
    open.until(spec, |build, tasks| {
        build.state == BuildState::Paused && tasks[0].attempts == 2
    })
    .await;
    let second = asked(&open).await;
    assert_eq!(changes(&second), [change(TEST, &other)]);
    let late = questions::answer(&open.context, first.id, "allow", "ada", "cli").await;
    assert!(matches!(late, Err(AnswerError::Closed { .. })), "{late:?}");
    open.settled().await;
    assert_eq!(asked(&open).await.id, second.id);
    open.close().await;
}

/// A plan of two, of which the second passes only on another round.
fn stubborn() -> Project {
    let rules = [
        writes("T-1", "T-1.txt", "good\n", None),
        writes("T-2", "T-2.txt", "bad\n", None),
    ];
    Project::new(&rules.concat())
}

fn of_two() -> Value {
    let one = |id: &str| {
        json!({
            "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
            "validation": { "command": format!("cat {id}.txt; grep -q good {id}.txt"), "expected": "exit 0" },
        })
    };
    json!([one("T-1"), one("T-2")])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_task_that_is_left_stays_as_it_is() {
    let project = stubborn();
    let open = project.open().await;
    let spec = open.approve(of_two()).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    for prose in ["leave it alone, please", "skip that one"] {
        let question = open.open_question("T-2").await.unwrap();
        let refused = questions::answer(&open.context, question.id, prose, "ada", "cli").await;
        assert!(
            matches!(refused, Err(AnswerError::NotAChoice { .. })),
            "{refused:?}"
        );
    }
    open.answer("T-2", "leave").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Failed);
    let left = task(&tasks, "T-2");
    assert_eq!((left.state, left.attempts), (TaskState::Failed, 3));
    assert_eq!(left.reason.as_deref(), Some("left failed by ada"));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_names_no_choice_spends_no_further_try() {
    let project = stubborn();
    let open = project.open().await;
    let spec = open.approve(of_two()).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let question = open.open_question("T-2").await.unwrap();
    // As it was stored when words alone were an answer.
    let answer = QuestionAnswered {
        question_id: question.id,
        trigger: question.trigger.clone(),
        choice: None,
        answer: "leave it, I shall look at it".to_owned(),
        says_why: false,
        answered_by: "ada".to_owned(),
        channel: "cli".to_owned(),
        about: question.about.clone(),
        idea_slug: question.idea.clone(),
    };
    open.emit(
        Subject::question(question.id),
        Payload::QuestionAnswered(answer),
    )
    .await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Failed);
    let left = task(&tasks, "T-2");
    assert_eq!((left.state, left.attempts), (TaskState::Failed, 3));
    assert_eq!(left.failures.len(), 3, "what failed is not forgotten");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_round_sees_what_failed_before_and_is_counted_with_it() {
    let project = stubborn();
    let open = project.open().await;
    let spec = open.approve(of_two()).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    open.answer("T-2", "guide: take a different one").await;
    open.until(spec, |build, tasks| {
        build.state == BuildState::Paused && tasks[1].attempts == 6
    })
    .await;
    let prompts = project.prompts("T-2");
    let fourth = &prompts[3];
    assert!(
        fourth.contains("take a different one") && fourth.matches("bad").count() >= 3,
        "{fourth}"
    );
    let question = open.open_question("T-2").await.unwrap();
    assert!(question.text.contains("tried 6 times"), "{}", question.text);
    for told in ["try 1:", "try 6:"] {
        assert!(question.text.contains(told), "{}", question.text);
    }
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_could_not_run_is_asked_about_and_looks_at_the_kept_work_again() {
    let programs = tempfile::tempdir().unwrap();
    let project = Project::new(&writes("T-1", "T-1.txt", "good\n", None))
        .with_programs(programs.path().to_owned());
    let open = project.open().await;
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "T-1.txt",
        "validation": { "command": "late-tool T-1.txt", "expected": "exit 0" },
    }]);
    let spec = open.approve(plan).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let question = open.open_question("T-1").await.expect("a question");
    assert_eq!(question.trigger, "check_held");
    assert!(question.text.contains("late-tool"), "{}", question.text);
    let tool = programs.path().join("late-tool");
    std::fs::write(&tool, "#!/bin/sh\ngrep -q good \"$1\"\n").unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    open.answer("T-1", "again").await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(project.prompts("T-1").len(), 1, "the work was done already");
    let attempts = open.attempts(build.id, "T-1").await;
    let [held, landed] = &attempts[..] else {
        panic!("{attempts:?}");
    };
    assert!(held.summary.is_some());
    assert_eq!(
        landed.summary, held.summary,
        "what was said of it goes with it"
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_a_person_allowed_to_go_is_missed_by_no_count() {
    let gate = "[[gate.commands]]\nname = \"tests\"\ncommand = \"python3 -m unittest -v\"\n";
    let test = |name: &str| format!("    def test_{name}(self):\n        pass\n");
    let head = "import unittest\n\n\nclass All(unittest.TestCase):\n";
    let both = format!("{head}{}{}", test("kept"), test("old"));
    let kept = format!("{head}{}", test("kept"));
    let files = [("ropewalk.toml", gate), ("test_all.py", both.as_str())];
    let project = Project::new(&writes("T-1", "test_all.py", &kept, None)).with_files(&files);
    let open = project.open().await;
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": "test_all.py",
        "validation": { "command": "! grep -q old test_all.py", "expected": "exit 0" },
    }]);
    let spec = open.approve(plan).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    open.answer("T-1", "allow").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(task(&tasks, "T-1").attempts, 1, "the try that was shown");
    assert_eq!(project.prompts("T-1").len(), 1, "no model is asked again");
    let branch = open.git(&["show", "build/habits:test_all.py"]);
    assert_eq!(branch, kept.trim_end());
    open.close().await;
}

/// A Makefile that runs these modules of tests.
fn makefile(modules: &str) -> String {
    format!("test:\n\tpython3 -m unittest -v {modules}\n")
}

/// A project whose one test of `test_b` is slow, and one of `test_a` is left out where the product says so; its agent leaves
/// `test_b` out of the Makefile.
fn project_with_makefile(product: &str) -> Project {
    let gate = "[[gate.commands]]\nname = \"tests\"\ncommand = \"make test\"\n";
    let a = "import unittest\nimport product\n\n\nclass A(unittest.TestCase):\n    def test_one(self):\n        pass\n\n    \
             @unittest.skipIf(product.LITTLE, 'little')\n    def test_two(self):\n        pass\n";
    let b = "import unittest\n\n\nclass B(unittest.TestCase):\n    def test_slow(self):\n        pass\n";
    let writes = format!(
        "printf '{}' > Makefile; echo '{product}' > product.py",
        makefile("test_a").escape_default()
    );
    Project::new(&steps("T-1", &[Step::Shell(writes)])).with_files(&[
        ("ropewalk.toml", gate),
        ("Makefile", &makefile("test_a test_b")),
        ("product.py", "LITTLE = False\n"),
        ("test_a.py", a),
        ("test_b.py", b),
    ])
}

fn plan_with_makefile() -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": "product.py", "more_files": ["Makefile"],
        "validation": { "command": "! grep -q test_b Makefile", "expected": "exit 0" },
    }])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_that_an_allowed_makefile_leaves_out_are_missed_by_no_count() {
    let project = project_with_makefile("LITTLE = False");
    let open = project.open().await;
    let spec = open.approve(plan_with_makefile()).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    open.answer("T-1", "allow").await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(project.prompts("T-1").len(), 1, "no model is asked again");
    let branch = open.git(&["show", "build/habits:Makefile"]);
    assert_eq!(branch, makefile("test_a").trim_end());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_more_than_what_is_asked_about_takes_away_is_missed_by_name() {
    let project = project_with_makefile("LITTLE = True");
    let open = project.open().await;
    let spec = open.approve(plan_with_makefile()).await;
    open.until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let asked = open.questions("protected_files").await;
    assert_eq!(asked, [], "nobody is asked before the rest holds");
    let build = open.build(spec).await.unwrap();
    let evidence = open.evidence(build.id).await;
    let weakened = |one: &&Evidence| one.class == Some(FailureClass::WeakenedTest);
    let weakened = evidence.iter().find(weakened).expect("a verdict");
    assert_eq!(weakened.findings.len(), 2, "{weakened:?}");
    assert!(weakened.findings[0].contains("test_two"), "{weakened:?}");
    let next = "a person is asked about it once the rest holds";
    assert!(weakened.findings[1].ends_with(next), "{weakened:?}");
    open.close().await;
}
