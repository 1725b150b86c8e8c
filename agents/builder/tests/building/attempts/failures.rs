//! Attempts that fail, questions that follow, and what answers do.

mod cut_off;

use ropewalk_schemas::attempt::{AttemptState, FailureClass};
use ropewalk_schemas::build::{BuildState, PauseReason};
use ropewalk_schemas::knowledge::{KnowledgeItem, KnowledgeKind, KnowledgeState};
use ropewalk_schemas::payload::TaskRetry;
use ropewalk_schemas::task::{Action, TaskState};
use ropewalk_schemas::{Payload, Subject};
use ropewalk_store::{Query, Versioned};
use serde_json::{Value, json};

use crate::world::project::{OpenProject, Project, task, writes};

/// Plans a task that creates `<id>.txt` and wants the word `good` in it.
fn plan(id: &str, needs: &[&str]) -> Value {
    json!({
        "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
        "validation": { "command": format!("cat {id}.txt; grep -q good {id}.txt"), "expected": "exit 0" },
        "depends_on": needs,
    })
}

fn script(rules: &[String]) -> String {
    rules.concat()
}

async fn paused(
    open: &OpenProject,
    spec: ropewalk_schemas::SpecId,
) -> ropewalk_schemas::build::Build {
    let (build, _) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    assert_eq!(build.pause_reason, Some(PauseReason::Person));
    build
}

async fn lessons(open: &OpenProject) -> Vec<Versioned<KnowledgeItem>> {
    let store = &open.services.store;
    store.list(Query::new()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_try_knows_the_error_of_the_first_and_leaves_a_lesson() {
    let rules = [
        writes("T-1", "T-1.txt", "good\n", Some("type DATEE is unknown")),
        writes("T-1", "T-1.txt", "type DATEE is unknown to sqlite\n", None),
    ];
    let project = Project::new(&script(&rules));
    let open = project.open().await;
    let spec = open.approve(json!([plan("T-1", &[])])).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let done = task(&tasks, "T-1");
    assert_eq!((done.state, done.attempts), (TaskState::Complete, 2));
    let attempts = open.attempts(build.id, "T-1").await;
    let refused = &attempts[0].tries[0];
    let failure = &refused.failure;
    assert_eq!(failure.class, FailureClass::ValidationFailed);
    assert!(failure.error.contains("type DATEE is unknown"));
    let kept = refused.preserve_ref.as_ref().unwrap();
    let state = project.state().join("repository.git");
    assert_eq!(
        crate::world::project::git(&state, &["show", &format!("{kept}:T-1.txt")]),
        "type DATEE is unknown to sqlite"
    );
    let failed: Vec<Value> = open
        .events()
        .await
        .into_iter()
        .filter(|(event_type, _)| event_type == "task.failed")
        .map(|(_, data)| data)
        .collect();
    assert_eq!(failed.len(), 1);
    let told = |name: &str| &failed[0][name];
    assert_eq!(*told("task_id"), json!("T-1"));
    assert_eq!(*told("attempt"), json!(1));
    assert_eq!(*told("category"), json!("VALIDATION_FAILED"));
    assert_eq!(*told("will_retry"), json!(true));
    let error = told("error").as_str().unwrap();
    assert!(error.contains("type DATEE is unknown"), "{error}");
    let prompts = project.prompts("T-1");
    assert_eq!(prompts.len(), 2);
    assert!(!prompts[0].contains("DATEE"), "{}", prompts[0]);
    assert!(prompts[1].contains("type DATEE is unknown to sqlite"));
    let items = lessons(&open).await;
    assert_eq!(items.len(), 1, "{items:?}");
    let lesson = &items[0].record;
    assert_eq!(
        (lesson.kind, lesson.state),
        (KnowledgeKind::Gotcha, KnowledgeState::Candidate)
    );
    assert_eq!(lesson.content, "type DATEE is unknown to sqlite");
    assert_eq!(lesson.globs, ["*.txt"]);
    assert_eq!(lesson.action, Some(Action::Create));
    assert_eq!(lesson.discovered_by.as_str(), "build");
    assert_eq!(lesson.evidence, [format!("attempt/{}", attempts[0].id)]);
    assert!((lesson.confidence - 0.7).abs() < 1e-9);
    let ahead = open.git(&["rev-list", "--count", "main..build/habits"]);
    assert_eq!(ahead, "2", "the idea folder and one commit of the task");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_a_plan_asks_for_more_tests_is_no_lesson() {
    let one = "echo 'ok 1 - a'; echo '1..1'\n";
    let two = "echo 'ok 1 - a'; echo 'ok 2 - b'; echo '1..2'\n";
    let rules = [
        writes("T-1", "T-1.sh", two, Some("2 are asked for")),
        writes("T-1", "T-1.sh", one, None),
    ];
    let project = Project::new(&script(&rules));
    let open = project.open().await;
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "T-1.sh",
        "validation": { "command": "sh T-1.sh", "expected": "tests >= 2" },
    }]);
    let spec = open.approve(plan).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let failure = &task(&tasks, "T-1").failures[0];
    assert!(failure.error.contains("2 are asked for"), "{failure:?}");
    assert_eq!(lessons(&open).await.len(), 0);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_learned_without_a_failure_is_kept_and_told_to_no_task_yet() {
    let lesson = "printf of dash knows no %q, which the plan took for granted.";
    let input = json!({ "summary": "Done.", "lesson": { "text": lesson, "globs": ["*.txt"] } });
    let rules = [
        writes("T-1", "T-1.txt", "good\n", None)
            .replace("input: { summary: \"Done.\" }", &format!("input: {input}")),
        writes("T-2", "T-2.txt", "good\n", None),
    ];
    let project = Project::new(&script(&rules));
    let open = project.open().await;
    let spec = open
        .approve(json!([plan("T-1", &[]), plan("T-2", &["T-1"])]))
        .await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let items = lessons(&open).await;
    let [item] = items.as_slice() else {
        panic!("{items:?}")
    };
    let attempts = open.attempts(build.id, "T-1").await;
    assert_eq!(item.content, lesson);
    assert_eq!(item.evidence, [format!("attempt/{}", attempts[0].id)]);
    assert!((item.confidence - 0.5).abs() < 1e-9, "{}", item.confidence);
    assert!(!project.prompts("T-2").concat().contains(lesson));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lesson_that_is_cut_shows_it() {
    let lesson = "printf of dash knows no %q. ".repeat(100);
    let input = json!({ "summary": "Done.", "lesson": { "text": lesson } });
    let rules = writes("T-1", "T-1.txt", "good\n", None)
        .replace("input: { summary: \"Done.\" }", &format!("input: {input}"));
    let project = Project::new(&rules);
    let open = project.open().await;
    let spec = open.approve(json!([plan("T-1", &[])])).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let items = lessons(&open).await;
    let [item] = items.as_slice() else {
        panic!("{items:?}")
    };
    let kept = item.content.strip_suffix('…').unwrap();
    assert!(lesson.starts_with(kept), "{kept}");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_learned_is_kept_where_a_person_allows_its_work_later() {
    let lesson = "printf of dash knows no %q, which the check took for granted.";
    let input = json!({ "summary": "Done.", "lesson": { "text": lesson, "globs": ["*.sh"] } });
    let strict = "grep -q good product.txt && echo 'ok 1 - works'; echo '1..1'\n";
    let weak = "echo 'ok 1 - works'; echo '1..1'\n";
    let rules = writes("T-1", "tests/check.sh", weak, None)
        .replace("input: { summary: \"Done.\" }", &format!("input: {input}"));
    let files = [("tests/check.sh", strict), ("product.txt", "bad\n")];
    let project = Project::new(&rules).with_files(&files);
    let open = project.open().await;
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": "tests/check.sh",
        "validation": { "command": "sh tests/check.sh", "expected": "tests >= 1" },
    }]);
    let spec = open.approve(plan).await;
    paused(&open, spec).await;
    open.answer("T-1", "allow").await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(project.prompts("T-1").len(), 1, "no model is asked again");
    let items = lessons(&open).await;
    let [item] = items.as_slice() else {
        panic!("{items:?}")
    };
    let attempts = open.attempts(build.id, "T-1").await;
    let mut landed = attempts
        .iter()
        .filter(|one| one.state == AttemptState::Landed);
    let landed = landed.next().unwrap().id;
    assert_eq!(item.content, lesson);
    assert_eq!(item.globs, ["*.sh"]);
    assert_eq!(item.evidence, [format!("attempt/{landed}")]);
    assert!((item.confidence - 0.5).abs() < 1e-9, "{}", item.confidence);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_cannot_be_done_as_it_stands_asks_at_once_and_takes_guidance() {
    let why = "T-1.txt has to name a colour, and nobody says which.";
    let input = json!({ "summary": "Looked for a colour.", "blocked": why });
    let rules = [
        writes("T-1", "T-1.txt", "good\n", Some("It is good.")),
        format!(
            "- agent: build\n  task: T-1\n  reply:\n    tools:\n      - name: finish\n        input: {input}\n"
        ),
    ];
    let project = Project::new(&script(&rules));
    let open = project.open().await;
    let spec = open.approve(json!([plan("T-1", &[])])).await;
    let build = paused(&open, spec).await;
    let tasks = open.tasks(build.id).await;
    let failed = task(&tasks, "T-1");
    assert_eq!((failed.state, failed.attempts), (TaskState::Failed, 1));
    let failure = failed.failures.last().unwrap();
    assert_eq!(failure.class, FailureClass::Blocked);
    assert_eq!(failure.error, why);
    let question = open.open_question("T-1").await.unwrap();
    assert!(question.text.contains(why), "{}", question.text);
    open.answer("T-1", "guide: It is good.").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(task(&tasks, "T-1").state, TaskState::Complete);
    let again = project.prompts("T-1").pop().unwrap();
    assert!(
        again.contains(why) && again.contains("It is good."),
        "{again}"
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_goes_on_after_an_answer_finds_what_was_made_before_it() {
    let makes = json!({ "command": "echo '# good' > T-1.txt; chmod +x T-1.txt" });
    let gives_up = json!({ "summary": "Half of it.", "blocked": "Which colour?" });
    let done = json!({ "summary": "It was done." });
    let rule = |attempt: u32, turn: u32, tool: &str, input: &Value| {
        format!(
            "- agent: build\n  task: T-1\n  attempt: {attempt}\n  turn: {turn}\n  reply:\n    tools:\n      - name: {tool}\n        input: {input}\n"
        )
    };
    let rules = [
        rule(1, 1, "bash", &makes),
        rule(1, 2, "finish", &gives_up),
        rule(2, 1, "finish", &done),
    ];
    let project = Project::new(&script(&rules));
    let open = project.open().await;
    let mut plan = plan("T-1", &[]);
    plan["validation"]["command"] = json!("./T-1.txt && grep -q good T-1.txt");
    let spec = open.approve(json!([plan])).await;
    paused(&open, spec).await;
    open.answer("T-1", "guide: Any.").await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let again = project.prompts("T-1").pop().unwrap();
    let told = "The checkout holds the work of an earlier conversation";
    assert!(again.contains(told), "{again}");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_goes_on_after_the_last_try_finds_what_was_made_before_it() {
    let shell = |command: &str| json!({ "command": command });
    let done = json!({ "summary": "It was done." });
    let rule = |attempt: u32, turn: u32, tool: &str, input: &Value| {
        format!(
            "- agent: build\n  task: T-1\n  attempt: {attempt}\n  turn: {turn}\n  reply:\n    tools:\n      - name: {tool}\n        input: {input}\n"
        )
    };
    let rules = [
        rule(1, 1, "bash", &shell("echo half > T-1.txt")),
        rule(1, 2, "finish", &done),
        rule(
            2,
            1,
            "bash",
            &shell("grep -q half T-1.txt && echo good >> T-1.txt"),
        ),
        rule(2, 2, "finish", &done),
    ];
    let project = Project::new(&script(&rules)).with(|options| options.tries.tries = 1);
    let open = project.open().await;
    let spec = open.approve(json!([plan("T-1", &[])])).await;
    let build = paused(&open, spec).await;
    let tasks = open.tasks(build.id).await;
    let failure = task(&tasks, "T-1").failures.last().unwrap().clone();
    assert_eq!(failure.class, FailureClass::ValidationFailed);
    open.answer("T-1", "guide: Add the other half.").await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let again = project.prompts("T-1").pop().unwrap();
    let told = "The checkout holds the work of an earlier conversation";
    assert!(
        again.contains(told) && again.contains("Add the other half."),
        "{again}"
    );
    open.close().await;
}

/// Three independent tasks, of which T-2 passes only with advice.
fn stubborn() -> Project {
    let rules = [
        writes("T-1", "T-1.txt", "good\n", None),
        writes("T-2", "T-2.txt", "good\n", Some("say the magic word")),
        writes("T-2", "T-2.txt", "bad\n", None),
        writes("T-3", "T-3.txt", "good\n", None),
    ];
    Project::new(&script(&rules))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_failures_ask_and_a_skip_is_told_in_the_end() {
    let project = stubborn();
    let open = project.open().await;
    let spec = open
        .approve(json!([
            plan("T-1", &[]),
            plan("T-2", &[]),
            plan("T-3", &[])
        ]))
        .await;
    let build = paused(&open, spec).await;
    let tasks = open.tasks(build.id).await;
    let states: Vec<TaskState> = tasks.iter().map(|task| task.state).collect();
    assert_eq!(
        states,
        [TaskState::Complete, TaskState::Failed, TaskState::Complete]
    );
    let attempts = open.attempts(build.id, "T-2").await;
    assert_eq!(attempts.len(), 1, "one conversation with three tries");
    let attempt = &attempts[0];
    assert_eq!(attempt.state, AttemptState::Failed);
    assert_eq!(attempt.failures().count(), 3);
    let refused = attempt.tries.iter().map(|one| &one.preserve_ref);
    let mut kept = refused.chain([&attempt.preserve_ref]);
    assert!(kept.all(Option::is_some));
    let question = open.open_question("T-2").await.unwrap();
    assert_eq!(question.trigger, "task_failed_repeatedly");
    assert!(question.text.contains("try 3"), "{}", question.text);
    let said = question.text.matches("\n  Its agent said: Done.").count();
    assert_eq!(said, 3, "{}", question.text);
    let ids = question.choices.iter().map(|choice| choice.id.as_str());
    assert_eq!(
        ids.collect::<Vec<_>>(),
        ["guide", "rethink", "skip", "manual", "leave"]
    );
    open.answer("T-2", "skip: nobody needs it any more").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded);
    let left_out = task(&tasks, "T-2");
    assert_eq!(left_out.state, TaskState::Skipped);
    let why = left_out.reason.as_deref();
    assert_eq!(why, Some("nobody needs it any more"));
    assert_eq!(build.reason.as_deref(), Some("1 skipped: `T-2`"));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guidance_gives_another_round_with_it_in_the_prompt() {
    let project = stubborn();
    let open = project.open().await;
    let spec = open
        .approve(json!([plan("T-1", &[]), plan("T-2", &[])]))
        .await;
    paused(&open, spec).await;
    open.answer("T-2", "guide: say the magic word").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(task(&tasks, "T-2").attempts, 4);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manual_fix_leaves_the_build_failed_by_name() {
    let project = stubborn();
    let open = project.open().await;
    let spec = open
        .approve(json!([plan("T-1", &[]), plan("T-2", &[])]))
        .await;
    paused(&open, spec).await;
    open.answer("T-2", "manual").await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Failed);
    assert_eq!(build.reason.as_deref(), Some("failed: `T-2`"));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_blocks_its_dependents_with_the_chain_and_a_retry_revives_them() {
    let rules = [
        writes("T-1", "T-1.txt", "good\n", Some("take the other way")),
        writes("T-1", "T-1.txt", "bad\n", None),
        writes("T-2", "T-2.txt", "good\n", None),
        writes("T-3", "T-3.txt", "good\n", None),
        writes("T-4", "T-4.txt", "good\n", None),
        writes("T-5", "T-5.txt", "good\n", None),
    ];
    let project = Project::new(&script(&rules));
    let open = project.open().await;
    let spec = open
        .approve(json!([
            plan("T-1", &[]),
            plan("T-2", &[]),
            plan("T-3", &["T-1", "T-2"]),
            plan("T-4", &["T-2"]),
            plan("T-5", &["T-3", "T-4"]),
        ]))
        .await;
    let build = paused(&open, spec).await;
    let tasks = open.tasks(build.id).await;
    assert_eq!(task(&tasks, "T-4").state, TaskState::Complete);
    let last = task(&tasks, "T-5");
    assert_eq!(last.state, TaskState::Blocked);
    assert_eq!(
        last.reason.as_deref(),
        Some("needs `T-3`, which needs `T-1`, which failed")
    );
    let retry = TaskRetry {
        build_id: build.id,
        task_id: task(&tasks, "T-1").id.clone(),
        requested_by: "ada".to_owned(),
        may_resume: false,
        guidance: Some("take the other way".to_owned()),
    };
    open.emit(Subject::build(build.id), Payload::TaskRetry(retry))
        .await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert!(tasks.iter().all(|task| task.state == TaskState::Complete));
    open.close().await;
}
