//! Where Telegram brings what people do, each update is done once and only for whoever knows the secret.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::Signal;
use ropewalk_schemas::ContentHash;
use ropewalk_tests::servers::TelegramServer;
use serde_json::{Value, json};

use super::phone::{self, TOKEN, VARIABLE};
use crate::approvals::{text, until};
use crate::world::{Up, World};

/// Where Telegram brings what people do.
struct Brought {
    world: World,
    server: TelegramServer,
    address: String,
}

impl Brought {
    fn new() -> Self {
        let world = World::scripted();
        world.git(&["add", "."]);
        world.git(&["commit", "--quiet", "--message=project"]);
        let server = TelegramServer::start().unwrap();
        phone::set_up_bot(&world, &server);
        Self {
            world,
            server,
            address: free_address(),
        }
    }

    fn hook(&self) -> String {
        format!("http://{}/hooks/telegram", self.address)
    }

    fn up(&self) -> Up {
        self.world.up_with(&[
            (VARIABLE, TOKEN),
            ("ROPEWALK_SERVER__ADDRESS", &self.address),
            ("ROPEWALK_TELEGRAM__WEBHOOK", &self.hook()),
        ])
    }

    /// Brings an update; returns the status of the answer.
    fn bring(&self, secret: Option<&str>, body: &str) -> u16 {
        let secret = secret.map_or_else(String::new, |secret| {
            format!("X-Telegram-Bot-Api-Secret-Token: {secret}\r\n")
        });
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "POST /hooks/telegram HTTP/1.1\r\nHost: {host}\r\n{secret}Connection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Returns what `doctor` says of how updates come.
    fn diagnosed(&self) -> String {
        let mut command = self.world.ropewalk(["doctor", "--json"]);
        let command = command
            .env(VARIABLE, TOKEN)
            .env("ROPEWALK_SERVER__ADDRESS", &self.address)
            .env("ROPEWALK_TELEGRAM__WEBHOOK", self.hook());
        let findings: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        let of_hook = |finding: &&Value| finding["check"] == "telegram webhook";
        let finding = findings.as_array().unwrap().iter().find(of_hook).unwrap();
        format!("{} {}", text(&finding["verdict"]), text(&finding["detail"]))
    }

    /// Returns how many ideas there are once there is one.
    fn ideas(&self) -> usize {
        let ideas = until(&self.world, "idea list", |ideas| {
            ideas.as_array().is_some_and(|ideas| !ideas.is_empty())
        });
        ideas.as_array().unwrap().len()
    }
}

/// Returns an address that stays free: below those that are given to whoever asks for any.
fn free_address() -> String {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    loop {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + (std::process::id() + tried) % 20_000;
        let address = format!("127.0.0.1:{port}");
        if TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
}

/// An update in which Ann writes.
fn written(number: u32, words: &str) -> String {
    json!({ "update_id": number, "message": phone::message(words) }).to_string()
}

#[test]
fn what_telegram_brings_is_done_once_and_for_whoever_knows_the_secret_alone() {
    let brought = Brought::new();
    let said = brought.diagnosed();
    assert!(
        said.starts_with("warn Telegram brings nothing to http://127.0.0.1:"),
        "{said}"
    );
    let up = brought.up();
    phone::link(&brought.world, &brought.server);
    assert_eq!(
        brought.diagnosed(),
        format!("ok Telegram brings updates to {}", brought.hook())
    );
    phone::write_text(&brought.server, "Walks");
    phone::hears(&brought.server, "It is the idea walks now");

    // Nobody else brings anything, whatever it says, and what is no update is refused.
    let secret = ContentHash::of(format!("ropewalk brings updates of {TOKEN}").as_bytes());
    let wrong = secret.as_str().replace(['a', 'b'], "c");
    let before = brought.world.json("event list --limit 1000");
    for secret in [None, Some(""), Some("x"), Some(wrong.as_str())] {
        let status = brought.bring(secret, &written(900, "Rivers"));
        assert_eq!(status, 401, "{secret:?}");
    }
    let secret = Some(secret.as_str());
    for body in ["", "[]", "{}", "\u{0}"] {
        assert_eq!(brought.bring(secret, body), 400, "{body:?}");
    }
    let of_people = |events: &Value| {
        let all = events.as_array().unwrap().iter();
        all.filter(|event| event["type"] != "schedule.due").count()
    };
    let after = brought.world.json("event list --limit 1000");
    assert_eq!(of_people(&after), of_people(&before));

    // The same update again does nothing, and is taken.
    for _ in 0..3 {
        assert_eq!(brought.bring(secret, &written(901, "/newtask Rivers")), 200);
    }
    phone::hears(&brought.server, "It is the idea rivers now");
    assert_eq!(brought.ideas(), 2);

    // Of those before the last one that was done, none is done any more, whether it was ever brought or not.
    for (number, words) in [
        (900, "/newtask Rivers"),
        (899, "/newtask Lakes"),
        (1, "/newtask Bogs"),
    ] {
        let before = of_people(&brought.world.json("event list --limit 1000"));
        assert_eq!(
            brought.bring(secret, &written(number, words)),
            200,
            "{number}"
        );
        let after = of_people(&brought.world.json("event list --limit 1000"));
        assert_eq!(after, before, "{number}");
    }
    // The next one is.
    assert_eq!(brought.bring(secret, &written(902, "/newtask Lakes")), 200);
    phone::hears(&brought.server, "It is the idea lakes now");
    assert_eq!(brought.ideas(), 3);
    assert_eq!(
        phone::offset(&brought.server),
        0,
        "nobody asked for updates"
    );
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}

#[test]
fn what_came_while_nobody_listened_is_brought_later_or_asked_for_by_whoever_polls() {
    let brought = Brought::new();
    let up = brought.up();
    phone::link(&brought.world, &brought.server);
    assert_eq!(up.stop(Signal::SIGKILL), None);
    phone::write_text(&brought.server, "Walks");
    let up = brought.up();
    phone::hears(&brought.server, "It is the idea walks now");
    assert_eq!(brought.ideas(), 1);
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));

    // Without the address the bot takes it back and asks.
    phone::write_text(&brought.server, "/newtask Rivers");
    let up = brought.world.up_with(&[(VARIABLE, TOKEN)]);
    phone::hears(&brought.server, "It is the idea rivers now");
    until(&brought.world, "idea list", |ideas| {
        ideas.as_array().map(Vec::len) == Some(2)
    });
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}
