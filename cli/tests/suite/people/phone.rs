//! What ada does on her phone and sees there; a bot is no more than a way to say and hear what is so.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use ropewalk_tests::servers::TelegramServer;
use serde_json::{Value, json};

use super::journey::{answer, merged};
use crate::approvals::{specified, text};
use crate::world::World;

pub(super) const TOKEN: &str = "123456:TEST-of-ada";
/// The variable that holds it.
pub(super) const VARIABLE: &str = "TOKEN_OF_THE_BOT";

/// Sends one request to the emulator and returns the body of the answer.
pub(super) fn ask(server: &TelegramServer, line: &str, body: Option<&Value>) -> Value {
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

pub(super) fn update(server: &TelegramServer, update: &Value) {
    let body = json!({ "token": TOKEN, "update": update });
    ask(server, "POST /__fixture/updates", Some(&body));
}

pub(super) fn message(text: &str) -> Value {
    let ann = json!({ "id": 1, "first_name": "Ann", "is_bot": false });
    let chat = json!({ "id": 1, "type": "private", "first_name": "Ann" });
    json!({ "message_id": 9000, "from": ann, "chat": chat, "date": 1_795_294_145, "text": text })
}

/// Answers a message of the bot in words.
pub(super) fn reply(server: &TelegramServer, to: &Value, words: &str) {
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

/// Waits until the last line that was shown for a press holds `line`; where that press took its time, until a message does.
pub(super) fn sees(server: &TelegramServer, line: &str) {
    let began = Instant::now();
    loop {
        let told = ask(server, "GET /__said", None);
        let said = told["said"].as_array().unwrap();
        let by = |method: &'static str| said.iter().filter(move |one| one["method"] == method);
        let holds = |one: &Value| {
            let text = one["parameters"]["text"].as_str();
            text.is_some_and(|text| text.contains(line))
        };
        let last = by("answercallbackquery").next_back();
        let is_late = last.is_some_and(|one| one["parameters"]["text"].is_null());
        if last.is_some_and(holds) || (is_late && by("sendmessage").any(holds)) {
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

/// Links the phone of ada.
pub(super) fn link(world: &World, server: &TelegramServer) {
    let made = world.json("people link");
    write_text(server, &format!("/start {}", text(&made["code"])));
    hears(server, "This chat is linked to ada.");
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
    hears(&server, "holds for revision 2");
    let told = ask(&server, "GET /__said", None).to_string();
    assert!(!told.contains("revision 1 with"), "{told}");
    assert_eq!(diagnosed(&world, "phones"), "ok 1 of 1 person linked");
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));

    drop(server);
    let said = diagnosed(&world, "telegram");
    assert!(said.starts_with("fail the bot does not answer: "), "{said}");
    assert!(!said.contains(TOKEN), "{said}");
    // Somebody else is named, so that whose chat it is nobody knows any more.
    let file = world.home().join(".config/ropewalk/config.toml");
    let known = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{known}[people.bob]\n")).unwrap();
    let said = diagnosed(&world, "phones");
    let wanted = "warn the bot tells nobody, since no phone is linked but that of `ada`";
    assert!(said.starts_with(wanted), "{said}");
    std::fs::write(&file, known).unwrap();
    let up = world.up_with(&[(VARIABLE, TOKEN)]);
    answer(&world, "spec_complete", "start");
    answer(&world, "build_finished", "merge");
    merged(&world);
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
    let unlinked = world.json("people link --undo");
    assert_eq!(
        unlinked,
        json!({ "name": "ada", "unlinked": true, "configured": false })
    );
}

#[test]
fn what_the_doctor_says_of_the_bot_is_one_line_that_says_what_to_do() {
    let world = World::scripted();
    let server = TelegramServer::start().unwrap();
    set_up_bot(&world, &server);
    let told = || {
        let said = diagnosed(&world, "telegram");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!said.contains(TOKEN), "{said}");
        said
    };
    assert_eq!(told(), "ok `@ropewalk_bot` answers");
    ask(
        &server,
        "POST /__fault",
        Some(&json!({ "mode": "stranger" })),
    );
    assert_eq!(
        told(),
        "fail the bot does not answer: Telegram does not know the token of the bot; check the token of \
         `telegram.token_variable`, and `telegram.api_url`"
    );
    ask(&server, "POST /__fault", Some(&json!({ "mode": "none" })));
    assert_eq!(told(), "ok `@ropewalk_bot` answers");
    drop(server);
    assert_eq!(
        told(),
        "fail the bot does not answer: Telegram cannot be reached; check the network from here, and `telegram.api_url`"
    );
}
