//! An idea becomes landed code by Telegram alone (V44).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use ropewalk_tests::servers::TelegramServer;
use serde_json::{Value, json};

use crate::approvals::{document, until};
use crate::world::{World, one_task};

const TOKEN: &str = "123456:TEST";

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

fn message(text: &str) -> Value {
    let ann = json!({ "id": 1, "first_name": "Ann", "is_bot": false });
    let chat = json!({ "id": 1, "type": "private", "first_name": "Ann" });
    json!({ "message_id": 9000, "from": ann, "chat": chat, "date": 1_795_294_145, "text": text })
}

fn write_text(server: &TelegramServer, text: &str) {
    update(server, &json!({ "message": message(text) }));
}

/// Waits for the message that holds `part`.
fn hears(server: &TelegramServer, part: &str) -> Value {
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
fn press(server: &TelegramServer, sent: &Value, label: &str) {
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

#[test]
fn an_idea_becomes_landed_code_by_telegram_alone() {
    let world = World::scripted();
    world.write("../script.yaml", &script());
    world.git(&["add", "."]);
    world.git(&["commit", "--quiet", "--message=project"]);
    let server = TelegramServer::start().unwrap();
    let url = server.url();
    let up = world.up_with(&[
        ("ROPEWALK_TELEGRAM__TOKEN_VARIABLE", "TOKEN_OF_THE_BOT"),
        ("ROPEWALK_TELEGRAM__API_URL", &url),
        ("TOKEN_OF_THE_BOT", TOKEN),
    ]);
    let made = world.json("people link");
    write_text(
        &server,
        &format!("/start {}", made["code"].as_str().unwrap()),
    );
    hears(&server, "This chat is linked to ada.");

    write_text(&server, "Walks");
    hears(&server, "It is the idea walks now");
    hears(&server, "Noted. Tell me more.");
    document(&world, "walks");
    write_text(&server, "/execute");
    let shown = hears(&server, "Yes holds for revision 1 with the hash");
    let spec = world.json("spec list");
    let text = shown["parameters"]["text"].as_str().unwrap();
    assert!(text.contains(spec[0]["hash"].as_str().unwrap()), "{text}");
    assert!(text.contains("Expected: "), "{text}");
    press(&server, &shown, "start building");
    let finished = hears(&server, "The build of walks succeeded");
    assert!(
        finished["parameters"]["text"]
            .as_str()
            .unwrap()
            .contains("1 completed, 0 failed")
    );
    write_text(&server, "/status");
    hears(&server, "walks: succeeded, 1 of 1 tasks complete");

    let landing = hears(&server, "What shall become of the branch?");
    press(&server, &landing, "Merge it");
    until(&world, "build list", |builds| {
        builds[0]["merged"].is_string()
    });
    assert_eq!(world.git(&["show", "main:a.txt"]), "a walk");
    for (event, who) in [
        ("spec.approved", "approved_by"),
        ("build.merged", "merged_by"),
    ] {
        let events = world.json(&format!("event list --type {event}"));
        assert_eq!(events.as_array().map(Vec::len), Some(1), "{events}");
        assert_eq!(events[0]["data"][who], "ada", "{events}");
    }
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}
