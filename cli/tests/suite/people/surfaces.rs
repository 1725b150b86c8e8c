//! What a person decides on a phone holds for who asks over the API, and the other way round: approvals, builds, pauses.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use ropewalk_tests::servers::TelegramServer;
use serde_json::{Value, json};

use super::phone::{self, VARIABLE};
use super::serving;
use crate::approvals::{specified, text, until};
use crate::world::{Up, World};

/// A running project of ada, who has a phone and a token.
struct Surfaces {
    world: World,
    server: TelegramServer,
    up: Up,
    address: String,
}

impl Surfaces {
    /// Starts a project of three tasks; where it is `held`, the model of each waits until the test lets it go.
    fn new(held: bool) -> Self {
        Self::scripted(|world| {
            (1..=3)
                .map(|number| task(number, held.then(|| signal(world, number))))
                .collect()
        })
    }

    /// Starts a project whose models answer from `script` first.
    fn scripted(script: impl FnOnce(&World) -> String) -> Self {
        let world = World::scripted();
        let others = std::fs::read_to_string(world.root().join("script.yaml")).unwrap();
        let script = script(&world);
        world.write("../script.yaml", &(script + &others));
        world.git(&["add", "."]);
        world.git(&["commit", "--quiet", "--message=project"]);
        let server = TelegramServer::start().unwrap();
        super::at_once::name_ada(&world);
        phone::set_up_bot(&world, &server);
        let up = world.up_with(&[(VARIABLE, phone::TOKEN)]);
        let address = serving::address(&world);
        phone::link(&world, &server);
        Self {
            world,
            server,
            up,
            address,
        }
    }

    fn api(&self, line: &str, body: &Value) -> (u16, Value) {
        serving::ask(&self.address, line, Some(body))
    }

    fn read(&self, path: &str) -> Value {
        let (status, body) = serving::ask(&self.address, &format!("GET {path}"), None);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Writes on the phone, and returns the next message that holds `part`.
    fn say(&self, words: &str, part: &str) -> Value {
        let before = phone::messages(&self.server, part).len();
        phone::write_text(&self.server, words);
        let began = Instant::now();
        loop {
            if let Some(told) = phone::messages(&self.server, part).get(before) {
                return told.clone();
            }
            let late = began.elapsed() > Duration::from_mins(1);
            assert!(!late, "{words}: no `{part}`");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn press(&self, message: &Value, label: &str, shown: &str) {
        phone::press(&self.server, message, label);
        phone::sees(&self.server, shown);
    }

    fn events(&self, event_type: &str) -> Vec<Value> {
        let events = self.world.json(&format!("event list --type {event_type}"));
        events.as_array().unwrap().clone()
    }

    /// Lets the model of a task go on.
    fn let_go(&self, number: usize) {
        std::fs::write(signal(&self.world, number), "").unwrap();
    }

    fn stop(self) {
        assert_eq!(self.up.stop(Signal::SIGTERM), Some(0));
    }
}

/// What the model of a task waits for.
fn signal(world: &World, number: usize) -> PathBuf {
    world.root().join(format!("go-{number}"))
}

/// A model that does a task, as soon as a file is there.
fn task(number: usize, until: Option<PathBuf>) -> String {
    let file = ["a.txt", "b.txt", "c.txt"][number - 1];
    let until = until.map_or_else(String::new, |go| format!("    until: {}\n", go.display()));
    format!(
        "- agent: build\n  task: T-00{number}\n  turn: 1\n  reply:\n{until}    tools:\n\
         \x20     - name: write\n        input: {{ path: {file}, content: \"a walk\\n\" }}\n\
         - agent: build\n  task: T-00{number}\n  turn: 2\n  reply:\n    tools:\n\
         \x20     - name: finish\n        input: {{ summary: \"Done.\" }}\n"
    )
}

/// A plan of five tasks: three are done, then the fourth fails each time, once a file is there, and the fifth needs it.
fn stubborn(world: &World) -> String {
    let files = ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt"];
    let tasks: Vec<Value> = (1..).zip(files).map(|(number, file)| {
        let needs = if number == 5 { vec!["T-004"] } else { Vec::new() };
        json!({
            "id": format!("T-00{number}"), "phase": "project", "action": "CREATE", "file": file, "more_files": [],
            "requirements": [{ "id": "FR-1", "text": file }], "gotchas": [], "depends_on": needs,
            "validation": { "command": format!("grep -q walk {file}"), "expected": "exit 0" },
        })
    }).collect();
    let document = json!({
        "title": "Walks", "context_read": [], "missing_inputs": [], "objective": "Keep lists of walks.",
        "success_criteria": ["the files are there"], "out_of_scope": [], "requirements": [{
            "id": "FR-1", "text": "Walks are listed.", "priority": "must", "acceptance": "the files are there",
            "source": "planning/brief.md",
        }],
        "quality": [], "new_files": [], "modified_files": [], "avoid_files": [], "interfaces": [], "data": [],
        "dependencies": [], "gotchas": [], "validation": ["test -f a.txt"], "risks": [],
    });
    let plan = json!({ "document": document, "tasks": tasks });
    let planned = format!(
        "- agent: specification\n  reply: {{ tools: [{{ name: specification, input: {plan} }}] }}\n"
    );
    let done: String = (1..=3).map(|number| task(number, None)).collect();
    let until = format!("    until: {}\n", signal(world, 4).display());
    let fail = |attempt: u8| {
        format!(
            "- agent: build\n  task: T-004\n  attempt: {attempt}\n  turn: 1\n  reply:\n{until}    tools:\n\
             \x20     - name: write\n        input: {{ path: d.txt, content: \"try {attempt}\\n\" }}\n"
        )
    };
    let fails = [1, 2, 3].map(fail).concat();
    let gives_up = "- agent: build\n  task: T-004\n  turn: 2\n  reply:\n    tools:\n\
                    \x20     - name: finish\n        input: { summary: \"Done.\" }\n";
    format!("{planned}{done}{fails}{gives_up}")
}

/// Returns all that the phone was told, without the marks of code.
fn all_told(ada: &Surfaces) -> String {
    let told = phone::messages(&ada.server, "");
    let told = told.iter().map(|one| text(&one["parameters"]["text"]));
    told.collect::<Vec<_>>().join("\n")
}

#[test]
fn how_a_build_went_is_told_on_a_phone_with_the_numbers_that_the_api_has() {
    let ada = Surfaces::scripted(stubborn);
    specified(&ada.world);
    phone::hears(&ada.server, "holds for revision 1 with the hash");
    let shown = ada.say("/execute walks", "5 tasks, up to 4 at once.");
    ada.press(&shown, "Start", "Approved: revision 1 is being built.");
    phone::hears(&ada.server, "The build of walks began");
    until(&ada.world, "event list --type task.completed", |done| {
        done.as_array().is_some_and(|done| done.len() == 3)
    });
    ada.let_go(4);
    // What it means comes at once, and once: with the question about it.
    let asked = phone::hears(&ada.server, "can't complete task: T-004");
    let failed = ada.events("task.failed");
    let last = failed.iter().find(|one| one["data"]["will_retry"] == false);
    let last = &last.unwrap()["data"];
    assert_eq!(
        (&last["blocked"], &last["continuing"]),
        (&json!(1), &json!(0))
    );
    let told = all_told(&ada);
    let plain = |words: &Value| text(words).lines().next().unwrap().replace('`', "");
    for part in [
        plain(&last["error"]),
        plain(&last["recommended"]),
        "1 task is blocked by it, 0 tasks go on without it.".to_owned(),
    ] {
        assert!(told.contains(&part), "{part} in {told}");
    }
    assert!(!told.contains("Task T-004 of walks failed"), "{told}");

    let open = ada.read("/api/questions");
    assert_eq!(open["items"][0]["trigger"], "task_failed_repeatedly");
    let manually = "I'll fix this manually";
    ada.press(&asked, manually, &format!("Taken: {manually}"));
    let builds = ada.read("/api/builds");
    let id = text(&builds["items"][0]["id"]).to_owned();
    let build = build_when(&ada, &id, |build| build["state"] == "failed");
    assert_eq!(build["reason"], "failed: `T-004`; blocked: `T-005`");
    let states: Vec<&str> = build["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| text(&task["state"]))
        .collect();
    assert_eq!(
        states,
        ["complete", "complete", "complete", "failed", "blocked"]
    );
    let counts = json!({ "total": 5, "complete": 3, "failed": 1, "skipped": 0, "blocked": 1 });
    assert_eq!(ada.events("build.completed")[0]["data"]["counts"], counts);
    let ended = phone::hears(&ada.server, "The build of walks is failed");
    let ended = text(&ended["parameters"]["text"]);
    assert!(
        ended.contains("3 completed, 1 failed, 1 blocked of 5 tasks."),
        "{ended}"
    );
    // It takes along what was gathered until then.
    let told = all_told(&ada);
    assert!(told.contains("Half of walks is done"), "{told}");
    assert!(told.contains("3 of 5 tasks are."), "{told}");
    for number in 1..=3 {
        let alone = format!("Task T-00{number} of walks is complete");
        let as_half = format!("Task T-00{number} is complete, 3 of 5");
        assert!(told.contains(&alone) || told.contains(&as_half), "{told}");
    }
    let summary = ada.say("/summary", "Summary since");
    let summary = text(&summary["parameters"]["text"]);
    for part in ["1 begun, 1 failed", "3 complete, 1 failed"] {
        assert!(summary.contains(part), "{part} in {summary}");
    }
    ada.stop();
}

#[test]
fn a_build_begins_as_it_was_shown_once_whether_a_phone_or_the_api_approves_it() {
    let ada = Surfaces::new(false);
    let spec = specified(&ada.world);
    let (id, old) = (text(&spec["id"]), text(&spec["hash"]));
    let first = phone::hears(&ada.server, "holds for revision 1 with the hash");
    // Nothing is built that nobody approved.
    ada.say("/resume walks", "is not approved");
    let (status, said) = ada.api(&format!("POST /api/builds/{id}/resume"), &json!({}));
    assert_eq!(status, 404, "{said}");
    assert!(
        said["message"].to_string().contains("not approved"),
        "{said}"
    );

    let revise = format!("POST /api/specifications/{id}/revise");
    let (status, said) = ada.api(&revise, &json!({ "text": "rests too" }));
    assert!((200..300).contains(&status), "{status} {said}");
    phone::hears(&ada.server, "holds for revision 2 with the hash");
    let new = ada.read(&format!("/api/specifications/{id}"))["hash"].clone();
    assert_ne!(new, json!(old));
    // The old revision is approved by nobody any more, neither by its hash nor by its button.
    let approve = format!("POST /api/specifications/{id}/approve");
    let (status, said) = ada.api(&approve, &json!({ "hash": old }));
    assert_eq!(status, 409, "{said}");
    ada.press(
        &first,
        "start building",
        "No answer is needed any more: revision 2 was asked for by ada",
    );

    // What is cancelled does not begin, by an older button either.
    let shown = ada.say("/execute walks", "Build walks?");
    let told = text(&shown["parameters"]["text"]);
    let checks = "What a yes lets run as checks:\n# T-001\n";
    let tried = "\ndry-run: of 1 check: ";
    for part in [
        "1 task. Expected price: ",
        "revision 2",
        text(&new),
        tried,
        checks,
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    ada.press(&shown, "Cancel", "Nothing is started.");
    ada.press(&shown, "Start", "This button means nothing any more.");
    assert_eq!(ada.read("/api/builds")["items"], json!([]));
    assert!(ada.events("spec.approved").is_empty());

    let shown = ada.say("/execute walks", "Build walks?");
    ada.press(&shown, "Start", "Approved: revision 2 is being built.");
    ada.press(&shown, "Start", "it was approved by ada at");
    let (status, said) = ada.api(&approve, &json!({ "hash": new }));
    assert_eq!(status, 409, "{said}");
    assert!(
        text(&said["message"]).contains("already approved by ada"),
        "{said}"
    );
    let built = until(&ada.world, "build list", |builds| {
        builds[0]["state"] == "succeeded"
    });
    assert_eq!(built.as_array().map(Vec::len), Some(1));
    assert_eq!(built[0]["hash"], new);
    let approved = ada.events("spec.approved");
    assert_eq!(approved.len(), 1, "{approved:?}");
    assert_eq!(approved[0]["data"]["hash"], new);
    ada.say("/status", "walks: succeeded, 1 of 1 task complete");
    ada.say("/agents", "notify.telegram: ");
    ada.stop();
}

/// Waits until the API shows a build that `found` is true of.
fn build_when(ada: &Surfaces, id: &str, found: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let build = ada.read(&format!("/api/builds/{id}"));
        if found(&build) {
            return build;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{build}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_pause_of_a_phone_holds_until_the_api_resumes_and_the_other_way_round() {
    let ada = Surfaces::new(true);
    let spec = specified(&ada.world);
    phone::hears(&ada.server, "holds for revision 1 with the hash");
    let shown = ada.say("/execute walks", "3 tasks, up to 2 at once.");
    ada.press(&shown, "Start", "Approved: revision 1 is being built.");
    until(&ada.world, "event list --type task.started", |started| {
        started.as_array().is_some_and(|started| started.len() == 2)
    });
    let builds = ada.read("/api/builds");
    let id = text(&builds["items"][0]["id"]).to_owned();
    assert_eq!(builds["items"][0]["spec"], spec["id"]);

    ada.say("/pause walks", "Recorded: the build of walks pauses.");
    build_when(&ada, &id, |build| build["pause_requested"] == true);
    ada.let_go(1);
    ada.let_go(2);
    let begun = build_when(&ada, &id, |build| build["state"] == "paused");
    assert_eq!(begun["pause_reason"], "person");
    ada.say("/status", "walks: paused");
    let started = ada.events("task.started").len();
    assert_eq!(ada.read("/api/locks")["items"], json!([]));
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(ada.events("task.started").len(), started, "nothing begins");
    let (status, said) = ada.api(&format!("POST /api/builds/{id}/resume"), &json!({}));
    assert!((200..300).contains(&status), "{status} {said}");

    // As soon as it goes on, the API pauses it and the phone lets it go on.
    build_when(&ada, &id, |build| {
        let tasks = build["tasks"].as_array().into_iter().flatten();
        tasks.into_iter().any(|task| task["state"] == "working")
    });
    let (status, said) = ada.api(&format!("POST /api/builds/{id}/pause"), &json!({}));
    assert!((200..300).contains(&status), "{status} {said}");
    let asked = build_when(&ada, &id, |build| build["pause_requested"] == true);
    assert_eq!(text(&asked["reason"]), "pause requested, 1 running");
    ada.let_go(3);
    build_when(&ada, &id, |build| build["state"] == "paused");
    ada.say("/resume walks", "Recorded: the build of walks goes on.");
    build_when(&ada, &id, |build| build["state"] == "succeeded");
    let mut tasks: Vec<String> = ada
        .events("task.started")
        .iter()
        .map(|event| text(&event["data"]["task_id"]).to_owned())
        .collect();
    tasks.sort();
    assert_eq!(tasks, ["T-001", "T-002", "T-003"], "each once");
    ada.stop();
}
