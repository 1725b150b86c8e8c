//! Somebody presses on a phone what somebody else answers over the API or on a page in the same moment: one answer counts.

mod page;

use std::sync::Barrier;
use std::time::Duration;

use nix::sys::signal::Signal;
use ropewalk_schemas::{ContentHash, QuestionId};
use ropewalk_tests::servers::TelegramServer;
use ropewalk_world::questions;
use serde_json::{Value, json};

use self::page::Page;
use super::phone::{self, VARIABLE};
use super::serving;
use crate::approvals::{text, until};
use crate::world::{Up, World};

/// How often it is tried.
const ROUNDS: usize = 20;
/// The largest step of a lead, in milliseconds.
const MOST: i64 = 1_000;

/// How much earlier the phone presses, in milliseconds, or later: so much that nobody knows who is first. Whoever was, gives
/// the other more next time: twice as much as long as it stays first, and half as much once it is not.
struct Lead {
    of_phone: i64,
    step: i64,
    /// How often the phone was first, and how often the other.
    first: [usize; 2],
    last: Option<bool>,
}

impl Lead {
    const fn new() -> Self {
        Self {
            of_phone: 0,
            step: 32,
            first: [0, 0],
            last: None,
        }
    }

    /// Takes in who was first.
    fn follow(&mut self, is_other: bool) {
        self.first[usize::from(is_other)] += 1;
        self.step = match self.last.replace(is_other) {
            Some(last) if last != is_other => (self.step / 2).max(1),
            _ => (self.step * 2).min(MOST),
        };
        self.of_phone += if is_other { self.step } else { -self.step };
    }

    /// Waits as long as the phone does, or as the other.
    fn wait(&self, is_other: bool) {
        let rest = if is_other {
            self.of_phone
        } else {
            -self.of_phone
        };
        std::thread::sleep(Duration::from_millis(rest.try_into().unwrap_or_default()));
    }

    /// Sees that each was first at times.
    fn was_close(&self) {
        assert!(
            self.first.iter().all(|times| *times > 0),
            "{:?}",
            self.first
        );
    }
}

/// Names ada, on this terminal and by a token.
pub(super) fn name_ada(world: &World) {
    let hash = ContentHash::of(serving::TOKEN.as_bytes());
    let rights = json!(["approve", "land", "spend", "stop"]);
    let people = format!(
        "[people.ada]\nuser = \"{}\"\ntoken_sha256 = \"{hash}\"\nrights = {rights}\n",
        super::tester()
    );
    let directory = world.home().join(".config/ropewalk");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.toml"), people).unwrap();
}

/// Puts a question, as whoever builds does; returns its id.
fn put(world: &World, round: usize) -> QuestionId {
    let text = format!("Which way in round {round}?");
    let mut id = None;
    world.commit(|changes| id = Some(questions::put(changes, &text).unwrap().id));
    id.unwrap()
}

/// Lets the phone press `Left` while somebody else answers; returns what that one is told.
fn at_once<T>(
    server: &TelegramServer,
    shown: &Value,
    lead: &Lead,
    elsewhere: impl FnOnce() -> T,
) -> T {
    let together = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            together.wait();
            lead.wait(false);
            phone::press(server, shown, "Left");
        });
        together.wait();
        lead.wait(true);
        elsewhere()
    })
}

/// Sees that one answer counts of the phone's and that over `channel`, and that the phone is told which; says whether it was
/// the other one.
fn is_first(world: &World, server: &TelegramServer, id: QuestionId, channel: &str) -> bool {
    let question = until(world, &format!("question show {id}"), |question| {
        question["state"] == "answered"
    });
    let given = ["choice", "channel", "by"].map(|name| text(&question["answer"][name]));
    let is_first = given == ["right", channel, "ada"];
    assert!(
        is_first || given == ["left", "telegram", "ada"],
        "{question}"
    );
    phone::sees(
        server,
        &if is_first {
            format!("Answered already, by ada over {channel}: Right")
        } else {
            "Taken: Left".to_owned()
        },
    );
    let answered = world.json("event list --type question.answered --limit 1000");
    let of_it = |event: &&Value| event["data"]["question_id"] == json!(id);
    let answers = answered.as_array().unwrap().iter().filter(of_it).count();
    assert_eq!(answers, 1, "{answered}");
    // Whoever was late was told, and left nothing that counts.
    let later = world.json(&format!("question show {id}"));
    assert_eq!(later["answer"], question["answer"]);
    is_first
}

/// Starts the program beside a phone; returns where its pages are.
fn beside_a_phone(world: &World, server: &TelegramServer) -> (Up, String) {
    world.git(&["add", "."]);
    world.git(&["commit", "--quiet", "--message=project"]);
    name_ada(world);
    phone::set_up_bot(world, server);
    let up = world.up_with(&[(VARIABLE, phone::TOKEN)]);
    let address = serving::address(world);
    phone::link(world, server);
    (up, address)
}

#[test]
fn of_a_press_and_an_answer_over_the_api_in_the_same_moment_one_counts() {
    let (world, server) = (World::scripted(), TelegramServer::start().unwrap());
    let (up, address) = beside_a_phone(&world, &server);
    let mut lead = Lead::new();
    for round in 0..ROUNDS {
        let id = put(&world, round);
        let shown = phone::hears(&server, &format!("Which way in round {round}?"));
        let path = format!("POST /api/questions/{id}/answer");
        let (status, said) = at_once(&server, &shown, &lead, || {
            serving::ask(&address, &path, Some(&json!({ "choice": "right" })))
        });
        let is_first = is_first(&world, &server, id, "api");
        lead.follow(is_first);
        if is_first {
            assert_eq!(status, 200, "{said}");
        } else {
            assert_eq!(status, 409, "{said}");
            assert!(said.to_string().contains("ada"), "{said}");
        }
    }
    lead.was_close();
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}

#[test]
fn of_a_press_and_an_answer_on_a_page_in_the_same_moment_one_counts_and_the_other_is_told_whose() {
    let (world, server) = (World::scripted(), TelegramServer::start().unwrap());
    let (up, address) = beside_a_phone(&world, &server);
    let page = Page::enter(&address);
    let mut lead = Lead::new();
    for round in 0..ROUNDS {
        let id = put(&world, round);
        let shown = phone::hears(&server, &format!("Which way in round {round}?"));
        let path = format!("/questions/{id}");
        let proof = page.proof(&path);
        let (status, said) = at_once(&server, &shown, &lead, || {
            page.send(
                &format!("{path}/answer"),
                &format!("csrf={proof}&choice=right"),
            )
        });
        let read = page.read(&path);
        let is_first = is_first(&world, &server, id, "page");
        lead.follow(is_first);
        if is_first {
            assert_eq!(status, 303, "{said}");
            assert!(read.contains("by ada over page"), "{read}");
        } else {
            assert_eq!(status, 409, "{said}");
            assert!(said.contains("by ada over telegram"), "{said}");
            assert!(read.contains("by ada over telegram"), "{read}");
        }
    }
    lead.was_close();
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}
