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

/// How much earlier the phone presses: so much that nobody knows who is first. Whoever was, gives the other more next time, in
/// steps that grow smaller with each turn.
struct Lead {
    of_phone: Duration,
    step: Duration,
    /// How often the phone was first, and how often the other.
    first: [usize; 2],
    last: Option<bool>,
}

impl Lead {
    fn new() -> Self {
        Self {
            of_phone: Duration::ZERO,
            step: Duration::from_millis(64),
            first: [0, 0],
            last: None,
        }
    }

    /// Takes in who was first.
    fn follow(&mut self, is_other: bool) {
        self.first[usize::from(is_other)] += 1;
        if self
            .last
            .replace(is_other)
            .is_some_and(|last| last != is_other)
        {
            self.step = (self.step / 2).max(Duration::from_millis(1));
        }
        self.of_phone = if is_other {
            self.of_phone + self.step
        } else {
            self.of_phone.saturating_sub(self.step)
        };
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
            phone::press(server, shown, "Left");
        });
        together.wait();
        std::thread::sleep(lead.of_phone);
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
