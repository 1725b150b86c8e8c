//! An idea becomes landed code by Telegram alone (V44), and a bot is no more than a way to say and hear what is so.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use ropewalk_tests::servers::TelegramServer;
use serde_json::{Value, json};

use crate::approvals::{document, specified, text, until};
use crate::world::{World, one_task};

pub(super) const TOKEN: &str = "123456:TEST-of-ada";
/// The variable that holds it.
pub(super) const VARIABLE: &str = "TOKEN_OF_THE_BOT";

/// What an idea is about, for who did not understand it.
const WORDS: &str = "People who walk every day forget where they have been";

/// A model that answers every message, and plans and builds one task.
fn script() -> String {
    format!(
        r#"
- agent: "ideation"
  reply:
    tools:
      - name: "reply"
        input: {{ text: "Noted. Tell me **more**.", artifacts: [], decisions: [], risks: [], confidence: 0.4 }}
{}"#,
        one_task("test -s a.txt")
    )
}

/// Sends one request to the emulator and returns the body of the answer.
fn ask(server: &TelegramServer, line: &str, body: Option<&Value>) -> Value {
    let url = server.url();
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).unwrap()
}

fn update(server: &TelegramServer, update: &Value) {
    let body = json!({ "token": TOKEN, "update": update });
    ask(server, "POST /__fixture/updates", Some(&body));
}

pub(super) fn message(text: &str) -> Value {
    let ann = json!({ "id": 1, "first_name": "Ann", "is_bot": false });
    let chat = json!({ "id": 1, "type": "private", "first_name": "Ann" });
    json!({ "message_id": 9000, "from": ann, "chat": chat, "date": 1_795_294_145, "text": text })
}

/// Answers a message of the bot in words.
fn reply(server: &TelegramServer, to: &Value, words: &str) {
    let mut answer = message(words);
    answer["reply_to_message"] = message("?");
    answer["reply_to_message"]["message_id"] = to["result"]["message_id"].clone();
    update(server, &json!({ "message": answer }));
}

pub(super) fn write_text(server: &TelegramServer, text: &str) {
    update(server, &json!({ "message": message(text) }));
}

/// Returns the number of the update that is asked for next; 0 where nobody asks.
pub(super) fn offset(server: &TelegramServer) -> u64 {
    ask(server, "GET /__said", None)["offset"].as_u64().unwrap()
}

/// Lists the messages that hold `part`.
pub(super) fn messages(server: &TelegramServer, part: &str) -> Vec<Value> {
    let told = ask(server, "GET /__said", None);
    let holds = |one: &&Value| {
        let text = one["parameters"]["text"].as_str().unwrap_or_default();
        one["method"] == "sendmessage" && text.contains(part)
    };
    let said = told["said"].as_array().unwrap().iter();
    said.filter(holds).cloned().collect()
}

/// Waits for the message that holds `part`.
pub(super) fn hears(server: &TelegramServer, part: &str) -> Value {
    let began = Instant::now();
    loop {
        let told = ask(server, "GET /__said", None);
        let said = told["said"].as_array().unwrap();
        let holds = |one: &&Value| {
            let text = one["parameters"]["text"].as_str().unwrap_or_default();
            one["method"] == "sendmessage" && text.contains(part)
        };
        if let Some(found) = said.iter().rev().find(holds) {
            return found.clone();
        }
        assert!(began.elapsed() < Duration::from_mins(2), "{part}: {told:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Presses the button of a message whose label holds `label`.
pub(super) fn press(server: &TelegramServer, sent: &Value, label: &str) {
    let rows = sent["parameters"]["reply_markup"]["inline_keyboard"].as_array();
    let buttons = rows.unwrap().iter().map(|row| &row[0]);
    let mut meant = buttons.filter(|button| button["text"].as_str().unwrap().contains(label));
    let data = meant.next().unwrap()["callback_data"].clone();
    let mut bears = message("?");
    bears["message_id"] = sent["result"]["message_id"].clone();
    let ann = &bears["from"];
    let press =
        json!({ "id": label, "from": ann, "chat_instance": "77", "data": data, "message": bears });
    update(server, &json!({ "callback_query": press }));
}

/// Waits until the last line that was shown for a press holds `line`.
pub(super) fn sees(server: &TelegramServer, line: &str) {
    let began = Instant::now();
    loop {
        let told = ask(server, "GET /__said", None);
        let said = told["said"].as_array().unwrap().iter();
        let mut shown = said.filter(|one| one["method"] == "answercallbackquery");
        if shown
            .next_back()
            .and_then(|one| one["parameters"]["text"].as_str())
            .is_some_and(|shown| shown.contains(line))
        {
            return;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{line}: {told:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Lets the bot of a project be at the emulator, once its token is in the environment.
pub(super) fn set_up_bot(world: &World, server: &TelegramServer) {
    let directory = world.home().join(".config/ropewalk");
    std::fs::create_dir_all(&directory).unwrap();
    let known = std::fs::read_to_string(directory.join("config.toml")).unwrap_or_default();
    let bot = format!(
        "{known}[telegram]\ntoken_variable = \"{VARIABLE}\"\napi_url = \"{}\"\n",
        server.url()
    );
    std::fs::write(directory.join("config.toml"), bot).unwrap();
}

/// Returns a project without a bot, for the journey from an idea to landed code.
fn journeying() -> World {
    let world = World::scripted();
    world.write("../script.yaml", &script());
    world.git(&["add", "."]);
    world.git(&["commit", "--quiet", "--message=project"]);
    world
}

/// Links the phone of ada.
pub(super) fn link(world: &World, server: &TelegramServer) {
    let made = world.json("people link");
    write_text(server, &format!("/start {}", text(&made["code"])));
    hears(server, "This chat is linked to ada.");
}

fn by_phone() -> World {
    let server = TelegramServer::start().unwrap();
    let world = journeying();
    set_up_bot(&world, &server);
    let up = world.up_with(&[(VARIABLE, TOKEN)]);
    link(&world, &server);

    write_text(&server, "Walks");
    hears(&server, "It is the idea walks now");
    let asked = hears(&server, "Answer this message in your own words.");
    reply(&server, &asked, WORDS);
    hears(&server, &format!("Taken: {WORDS}"));
    hears(&server, "Noted. Tell me more.");
    document(&world, "walks");
    write_text(&server, "/execute");
    let shown = hears(&server, "Yes holds for revision 1 with the hash");
    let spec = world.json("spec list");
    let told = text(&shown["parameters"]["text"]);
    assert!(told.contains(text(&spec[0]["hash"])), "{told}");
    assert!(told.contains("Expected: "), "{told}");
    press(&server, &shown, "start building");
    let finished = hears(&server, "The build of walks succeeded");
    let told = text(&finished["parameters"]["text"]);
    assert!(told.contains("1 completed, 0 failed"), "{told}");
    write_text(&server, "/status");
    hears(&server, "walks: succeeded, 1 of 1 task complete");

    let landing = hears(&server, "What shall become of the branch?");
    press(&server, &landing, "Merge it");
    merged(&world);
    write_text(&server, "/land walks");
    hears(&server, "was landed already");
    reviewed(&world);
    let log = std::fs::read_to_string(world.root().join("up.log")).unwrap();
    assert!(!log.contains(TOKEN), "the token of the bot is in the log");
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
    world
}

fn by_command_line() -> World {
    let world = journeying();
    let up = world.up();
    world.run("idea new Walks");
    answer(&world, "problem_statement_vague", WORDS);
    until(&world, "idea show walks", |idea| {
        let last = idea["messages"].as_array().and_then(|all| all.last());
        last.is_some_and(|message| message["text"] == "Noted. Tell me **more**.")
    });
    document(&world, "walks");
    world.run("spec generate walks --complexity simple");
    answer(&world, "spec_complete", "start");
    answer(&world, "build_finished", "merge");
    merged(&world);
    reviewed(&world);
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
    world
}

/// Answers the question of `trigger` once it is asked.
fn answer(world: &World, trigger: &str, choice: &str) {
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

fn merged(world: &World) {
    until(world, "build list", |builds| {
        builds[0]["merged"].is_string()
    });
}

/// Waits until specification and build were learned from.
fn reviewed(world: &World) {
    until(world, "event list --type review.completed", |reviews| {
        reviews.as_array().map(Vec::len) == Some(2)
    });
}

/// Returns how many events there are of each type, without what differs between any two runs.
fn events(world: &World) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in world.json("event list --limit 1000").as_array().unwrap() {
        // Those come with the time, however little is done.
        if event["type"] == "schedule.due" {
            continue;
        }
        let told = format!("{} {}", text(&event["type"]), kept(event["data"].clone()));
        *counts.entry(told).or_default() += 1;
    }
    counts
}

/// Writes a value without what depends on the machine: how long something took, who did it, how much it said.
fn kept(value: Value) -> String {
    fn without(value: Value) -> Value {
        let depends = |name: &str| {
            name.ends_with("_seconds")
                || name.ends_with("_ms")
                || ["loop_name", "tokens", "spent"].contains(&name)
        };
        match value {
            Value::Object(fields) => fields
                .into_iter()
                .filter(|(name, _)| !depends(name))
                .map(|(name, value)| (name, without(value)))
                .collect(),
            Value::Array(items) => items.into_iter().map(without).collect(),
            other => other,
        }
    }
    plain(&without(value).to_string())
}

/// Leaves out of a text its ids, hashes and times, and the surface that somebody used.
fn plain(written: &str) -> String {
    let is_apart = |letter: char| !letter.is_alphanumeric() && !"-:.".contains(letter);
    let words = written.split(is_apart).map(|word| {
        let has_digit = word.contains(|letter: char| letter.is_ascii_digit());
        let is_made = has_digit && (word.len() > 6 || word.contains(':'));
        match word {
            "cli" | "telegram" => "surface",
            _ if is_made => "#",
            _ => word,
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn an_idea_becomes_landed_code_by_telegram_alone_as_by_the_command_line() {
    let (phone, line) = (by_phone(), by_command_line());
    for world in [&phone, &line] {
        assert_eq!(world.git(&["show", "main:a.txt"]), "a walk");
        for (event, who) in [
            ("spec.approved", "approved_by"),
            ("build.merged", "merged_by"),
        ] {
            let events = world.json(&format!("event list --type {event}"));
            assert_eq!(events.as_array().map(Vec::len), Some(1), "{events}");
            assert_eq!(events[0]["data"][who], "ada", "{events}");
        }
    }
    let branches = ["main", "build/walks"];
    for branch in branches {
        for asked in [["log", "--format=%s"], ["ls-tree", "-r"]] {
            let asked = [&asked[..], &[branch]].concat();
            assert_eq!(plain(&phone.git(&asked)), plain(&line.git(&asked)));
        }
    }
    for file in ["spec.md", "tasks.md"] {
        let file = format!("main:ideas/walks/build/{file}");
        let held = |world: &World| plain(&world.git(&["show", &file]));
        assert_eq!(held(&phone), held(&line), "{file}");
    }
    assert_eq!(events(&phone), events(&line));
    let rows = |world: &World, list: &str| kept(world.json(list));
    for list in [
        "idea list",
        "spec list",
        "build list",
        "question list --all",
    ] {
        assert_eq!(rows(&phone, list), rows(&line, list), "{list}");
    }
}

/// Returns what `doctor` says by one of its checks.
fn diagnosed(world: &World, check: &str) -> String {
    let mut command = world.ropewalk(["doctor", "--json"]);
    let output = command.env(VARIABLE, TOKEN).output().unwrap();
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of_check = |finding: &&Value| finding["check"] == check;
    let finding = findings.as_array().unwrap().iter().find(of_check);
    let finding = finding.unwrap();
    format!("{} {}", text(&finding["verdict"]), text(&finding["detail"]))
}

#[test]
fn a_bot_tells_nothing_of_what_was_before_it_and_its_loss_changes_nothing() {
    let world = World::scripted();
    world.git(&["add", "."]);
    world.git(&["commit", "--quiet", "--message=project"]);
    let said = world.refused("people link", 1);
    assert!(said.contains("there is no bot; "), "{said}");
    let spec = specified(&world);
    let id = text(&spec["id"]);

    let server = TelegramServer::start().unwrap();
    set_up_bot(&world, &server);
    assert_eq!(diagnosed(&world, "telegram"), "ok `@ropewalk_bot` answers");
    let said = diagnosed(&world, "phones");
    assert!(said.starts_with("warn the bot tells nobody"), "{said}");
    assert!(said.contains("`ropewalk people link`"), "{said}");
    let up = world.up_with(&[(VARIABLE, TOKEN)]);
    link(&world, &server);
    world.run(&format!("spec revise {id} rests too"));
    hears(&server, "Yes holds for revision 2");
    let told = ask(&server, "GET /__said", None).to_string();
    assert!(!told.contains("revision 1 with"), "{told}");
    assert_eq!(diagnosed(&world, "phones"), "ok 1 of 1 person linked");
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));

    drop(server);
    let said = diagnosed(&world, "telegram");
    assert!(said.starts_with("fail the bot does not answer: "), "{said}");
    assert!(!said.contains(TOKEN), "{said}");
    let up = world.up_with(&[(VARIABLE, TOKEN)]);
    answer(&world, "spec_complete", "start");
    answer(&world, "build_finished", "merge");
    merged(&world);
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
    let unlinked = world.json("people link --undo");
    assert_eq!(unlinked, json!({ "name": "ada", "unlinked": true }));
}
