//! A blocking question holds one idea, visibly, also over a restart, until somebody answers (V21).

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::build::Build;
use ropewalk_schemas::lease::Ownership;
use ropewalk_schemas::question::QuestionKind;
use ropewalk_schemas::task::{Task, TaskState, WaitReason};
use ropewalk_schemas::{BuildId, RepoPath};
use serde_json::{Value, json};

use crate::approvals::{documented, specified, text, until};
use crate::questions::question;
use crate::world::{BINARY, World};

#[test]
fn a_blocking_question_is_named_where_its_work_waits_until_it_is_answered() {
    let world = World::scripted();
    documented(&world, "rivers");
    // What is written is the question; that nothing was generated, the exit code says.
    let generate = |more: &'static [&'static str], is_begun: bool| {
        let words = ["spec", "generate", "rivers"].iter().chain(more).copied();
        let output = world.ropewalk(words).assert().code(1);
        let [written, said] = [&output.get_output().stdout, &output.get_output().stderr]
            .map(|bytes| String::from_utf8(bytes.clone()).unwrap());
        assert!(said.contains("it waits for an answer"), "{said}");
        // A model that answers before anybody looks is not waited for; that it is said of one that does not, another test asserts.
        let is_told = said.contains("this waits for the model");
        assert!(is_begun || !is_told, "{said}");
        written
    };
    let written = generate(&[], true);
    // Where it is asked already, nobody waits for a model.
    let asked: Value = serde_json::from_str(&generate(&["--json"], false)).unwrap();
    let id = text(&asked["id"]);
    let waiting = world.json("spec list --idea rivers");
    let show = format!("spec show {}", text(&waiting[0]["id"]));
    assert_eq!(world.json(&show)["waits_for"], json!([id]));
    assert_eq!(world.json("idea show rivers")["waits_for"], json!([id]));
    assert!(world.run("idea show rivers").contains(id));
    let waits = world.json("wait list");
    assert!(waits.to_string().contains(id), "{waits}");
    let listed = world.json("idea list");
    assert_eq!(listed[0]["waits_for_answer"], true, "{listed}");
    for form in ["", " --dot", " --svg"] {
        let drawn = world.run(&format!("wait graph{form}"));
        let waiter = format!("specification/{}", text(&waiting[0]["id"]));
        assert!(drawn.contains(&waiter) && drawn.contains(id), "{drawn}");
    }
    let shown = world.run(&format!("question show {id}"));
    assert_eq!(generate(&[], false), written);
    // How it is answered, the refusal says there.
    let answering = format!("`ropewalk question answer {} …` answers it\n", &id[28..]);
    assert_eq!(
        written + &answering,
        shown,
        "whoever meets the question sees all of it"
    );
    for wanted in [
        "1. plain-files: Plain files (recommended)",
        "2. a-database: A database",
        "any text of yours",
        "waits for it: specification",
    ] {
        assert!(shown.contains(wanted), "`{wanted}` is missing in {shown}");
    }

    assert_eq!(
        specified(&world)["state"],
        "generated",
        "another idea goes on"
    );
    assert_eq!(world.up().stop(Signal::SIGTERM), Some(0));
    let defaults = world.json("question answer --all-defaults");
    assert_eq!(defaults, Value::Array(Vec::new()));
    assert_eq!(world.json(&show)["state"], "draft");
    assert_eq!(world.json(&show)["waits_for"], json!([id]));
    assert_eq!(world.json("lock list"), Value::Array(Vec::new()));

    let up = world.up();
    world.run(&format!("question answer {id} Plain files"));
    let made = until(&world, &show, |spec| spec["state"] == "generated");
    assert!(!made["waits_for"].to_string().contains(id), "{made}");
    let answered = world.json(&format!("question show {id}"));
    assert_eq!(answered["state"], "answered");
    let answer = &answered["answer"];
    assert_eq!(
        (&answer["text"], &answer["by"], &answer["channel"]),
        (&json!("Plain files"), &json!("ada"), &json!("cli"))
    );
    let time = |value: &Value| text(value).parse::<DateTime<Utc>>().unwrap();
    assert!(time(&answer["at"]) > time(&answered["asked_at"]));
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}

/// Waits for a specification until `told` is said, then leaves by Ctrl-C; returns all that was said.
fn said_while_it_is_written(world: &World, told: &str) -> String {
    let place = world.root().join("said");
    let said = || std::fs::read_to_string(&place).unwrap();
    let mut waits = Command::new(BINARY)
        .args(["spec", "generate", "walks"])
        .env_clear()
        .envs(world.environment())
        .current_dir(world.repository())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&place).unwrap())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while !said().contains(told) {
        let ended = waits.try_wait().unwrap();
        let late = began.elapsed() > Duration::from_mins(3);
        if late {
            waits.kill().unwrap();
        }
        assert!(ended.is_none() && !late, "no `{told}`: {}", said());
        std::thread::sleep(Duration::from_millis(50));
    }
    let id = Pid::from_raw(waits.id().try_into().unwrap());
    kill(id, Signal::SIGINT).unwrap();
    assert_eq!(waits.wait().unwrap().code(), Some(2), "{}", said());
    said()
}

#[test]
fn who_waits_for_the_model_that_writes_is_told_so_and_what_becomes_of_it_without_him() {
    let world = World::scripted();
    let script = std::fs::read_to_string(world.root().join("script.yaml")).unwrap();
    let never = "- {agent: specification, reply: {delay_ms: 600000, text: x}}\n";
    world.write("../script.yaml", &format!("{never}{script}"));
    documented(&world, "walks");
    let waits = "this waits for the model, perhaps for minutes; ";
    let from_here = "the model is asked from here: Ctrl-C ends that, and `ropewalk spec generate walks` goes on with it";
    let said = said_while_it_is_written(&world, &format!("{waits}{from_here}"));
    assert!(said.contains("what was asked for is kept"), "{said}");
    let up = world.up();
    let beside = "it may be left with Ctrl-C: the process that runs goes on with it, and `ropewalk spec list` shows how it stands";
    said_while_it_is_written(&world, &format!("{waits}{beside}"));
    assert_eq!(world.json("spec list")[0]["state"], "draft");
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}

#[test]
fn whoever_waits_for_the_end_of_a_build_is_told_that_nothing_runs_and_that_the_time_is_over() {
    let world = World::scripted();
    let clock = Clock::system();
    let ids = Ids::system(clock.clone());
    let build: Build = serde_json::from_value(json!({
        "id": ids.next(), "spec": ids.next(), "revision": 1, "hash": "0".repeat(64), "idea": "walks",
        "user": "ada", "state": "running", "pause_requested": false, "branch": "build/walks", "target": "main",
        "priority": 5, "working_ms": 0, "correlation_id": ids.next(), "created_at": clock.now(),
    }))
    .unwrap();
    world.json("build list");
    world.commit(|changes| {
        changes.insert(&build);
    });
    let mut command = world.ropewalk(["build", "wait", "walks", "--at-most", "1"]);
    let output = command.assert().code(1).get_output().clone();
    let said = String::from_utf8(output.stderr).unwrap();
    let [note, refusal] = said.lines().collect::<Vec<_>>()[..] else {
        panic!("{said}");
    };
    assert!(note.contains("nothing runs"), "{said}");
    assert!(refusal.contains("has not ended yet"), "{said}");
    for verb in ["build list", "build show walks"] {
        let said = world.run(verb);
        assert!(said.contains("nothing runs"), "{said}");
        assert!(said.contains("`ropewalk up`"), "{said}");
        let told = world.json(verb);
        let told = told.get(0).unwrap_or(&told);
        assert_eq!(
            (&told["state"], &told["standing"]),
            (&json!("running"), &json!("nothing runs"))
        );
        assert!(told["next"].to_string().contains("`ropewalk up`"), "{told}");
    }
    let up = world.up();
    let told = world.json("build list");
    assert_eq!(
        (&told[0]["standing"], &told[0]["next"]),
        (&Value::Null, &Value::Null)
    );
    drop(up);
    world.refused("build wait walks --at-most 99999999999", 3);
}

/// A build of `walks` in a state.
fn build(id: BuildId, state: &str) -> Build {
    let build = json!({
        "id": id, "spec": id, "revision": 1, "hash": "0".repeat(64), "idea": "walks", "user": "ada", "state": state,
        "pause_requested": false, "branch": "build/walks", "target": "main", "priority": 5, "working_ms": 0,
        "correlation_id": id, "created_at": "2026-03-01T08:00:00Z",
    });
    serde_json::from_value(build).unwrap()
}

#[test]
fn a_task_whose_file_a_stopped_build_owns_names_the_verbs_that_end_its_wait() {
    let world = World::scripted();
    let ids = Ids::system(Clock::system());
    let [owner, waiter] = [(); 2].map(|()| BuildId(ids.next()));
    let block = json!({
        "id": "T-001", "phase": "project", "action": "UPDATE", "file": "settle.py",
        "validation": { "command": "true", "expected": "exit 0" },
    });
    let waiting = Task {
        state: TaskState::Waiting,
        waiting_for: Some(WaitReason::Owner),
        ..Task::planned(waiter, 1, serde_json::from_value(block).unwrap())
    };
    let ownership = Ownership {
        path: RepoPath::parse("settle.py").unwrap(),
        build: owner,
        since: DateTime::UNIX_EPOCH,
        ended: false,
        after: None,
    };
    let show = format!("build show {waiter}");
    world.json("build list");
    world.commit(|changes| {
        changes.insert(&build(owner, "stopped"));
        changes.insert(&build(waiter, "running"));
        changes.insert(&waiting);
        changes.insert(&ownership);
    });
    let told = format!(
        "T-001 waits for `settle.py`, which build {owner} of `walks` owns, and that is stopped; \
         resume build {owner}, which does not go on by itself, or stop build {waiter}, if that one is what you want, \
         or give build {waiter} the priority 4"
    );
    let shown = world.run(&show);
    assert!(shown.contains(&told), "{shown}");
    let holder = &world.json(&show)["holders"][0];
    assert_eq!(
        (
            &holder["build"],
            &holder["state"],
            &holder["files"],
            &holder["tasks"]
        ),
        (
            &json!(owner),
            &json!("stopped"),
            &json!(["settle.py"]),
            &json!(["T-001"])
        )
    );
    let refused = world.refused(&format!("build retry {waiter} T-001"), 1);
    assert!(refused.contains(&told), "{refused}");
    // Where nothing is waited for, nothing is said.
    assert_eq!(
        world.json(&format!("build show {owner}")).get("holders"),
        None
    );
}

#[test]
fn a_task_says_since_when_it_waits_and_who_left_it_out() {
    let world = World::scripted();
    let ids = Ids::system(Clock::system());
    let id = BuildId(ids.next());
    let task = |number, name| {
        let block = json!({
            "id": name, "phase": "project", "action": "UPDATE", "file": "settle.py",
            "validation": { "command": "true", "expected": "exit 0" },
        });
        Task::planned(id, number, serde_json::from_value(block).unwrap())
    };
    let waiting = Task {
        state: TaskState::Waiting,
        waiting_for: Some(WaitReason::Lock),
        waiting_since: Some(DateTime::UNIX_EPOCH),
        reason: Some("waits for `settle.py`".to_owned()),
        ..task(1, "T-001")
    };
    let open = question(1, QuestionKind::Blocking, false, false);
    let question = open.id;
    let asking = Task {
        state: TaskState::Waiting,
        waiting_for: Some(WaitReason::Person),
        question: Some(question),
        ..task(3, "T-003")
    };
    let skipped = Task {
        state: TaskState::Skipped,
        skipped_by: Some("ada".to_owned()),
        reason: Some("nobody wants it".to_owned()),
        ..task(2, "T-002")
    };
    let show = format!("build show {id}");
    world.json("build list");
    world.commit(|changes| {
        changes.insert(&build(id, "running"));
        changes.insert(&waiting);
        changes.insert(&skipped);
        changes.insert(&asking);
        changes.insert(&open);
    });
    let shown = world.run(&show);
    let digits = &question.to_string()[28..];
    let answered = format!(
        "your answer to question {question} about `T-003`: `ropewalk question show {digits}`, then `ropewalk question answer {digits}`"
    );
    for told in [
        answered.as_str(),
        "waits for `settle.py` (waiting since 1970-01-01 00:00:00 UTC)",
        "skipped by ada: nobody wants it",
    ] {
        assert!(shown.contains(told), "no {told}: {shown}");
    }
    let tasks = &world.json(&show)["tasks"];
    assert_eq!(
        (&tasks[0]["waiting_since"], &tasks[1]["skipped_by"]),
        (&json!("1970-01-01T00:00:00Z"), &json!("ada"))
    );
}

#[test]
fn what_to_do_differently_is_said_to_a_task_with_its_flag_or_without() {
    let world = World::scripted();
    let ids = Ids::system(Clock::system());
    let id = BuildId(ids.next());
    let block = json!({
        "id": "T-001", "phase": "project", "action": "UPDATE", "file": "settle.py",
        "validation": { "command": "true", "expected": "exit 0" },
    });
    let failed = Task {
        state: TaskState::Failed,
        ..Task::planned(id, 1, serde_json::from_value(block).unwrap())
    };
    world.json("build list");
    world.commit(|changes| {
        changes.insert(&build(id, "running"));
        changes.insert(&failed);
    });
    let said = |words: &str| {
        world.run(&format!("build retry {id} T-001 {words}"));
        let wishes = world.json("event list --type task.retry");
        let wishes = wishes.as_array().unwrap().iter();
        let guidance = wishes.map(|wish| wish["data"]["guidance"].clone());
        guidance.filter(Value::is_string).collect::<Vec<_>>()
    };
    assert_eq!(said(""), [] as [Value; 0]);
    assert_eq!(said("mind leap years"), ["mind leap years"]);
    assert_eq!(
        said("--guidance carefully").len(),
        2,
        "beside what was said before"
    );
    let both = format!("build retry {id} T-001 --guidance carefully mind leap years");
    assert!(world.refused(&both, 3).contains("--guidance"));
}
