//! An idea becomes landed code by Telegram alone as by the command line (V44): talked about, with a photo and a document,
//! specified, approved, built with a pause and a question, landed; and Telegram is away in the middle of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use nix::sys::signal::Signal;
use ropewalk_tests::servers::TelegramServer;
use ropewalk_world::likeness::{Lines, assert_alike, branch, events, rows};
use serde_json::{Value, json};

use super::phone::{
    TOKEN, VARIABLE, ask, hears, link, message, press, reply, sees, set_up_bot, update, write_text,
};
use crate::approvals::{text, until};
use crate::world::World;

/// What events and rows call a surface; they differ by nothing else.
const SURFACES: [&str; 2] = ["cli", "telegram"];
/// Tables of which each journey has its own.
const LEFT_OUT: [&str; 3] = [
    // What a phone was told, and whose it is.
    "notices",
    "phones",
    // What each part was at in the moment of the stop.
    "components",
];
/// Of a photo Telegram says what it is; of a file on the command line nobody does.
const OF_A_PHOTO: [&str; 3] = [
    " It is a photo which is not looked at.",
    " media type : image jpeg",
    " image jpeg",
];
/// What an idea is about, for who did not understand it.
const WORDS: &str = "People who walk every day forget where they have been";
/// What is said after that.
const MORE: &str = "The first version keeps one list, in a plain file that anybody can read.";
/// The files that come along, each with what is written below it.
const PHOTO: (&str, &[u8], &str) = ("photo.jpg", b"\xff\xd8\xff\xe0 a walk", "A walk of mine");
const NOTES: (&str, &[u8], &str) = ("notes.md", b"Count steps.\n", "My notes");
/// What whoever builds asks in the middle.
const QUESTION: &str = "Feet or metres?";

/// How long the model thinks about the answer: as long as it takes to ask for a pause.
const THINKS_MS: u64 = 6_000;

/// A model that comes from message to message to a brief, plans two tasks, and asks before it does the first.
fn script() -> String {
    let ideation = [
        (2, &["target-user", "problem", "solution-concept"][..], 0),
        (3, &["mvp-features", "differentiator"], 0),
        (4, &[], 3),
        (5, &[], 0),
        (6, &["brief"], 0),
    ]
    .map(|(number, kinds, evidence)| rule(number, kinds, evidence));
    let build = |(task, turn): (&str, u32), tool: &str, input: Value| {
        json!({ "agent": "build", "task": task, "turn": turn,
            "reply": { "tools": [{ "name": tool, "input": input }] } })
    };
    let asks = json!({ "question": QUESTION, "why": "Nobody said it.",
        "options": [{ "label": "metres", "meaning": "as on maps" }, { "label": "feet" }] });
    let writes = |file: &str| json!({ "path": file, "content": "a walk\n" });
    let mut thinks = build(("T-001", 2), "write", writes("a.txt"));
    thinks["contains"] = json!("ada answered: metres");
    thinks["reply"]["delay_ms"] = json!(THINKS_MS);
    let done = json!({ "summary": "Done." });
    let building = [
        build(("T-001", 1), "ask", asks),
        thinks,
        build(("T-001", 3), "finish", done.clone()),
        build(("T-002", 1), "write", writes("b.txt")),
        build(("T-002", 2), "finish", done),
    ];
    let plan = json!({ "agent": "specification",
        "reply": { "tools": [{ "name": "specification", "input": plan() }] } });
    let rules = ideation.iter().chain([&plan]).chain(&building);
    let lines: Vec<String> = rules.map(|rule| format!("- {rule}\n")).collect();
    lines.concat()
}

/// Returns a plan of two tasks, one after the other.
fn plan() -> Value {
    let task = |id: &str, file: &str, before: &[&str]| {
        json!({ "id": id, "phase": "project", "action": "CREATE", "file": file, "more_files": [],
            "requirements": [{ "id": "FR-1", "text": "It is there." }], "gotchas": [], "depends_on": before,
            "validation": { "command": format!("test -s {file}"), "expected": "exit 0" } })
    };
    json!({
        "document": { "title": "Walks", "context_read": [], "missing_inputs": [],
            "objective": "Keep a list of walks.", "success_criteria": ["two files are there"], "out_of_scope": [],
            "requirements": [{ "id": "FR-1", "text": "Walks are listed.", "priority": "must",
                "acceptance": "the files are there", "source": "planning/brief.md" }],
            "quality": [], "new_files": [], "modified_files": [], "avoid_files": [], "interfaces": [], "data": [],
            "dependencies": [], "gotchas": [], "validation": ["test -f b.txt"], "risks": [] },
        "tasks": [task("T-001", "a.txt", &[]), task("T-002", "b.txt", &["T-001"])],
    })
}

/// Returns what is answered to a message, by which these parts of the idea become clear.
fn rule(number: u32, kinds: &[&str], evidence: u32) -> Value {
    let artifact = |kind: &&str| {
        let content = format!("What is known of the {kind}, in a sentence that is long enough.");
        json!({ "kind": kind, "summary": format!("The {kind}."), "content": content, "confidence": 0.8 })
    };
    let artifacts: Vec<Value> = kinds.iter().map(artifact).collect();
    let decision =
        |number| json!({ "kind": "validation", "summary": format!("Evidence {number}.") });
    let decisions: Vec<Value> = (0..evidence).map(decision).collect();
    let risks: Vec<Value> = (0..evidence.min(1))
        .map(|_| json!({ "summary": "Nobody looks into the list." }))
        .collect();
    let heard = json!({ "text": format!("Noted {number}. Tell me **more**."), "artifacts": artifacts,
        "decisions": decisions, "risks": risks, "confidence": 0.5 });
    json!({ "agent": "ideation", "task": format!("message-{number}"),
        "reply": { "tools": [{ "name": "reply", "input": heard }] } })
}

/// Returns a project without a bot.
fn project() -> World {
    let world = World::scripted();
    world.write("../script.yaml", &script());
    world.git(&["add", "."]);
    world.git(&["commit", "--quiet", "--message=project"]);
    world
}

/// Lets ada send a file from her phone, with words below it.
fn send(server: &TelegramServer, kind: &str, (name, bytes, words): (&str, &[u8], &str)) {
    let data = BASE64.encode(bytes);
    ask(
        server,
        "POST /__file",
        Some(&json!({ "id": name, "data": data })),
    );
    let mut sent = message("");
    let fields = sent.as_object_mut().unwrap();
    fields.remove("text");
    fields.insert("caption".to_owned(), json!(words));
    let file = json!({ "file_id": name, "file_unique_id": "u", "file_size": bytes.len() });
    let with = |more: &[(&str, Value)]| {
        let mut file = file.clone();
        for (key, value) in more {
            file[*key] = value.clone();
        }
        file
    };
    let file = if kind == "photo" {
        let size = |side: u32| with(&[("width", json!(side)), ("height", json!(side))]);
        json!([size(90), size(1280)])
    } else {
        with(&[("file_name", json!(name))])
    };
    fields.insert(kind.to_owned(), file);
    update(server, &json!({ "message": sent }));
}

/// Lets Telegram be away (`away`), ask to wait (`flood`), or be as it should (`none`).
fn fault(server: &TelegramServer, mode: &str) {
    ask(server, "POST /__fault", Some(&json!({ "mode": mode })));
}

/// Waits until a message was answered with 429.
fn refused(server: &TelegramServer) {
    let began = Instant::now();
    while ask(server, "GET /__said", None)["refused"] == 0 {
        assert!(began.elapsed() < Duration::from_mins(1), "nothing is told");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn talk_by_phone(server: &TelegramServer) {
    write_text(server, "Walks");
    hears(server, "It is the idea walks now");
    let asked = hears(server, "Answer this message in your own words.");
    reply(server, &asked, WORDS);
    hears(server, &format!("Taken: {WORDS}"));
    hears(server, "Noted 2. Tell me more.");
    write_text(server, MORE);
    hears(server, "Noted 3. Tell me more.");
    send(server, "photo", PHOTO);
    hears(server, "Kept with walks as attachments/photo.jpg.");
    hears(server, "Noted 4. Tell me more.");
    send(server, "document", NOTES);
    hears(server, "Kept with walks as attachments/notes.md.");
    hears(server, "Noted 5. Tell me more.");
    write_text(server, "/done");
    hears(server, "Noted 6. Tell me more.");
}

/// Answers a question of whoever builds: Telegram is away when it is asked, and asks to wait then. What is said meanwhile is
/// done afterwards.
fn answer_by_phone(world: &World, server: &TelegramServer) {
    fault(server, "away");
    write_text(server, "/status");
    until_first_task(world, "waiting");
    until(world, "notice list", |notices| {
        let mut notices = notices.as_array().unwrap().iter();
        notices.any(|notice| notice["question"].is_string() && notice["error"].is_string())
    });
    fault(server, "flood");
    refused(server);
    fault(server, "none");
    let asked = hears(server, QUESTION);
    hears(server, "0 of 2 tasks complete");
    press(server, &asked, "metres");
    sees(server, "Taken: metres");
}

fn pause_by_phone(world: &World, server: &TelegramServer) {
    until_first_task(world, "working");
    write_text(server, "/pause walks");
    hears(server, "Recorded: the build of walks pauses.");
    paused(world);
    write_text(server, "/status");
    hears(server, "walks: paused, 1 of 2 tasks complete");
    write_text(server, "/resume walks");
}

fn by_phone() -> World {
    let server = TelegramServer::start().unwrap();
    let world = project();
    set_up_bot(&world, &server);
    // What holds nothing up is told at once, so that all of it arrives here.
    let up = world.up_with(&[(VARIABLE, TOKEN), ("ROPEWALK_NOTICES__BATCH_MINUTES", "0")]);
    link(&world, &server);

    talk_by_phone(&server);
    write_text(&server, "/execute");
    let shown = hears(&server, "holds for revision 1 with the hash");
    let spec = world.json("spec list");
    let told = text(&shown["parameters"]["text"]);
    assert!(told.contains(text(&spec[0]["hash"])), "{told}");
    assert!(told.contains("Expected price: "), "{told}");
    press(&server, &shown, "start building");
    sees(&server, "Taken: ");
    answer_by_phone(&world, &server);
    pause_by_phone(&world, &server);
    let finished = hears(&server, "The build of walks succeeded");
    let told = text(&finished["parameters"]["text"]);
    assert!(told.contains("2 completed, 0 failed"), "{told}");
    write_text(&server, "/status");
    hears(&server, "walks: succeeded, 2 of 2 tasks complete");

    let landing = hears(&server, "What shall become of the branch?");
    press(&server, &landing, "Merge it");
    merged(&world);
    write_text(&server, "/land walks");
    hears(&server, "was landed already");
    reviewed(&world);
    nothing_is_left(&world);
    told_once(&world, &server);
    let log = std::fs::read_to_string(world.root().join("up.log")).unwrap();
    assert!(!log.contains(TOKEN), "the token of the bot is in the log");
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
    world
}

/// Waits until everything that was to be told is.
fn nothing_is_left(world: &World) {
    until(world, "notice list", |open| open == &json!([]));
    let told = world.json("notice list --all");
    let over = |notice: &Value| ["sent", "over"].contains(&text(&notice["state"]));
    assert!(told.as_array().unwrap().iter().all(over), "{told:#}");
}

/// Checks that every notice, question and answer arrived once: what was gathered stands in one message.
fn told_once(world: &World, server: &TelegramServer) {
    let said = ask(server, "GET /__said", None);
    let said = said["said"].as_array().unwrap().iter();
    let sent = said.filter(|one| one["method"] == "sendmessage");
    let texts: Vec<&str> = sent.map(|one| text(&one["parameters"]["text"])).collect();
    let told = world.json("notice list --all");
    let mut notices = BTreeMap::<String, usize>::new();
    for notice in told.as_array().unwrap() {
        // Of a question the title is written when it is sent.
        let title = text(&notice["title"]).replace('`', "");
        if notice["state"] == "sent" && !title.is_empty() {
            *notices.entry(title).or_default() += 1;
        }
    }
    assert!(!notices.is_empty(), "{told}");
    for (title, count) in notices {
        let lines = texts.iter().flat_map(|text| text.lines());
        assert_eq!(
            lines.filter(|line| *line == title).count(),
            count,
            "{title}: {texts:#?}"
        );
    }
    for begins in ["Question", "Noted"] {
        let mut of_it: Vec<_> = texts
            .iter()
            .filter(|text| text.starts_with(begins))
            .collect();
        let all = of_it.len();
        of_it.sort();
        of_it.dedup();
        assert_eq!((of_it.len(), all > 3), (all, true), "{texts:#?}");
    }
}

fn talk_by_command_line(world: &World) {
    world.run("idea new Walks");
    answer(world, "problem_statement_vague", WORDS);
    answered(world, 2);
    let mut chat = world.ropewalk(["idea", "chat", "walks"]);
    chat.write_stdin(format!("{MORE}\n")).assert().success();
    answered(world, 3);
    for ((name, bytes, words), number) in [(PHOTO, 4), (NOTES, 5)] {
        let file = world.root().join(name);
        std::fs::write(&file, bytes).unwrap();
        let file = file.to_str().unwrap();
        let attach = ["idea", "attach", "walks", file, "--say", words];
        world.ropewalk(attach).assert().success();
        answered(world, number);
    }
    world.run("idea done walks");
    answered(world, 6);
}

fn by_command_line() -> World {
    let world = project();
    let up = world.up();
    talk_by_command_line(&world);
    world.run("spec generate walks");
    answer(&world, "spec_complete", "start");
    until_first_task(&world, "waiting");
    answer(&world, "multiple_implementations", "metres");
    until_first_task(&world, "working");
    let build = build(&world);
    world.run(&format!("build pause {build}"));
    paused(&world);
    world.run(&format!("build resume {build}"));
    answer(&world, "build_finished", "merge");
    merged(&world);
    reviewed(&world);
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
    world
}

/// Answers the question of `trigger` once it is asked.
pub(super) fn answer(world: &World, trigger: &str, choice: &str) {
    let is_asked = |question: &&Value| question["trigger"] == trigger;
    let open = until(world, "question list", |open| {
        open.as_array().unwrap().iter().any(|one| is_asked(&one))
    });
    let question = open.as_array().unwrap().iter().find(is_asked).unwrap();
    world.run(&format!(
        "question answer {} {choice}",
        text(&question["id"])
    ));
}

/// Waits for the answer to a message of the conversation.
fn answered(world: &World, number: u32) {
    let expected = format!("Noted {number}. Tell me **more**.");
    until(world, "idea show walks", |idea| {
        let last = idea["messages"].as_array().and_then(|all| all.last());
        last.is_some_and(|message| message["text"] == expected)
    });
}

/// Returns the id of the build, once there is one.
fn build(world: &World) -> String {
    let builds = until(world, "build list", |builds| builds[0]["id"].is_string());
    text(&builds[0]["id"]).to_owned()
}

/// Waits until the first task of the build is there.
fn until_first_task(world: &World, state: &str) {
    let show = format!("build show {}", build(world));
    until(world, &show, |build| build["tasks"][0]["state"] == state);
}

/// Waits until the build stands still on the word of a person, the first task done and the second not begun.
fn paused(world: &World) {
    let builds = until(world, "build list", |builds| {
        builds[0]["state"] == "paused" && builds[0]["tasks_complete"] == 1
    });
    assert_eq!(builds[0]["pause_reason"], "person", "{builds}");
}

pub(super) fn merged(world: &World) {
    until(world, "build list", |builds| {
        builds[0]["merged"].is_string()
    });
}

/// Waits until conversation, specification and build were learned from.
fn reviewed(world: &World) {
    until(world, "event list --type review.completed", |reviews| {
        reviews.as_array().map(Vec::len) == Some(3)
    });
}

/// Returns the rows of every table but those that are of the phone or of the moment.
fn compared(world: &World) -> Lines {
    let mut rows = world.in_store(async |store| rows(store, &SURFACES).await.unwrap());
    for table in LEFT_OUT {
        assert!(rows.remove(table).is_some(), "{table}");
    }
    for said in rows.get_mut("messages").unwrap() {
        for words in OF_A_PHOTO {
            *said = said.replace(words, "");
        }
    }
    rows
}

#[test]
fn an_idea_becomes_landed_code_by_telegram_alone_as_by_the_command_line() {
    let (phone, line) = (by_phone(), by_command_line());
    for world in [&phone, &line] {
        assert_eq!(world.git(&["show", "main:b.txt"]), "a walk");
        for (event, who) in [
            ("spec.approved", "approved_by"),
            ("build.merged", "merged_by"),
        ] {
            let events = world.json(&format!("event list --type {event}"));
            assert_eq!(events.as_array().map(Vec::len), Some(1), "{events}");
            assert_eq!(events[0]["data"][who], "ada", "{events}");
        }
    }
    for name in ["main", "build/walks"] {
        let [one, other] = [&phone, &line].map(|one| branch(&one.repository(), name).unwrap());
        assert_alike(name, &one, &other);
    }
    assert_alike("rows", &compared(&phone), &compared(&line));
    let [one, other] = [&phone, &line].map(|world| {
        let mut told = world.in_store(async |store| events(store, &SURFACES).await.unwrap());
        // A phone was linked, and kept what brought files until it had its turn, as its row is left out.
        told.remove("phone ada");
        told
    });
    assert_alike("events", &one, &other);
}
