//! A failed gate is a turn of the conversation: it goes on in its tree, with what failed as the result of `finish`.

use std::path::Path;
use std::time::Duration;

use ropewalk_engine::llm::ModelError;
use ropewalk_schemas::attempt::{Attempt, AttemptState, FailureClass, Verdict};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::knowledge::KnowledgeItem;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_schemas::payload::TaskRetry;
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{Payload, Subject};
use ropewalk_store::Query;
use serde_json::{Value, json};

use crate::world::listener::{Fault, Hold};
use crate::world::project::{OpenProject, Project, task, writes_after};

pub(super) fn plan() -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "T-1.txt",
        "validation": { "command": "cat T-1.txt; ! grep -n wrong T-1.txt", "expected": "exit 0" },
    }])
}

impl Project {
    /// Lets the model answer at once from now on.
    fn free(mut self) -> Self {
        self.pace = None;
        self
    }

    /// Forgets the last thing that the model was told, which it never answered.
    fn forget_last_request(&self) {
        self.told.lock().unwrap().pop();
    }
}

/// A rule of the script: what the agent calls at a turn of a try.
fn rule(attempt: u32, turn: u32, tool: &str, input: &Value) -> String {
    format!(
        "- agent: build\n  task: T-1\n  attempt: {attempt}\n  turn: {turn}\n  reply:\n    tools:\n      - name: {tool}\n        input: {input}\n"
    )
}

fn finish(summary: &str) -> Value {
    json!({ "summary": summary })
}

/// Writes 170 lines of which one is wrong, and mends that line when it is told.
pub(super) fn one_wrong_line() -> String {
    let lines: Vec<String> = (1..=170)
        .map(|line| {
            if line == 99 {
                "line 99: assert that it is wrong".to_owned()
            } else {
                format!("line {line}")
            }
        })
        .collect();
    let content = lines.join("\n") + "\n";
    let edit = json!({ "path": "T-1.txt", "old_text": ": assert that it is wrong", "new_text": " is right" });
    [
        rule(
            1,
            1,
            "write",
            &json!({ "path": "T-1.txt", "content": content }),
        ),
        rule(1, 2, "finish", &finish("wrote it")),
        rule(2, 1, "edit", &edit),
        rule(2, 2, "finish", &finish("mended line 99")),
    ]
    .concat()
}

async fn landed(open: &OpenProject, project: &Project, spec: ropewalk_schemas::SpecId) {
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let done = task(&tasks, "T-1");
    assert_eq!(
        (done.state, done.attempts, done.tries),
        (TaskState::Complete, 2, 1),
        "a crash is no try"
    );
    assert_eq!(done.failures.len(), 1);
    let ahead = open.git(&["rev-list", "--count", "main..build/habits"]);
    assert_eq!(ahead, "2", "the idea folder and one commit of the task");
    let text = open.git(&["show", "build/habits:T-1.txt"]);
    assert!(text.lines().count() == 170 && text.contains("line 99 is right"));
    let once = [(1, 1), (1, 2), (2, 1), (2, 2)];
    assert_eq!(asked(project), once, "no call is paid twice");
}

/// Lists what the model was asked for, by try and turn.
fn asked(project: &Project) -> Vec<(u32, u32)> {
    let requests = project.requests("T-1");
    let keys = requests.iter().map(|request| {
        let key = request.script.as_ref().unwrap();
        (key.attempt, key.turn)
    });
    keys.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_failed_comes_back_as_the_result_of_finish_and_the_mend_is_one_edit() {
    let project = Project::new(&one_wrong_line());
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    landed(&open, &project, spec).await;
    let build = open.build(spec).await.unwrap();
    let attempts = open.attempts(build.id, "T-1").await;
    assert_eq!(
        attempts.len(),
        1,
        "one attempt with two tries: {attempts:?}"
    );
    let attempt = &attempts[0];
    assert_eq!(attempt.state, AttemptState::Landed);
    assert_eq!(attempt.summary.as_deref(), Some("mended line 99"));
    let refused = &attempt.tries[0];
    assert_eq!(refused.failure.class, FailureClass::ValidationFailed);
    assert_eq!(refused.summary.as_deref(), Some("wrote it"));
    let kept = refused.preserve_ref.as_ref().unwrap();
    let clone = project.state().join("repository.git");
    let kept = crate::world::project::git(&clone, &["show", &format!("{kept}:T-1.txt")]);
    assert!(kept.contains("line 99: assert that it is wrong"));
    let evidence = open.evidence(build.id).await;
    let failed = evidence.iter().find(|one| one.commit == refused.candidate);
    assert_eq!(failed.unwrap().verdict, Verdict::Failed);
    let requests = project.requests("T-1");
    let (before, after) = (&requests[1], &requests[2]);
    assert_eq!(before.system, after.system);
    assert_eq!(after.messages[..before.messages.len()], before.messages[..]);
    let told = after.text();
    assert!(
        told.contains("Not taken: VALIDATION_FAILED")
            && told.contains("99:line 99: assert that it is wrong")
    );
    let lessons = open
        .services
        .store
        .list::<KnowledgeItem>(Query::new())
        .await
        .unwrap();
    assert_eq!(lessons.len(), 1, "{lessons:?}");
    assert_eq!(lessons[0].evidence, [format!("attempt/{}", attempt.id)]);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_dies_after_the_gate_goes_on_in_the_same_conversation() {
    let hold = Hold::new();
    let project = Project::new(&one_wrong_line()).held_by(&hold);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    for _ in 0..2 {
        hold.called().await;
        hold.let_go();
    }
    hold.called().await;
    let asked = project.requests("T-1").pop().unwrap();
    assert!(asked.text().contains("Not taken"));
    open.crash().await;
    project.forget_last_request();
    let project = project.free();
    let open = project.open().await;
    landed(&open, &project, spec).await;
    let again = project.requests("T-1").swap_remove(2);
    assert_eq!(again.messages, asked.messages);
    let failed = open.events().await;
    let failed = failed
        .iter()
        .filter(|(event_type, _)| event_type == "task.failed");
    assert_eq!(failed.count(), 1, "the failure is told and counted once");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_is_written_once_and_holds_for_the_mended_work_after_a_kill_too() {
    let said = "One line for each day.";
    let wrong = json!({ "path": "T-1.txt", "content": "wrong\n" });
    let lacks_words = json!({ "summary": said, "lesson": { "globs": ["*"] } });
    let mend = json!({ "path": "T-1.txt", "old_text": "wrong", "new_text": "right" });
    let rules = [
        rule(1, 1, "write", &wrong),
        rule(1, 2, "finish", &json!({})),
        rule(1, 3, "finish", &lacks_words),
        rule(1, 4, "finish", &json!({})),
        rule(2, 1, "edit", &mend),
        rule(2, 2, "finish", &json!({})),
    ];
    let once = [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2)];
    for killed_at in [None, Some(4), Some(6)] {
        let hold = Hold::new();
        let mut project = Project::new(&rules.concat()).held_by(&hold);
        let mut open = project.open().await;
        let spec = open.approve(plan()).await;
        for _ in 1..killed_at.unwrap_or(1) {
            hold.called().await;
            hold.let_go();
        }
        hold.called().await;
        if killed_at.is_some() {
            open.crash().await;
            project.forget_last_request();
            project = project.free();
            open = project.open().await;
        } else {
            for _ in once {
                hold.let_go();
            }
        }
        let (build, _) = open.ended(spec).await;
        assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
        assert_eq!(asked(&project), once, "{killed_at:?}");
        let attempts = open.attempts(build.id, "T-1").await;
        let refused = attempts.iter().flat_map(|one| &one.tries);
        let all = refused
            .map(|one| &one.summary)
            .chain([&attempts.last().unwrap().summary]);
        let all: Vec<Option<&str>> = all.map(Option::as_deref).collect();
        assert_eq!(all, [Some(said); 2], "{killed_at:?}");
        let body = open.git(&["log", "--format=%b", "main..build/habits"]);
        assert!(body.contains(said), "{body}");
        let count = |text: &str| text.matches("your summary is kept").count();
        let requests = project.requests("T-1");
        let often = requests.iter().map(|request| count(&request.text()));
        assert_eq!(often.collect::<Vec<_>>(), [0, 0, 0, 1, 2, 2]);
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_hand_and_a_stray_file_are_told_at_once_and_cost_no_try_of_the_work() {
    let rules = [
        rule(1, 1, "finish", &finish("done")),
        rule(
            2,
            1,
            "write",
            &json!({ "path": "T-1.txt", "content": "good\n" }),
        ),
        rule(
            2,
            2,
            "bash",
            &json!({ "command": "echo scratch > scratch.py" }),
        ),
        rule(2, 3, "finish", &finish("done")),
        rule(3, 1, "bash", &json!({ "command": "rm scratch.py" })),
        rule(3, 2, "finish", &finish("done")),
    ];
    let project = Project::new(&rules.concat());
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let done = task(&tasks, "T-1");
    assert_eq!((done.attempts, done.tries), (3, 0));
    let classes: Vec<FailureClass> = done.failures.iter().map(|one| one.class).collect();
    assert_eq!(
        classes,
        [FailureClass::EmptyChange, FailureClass::OutOfScope]
    );
    for evidence in open.evidence(build.id).await {
        let refused = evidence.verdict == Verdict::Failed;
        assert_eq!(
            refused,
            evidence.checks.is_empty(),
            "no check ran for what was refused"
        );
    }
    let told = project.requests("T-1").pop().unwrap().text();
    assert!(told.contains("scratch.py") && told.contains("No check was run"));
    assert_eq!(open.attempts(build.id, "T-1").await.len(), 1);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_progress_is_followed_by_a_fresh_conversation_that_knows_all_of_it() {
    let write = json!({ "path": "T-1.txt", "content": "wrong\n" });
    let rules = [
        rule(1, 1, "write", &write),
        rule(1, 2, "finish", &finish("I wrote what I think is right")),
        rule(2, 1, "finish", &finish("I wrote what I think is right")),
        rule(3, 1, "finish", &finish("I still think so")),
        rule(
            4,
            1,
            "write",
            &json!({ "path": "T-1.txt", "content": "good\n" }),
        ),
        rule(4, 2, "finish", &finish("another way")),
    ];
    let project = Project::new(&rules.concat());
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, tasks) = open
        .until(spec, |build, _| build.state == BuildState::Paused)
        .await;
    let failed = task(&tasks, "T-1");
    assert_eq!((failed.state, failed.attempts), (TaskState::Failed, 3));
    assert_eq!(
        failed.failures.last().unwrap().class,
        FailureClass::NoProgress
    );
    let retry = TaskRetry {
        build_id: build.id,
        task_id: failed.id.clone(),
        requested_by: "ada".to_owned(),
        may_resume: false,
        guidance: Some("turn it round".to_owned()),
    };
    open.emit(
        Subject::task(build.id, &failed.id),
        Payload::TaskRetry(retry),
    )
    .await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let fresh = project.prompts("T-1").pop().unwrap();
    assert!(
        fresh.contains("turn it round") && fresh.contains("+wrong"),
        "{fresh}"
    );
    assert!(fresh.contains("I still think so"), "{fresh}");
    assert_eq!(fresh.matches("### Try").count(), 3, "{fresh}");
    open.close().await;
}

/// Writes what is right at once.
fn right() -> String {
    let write = json!({ "path": "T-1.txt", "content": "good\n" });
    rule(1, 1, "write", &write) + &rule(1, 2, "finish", &finish("wrote it"))
}

/// Plans the task with a check whose first look ends with `output`.
fn failing_once(place: &Path, output: &str) -> Value {
    let seen = place.join("seen");
    let seen = seen.display();
    let check = format!(
        "if [ -e {seen} ]; then grep -q good T-1.txt; else touch {seen}; echo '{output}'; exit 1; fi"
    );
    let mut plan = plan();
    plan[0]["validation"]["command"] = json!(check);
    plan
}

/// Says of the attempts at the task how they ended; all of them held one conversation.
fn of_one_conversation(attempts: &[Attempt]) -> Vec<AttemptState> {
    assert!(attempts.iter().all(|one| one.round == 1), "{attempts:?}");
    attempts.iter().map(|one| one.state).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_breaks_off_is_asked_for_again_in_its_conversation_and_tree() {
    let cut = Fault::of(|call| (call == 2).then_some(ModelError::Truncated));
    let project = Project::new(&right())
        .paced_by(cut)
        .with(|options| options.tries.backoff = Duration::from_millis(20));
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(open.git(&["show", "build/habits:T-1.txt"]), "good");
    assert_eq!(asked(&project), [(1, 1), (1, 2), (1, 2)]);
    let requests = project.requests("T-1");
    assert_eq!(requests[1].messages, requests[2].messages);
    let paid = open.services.store.count::<ModelCall>(Query::new()).await;
    assert_eq!(paid.unwrap(), 2);
    let attempts = open.attempts(build.id, "T-1").await;
    let states = [AttemptState::Failed, AttemptState::Landed];
    assert_eq!(of_one_conversation(&attempts), states);
    let done = task(&tasks, "T-1");
    assert_eq!((done.attempts, done.tries), (2, 0));
    assert_eq!(done.failures[0].class, FailureClass::ProviderDown);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_keeps_the_gate_from_its_look_for_a_while_is_waited_out_and_no_model_runs() {
    for (class, output) in [
        (FailureClass::Resource, "write: No space left on device"),
        (FailureClass::Network, "Could not resolve host: example.org"),
    ] {
        let place = tempfile::tempdir().unwrap();
        let project = Project::new(&right())
            .with(|options| options.tries.backoff = Duration::from_millis(20));
        let open = project.open().await;
        let spec = open.approve(failing_once(place.path(), output)).await;
        let (build, tasks) = open.ended(spec).await;
        assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
        assert_eq!(asked(&project), [(1, 1), (1, 2)], "{class:?}");
        let attempts = open.attempts(build.id, "T-1").await;
        let states = [AttemptState::Failed, AttemptState::Landed];
        assert_eq!(of_one_conversation(&attempts), states);
        assert_eq!(attempts[0].failure.as_ref().unwrap().class, class);
        assert_eq!(attempts[0].candidate, attempts[1].candidate);
        assert_eq!(attempts[1].summary.as_deref(), Some("wrote it"));
        let done = task(&tasks, "T-1");
        let counts = (done.attempts, done.tries, done.failures.len());
        assert_eq!(counts, (2, 0, 1), "{class:?}");
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_dies_while_a_failure_is_waited_out_shows_the_same_work_again() {
    let place = tempfile::tempdir().unwrap();
    let project =
        Project::new(&right()).with(|options| options.tries.backoff = Duration::from_secs(1));
    let open = project.open().await;
    let plan = failing_once(place.path(), "write: No space left on device");
    let spec = open.approve(plan).await;
    open.until(spec, |_, tasks| task(tasks, "T-1").failures.len() == 1)
        .await;
    open.crash().await;
    let open = project.open().await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(asked(&project), [(1, 1), (1, 2)]);
    assert_eq!(task(&tasks, "T-1").failures.len(), 1);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_gate_meets_again_after_a_pause_is_told_in_the_same_conversation() {
    let write = |text: &str| json!({ "path": "T-1.txt", "content": text });
    let fault = "Could not resolve host: example.org\n";
    let rules = [
        rule(1, 1, "write", &write(fault)),
        rule(1, 2, "finish", &finish("wrote it")),
        rule(2, 1, "write", &write("good\n")),
        rule(2, 2, "finish", &finish("did without the host")),
    ];
    let project = Project::new(&rules.concat())
        .with(|options| options.tries.backoff = Duration::from_millis(20));
    let open = project.open().await;
    let mut plan = plan();
    plan[0]["validation"]["command"] = json!("cat T-1.txt; grep -q good T-1.txt");
    let spec = open.approve(plan).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(asked(&project), [(1, 1), (1, 2), (2, 1), (2, 2)]);
    let requests = project.requests("T-1");
    let (before, after) = (&requests[1], &requests[2]);
    assert_eq!(after.messages[..before.messages.len()], before.messages[..]);
    let told = after.text();
    assert!(told.contains("Not taken: NETWORK"), "{told}");
    let attempts = open.attempts(build.id, "T-1").await;
    let states = [
        AttemptState::Failed,
        AttemptState::Interrupted,
        AttemptState::Landed,
    ];
    assert_eq!(of_one_conversation(&attempts), states);
    assert_eq!(attempts[1].tries.len(), 1, "{attempts:?}");
    let done = task(&tasks, "T-1");
    let counts = (done.attempts, done.tries, done.failures.len());
    assert_eq!(counts, (3, 0, 2));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_hold_on_the_head_that_moved_is_told_in_the_same_conversation() {
    let place = tempfile::tempdir().unwrap();
    let [begun, go] = ["begun", "go"].map(|name| place.path().join(name));
    let both = json!({ "path": "T-1.txt", "content": "good\nboth\n" });
    let rules = [
        right(),
        rule(2, 1, "write", &both),
        rule(2, 2, "finish", &finish("knows of the other")),
        writes_after("T-2", "T-2.txt", "good\n", &begun),
    ];
    let project = Project::new(&rules.concat()).with(|options| options.loops = 2);
    let open = project.open().await;
    // The first look ends when the other task has landed.
    let check = format!(
        "touch {}; until [ -e {} ]; do sleep 0.02; done; \
         grep -q good T-1.txt && {{ [ ! -e T-2.txt ] || grep -q both T-1.txt; }}",
        begun.display(),
        go.display()
    );
    let one = |id: &str, check: &str| {
        json!({
            "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
            "validation": { "command": check, "expected": "exit 0" },
        })
    };
    let plan = json!([one("T-1", &check), one("T-2", "grep -q good T-2.txt")]);
    let spec = open.approve(plan).await;
    open.until(spec, |_, tasks| {
        task(tasks, "T-2").state == TaskState::Complete
    })
    .await;
    std::fs::write(&go, "").unwrap();
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(open.git(&["show", "build/habits:T-1.txt"]), "good\nboth");
    assert_eq!(asked(&project), [(1, 1), (1, 2), (2, 1), (2, 2)]);
    let requests = project.requests("T-1");
    assert_eq!(requests[2].messages.len(), requests[1].messages.len() + 2);
    let told = requests[2].text();
    assert!(told.contains("Not taken: VALIDATION_FAILED"), "{told}");
    let attempts = open.attempts(build.id, "T-1").await;
    let states = [AttemptState::Interrupted, AttemptState::Landed];
    assert_eq!(of_one_conversation(&attempts), states);
    assert_eq!(attempts[0].tries.len(), 1, "{attempts:?}");
    let done = task(&tasks, "T-1");
    assert_eq!((done.attempts, done.tries), (2, 1));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_begins_anew_after_words_alone_finds_in_the_checkout_what_was_written() {
    let words = |turn: u32| {
        format!(
            "- agent: build\n  task: T-1\n  attempt: 1\n  turn: {turn}\n  reply:\n    text: It is all written.\n"
        )
    };
    let write = json!({ "path": "T-1.txt", "content": "good\n" });
    let rules = [
        rule(1, 1, "write", &write),
        (2..=4).map(words).collect(),
        rule(2, 1, "finish", &finish("It was written already.")),
    ];
    let project = Project::new(&rules.concat());
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(open.git(&["show", "build/habits:T-1.txt"]), "good");
    assert_eq!(asked(&project), [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1)]);
    let fresh = project.prompts("T-1").pop().unwrap();
    for part in [
        "The checkout holds the work of an earlier conversation",
        "AGENT_REFUSED",
        "+good",
    ] {
        assert!(fresh.contains(part), "{part}: {fresh}");
    }
    let done = task(&tasks, "T-1");
    assert_eq!((done.attempts, done.tries), (2, 1));
    open.close().await;
}
