//! What is too long to be kept is refused by its name, wherever it is sent, and what is kept stays within its bounds.

use ropewalk_schemas::question::{ANSWER_BYTES, LATE_ANSWERS, Question};
use ropewalk_schemas::task::TaskState;
use ropewalk_schemas::{BuildId, QuestionId};
use ropewalk_store::ChangeSet;
use serde_json::{Value, json};

use super::assert_problem;
use crate::browser::Browser;
use crate::world::{ADA, Answer, ServerWorld, answered};

/// Lets words answer a question, which then has no consequences.
async fn takes_words(world: &ServerWorld, id: QuestionId) {
    let store = &world.services.store;
    let asked = store.get::<Question>(&id.to_string()).await.unwrap();
    let asked = asked.unwrap();
    let free = Question {
        free_text: true,
        consequential: false,
        ..asked.record.clone()
    };
    let mut changes = ChangeSet::new();
    changes.update(&asked, &free);
    store.commit(changes).await.unwrap();
}

/// Sends what ada says to a path, under a key.
async fn send(world: &ServerWorld, path: &str, body: &Value, key: &str) -> Answer {
    let request = world.ask("POST", path, ADA).json(body);
    answered(request.header("Idempotency-Key", key)).await
}

/// Where something is said, with what stands beside it, the field that holds it, and how a refusal calls it.
fn places(
    build: BuildId,
    question: QuestionId,
) -> Vec<(String, Value, &'static str, &'static str)> {
    let build = format!("/api/builds/{build}");
    let answer = format!("/api/questions/{question}/answer");
    let idea = "/api/ideation/sessions/walks/abandon".to_owned();
    let (knowledge, halt) = ("/api/knowledge".to_owned(), "/api/halt".to_owned());
    let content = json!({ "content": "Rain makes the rope swell." });
    vec![
        (answer.clone(), json!({}), "text", "the answer"),
        (answer, json!({ "choice": "leave" }), "text", "the answer"),
        (
            format!("{build}/retry"),
            json!({ "task": "T-1" }),
            "guidance",
            "the guidance",
        ),
        (format!("{build}/tell"), json!({}), "text", "at most 8192"),
        (format!("{build}/pause"), json!({}), "reason", "the reason"),
        (format!("{build}/stop"), json!({}), "reason", "the reason"),
        (idea, json!({}), "reason", "the reason"),
        (halt, json!({}), "reason", "the reason"),
        (knowledge.clone(), json!({}), "content", "the text"),
        (knowledge, content, "topics", "one of the topics"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_longer_than_is_kept_is_refused_by_its_name_also_under_a_key() {
    let world = ServerWorld::new().await;
    let (_, question) = world.specified().await;
    takes_words(&world, question).await;
    let build = world.built().await;
    world.task(build, "T-1", TaskState::Failed).await;
    let before = world.rows().await;
    // More than anything may have, and as much as a body holds.
    for letters in [ANSWER_BYTES + 1, 1_000_000] {
        let long = "x".repeat(letters);
        for (number, (path, beside, field, told)) in places(build, question).into_iter().enumerate()
        {
            let mut body = beside;
            body[field] = match field {
                "topics" => json!([long]),
                _ => json!(long),
            };
            let key = format!("{number} {letters}");
            let first = send(&world, &path, &body, &key).await;
            let code = if path == "/api/knowledge" {
                "knowledge"
            } else {
                "input"
            };
            assert_problem(&first, 400, code);
            let message = first.body["message"].as_str().unwrap();
            assert!(message.contains(told), "{path}: {message}");
            // The key says what came of it, and nothing is left open under it.
            let again = send(&world, &path, &body, &key).await;
            assert_eq!((again.status, &again.body), (400, &first.body), "{path}");
        }
    }
    for (list, told) in [
        ("topics", "there are 80000 topics"),
        ("globs", "there are 80000 globs"),
    ] {
        let many = json!({ "content": "Rain.", list: vec!["a"; 80_000] });
        let refused = world.send("/api/knowledge", &many).await;
        assert_problem(&refused, 400, "knowledge");
        assert!(refused.text.contains(told), "{}", refused.text);
    }
    assert_eq!(world.rows().await, before);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_as_long_as_is_kept_is_taken_and_found_again() {
    let world = ServerWorld::new().await;
    let (_, question) = world.specified().await;
    takes_words(&world, question).await;
    let build = world.built().await;
    world.task(build, "T-1", TaskState::Failed).await;
    let most = "x".repeat(8 * 1024);
    let answer = format!("/api/questions/{question}/answer");
    let words = "y".repeat(ANSWER_BYTES);
    let taken = world.send(&answer, &json!({ "text": words })).await;
    assert_eq!(taken.status, 200, "{}", taken.text);
    let kept = world.read(&format!("/api/questions/{question}")).await;
    assert_eq!(kept["answer"]["text"], json!(words));
    let retry = json!({ "task": "T-1", "guidance": most });
    let stop = json!({ "reason": most });
    for (verb, body, event, field) in [
        ("retry", retry, "task.retry", "guidance"),
        ("stop", stop, "build.stop", "reason"),
    ] {
        let taken = world
            .send(&format!("/api/builds/{build}/{verb}"), &body)
            .await;
        assert_eq!(taken.status, 202, "{}", taken.text);
        let told = world.events(event).await;
        assert_eq!(told[0]["data"][field], json!(most), "{event}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_late_answer_is_kept_within_its_bounds_and_who_is_one_too_many_is_told_so() {
    let world = ServerWorld::new().await;
    let (_, question) = world.specified().await;
    takes_words(&world, question).await;
    let path = format!("/api/questions/{question}/answer");
    let first = world.send(&path, &json!({ "choice": "leave" })).await;
    assert_eq!(first.status, 200, "{}", first.text);
    let long = world
        .send(&path, &json!({ "text": "x".repeat(400_000) }))
        .await;
    assert_problem(&long, 400, "input");
    for number in 0..=LATE_ANSWERS {
        let words = format!("{number:02}{}", "y".repeat(ANSWER_BYTES - 2));
        let late = world.send(&path, &json!({ "text": words })).await;
        assert_problem(&late, 409, "question");
        let next = late.body["next"].as_str().unwrap();
        let is_kept = next.starts_with("your answer is kept beside it");
        assert_eq!(is_kept, number < LATE_ANSWERS, "{number}: {next}");
    }
    let kept = world.read(&format!("/api/questions/{question}")).await;
    assert_eq!(kept["late"].as_array().map(Vec::len), Some(LATE_ANSWERS));
    assert_eq!(kept["answer"]["choice"], "leave");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_refusal_quotes_is_cut_so_that_it_is_kept_under_its_key() {
    let world = ServerWorld::new().await;
    let body = json!({ "text": "Walks", "kind": "x".repeat(1_000_000) });
    let first = send(&world, "/api/ideation/sessions", &body, "one").await;
    assert_problem(&first, 400, "usage");
    assert!(first.text.len() < 20_000, "{}", first.text.len());
    let again = send(&world, "/api/ideation/sessions", &body, "one").await;
    assert_eq!((again.status, &again.body), (400, &first.body));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_of_a_program_or_a_page_choose_nothing_of_consequence() {
    let world = ServerWorld::new().await;
    let (_, question) = world.specified().await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let before = world.rows().await;
    let path = format!("/questions/{question}/answer");
    // The number, the id and the label of the second choice, which ada may take.
    for words in ["2", "leave", "Leave"] {
        let refused = world
            .send(&format!("/api{path}"), &json!({ "text": words }))
            .await;
        assert_problem(&refused, 400, "question");
        let next = refused.body["next"].as_str().unwrap();
        assert!(
            next.contains("`choice`") && next.contains("`leave` (leave)"),
            "{next}"
        );
        let form = browser.send(&path, &[("text", words)], Some(&proof)).await;
        assert_eq!(form.status, 400, "{}", form.text);
    }
    assert_eq!(world.rows().await, before);
    // Where words are taken, they stay words.
    takes_words(&world, question).await;
    let taken = world
        .send(&format!("/api{path}"), &json!({ "text": "2" }))
        .await;
    assert_eq!(taken.status, 200, "{}", taken.text);
    assert_eq!(
        (&taken.body["choice"], &taken.body["answer"]),
        (&Value::Null, &json!("2"))
    );
    world.stop().await;
}
