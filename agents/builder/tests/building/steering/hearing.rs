//! What a person says to a task is heard by its model before anything lands, whenever it comes (V39).

use std::path::Path;
use std::time::Duration;

use ropewalk_desk::builds;
use ropewalk_desk::people::Person;
use ropewalk_schemas::build::{Build, BuildState};
use ropewalk_schemas::question::{Question, QuestionState};
use ropewalk_schemas::task::{Task, TaskState};
use ropewalk_schemas::{SpecId, UserSlug};
use ropewalk_store::Query;
use serde_json::{Value, json};

use crate::world::patience::{exists, until};
use crate::world::project::{OpenProject, PATIENCE, Project, task, writes};

/// Makes a rule for the first turn of a try, whose model makes these calls in one reply; with `told`, only where its
/// conversation holds that.
fn replies(told: Option<&str>, calls: &[(&str, Value)]) -> String {
    let told = told.map_or_else(String::new, |text| format!("  contains: {}\n", json!(text)));
    let tools: Vec<Value> = calls
        .iter()
        .map(|(name, input)| json!({ "name": name, "input": input }))
        .collect();
    format!(
        "- agent: build\n  task: T-1\n  turn: 1\n{told}  reply:\n    tools: {}\n",
        json!(tools)
    )
}

fn write(text: &str) -> (&'static str, Value) {
    ("write", json!({ "path": "a.txt", "content": text }))
}

fn finish() -> (&'static str, Value) {
    ("finish", json!({ "summary": "Done." }))
}

/// Says that somebody has come so far, and waits for a sign.
fn meets(says: &Path, awaits: &Path) -> String {
    let (says, awaits) = (says.display(), awaits.display());
    format!("touch {says}; until [ -e {awaits} ]; do sleep 0.02; done")
}

fn meet(says: &Path, awaits: &Path) -> (&'static str, Value) {
    ("bash", json!({ "command": meets(says, awaits) }))
}

/// A task whose check takes any text.
fn plan(check: &str) -> Value {
    json!([{
        "id": "T-1", "phase": "api", "action": "CREATE", "file": "a.txt",
        "validation": { "command": check, "expected": "exit 0" },
    }])
}

const CHECK: &str = "grep -q . a.txt";

/// Says `words` to the task, and waits until they stand there.
async fn say(open: &OpenProject, spec: SpecId, words: &str) -> Build {
    let (build, _) = open.until(spec, |_, _| true).await;
    let ada = Person::alone(UserSlug::parse("ada").unwrap());
    let told = builds::tasks::tell(&open.context, &build, Some("T-1"), &ada, words).await;
    assert_eq!(told.unwrap().len(), 1);
    let stands = |tasks: &[Task]| task(tasks, "T-1").guidance == [words];
    open.until(spec, |_, tasks| stands(tasks)).await;
    build
}

/// Approves a plan with this check, and tells its task to use tabs when somebody says `begun`; then they go on.
async fn told_at(
    open: &OpenProject,
    check: &str,
    (begun, said): (&Path, &Path),
) -> (SpecId, Build) {
    let spec = open.approve(plan(check)).await;
    exists(begun).await;
    let build = say(open, spec, "use tabs").await;
    std::fs::write(said, "").unwrap();
    (spec, build)
}

/// The work stands as the person wanted it, and what they said was heard once.
async fn heard_once(
    project: &Project,
    open: &OpenProject,
    spec: SpecId,
    (file, text): (&str, &str),
) {
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let landed = open.git(&["show", &format!("build/habits:{file}")]);
    assert_eq!(landed, text);
    let ended = task(&tasks, "T-1");
    assert_eq!((ended.heard, ended.guidance.len()), (1, 1));
    assert_eq!((ended.tries, ended.failures.len()), (0, 0), "{ended:?}");
    let last = project.requests("T-1").pop().unwrap().text();
    assert_eq!(last.matches("use tabs").count(), 1, "{last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_while_a_model_hands_its_work_in_is_heard_before_it_lands() {
    let place = tempfile::tempdir().unwrap();
    let (begun, said) = (place.path().join("begun"), place.path().join("said"));
    let script = [
        replies(Some("use tabs"), &[write("tabs\n"), finish()]),
        replies(None, &[meet(&begun, &said), write("draft\n"), finish()]),
    ];
    let project = Project::new(&script.concat());
    let open = project.open().await;
    let (spec, build) = told_at(&open, CHECK, (&begun, &said)).await;
    heard_once(&project, &open, spec, ("a.txt", "tabs")).await;
    assert_eq!(project.requests("T-1").len(), 2);
    let text = project.requests("T-1")[1].text();
    assert!(text.contains("Not taken yet: a person spoke"), "{text}");
    assert_eq!(open.attempts(build.id, "T-1").await.len(), 1, "it went on");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_while_the_gate_runs_is_heard_before_it_lands() {
    let place = tempfile::tempdir().unwrap();
    let (begun, said) = (place.path().join("begun"), place.path().join("said"));
    let script = [
        replies(Some("use tabs"), &[write("tabs\n"), finish()]),
        replies(None, &[write("draft\n"), finish()]),
    ];
    let project = Project::new(&script.concat());
    let open = project.open().await;
    let check = format!("{CHECK} && {{ {}; }}", meets(&begun, &said));
    let (spec, build) = told_at(&open, &check, (&begun, &said)).await;
    heard_once(&project, &open, spec, ("a.txt", "tabs")).await;
    assert_eq!(project.requests("T-1").len(), 2);
    assert_eq!(open.attempts(build.id, "T-1").await.len(), 1, "it went on");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_to_a_build_that_waits_for_an_earlier_one_is_heard_by_whoever_works_there() {
    let place = tempfile::tempdir().unwrap();
    let (begun, said) = (place.path().join("begun"), place.path().join("said"));
    let script = [
        replies(Some("use tabs"), &[write("tabs\n"), finish()]),
        replies(None, &[meet(&begun, &said), write("draft\n"), finish()]),
        writes("T-2", "b.txt", "good\n", None),
    ];
    let project = Project::new(&script.concat());
    let open = project.open().await;
    let spec = open.approve(plan(CHECK)).await;
    exists(&begun).await;
    let (first, _) = open.until(spec, |_, _| true).await;
    let more = json!([plan(CHECK)[0], {
        "id": "T-2", "phase": "api", "action": "CREATE", "file": "b.txt",
        "validation": { "command": "grep -q good b.txt", "expected": "exit 0" },
    }]);
    open.amend(spec, 2, more).await;
    let follows = async {
        loop {
            let query = Query::new().equal("spec", spec.to_string());
            let found = open.services.store.list::<Build>(query).await.unwrap();
            match found.into_iter().find(|build| build.id != first.id) {
                Some(build) => break build.into_inner(),
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let second = tokio::time::timeout(PATIENCE, follows).await.unwrap();
    let ada = Person::alone(UserSlug::parse("ada").unwrap());
    let told = builds::tasks::tell(&open.context, &second, Some("T-1"), &ada, "use tabs").await;
    assert_eq!(
        told.unwrap().len(),
        1,
        "one task, whichever build works on it"
    );
    until("the first has the words", async || {
        let tasks = open.tasks(first.id).await;
        !task(&tasks, "T-1").guidance.is_empty()
    })
    .await;
    std::fs::write(&said, "").unwrap();
    let second = open.newest_build(spec, &first).await;
    assert_eq!(second.state, BuildState::Succeeded, "{:?}", second.reason);
    assert_eq!(open.git(&["show", "build/habits:a.txt"]), "tabs");
    assert_eq!(open.attempts(first.id, "T-1").await.len(), 1, "it went on");
    assert!(open.attempts(second.id, "T-1").await.is_empty());
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_ends_before_the_answer_to_what_was_said_tells_it_again() {
    let place = tempfile::tempdir().unwrap();
    let sign = |name: &str| place.path().join(name);
    let (begun, said, go) = (sign("begun"), sign("said"), sign("go"));
    let answers = replies(Some("use tabs"), &[write("tabs\n"), finish()]);
    let script = [
        answers.replace(
            "  reply:",
            &format!("  reply:\n    until: {}", go.display()),
        ),
        replies(None, &[meet(&begun, &said), write("draft\n"), finish()]),
    ];
    let project = Project::new(&script.concat());
    let open = project.open().await;
    let (spec, _) = told_at(&open, CHECK, (&begun, &said)).await;
    let asked_again = async || project.requests("T-1").len() >= 2;
    until("its model is asked again", asked_again).await;
    open.crash().await;
    std::fs::write(&go, "").unwrap();
    let open = project.open().await;
    heard_once(&project, &open, spec, ("a.txt", "tabs")).await;
    assert_eq!(project.requests("T-1").len(), 3, "the first reply is known");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_ends_after_that_answer_does_not_land_what_came_before_it() {
    let place = tempfile::tempdir().unwrap();
    let sign = |name: &str| place.path().join(name);
    let (begun, said, half, go) = (sign("begun"), sign("said"), sign("half"), sign("go"));
    let script = [
        replies(
            Some("use tabs"),
            &[meet(&half, &go), write("tabs\n"), finish()],
        ),
        replies(None, &[meet(&begun, &said), write("draft\n"), finish()]),
    ];
    let project = Project::new(&script.concat());
    let open = project.open().await;
    let (spec, _) = told_at(&open, CHECK, (&begun, &said)).await;
    exists(&half).await;
    open.crash().await;
    std::fs::write(&go, "").unwrap();
    let open = project.open().await;
    heard_once(&project, &open, spec, ("a.txt", "tabs")).await;
    // Both replies are known; that the second took the words in is not, so that it is told them again.
    assert_eq!(project.requests("T-1").len(), 3);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_while_a_person_is_asked_goes_to_a_model_before_what_they_allow_lands() {
    let file = "tests/check.sh";
    let read = || ("read", json!({ "path": file }));
    let write = |text: &str| ("write", json!({ "path": file, "content": text }));
    let weak = "echo 'ok 1 - works'; echo '1..1'\n";
    let tabs = format!("# tabs\n{weak}");
    let script = [
        replies(Some("use tabs"), &[read(), write(&tabs), finish()]),
        replies(None, &[read(), write(weak), finish()]),
    ];
    let strict = format!("grep -q good product.txt && {weak}");
    let files = [(file, strict.as_str()), ("product.txt", "bad\n")];
    let project = Project::new(&script.concat()).with_files(&files);
    let open = project.open().await;
    let plan = json!([{
        "id": "T-1", "phase": "api", "action": "UPDATE", "file": file,
        "validation": { "command": "sh tests/check.sh", "expected": "tests >= 1" },
    }]);
    let spec = open.approve(plan).await;
    let waits = |tasks: &[Task]| task(tasks, "T-1").state == TaskState::Waiting;
    open.until(spec, |_, tasks| waits(tasks)).await;
    say(&open, spec, "use tabs").await;
    open.answer("T-1", "allow").await;
    // The words made other content of it, which is asked about anew.
    let pending = |one: &Question| one.state == QuestionState::Pending;
    until("it is asked about anew", async || {
        let asked = open.questions("protected_files").await;
        asked.len() == 2 && asked.iter().any(pending)
    })
    .await;
    open.answer("T-1", "allow").await;
    heard_once(&project, &open, spec, (file, tabs.trim_end())).await;
    // Who does not know of the yes would take back what it allowed.
    let told = project.requests("T-1")[1].text();
    let allowed = "A person allowed the change of `tests/check.sh` that was asked about";
    assert!(told.contains(allowed), "{told}");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_while_a_failure_is_waited_out_is_heard_in_the_conversation_that_made_the_work()
 {
    let place = tempfile::tempdir().unwrap();
    let seen = place.path().join("seen");
    let append = |line: &str| {
        (
            "bash",
            json!({ "command": format!("echo {line} >> a.txt") }),
        )
    };
    let script = [
        replies(Some("use tabs"), &[append("tabs"), finish()]),
        replies(None, &[append("draft"), finish()]),
    ];
    let project = Project::new(&script.concat());
    let open = project.open().await;
    let seen = seen.display();
    let check = format!(
        "if [ -e {seen} ]; then grep -q tabs a.txt; else touch {seen}; echo 'No space left on device'; exit 1; fi"
    );
    let spec = open.approve(plan(&check)).await;
    open.until(spec, |_, tasks| task(tasks, "T-1").failures.len() == 1)
        .await;
    say(&open, spec, "use tabs").await;
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    // Whatever was done once is done once.
    assert_eq!(open.git(&["show", "build/habits:a.txt"]), "draft\ntabs");
    let requests = project.requests("T-1");
    assert_eq!(requests.len(), 2);
    let told = requests[1].text();
    assert!(told.contains("Not taken yet: a person spoke"), "{told}");
    assert_eq!(task(&tasks, "T-1").heard, 1);
    open.close().await;
}
