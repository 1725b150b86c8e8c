//! Somebody presses on a phone what somebody else answers over the API in the same moment: one answer counts.

use std::sync::Barrier;

use nix::sys::signal::Signal;
use ropewalk_schemas::{ContentHash, QuestionId};
use ropewalk_tests::servers::TelegramServer;
use ropewalk_world::questions;
use serde_json::{Value, json};

use super::phone::{self, VARIABLE};
use super::serving;
use crate::approvals::{text, until};
use crate::world::World;

/// How often it is tried.
const ROUNDS: usize = 12;

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

/// Lets the phone press `Left` while the API is told `right`; returns what the API answered.
fn at_once(server: &TelegramServer, address: &str, id: QuestionId, shown: &Value) -> (u16, Value) {
    let together = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            together.wait();
            phone::press(server, shown, "Left");
        });
        together.wait();
        let path = format!("POST /api/questions/{id}/answer");
        serving::ask(address, &path, Some(&json!({ "choice": "right" })))
    })
}

#[test]
fn of_a_press_and_an_answer_over_the_api_in_the_same_moment_one_counts() {
    let world = World::scripted();
    world.git(&["add", "."]);
    world.git(&["commit", "--quiet", "--message=project"]);
    let server = TelegramServer::start().unwrap();
    name_ada(&world);
    phone::set_up_bot(&world, &server);
    let up = world.up_with(&[(VARIABLE, phone::TOKEN)]);
    let address = serving::address(&world);
    phone::link(&world, &server);
    let mut first = [0, 0];
    for round in 0..ROUNDS {
        let id = put(&world, round);
        let shown = phone::hears(&server, &format!("Which way in round {round}?"));
        let (status, said) = at_once(&server, &address, id, &shown);
        let question = until(&world, &format!("question show {id}"), |question| {
            question["state"] == "answered"
        });
        let (choice, channel) = (
            text(&question["answer"]["choice"]),
            text(&question["answer"]["channel"]),
        );
        let told = if status == 200 {
            assert_eq!((choice, channel), ("right", "api"), "{question}");
            first[0] += 1;
            "Answered already, by ada over api: Right"
        } else {
            assert_eq!(
                (status, choice, channel),
                (409, "left", "telegram"),
                "{said} {question}"
            );
            assert!(said.to_string().contains("ada"), "{said}");
            first[1] += 1;
            "Taken: Left"
        };
        phone::sees(&server, told);
        let answered = world.json("event list --type question.answered --limit 1000");
        let of_it = |event: &&Value| event["data"]["question_id"] == json!(id);
        let answers = answered.as_array().unwrap().iter().filter(of_it).count();
        assert_eq!(answers, 1, "round {round}: {answered}");
    }
    assert_eq!(first[0] + first[1], ROUNDS);
    assert_eq!(up.stop(Signal::SIGTERM), Some(0));
}
