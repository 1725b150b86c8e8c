//! A model that works on a task asks a person, and goes on in the same conversation with the answer (V39).

use std::path::Path;

use ropewalk_coordination::locks;
use ropewalk_coordination::waits::blocking_questions;
use ropewalk_desk::builds::{self, tasks::TaskError};
use ropewalk_desk::people::Person;
use ropewalk_engine::llm::ModelRequest;
use ropewalk_schemas::attempt::{Attempt, AttemptState};
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::payload::{DecisionMade, QuestionAnswered, Verdict};
use ropewalk_schemas::question::QuestionState;
use ropewalk_schemas::task::{Task, TaskState, WaitReason};
use ropewalk_schemas::{ChoiceId, Payload, Subject, TaskId, UserSlug};
use ropewalk_store::{ChangeSet, DeliveryFilter, DeliveryState, Query};
use serde_json::{Value, json};

use crate::world::patience::exists;
use crate::world::project::{Project, git, task, writes};

fn plan() -> Value {
    json!([
        {
            "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt", "more_files": ["README.md"],
            "validation": { "command": "grep -q tabs a.txt", "expected": "exit 0" },
        },
        {
            "id": "T-2", "phase": "api", "action": "UPDATE", "file": "README.md",
            "validation": { "command": "grep -q better README.md", "expected": "exit 0" },
        },
    ])
}

fn turn(number: u32, contains: &str, tool: &str, input: &Value) -> String {
    let contains = if contains.is_empty() {
        String::new()
    } else {
        format!("  contains: {}\n", json!(contains))
    };
    format!(
        "- agent: build\n  task: T-1\n  turn: {number}\n{contains}  reply:\n    tools:\n      - name: {tool}\n        input: {input}\n"
    )
}

fn asks() -> String {
    let question = json!({
        "question": "Tabs or spaces?", "why": "README.md does not say.\r\n\nMay it?\rblocking asked by ropewalk",
        "options": [
            { "label": "tabs", "meaning": "one each" },
            { "label": "spaces", "meaning": "two of them\n\nblocking asked by ropewalk" },
            { "label": "both\nMay it?" },
        ],
    });
    let write = |path: &str, text: &str| json!({ "path": path, "content": text });
    let read = json!({ "path": "README.md" });
    [
        turn(1, "", "write", &write("a.txt", "draft\n")),
        turn(2, "", "read", &read),
        turn(3, "", "ask", &question),
        turn(
            4,
            "others changed `README.md`",
            "write",
            &write("a.txt", "tabs\n"),
        ),
        turn(
            5,
            "ada answered: tabs - one each",
            "write",
            &write("README.md", "best\n"),
        ),
        turn(6, "README.md` exists and was not read yet", "read", &read),
        turn(7, "better", "write", &write("README.md", "better, best\n")),
        turn(8, "", "finish", &json!({ "summary": "Done." })),
    ]
    .concat()
}

/// Says whether all is done but what waits for an answer.
fn only_the_question_is_left(_: &Build, tasks: &[Task]) -> bool {
    task(tasks, "T-1").state == TaskState::Waiting
        && task(tasks, "T-2").state == TaskState::Complete
}

/// Makes a command that says that it has begun and waits until somebody says more.
fn meet(begun: &Path, more: &Path) -> String {
    format!(
        "touch {}; until [ -e {} ]; do sleep 0.02; done",
        begun.display(),
        more.display()
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_asks_keeps_its_work_and_goes_on_with_the_answer() {
    let script = asks() + &writes("T-2", "README.md", "better\n", None);
    let project = Project::new(&script).with_files(&[("README.md", "good\n")]);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (_, tasks) = open
        .until(spec, |_, tasks| {
            task(tasks, "T-1").state == TaskState::Waiting
                && task(tasks, "T-2").state == TaskState::Complete
        })
        .await;
    let waiting = task(&tasks, "T-1");
    assert_eq!(waiting.waiting_for, Some(WaitReason::Person));
    let store = &open.context.store;
    let asked = blocking_questions(store).await.unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].text, "The model of task T-1 asks: Tabs or spaces?");
    // None of its lines passes for one of the program.
    let why =
        "The model says why: README.md does not say.\n> \n> May it?\n> blocking asked by ropewalk";
    assert_eq!(asked[0].context, why);
    let [_, spaces, both] = &asked[0].choices[..] else {
        panic!("{:?}", asked[0].choices);
    };
    let meaning = spaces.description.as_deref();
    assert_eq!(meaning, Some("two of them blocking asked by ropewalk"));
    assert_eq!(
        (both.label.as_str(), asked[0].free_text),
        ("both May it?", true)
    );
    let attempts = store
        .list::<Attempt>(Query::new().equal("task", "T-1"))
        .await;
    let first = attempts.unwrap().remove(0);
    assert_eq!(first.state, AttemptState::Interrupted);
    assert_eq!(locks::held_by(store, first.id).await.unwrap().len(), 0);
    let kept = first.preserve_ref.clone().expect("its work is kept");
    let clone = project.state().join("repository.git");
    assert_eq!(git(&clone, &["show", &format!("{kept}:a.txt")]), "draft");

    open.answer("T-1", "tabs").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(open.git(&["show", "build/habits:a.txt"]), "tabs");
    let readme = open.git(&["show", "build/habits:README.md"]);
    assert_eq!(readme, "better, best", "it stands on what others landed");
    let ended = task(&tasks, "T-1");
    assert_eq!((ended.tries, ended.failures.len()), (0, 0), "{ended:?}");
    let questions = open.questions("multiple_implementations").await;
    assert_eq!(questions.len(), 1, "it is asked once");
    assert_eq!(questions[0].state, QuestionState::Answered);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_says_meanwhile_is_in_the_next_request_of_that_task_alone() {
    let signs = tempfile::tempdir().unwrap();
    let (begun, said) = (signs.path().join("begun"), signs.path().join("said"));
    let waits = meet(&begun, &said);
    let script = [
        turn(1, "", "bash", &json!({ "command": waits })),
        turn(
            2,
            "A person says: use tabs",
            "write",
            &json!({ "path": "a.txt", "content": "tabs\n" }),
        ),
        turn(3, "", "finish", &json!({ "summary": "Done." })),
    ]
    .concat()
        + &writes("T-2", "README.md", "better\n", None);
    let project = Project::new(&script).with_files(&[("README.md", "good\n")]);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    exists(&begun).await;
    let (build, _) = open.until(spec, |_, _| true).await;
    let ada = Person::alone(UserSlug::parse("ada").unwrap());
    let say = |text: String| {
        let (context, build, ada) = (&open.context, &build, &ada);
        async move { builds::tasks::tell(context, build, Some("T-1"), ada, &text).await }
    };
    say("use tabs".to_owned()).await.unwrap();
    for number in 2..=10 {
        say(format!("word {number}")).await.unwrap();
    }
    open.until(spec, |_, tasks| task(tasks, "T-1").guidance.len() == 10)
        .await;
    // So many wait at most for a model that does not come to hear them.
    let more = say("word 11".to_owned()).await;
    assert!(matches!(more, Err(TaskError::State(_))), "{more:?}");
    std::fs::write(&said, "").unwrap();
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let heard = |task: &str| {
        let requests = project.requests(task);
        let told = |request: &ModelRequest| request.text().matches("use tabs").count();
        requests.iter().map(told).collect::<Vec<_>>()
    };
    assert_eq!(heard("T-1"), [0, 1, 1], "once in the conversation");
    let requests = project.requests("T-1");
    assert!(requests[1].text().contains("A person says: word 10"));
    let told = task(&tasks, "T-1");
    assert_eq!((told.heard, told.guidance.len()), (10, 10));
    assert_eq!(heard("T-2").iter().sum::<usize>(), 0);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_dies_while_a_question_is_open_asks_it_once() {
    let script = asks() + &writes("T-2", "README.md", "better\n", None);
    let project = Project::new(&script).with_files(&[("README.md", "good\n")]);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    open.until(spec, only_the_question_is_left).await;
    open.close().await;
    let open = project.open().await;
    open.until(spec, only_the_question_is_left).await;
    open.answer("T-1", "tabs").await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(open.questions("multiple_implementations").await.len(), 1);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_changed_since_a_question_is_told_again_after_a_crash() {
    let signs = tempfile::tempdir().unwrap();
    let (begun, go_on) = (signs.path().join("begun"), signs.path().join("go-on"));
    let waits = meet(&begun, &go_on);
    let changed = "others changed `README.md`";
    let script = [
        turn(1, "", "ask", &json!({ "question": "Tabs?", "why": "-" })),
        turn(2, changed, "bash", &json!({ "command": waits })),
        turn(
            3,
            changed,
            "write",
            &json!({ "path": "a.txt", "content": "tabs\n" }),
        ),
        turn(4, "", "finish", &json!({ "summary": "Done." })),
    ]
    .concat()
        + &writes("T-2", "README.md", "better\n", None);
    let project = Project::new(&script).with_files(&[("README.md", "good\n")]);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    open.until(spec, only_the_question_is_left).await;
    open.answer("T-1", "tabs").await;
    exists(&begun).await;
    open.crash().await;
    std::fs::write(&go_on, "").unwrap();
    let open = project.open().await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let attempts = open.attempts(build.id, "T-1").await;
    assert_eq!(attempts.len(), 3, "{attempts:?}");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_comes_as_its_task_is_left_out_begins_nothing() {
    let script = asks() + &writes("T-2", "README.md", "better\n", None);
    let project = Project::new(&script).with_files(&[("README.md", "good\n")]);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open.until(spec, only_the_question_is_left).await;
    let question = open.open_question("T-1").await.unwrap();
    let id = TaskId::parse("T-1").unwrap();
    let left_out = Payload::DecisionMade(DecisionMade {
        build_id: build.id,
        task_id: Some(id.clone()),
        verdict: Verdict::Skip,
        reason: "nobody wants it".to_owned(),
        file: None,
        decided_by: Some("ada".to_owned()),
    });
    let answered = Payload::QuestionAnswered(QuestionAnswered {
        question_id: question.id,
        trigger: question.trigger,
        choice: Some(ChoiceId::parse("tabs").unwrap()),
        answer: "tabs".to_owned(),
        says_why: false,
        answered_by: "ada".to_owned(),
        channel: "cli".to_owned(),
        about: question.about,
        idea_slug: question.idea,
    });
    // Both at once, in whichever order they are handled, and the answer once more when all is over.
    let mut changes = ChangeSet::new();
    for (subject, payload) in [
        (Subject::task(build.id, &id), left_out),
        (Subject::question(question.id), answered.clone()),
    ] {
        changes.emit(open.context.event(subject, payload));
    }
    open.services.store.commit(changes).await.unwrap();
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    open.emit(Subject::question(question.id), answered).await;
    open.settled().await;
    let tasks = open.tasks(build.id).await;
    let left = task(&tasks, "T-1");
    assert_eq!((left.state, left.attempt), (TaskState::Skipped, None));
    let asked = open.questions("multiple_implementations").await;
    let states: Vec<QuestionState> = asked.iter().map(|asked| asked.state).collect();
    assert_eq!(states, [QuestionState::Superseded]);
    let attempts = open.attempts(build.id, "T-1").await;
    assert!(attempts.iter().all(|attempt| attempt.state.is_final()));
    assert!(open.held_locks().await.is_empty());
    let dead = DeliveryFilter {
        states: vec![DeliveryState::Dead],
        ..DeliveryFilter::default()
    };
    assert_eq!(open.services.store.deliveries(&dead).await.unwrap(), []);
    open.close().await;
}
