//! What is odd about a request is refused in words, wherever it is sent.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::assert_problem;
use crate::browser::HTML;
use crate::world::{ADA, ServerWorld, answered};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_text_in_a_path_is_the_id_of_nothing_on_every_route() {
    let world = ServerWorld::new().await;
    let described = world.read("/api/openapi.json").await;
    let mut asked = 0;
    for (path, methods) in described["paths"].as_object().unwrap() {
        let parts = path.split('/').map(|part| match part.strip_prefix('{') {
            Some(_) => "%ff",
            None => part,
        });
        let bad = parts.collect::<Vec<_>>().join("/");
        if bad == *path {
            continue;
        }
        for method in methods.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let refused = world.ask(&method, &bad, ADA).json(&json!({}));
            let refused = answered(refused).await;
            assert_problem(&refused, 404, "unknown-id");
            let next = refused.body["next"].as_str().unwrap_or_default();
            assert!(!next.is_empty(), "{method} {bad}: {}", refused.text);
            asked += 1;
        }
    }
    assert!(asked > 20, "{asked} routes");
    for page in [
        "/ideas/%ff",
        "/questions/%ff",
        "/specifications/%ff",
        "/builds/%ff",
        "/builds/%ff/tasks/T-001",
        "/builds/%ff/tasks/T-001/attempts/1",
        "/events/%ff",
        "/dead-letters/1/%ff",
        "/knowledge/%ff",
    ] {
        let refused = world.ask("GET", page, ADA).header("Accept", HTML);
        let refused = answered(refused).await;
        assert_eq!(refused.status, 404, "{page}: {}", refused.text);
        let is_page = refused.text.contains("There is nothing here");
        assert!(is_page, "{page}: {}", refused.text);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_known_whatever_the_case_of_its_scheme() {
    let world = ServerWorld::new().await;
    for (authorization, status) in [
        (format!("bearer {ADA}"), 200),
        (format!("BEARER  {ADA}"), 200),
        (format!("Bearer{ADA}"), 401),
        (format!("Basic {ADA}"), 401),
        (ADA.to_owned(), 401),
    ] {
        let asked = world.bare("GET", "/api/profile");
        let told = answered(asked.header("Authorization", &authorization)).await;
        assert_eq!(told.status, status, "{authorization}: {}", told.text);
    }
    world.stop().await;
}

/// Sends a request as it is written, and returns how the answer begins.
async fn sent(world: &ServerWorld, target: &str, hosts: &[&str]) -> String {
    let hosts = hosts.iter().map(|host| format!("Host: {host}\r\n"));
    let hosts = hosts.collect::<Vec<_>>().concat();
    let request = format!(
        "GET {target} HTTP/1.1\r\n{hosts}Authorization: Bearer {ADA}\r\nConnection: close\r\n\r\n"
    );
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_one_host_and_that_of_an_absolute_address_counts() {
    let world = ServerWorld::new().await;
    let own = world.address.to_string();
    let (own, evil) = (own.as_str(), "evil.example");
    let whole = |host: &str| format!("http://{host}/api/profile");
    let path = "/api/profile".to_owned();
    for (target, hosts, status) in [
        (&path, &[own][..], 200),
        (&path, &[own, evil], 400),
        (&path, &[evil, own], 400),
        (&path, &[own, own], 400),
        (&path, &[evil], 403),
        (&whole(evil), &[own], 403),
        (&whole(own), &[own], 200),
        (&whole(&format!("x@{own}")), &[own], 403),
    ] {
        let answer = sent(&world, target, hosts).await;
        let is_so = answer.starts_with(&format!("HTTP/1.1 {status} "));
        assert!(is_so, "{target} {hosts:?}: {answer}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_beside_a_choice_that_takes_none_and_lists_are_no_answer() {
    let world = ServerWorld::new().await;
    let (_, question) = world.specified().await;
    let path = format!("/api/questions/{question}/answer");
    let before = world.rows().await;
    let both = json!({ "choice": "merge", "text": "but late" });
    let words = world.send(&path, &both).await;
    assert_problem(&words, 400, "question");
    for field in ["`choice`", "`text`"] {
        assert!(words.text.contains(field), "{}", words.text);
    }
    let list = world.send(&path, &json!(["merge", Value::Null])).await;
    assert_problem(&list, 400, "usage");
    assert_eq!(list.body["message"], "the body is a list, and no object");
    assert_eq!(world.rows().await, before);
    let blank = json!({ "choice": "merge", "text": " " });
    assert_eq!(world.send(&path, &blank).await.status, 200);
    world.stop().await;
}
