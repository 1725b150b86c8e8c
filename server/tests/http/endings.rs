//! How long questions wait, what people and programs are told of how one ends when nobody answers, and how connections end
//! with the process.

mod waiting;

use std::time::Duration;

use chrono::TimeDelta;
use ropewalk_schemas::ChoiceId;
use ropewalk_schemas::question::{Question, QuestionKind};
use ropewalk_store::ChangeSet;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::browser::HTML;
use crate::world::{ADA, ServerWorld, answered};

/// A head and a body that do not come are given up a little later, stop or not.
const BEFORE_A_HEAD_IS_GIVEN_UP: Duration = Duration::from_secs(7);

#[tokio::test(flavor = "multi_thread")]
async fn a_question_says_what_becomes_of_it_when_nobody_answers() {
    let world = ServerWorld::new().await;
    let (_, id) = world.specified().await;
    let due = world.services.clock.now() + TimeDelta::hours(4);
    let leave = ChoiceId::parse("leave").ok();
    // Its kind, the choice that it takes, whether it ends, and what the page and the form say.
    let cases = [
        (QuestionKind::Blocking, None, false, None, None),
        (
            QuestionKind::Clarifying,
            None,
            true,
            Some("goes away unanswered"),
            None,
        ),
        (
            QuestionKind::Clarifying,
            leave,
            true,
            Some("takes <code>leave</code>"),
            Some("leave"),
        ),
    ];
    for (kind, default, ends, page, taken) in cases {
        let store = &world.services.store;
        let asked = store.get::<Question>(&id.to_string()).await.unwrap();
        let asked = asked.unwrap();
        let question = Question {
            kind,
            default,
            consequential: false,
            due_at: ends.then_some(due),
            ..asked.record.clone()
        };
        let mut changes = ChangeSet::new();
        changes.update(&asked, &question);
        store.commit(changes).await.unwrap();
        let shown = world.ask("GET", &format!("/questions/{id}"), ADA);
        let shown = answered(shown.header("Accept", HTML)).await.text;
        for words in ["goes away unanswered", "takes <code>leave</code>"] {
            assert_eq!(
                shown.contains(words),
                page == Some(words),
                "{kind:?}: {words}"
            );
        }
        let form = world.read(&format!("/api/questions/{id}/answer")).await;
        assert_eq!(form["default"], json!(taken), "{form}");
        assert_eq!(form["due_at"].is_string(), ends, "{form}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_request_does_not_hold_a_stop() {
    let world = ServerWorld::new().await;
    let post = format!(
        "POST /api/ideation/sessions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ADA}\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        world.address
    );
    let whole = format!("GET /livez HTTP/1.1\r\nHost: {}\r\n\r\n", world.address);
    let half = "GET /livez HTTP/1.1\r\nHost: 127";
    let mut open = Vec::new();
    for (sent, answers) in [("", 0), (half, 0), (whole.as_str(), 1), (post.as_str(), 0)] {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        if answers == 1 {
            let mut first = [0; 12];
            stream.read_exact(&mut first).await.unwrap();
            assert_eq!(&first, b"HTTP/1.1 200");
            // The next one follows on the same connection.
            stream.write_all(half.as_bytes()).await.unwrap();
        }
        open.push(stream);
    }
    // Whoever came in order was taken in order, so that all of them are connected by now.
    world.read("/api/profile").await;
    let stopped = tokio::time::timeout(BEFORE_A_HEAD_IS_GIVEN_UP, world.stop());
    stopped.await.expect("half a request held the stop");
    for mut stream in open {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.ok();
    }
}
