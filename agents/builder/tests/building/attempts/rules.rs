//! What rules keep a model from while nobody is there: it is told, a person hears of it once, and the work goes on.

use std::path::Path;
use std::time::Duration;

use ropewalk_config::settings::{PermissionMode, PolicySettings, Rule};
use ropewalk_schemas::build::BuildState;
use ropewalk_schemas::question::{About, Question, QuestionKind, QuestionState};
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{Payload, Subject, TaskId};
use serde_json::{Value, json};

use crate::world::project::{OpenProject, PATIENCE, Project, request, task};

fn plan() -> Value {
    let one = |id: &str| {
        json!({
            "id": id, "phase": "api", "action": "CREATE", "file": format!("{id}.txt"),
            "validation": { "command": format!("grep -q good {id}.txt"), "expected": "exit 0" },
        })
    };
    json!([one("T-1"), one("T-2")])
}

fn rules(rules: Value) -> Vec<Rule> {
    serde_json::from_value(rules).unwrap()
}

/// Makes the rules of a script: each turn begins with the answer to the one before.
fn script(id: &str, turns: &[(&str, &str, Value)]) -> String {
    let turns = turns.iter().zip(1..).map(|((answer, tool, input), turn)| {
        let contains = match *answer {
            "" => String::new(),
            answer => format!("  contains: {}\n", json!(answer)),
        };
        format!(
            "- agent: build\n  task: {id}\n  turn: {turn}\n{contains}  reply:\n    tools:\n      - name: {tool}\n        input: {input}\n"
        )
    });
    turns.collect()
}

fn bash(line: &str) -> Value {
    json!({ "command": line })
}

fn writes(id: &str) -> Value {
    json!({ "path": format!("{id}.txt"), "content": "good\n" })
}

/// A line that waits until somebody writes `go`.
fn wait_for(go: &Path) -> Value {
    bash(&format!(
        "until test -e {}; do sleep 0.05; done",
        go.display()
    ))
}

/// Waits until the model was asked so often about each of these tasks.
async fn asked_about(project: &Project, wanted: [(&str, usize); 2]) {
    let is_there = |(id, turns): &(&str, usize)| project.requests(id).len() >= *turns;
    let all = async {
        while !wanted.iter().all(is_there) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap();
}

/// Waits until people were asked so often about a call, and returns the questions, the oldest first.
async fn refusals(open: &OpenProject, wanted: usize) -> Vec<Question> {
    let all = async {
        loop {
            let asked = open.questions("decision_needed").await;
            if asked.len() >= wanted {
                return asked;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap()
}

/// A project of somebody who has these rules.
fn ruled_by(script: &str, of_user: Value) -> Project {
    Project::new(script).watched().with(|options| {
        let mut policy = PolicySettings::default();
        policy.rules.user = rules(of_user);
        options.policy.replace(policy);
    })
}

/// A project whose rules leave one command to a person.
fn asking_about_expr(script: &str) -> Project {
    let asks = json!([{ "permission": "bash", "pattern": "expr *", "action": "ask" }]);
    ruled_by(script, asks)
}

fn done() -> Value {
    json!({ "summary": "Done." })
}

/// Two agents who want what a rule leaves to a person, and are not done before somebody writes `go`.
fn who_touch(go: &Path) -> String {
    let asks = "leaves `touch asked` to a person";
    let scripts = [
        script(
            "T-1",
            &[
                ("", "bash", bash("true && touch asked")),
                (asks, "bash", bash("touch asked")),
                (asks, "bash", bash("rm -rf /tmp/x; true")),
                (
                    "forbids `rm -rf /tmp/x`",
                    "write",
                    json!({ "path": ".env", "content": "x" }),
                ),
                (
                    "forbids `.env`",
                    "write",
                    json!({ "path": "T-2.txt", "content": "x" }),
                ),
                ("is not one of the files of this task", "bash", wait_for(go)),
                ("", "write", writes("T-1")),
                ("wrote", "finish", done()),
            ],
        ),
        script(
            "T-2",
            &[
                ("", "bash", bash("touch asked")),
                (asks, "bash", wait_for(go)),
                ("", "write", writes("T-2")),
                ("wrote", "finish", done()),
            ],
        ),
    ];
    scripts.concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_rule_leaves_to_a_person_is_refused_and_told_once_for_a_build() {
    let place = tempfile::tempdir().unwrap();
    let go = place.path().join("go");
    let project = ruled_by(
        &who_touch(&go),
        json!([
            { "permission": "write", "pattern": "**", "action": "allow" },
            { "permission": "write", "pattern": ".env", "action": "deny" },
            { "permission": "bash", "pattern": "rm *", "action": "deny" },
            { "permission": "bash", "pattern": "touch *", "action": "ask" },
        ]),
    );
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    // Neither is complete before both have called.
    asked_about(&project, [("T-1", 6), ("T-2", 2)]).await;
    refusals(&open, 1).await;
    std::fs::write(&go, "").unwrap();
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    for id in ["T-1", "T-2"] {
        assert_eq!(task(&tasks, id).state, TaskState::Complete);
    }
    open.settled().await;
    let told = open.events().await;
    let requested = decisions(&told);
    let [requested] = requested.as_slice() else {
        panic!("{requested:?}");
    };
    assert_eq!(requested["rule"], json!("the rule ask bash `touch *`"));
    // Whichever of the two called first, as it wrote the line.
    let subject = requested["call"]["subject"].as_str().unwrap();
    assert!(["touch asked", "true && touch asked"].contains(&subject));
    let agent = requested["call"]["agent"].as_str().unwrap();
    assert!(agent.starts_with("attempt/"), "{agent}");
    let asked = open.questions("decision_needed").await;
    let [question] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    let shown = format!("```sh\n{subject}\n```");
    assert!(question.text.contains(&shown), "{}", question.text);
    says_what_it_holds_for(question);
    let choices: Vec<&str> = question.choices.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(choices, ["guide", "allow-call", "allow-rule", "leave"]);
    assert_ne!(question.state, QuestionState::Answered);
    assert_eq!(question.kind, QuestionKind::Clarifying);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_anybody_there_the_mode_edit_runs_no_command_and_no_denied_tool_is_shown() {
    let scripts = [
        script(
            "T-1",
            &[
                ("", "bash", bash("true")),
                (
                    "the mode `edit` leaves `true` to a person",
                    "write",
                    writes("T-1"),
                ),
                ("wrote", "finish", done()),
            ],
        ),
        script(
            "T-2",
            &[("", "write", writes("T-2")), ("wrote", "finish", done())],
        ),
    ];
    let project = Project::new(&scripts.concat()).with(|options| {
        let mut policy = PolicySettings {
            mode: PermissionMode::Edit,
            ..PolicySettings::default()
        };
        policy.rules.project =
            rules(json!([{ "permission": "read", "pattern": "**", "action": "deny" }]));
        options.policy.replace(policy);
    });
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let told = project.told.lock().unwrap().clone();
    for request in told {
        let tools: Vec<&str> = request
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        assert!(
            tools.contains(&"bash") && tools.contains(&"write"),
            "{tools:?}"
        );
        for hidden in ["read", "ls", "glob", "grep", "code_outline"] {
            assert!(!tools.contains(&hidden), "{tools:?}");
        }
    }
    let told = open.events().await;
    assert_eq!(decisions(&told).len(), 1);
    open.close().await;
}

/// Reads out of the events what people were asked to decide.
/// The question names the rule as it is written, and each yes says how far it goes.
fn says_what_it_holds_for(question: &Question) {
    let rule = "the rule ask bash `touch *` leaves to a person";
    assert!(question.text.contains(rule), "{}", question.text);
    let holds = |id: &str| {
        let choice = question.choices.iter().find(|one| one.id.as_str() == id);
        choice.and_then(|one| one.description.clone()).unwrap()
    };
    assert!(holds("allow-call").ends_with("again in this build"));
    assert!(holds("allow-rule").ends_with("for the rest of this build"));
}

fn decisions(told: &[(String, Value)]) -> Vec<&Value> {
    let requested = told.iter().filter(|(kind, _)| kind == "decision.requested");
    requested.map(|(_, data)| data).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_allows_is_done_from_then_on_and_not_before() {
    let line = "expr 1111111 + 1";
    let asks = format!("leaves `{line}` to a person");
    // The same words in another line are another call: it may be fed something else.
    for (answer, next, other) in [
        (
            "allow-call",
            "expr '1111111' + 1",
            "leaves `expr 1111111 + 1` to a person",
        ),
        ("allow-rule", "expr 7 + 7", "14"),
    ] {
        let first = script(
            "T-1",
            &[
                ("", "bash", bash(line)),
                (
                    &asks,
                    "finish",
                    json!({ "summary": "No.", "blocked": "I have to count." }),
                ),
            ],
        );
        let again = script(
            "T-1",
            &[
                ("allowed now", "bash", bash(line)),
                ("1111112", "bash", bash(next)),
                (other, "write", writes("T-1")),
                ("wrote", "finish", done()),
            ],
        );
        let first = first.replace("  turn:", "  absent: allowed now\n  turn:");
        let other = script(
            "T-2",
            &[("", "write", writes("T-2")), ("", "finish", done())],
        );
        let project = asking_about_expr(&[first, again, other].concat());
        let open = project.open().await;
        let spec = open.approve(plan()).await;
        open.until(spec, |_, tasks| {
            tasks.iter().any(|task| task.state == TaskState::Failed)
        })
        .await;
        open.settled().await;
        let asked = open.questions("decision_needed").await;
        let question = asked.iter().find(|one| one.content.is_some()).unwrap();
        open.answer_question(question.id, answer).await;
        let (build, tasks) = open
            .until(spec, |_, tasks| {
                tasks.iter().all(|task| task.state == TaskState::Complete)
            })
            .await;
        assert_eq!(task(&tasks, "T-1").attempts, 2, "{:?}", build.reason);
        open.settled().await;
        assert_eq!(decisions(&open.events().await).len(), 1);
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_still_works_when_a_person_allows_it_hears_so_and_goes_on() {
    let line = "expr 1111111 + 1";
    let place = tempfile::tempdir().unwrap();
    let go = place.path().join("go");
    let scripts = [
        script(
            "T-1",
            &[
                ("", "bash", bash(line)),
                ("leaves `expr", "bash", wait_for(&go)),
                ("allowed now", "bash", bash(line)),
                ("1111112", "write", writes("T-1")),
                ("wrote", "finish", done()),
            ],
        ),
        script(
            "T-2",
            &[("", "write", writes("T-2")), ("", "finish", done())],
        ),
    ];
    let project = asking_about_expr(&scripts.concat());
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    open.until(spec, |_, tasks| {
        tasks.iter().any(|task| task.state == TaskState::Complete)
    })
    .await;
    let asked = refusals(&open, 1).await.remove(0);
    open.answer_question(asked.id, "allow-call").await;
    open.until(spec, |_, tasks| !task(tasks, "T-1").guidance.is_empty())
        .await;
    std::fs::write(&go, "").unwrap();
    let (build, tasks) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    assert_eq!(task(&tasks, "T-1").attempts, 1, "its work was thrown away");
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_goes_round_in_circles_is_told_and_a_person_hears_of_it_once() {
    let circles = "you go round in circles";
    let place = tempfile::tempdir().unwrap();
    let go = place.path().join("go");
    let scripts = [
        script(
            "T-1",
            &[
                ("", "bash", bash("true")),
                ("", "bash", bash("true")),
                ("", "bash", bash("true")),
                (circles, "bash", bash("true")),
                (circles, "bash", wait_for(&go)),
                ("", "write", writes("T-1")),
                ("wrote", "finish", done()),
            ],
        ),
        script(
            "T-2",
            &[
                ("", "bash", bash("true")),
                ("", "bash", bash("true")),
                ("", "bash", bash("true")),
                (circles, "bash", wait_for(&go)),
                ("", "write", writes("T-2")),
                ("wrote", "finish", done()),
            ],
        ),
    ];
    let project = Project::new(&scripts.concat()).watched().with(|options| {
        let mut policy = PolicySettings::default();
        // No rule allows a circle.
        policy.rules.flags =
            rules(json!([{ "permission": "*", "pattern": "**", "action": "allow" }]));
        options.policy.replace(policy);
    });
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    asked_about(&project, [("T-1", 5), ("T-2", 4)]).await;
    refusals(&open, 1).await;
    std::fs::write(&go, "").unwrap();
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    open.settled().await;
    let told = open.events().await;
    let requested = decisions(&told);
    assert_eq!(requested.len(), 1, "{requested:?}");
    assert_eq!(requested[0]["rule"], json!("the guard against circles"));
    let asked = open.questions("decision_needed").await;
    let choices: Vec<&str> = asked[0].choices.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(choices, ["guide", "allow-call", "leave"]);
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_about_a_call_goes_with_its_task_and_is_put_anew_for_another() {
    let (place, line) = (tempfile::tempdir().unwrap(), "expr 1111111 + 1");
    let go = |id: &str| place.path().join(id);
    let of = |id: &str| {
        script(
            id,
            &[
                ("", "bash", bash(line)),
                ("leaves `expr", "bash", wait_for(&go(id))),
                ("", "write", writes(id)),
                ("wrote", "finish", done()),
            ],
        )
    };
    let scripts = [of("T-1"), of("T-2")];
    let project = asking_about_expr(&scripts.concat()).with(|options| options.loops = 1);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let first = refusals(&open, 1).await.remove(0);
    assert_eq!(first.state, QuestionState::Pending);
    std::fs::write(go("T-1"), "").unwrap();
    // The first one is withdrawn with the landing of its task, so that the same rule is told of the other one.
    let asked = refusals(&open, 2).await;
    let of_second = TaskId::parse("T-2").unwrap();
    assert!(
        matches!(&asked[1].about, About::Task { task, .. } if *task == of_second),
        "{asked:?}"
    );
    assert_eq!(asked[0].state, QuestionState::Superseded);
    let why = asked[0].closed_because.as_deref();
    assert_eq!(why, Some("the task is complete"));
    std::fs::write(go("T-2"), "").unwrap();
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Succeeded, "{:?}", build.reason);
    let left = refusals(&open, 2).await;
    assert!(
        left.iter()
            .all(|one| one.state == QuestionState::Superseded),
        "{left:?}"
    );
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_about_a_call_goes_when_its_build_has_ended() {
    let place = tempfile::tempdir().unwrap();
    let turns = [
        ("", "bash", bash("expr 1111111 + 1")),
        ("leaves `expr", "bash", wait_for(&place.path().join("go"))),
    ];
    let project = asking_about_expr(&script("T-1", &turns)).with(|options| options.loops = 1);
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let asked = refusals(&open, 1).await.remove(0);
    assert_eq!(asked.state, QuestionState::Pending);
    let build = open.build(spec).await.unwrap();
    let stop = Payload::BuildStop(request(build.id));
    open.emit(Subject::build(build.id), stop).await;
    let (build, _) = open.ended(spec).await;
    assert_eq!(build.state, BuildState::Stopped);
    let asked = refusals(&open, 1).await.remove(0);
    assert_eq!(asked.state, QuestionState::Superseded);
    assert_eq!(asked.closed_because.as_deref(), Some("the build has ended"));
    open.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_was_asked_before_a_build_ended_is_told_again_once_it_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let go = place.path().join("go");
    let scripts = [
        script(
            "T-1",
            &[
                ("", "bash", bash("expr 1111111 + 1")),
                ("leaves `expr", "bash", wait_for(&go)),
                ("", "write", writes("T-1")),
                ("wrote", "finish", done()),
            ],
        ),
        script(
            "T-2",
            &[("", "write", writes("T-2")), ("wrote", "finish", done())],
        ),
    ];
    // Nobody asks here what was told.
    let project = Project::new(&scripts.concat()).with(|options| {
        options.loops = 1;
        let mut policy = PolicySettings::default();
        policy.rules.user = rules(json!([
            { "permission": "bash", "pattern": "expr *", "action": "ask" }
        ]));
        options.policy.replace(policy);
    });
    let open = project.open().await;
    let spec = open.approve(plan()).await;
    let told = async {
        while decisions(&open.events().await).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.unwrap();
    let build = open.build(spec).await.unwrap();
    let stop = Payload::BuildStop(request(build.id));
    open.emit(Subject::build(build.id), stop).await;
    open.ended(spec).await;
    std::fs::write(&go, "").unwrap();
    let resume = Payload::BuildResume(request(build.id));
    open.emit(Subject::build(build.id), resume).await;
    open.until(spec, |build, _| build.state == BuildState::Succeeded)
        .await;
    assert_eq!(decisions(&open.events().await).len(), 2);
    open.close().await;
}
