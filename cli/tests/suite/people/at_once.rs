//! Somebody presses on a phone what somebody else answers over the API in the same moment: one answer counts.

use std::sync::Barrier;

use nix::sys::signal::Signal;
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::payload::QuestionAsked;
use ropewalk_schemas::question::{About, Question};
use ropewalk_schemas::{ComponentName, ContentHash, Event, Payload, Priority, QuestionId, Subject};
use ropewalk_tests::servers::TelegramServer;
use serde_json::{Value, json};

use super::phone::{self, VARIABLE};
use super::serving;
use crate::approvals::{text, until};
use crate::world::World;

/// How often it is tried.
const ROUNDS: usize = 12;

/// Names ada, on this terminal and by a token.
fn name_ada(world: &World) {
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

/// Puts a question with two choices, as whoever builds does; returns its id.
fn put(world: &World, round: usize) -> QuestionId {
    let ids = Ids::system(Clock::system());
    let choice = |id: &str, label: &str| json!({ "id": id, "label": label, "recommended": false, "with_words": false });
    let question: Question = serde_json::from_value(json!({
        "id": ids.next(), "kind": "blocking", "trigger": "missing_context", "agent": "build",
        "text": format!("Which way in round {round}?"), "context": "",
        "choices": [choice("left", "Left"), choice("right", "Right")], "free_text": false,
        "consequential": false, "about": About::Nothing, "state": "pending",
        "correlation_id": ids.next(), "asked_at": Clock::system().now(),
    }))
    .unwrap();
    let event = Event {
        id: ids.next().into(),
        source: ComponentName::parse("build").unwrap(),
        subject: Subject::question(question.id),
        time: question.asked_at,
        correlation_id: question.correlation_id,
        causation_id: None,
        hop: 0,
        traceparent: None,
        priority: Priority::DEFAULT,
        payload: Payload::QuestionAsked(QuestionAsked {
            question_id: question.id,
            kind: question.kind,
            text: question.text.clone(),
            idea_slug: None,
            about: About::Nothing,
        }),
    };
    world.commit(|changes| {
        changes.insert(&question);
        changes.emit(event);
    });
    question.id
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
