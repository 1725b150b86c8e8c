//! Whatever is refused says why in one line, and changes nothing.

mod long;
mod odd;
mod rights;

use std::time::Duration;

use ropewalk_schemas::ContentHash;
use ropewalk_schemas::specification::Revision;
use ropewalk_store::ChangeSet;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::browser::Browser;
use crate::world::{ADA, Answer, BOB, ServerWorld, answered};

/// Bodies of a new idea that cannot be understood, each with what is said of it.
const MISUNDERSTOOD: [(&str, &str); 14] = [
    ("", "the body is empty"),
    ("{", "the body cannot be understood"),
    ("[]", "the body is a list, and no object"),
    (" [\"Walks\"]", "the body is a list, and no object"),
    ("null", "the body cannot be understood"),
    ("{\"text\":1}", "`text` cannot be understood"),
    ("{\"text\":\"a\",\"text\":\"b\"}", "duplicate field `text`"),
    ("{\"words\":\"a\"}", "`words` cannot be understood"),
    ("{\"text\":\"\\ud800\"}", "`text` cannot be understood"),
    ("{\"text\":\"a\\u0000b\"}", "`text` holds the letter U+0000"),
    ("{\"text\":\" \"}", "the message is empty"),
    ("{\"text\":\"\\u202e\\u200b\"}", "the message is empty"),
    (
        concat!(
            "{\"text\":\"a\",\"title\":\"",
            "0123456789012345678901234567890123456789012345678901234567890123456789",
            "0123456789012345678901234567890123456789012345678901234567890123456789",
            "0123456789012345678901234567890123456789012345678901234567890\"}"
        ),
        "the title has 201 bytes, and 200 is the most",
    ),
    (
        "{\"text\":\"a\",\"slug\":\"../x\"}",
        "`slug` cannot be understood",
    ),
];

/// Asserts that an answer is a problem of this kind that says what to do.
fn assert_problem(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{}", answer.text);
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert_eq!(
        (answer.body["code"].as_str(), answer.body["status"].as_u64()),
        (Some(code), Some(status.into()))
    );
    let message = answer.body["message"].as_str().unwrap();
    assert!(!message.is_empty() && !message.contains('\n'), "{message}");
    if status == 400 {
        let next = answer.body["next"].as_str().unwrap_or_default();
        let is_of_terminal = next.contains("`ropewalk ");
        assert!(!next.is_empty() && !is_of_terminal, "{}", answer.text);
    }
    assert!(answer.headers.contains_key("content-security-policy"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_known_or_speaks_for_another_page_is_refused_and_changes_nothing() {
    let world = ServerWorld::new().await;
    let (spec, _) = world.specified().await;
    let before = world.rows().await;
    let path = format!("/api/specifications/{spec}/approve");
    let body = json!({ "hash": ContentHash::of(b"new") });
    let post = |token| world.ask("POST", &path, token).json(&body);
    let nobody = answered(world.bare("POST", &path).json(&body)).await;
    assert_problem(&nobody, 401, "credentials");
    assert!(
        nobody.body["next"]
            .as_str()
            .unwrap()
            .contains("ropewalk up")
    );
    assert_problem(&answered(post("token-of-eve")).await, 401, "credentials");
    let basic = world
        .bare("POST", &path)
        .basic_auth("ada", Some(ADA))
        .json(&body);
    assert_problem(&answered(basic).await, 401, "credentials");
    for host in [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example",
    ] {
        let other = answered(post(ADA).header("Host", host)).await;
        assert_problem(&other, 403, "host");
    }
    for origin in ["https://evil.example", "null", "http://localhost:1"] {
        let foreign = answered(post(ADA).header("Origin", origin)).await;
        assert_problem(&foreign, 403, "origin");
    }
    assert_problem(&answered(post(BOB)).await, 403, "forbidden");
    assert_eq!(world.rows().await, before);
    let own = format!("http://localhost:{}", world.address.port());
    let welcome = answered(post(ADA).header("Origin", own)).await;
    assert_eq!(welcome.status, 200, "{}", welcome.text);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_ends_its_connection_and_changes_nothing() {
    let world = ServerWorld::new().await;
    let before = world.rows().await;
    let large = format!("{{\"text\":\"{}\"}}", "a".repeat(2_000_000));
    let asked = world.ask("POST", "/api/ideation/sessions", ADA);
    let asked = asked.header("Content-Type", "application/json");
    let refused = answered(asked.body(large)).await;
    assert_problem(&refused, 413, "too-large");
    assert_eq!(refused.headers["connection"], "close");
    assert_eq!(world.rows().await, before);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_understood_or_stands_against_what_is_there_changes_nothing() {
    let (world, elsewhere) = (ServerWorld::new().await, ServerWorld::new().await);
    let (spec, question) = world.specified().await;
    let (foreign, _) = elsewhere.specified().await;
    let before = world.rows().await;
    let approve = |id: &str| format!("/api/specifications/{id}/approve");
    let hash = |text: &[u8]| json!({ "hash": ContentHash::of(text) });
    let raw = |path: &str, body: &str| {
        world
            .ask("POST", path, ADA)
            .header("Content-Type", "application/json")
            .body(body.to_owned())
    };
    let ideas = "/api/ideation/sessions";
    for (bad, named) in MISUNDERSTOOD {
        let refused = answered(raw(ideas, bad)).await;
        let code = refused.body["code"].as_str().unwrap_or_default();
        assert!(["usage", "idea"].contains(&code), "{bad}: {}", refused.text);
        assert_problem(&refused, 400, code);
        let message = refused.body["message"].as_str().unwrap();
        assert!(message.contains(named), "{bad}: {message}");
    }
    let plain = world.ask("POST", ideas, ADA).body("{\"text\":\"a\"}");
    assert_problem(&answered(plain).await, 415, "usage");
    let (none, foreign) = (uuid::Uuid::nil().to_string(), foreign.to_string());
    for id in [none.as_str(), foreign.as_str(), "x", "%2Fx"] {
        let refused = answered(world.ask("POST", &approve(id), ADA).json(&hash(b"new"))).await;
        assert_problem(&refused, 404, "unknown-id");
        assert!(
            refused.body["next"]
                .as_str()
                .unwrap()
                .contains("GET /api/specifications")
        );
    }
    let spec = spec.to_string();
    let old = answered(world.ask("POST", &approve(&spec), ADA).json(&hash(b"old"))).await;
    assert_problem(&old, 409, "approval");
    // Whoever copied the newest hash from a refusal would approve what nobody has read.
    let newest = ContentHash::of(b"new");
    assert!(
        !old.body.to_string().contains(newest.as_str()),
        "{}",
        old.body
    );
    assert!(old.body["next"].as_str().unwrap().contains("read revision"));
    let no_hash = json!({ "hash": "abc" });
    assert_problem(&world.send(&approve(&spec), &no_hash).await, 400, "usage");
    let answer = format!("/api/questions/{question}/answer");
    let words = json!({ "text": "do as you like" });
    assert_problem(&world.send(&answer, &words).await, 400, "question");
    let merge = json!({ "choice": "merge" });
    let bob = answered(world.ask("POST", &answer, BOB).json(&merge)).await;
    assert_problem(&bob, 403, "forbidden");
    for (path, status) in [
        ("/api/events?limit=-1", 400),
        ("/api/events?limit=501", 400),
        ("/api/events?cursor=x", 400),
        ("/api/events?type=no.such", 400),
        ("/api/events?colour=red", 400),
        ("/api/ideation/sessions?cursor=nobody", 400),
        ("/api/questions/x", 404),
        ("/api/ideation/sessions/rivers", 404),
        ("/api/nothing", 404),
    ] {
        let refused = answered(world.ask("GET", path, ADA)).await;
        assert_eq!(refused.status, status, "{path}: {}", refused.text);
        assert!(refused.body["code"].is_string(), "{path}");
    }
    assert_problem(
        &answered(world.ask("PUT", ideas, ADA)).await,
        405,
        "unknown-path",
    );
    assert_eq!(world.rows().await, before);
    world.stop().await;
}

/// Writes to a connection of its own and returns everything that is answered until that is closed.
async fn drip(world: &ServerWorld, first: &str, each: &str) -> String {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(first.as_bytes()).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let mut answer = Vec::new();
    let dripping = async {
        // Ends with the connection, which the server closes.
        while write.write_all(each.as_bytes()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        std::future::pending::<()>().await;
    };
    let answered = tokio::time::timeout(Duration::from_secs(40), read.read_to_end(&mut answer));
    tokio::select! {
        ended = answered => drop(ended.unwrap()),
        () = dripping => {}
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_streamed_beyond_the_limit_is_cut_long_before_its_end_and_changes_nothing() {
    const CHUNK: usize = 64 * 1024;
    const ALL: usize = 100 * 1024 * 1024;
    let world = ServerWorld::new().await;
    let before = world.rows().await;
    let head = format!(
        "POST /api/ideation/sessions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ADA}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        world.address
    );
    let stream = TcpStream::connect(world.address).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let sends = async {
        write.write_all(head.as_bytes()).await.unwrap();
        let chunk = format!("{CHUNK:x}\r\n{}\r\n", "a".repeat(CHUNK));
        let mut sent = 0;
        // Ends with the connection, which the server closes.
        while sent < ALL && write.write_all(chunk.as_bytes()).await.is_ok() {
            sent += CHUNK;
        }
        sent
    };
    let mut answer = Vec::new();
    let (sent, read) = tokio::join!(sends, read.read_to_end(&mut answer));
    // What was sent and not read is a reset, after the answer.
    read.ok();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("\"code\":\"too-large\""), "{answer}");
    assert!(sent < ALL / 4, "{sent} bytes were taken");
    assert_eq!(world.rows().await, before);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_leads_out_of_what_is_served() {
    let world = ServerWorld::new().await;
    let before = world.rows().await;
    for path in [
        "/../../etc/passwd",
        "/static/../../etc/passwd",
        "/static/../../../../../../etc/passwd",
        "/static/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/static/..%2f..%2fetc%2fpasswd",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/static/%252e%252e%252fetc%252fpasswd",
        "/static//etc/passwd",
        "/static/..\\..\\etc\\passwd",
        "//etc/passwd",
        "/api/../../etc/passwd",
        "/api/ideation/sessions/..%2f..%2fetc%2fpasswd",
    ] {
        // A client would make it a path without steps.
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ADA}\r\nConnection: close\r\n\r\n",
            world.address
        );
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 404") || answer.starts_with("HTTP/1.1 400"),
            "{path}: {answer}"
        );
        assert!(!answer.contains("root:"), "{path}: {answer}");
    }
    assert_eq!(world.rows().await, before);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_no_text_holds_is_refused_wherever_it_comes_from() {
    let world = ServerWorld::new().await;
    let (spec, _) = world.specified().await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let before = world.rows().await;
    for path in [
        "/api/ideation/sessions".to_owned(),
        "/api/ideation/sessions/walks/messages".to_owned(),
        format!("/api/specifications/{spec}/revise"),
    ] {
        let refused = world.send(&path, &json!({ "text": "Wal\0ks" })).await;
        assert_problem(&refused, 400, "usage");
        let message = refused.body["message"].as_str().unwrap();
        assert!(
            message.starts_with("`text` holds the letter U+0000"),
            "{message}"
        );
    }
    let file = "/api/ideation/sessions/walks/attachments?name=a.txt&words=b%00";
    let file = answered(world.ask("POST", file, ADA).body("a")).await;
    assert_problem(&file, 400, "usage");
    assert!(
        file.text.contains("`words` holds the letter U+0000"),
        "{}",
        file.text
    );
    let form = browser
        .send("/ideas", &[("text", "Wal\0ks")], Some(&proof))
        .await;
    assert_eq!(form.status, 400, "{}", form.text);
    assert!(
        form.text.contains("holds the letter U+0000"),
        "{}",
        form.text
    );
    assert_eq!(world.rows().await, before);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_ends_what_was_begun_is_not_waited_for() {
    let world = ServerWorld::new().await;
    let before = world.rows().await;
    let head = format!(
        "POST /api/ideation/sessions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ADA}\r\n",
        world.address
    );
    let endless =
        format!("{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
    let (body, slow) = tokio::join!(
        drip(&world, &endless, "1\r\n \r\n"),
        drip(&world, &head, "X-A: b\r\n")
    );
    assert!(body.starts_with("HTTP/1.1 408"), "{body}");
    assert!(!slow.contains("HTTP/1.1 2"), "{slow}");
    assert_eq!(world.rows().await, before);
    assert_eq!(world.read("/api/profile").await["name"], "ada");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_guesses_tokens_has_to_wait() {
    let world = ServerWorld::new().await;
    let mut statuses = Vec::new();
    for guess in 0..25 {
        let token = format!("guess-{guess}");
        let answer = answered(world.ask("GET", "/api/profile", &token)).await;
        if answer.status == 429 {
            let rests = answer.headers["retry-after"].to_str().unwrap();
            assert!((1..=5).contains(&rests.parse::<u64>().unwrap()), "{rests}");
        }
        statuses.push(answer.status);
    }
    assert!(
        statuses[..20].iter().all(|status| *status == 401),
        "{statuses:?}"
    );
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_read_another_revision_changes_nothing_and_keeps_what_was_written() {
    let world = ServerWorld::new().await;
    let (spec, _) = world.specified().await;
    let revision: Revision = serde_json::from_value(json!({
        "spec": spec, "number": 2, "hash": ContentHash::of(b"new"),
        "document": { "title": "Walks", "objective": "Walk." }, "at": world.services.clock.now(),
    }))
    .unwrap();
    let mut changes = ChangeSet::new();
    changes.insert(&revision);
    world.services.store.commit(changes).await.unwrap();
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let page = browser.read(&format!("/specifications/{spec}")).await.text;
    let hidden = format!("name=\"hash\" value=\"{}\"", revision.hash);
    // Approve it, ask for changes to it, reject it.
    assert_eq!(page.matches(&hidden).count(), 3, "{page}");
    let before = world.rows().await;
    let old = ContentHash::of(b"old").to_string();
    let fields = [("text", "Fewer\n<b>words</b>"), ("hash", &old)];
    for verb in ["revise", "reject"] {
        let path = format!("/specifications/{spec}/{verb}");
        let refused = browser.send(&path, &fields, Some(&proof)).await;
        assert_eq!(refused.status, 409, "{verb}: {}", refused.text);
        for told in [
            "has changed since it was shown",
            "What you wrote",
            "readonly>\nFewer\n&#60;b&#62;words&#60;/b&#62;</textarea>",
        ] {
            assert!(refused.text.contains(told), "no {told}: {}", refused.text);
        }
        let body = json!({ "text": "Fewer words", "hash": old });
        let refused = world.send(&format!("/api{path}"), &body).await;
        assert_problem(&refused, 409, "specification");
        let body = json!({ "text": "Fewer words", "hash": "abc" });
        assert_problem(
            &world.send(&format!("/api{path}"), &body).await,
            400,
            "usage",
        );
    }
    assert_eq!(world.rows().await, before);
    let new = ContentHash::of(b"new").to_string();
    let path = format!("/specifications/{spec}");
    let fields = [("text", "Fewer words"), ("hash", &new)];
    let revised = browser
        .send(&format!("{path}/revise"), &fields, Some(&proof))
        .await;
    assert_eq!(revised.status, 303, "{}", revised.text);
    let body = json!({ "text": "Not wanted", "hash": new });
    let rejected = world.send(&format!("/api{path}/reject"), &body).await;
    assert_eq!(rejected.status, 200, "{}", rejected.text);
    let shown = world.read(&format!("/api{path}")).await;
    assert_eq!(
        (&shown["state"], &shown["feedback"]),
        (&json!("rejected"), &json!(["Fewer words"]))
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_logged_in_no_more_keeps_what_was_written() {
    let world = ServerWorld::new().await;
    let browser = Browser::new(&world).await;
    let proof = browser.proof().await;
    let left = browser.send("/leave", &[], Some(&proof)).await;
    assert_eq!(left.status, 200, "{}", left.text);
    let before = world.rows().await;
    let fields = [("text", "Walks of mine"), ("title", "Walks")];
    for proof in [Some(proof.as_str()), None] {
        let refused = browser.send("/ideas", &fields, proof).await;
        assert_eq!(refused.status, 401, "{}", refused.text);
        assert!(
            refused.text.contains("Walks of mine\n\nWalks</textarea>"),
            "{}",
            refused.text
        );
        assert!(!refused.text.contains("Bearer"), "{}", refused.text);
    }
    assert_eq!(world.rows().await, before);
    world.stop().await;
}
