//! Whoever holds connections, floods or speaks for another page keeps nobody else from their work.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ropewalk_schemas::idea::Idea;
use ropewalk_server::Capacity;
use ropewalk_store::Query;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::world::{ADA, ServerWorld, answered};

/// So long may somebody take who does nothing but drip: three times the limits of head and body, for a busy machine.
const ENDED: Duration = Duration::from_secs(30);
/// So long may anybody else take meanwhile: no longer than those.
const SERVED: Duration = Duration::from_secs(30);
/// Where a flood comes from: another machine, as the server sees it.
const FLOODER: &str = "127.0.0.9:0";

/// Opens a connection from an address of this machine.
async fn connect(from: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(from.parse().unwrap()).unwrap();
    socket.connect(to).await.unwrap()
}

/// Drips until the server ends the connection; returns how long that took.
async fn drip(mut stream: TcpStream, first: String, each: &str) -> Duration {
    let began = Instant::now();
    stream.write_all(first.as_bytes()).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let dripping = async {
        while write.write_all(each.as_bytes()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        // What was answered is still to be read.
        std::future::pending::<()>().await;
    };
    let ends = async {
        let mut answer = Vec::new();
        // A reset is an end, too.
        drop(read.read_to_end(&mut answer).await);
    };
    tokio::select! {
        () = ends => began.elapsed(),
        () = dripping => began.elapsed(),
    }
}

/// Lets ada begin ideas one after the other until `until` is there, each in time; returns how many.
async fn works(world: &ServerWorld, until: impl Future<Output = ()>) -> usize {
    let mut until = std::pin::pin!(until);
    let mut begun = 0;
    loop {
        let asked = Instant::now();
        let text = json!({ "text": format!("Walks {begun}") });
        let answer = world.send("/api/ideation/sessions", &text).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        assert!(asked.elapsed() < SERVED, "{:?}", asked.elapsed());
        begun += 1;
        tokio::select! {
            () = until.as_mut() => return begun,
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
    }
}

async fn ideas(world: &ServerWorld) -> usize {
    let ideas = world.services.store.list::<Idea>(Query::new()).await;
    ideas.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_drips_heads_and_bodies_over_hundreds_of_connections_is_ended_and_others_work() {
    let world = ServerWorld::new().await;
    let host = world.address;
    let head = format!(
        "POST /api/ideation/sessions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {ADA}\r\n"
    );
    let body =
        format!("{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut dripping = JoinSet::new();
    for number in 0..300 {
        let stream = connect("127.0.0.1:0", host).await;
        let (first, each) = if number % 2 == 0 {
            (head.clone(), "X-A: b\r\n")
        } else {
            (body.clone(), "1\r\n \r\n")
        };
        dripping.spawn(async move { drip(stream, first, each).await });
    }
    let begun = works(&world, async {
        while let Some(ended) = dripping.join_next().await {
            let ended = ended.unwrap();
            assert!(ended < ENDED, "{ended:?}");
        }
    });
    let begun = begun.await;
    assert!(begun > 3, "they hold on for as long as they may: {begun}");
    assert_eq!(ideas(&world).await, begun, "nothing came of what dripped");
    world.stop().await;
}

/// Asks so often over one connection, and returns the head of each answer.
async fn flood(world: &ServerWorld, count: usize) -> Vec<String> {
    let mut stream = connect(FLOODER, world.address).await;
    let request = format!("GET /livez HTTP/1.1\r\nHost: {}\r\n\r\n", world.address);
    let (mut read, mut write) = stream.split();
    let last = request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let asks = async {
        for _ in 1..count {
            write.write_all(request.as_bytes()).await.unwrap();
        }
        write.write_all(last.as_bytes()).await.unwrap();
    };
    let mut answers = String::new();
    let (read, ()) = tokio::join!(read.read_to_string(&mut answers), asks);
    read.unwrap();
    let heads = answers.split("HTTP/1.1 ").skip(1);
    heads.map(str::to_lowercase).collect()
}

/// Floods until more was asked than is let through in that time; returns the answers, and how many may be let through.
async fn flood_enough(world: &ServerWorld) -> (Vec<String>, usize) {
    // Who is slow asks more: what is let through at once counts for less then.
    for each in [500, 1_000, 2_000] {
        let since = Instant::now();
        let floods = (0..8).map(|_| flood(world, each));
        let answers = futures::future::join_all(floods).await.concat();
        assert_eq!(answers.len(), 8 * each);
        // A burst, and what is let through each second.
        let seconds = usize::try_from(since.elapsed().as_secs()).unwrap() + 1;
        let most = 600 + 300 * seconds;
        if most < answers.len() {
            return (answers, most);
        }
        // The next has a burst of its own again.
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    panic!("this machine asks no more in a second than is let through")
}

#[tokio::test(flavor = "multi_thread")]
async fn who_floods_is_told_how_long_to_wait_and_others_work() {
    let world = ServerWorld::new().await;
    let (mut answers, mut most) = (Vec::new(), 0);
    let begun = works(&world, async {
        (answers, most) = flood_enough(&world).await;
    });
    let begun = begun.await;
    let (refused, served): (Vec<_>, Vec<_>) = answers
        .into_iter()
        .partition(|answer| answer.starts_with("429 "));
    assert!(served.iter().all(|answer| answer.starts_with("200 ")));
    assert!(served.len() >= 600, "a burst is no flood: {}", served.len());
    assert!(served.len() <= most, "{} and not {most}", served.len());
    assert!(!refused.is_empty(), "nobody is refused");
    for answer in &refused {
        assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    }
    assert_eq!(ideas(&world).await, begun);
    // Whoever waits as long is served again.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let again = flood(&world, 10).await;
    assert!(again.iter().all(|answer| answer.starts_with("200 ")));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_was_bound_to_this_machine_opens_nothing_and_others_work() {
    let world = ServerWorld::new().await;
    let port = world.address.port();
    let rebound = async {
        for host in [
            format!("evil.example:{port}"),
            format!("localhost.evil.example:{port}"),
            format!("127.0.0.1.evil.example:{port}"),
            "evil.example".to_owned(),
            String::new(),
        ] {
            for line in [
                "GET /",
                "GET /livez",
                "GET /metrics",
                "GET /api/profile",
                "GET /api/events/stream",
                "GET /login?code=0",
                "POST /api/ideation/sessions",
                "POST /hooks/telegram",
            ] {
                let mut stream = connect("127.0.0.1:0", world.address).await;
                let body = r#"{"text":"Rivers"}"#;
                let request = format!(
                    "{line} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {ADA}\r\nConnection: close\r\n\
                     Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                assert!(
                    answer.starts_with("HTTP/1.1 403"),
                    "{line} {host}: {answer}"
                );
                let answer = answer.to_lowercase();
                assert!(!answer.contains("access-control-allow"), "{answer}");
            }
        }
    };
    let begun = works(&world, rebound).await;
    assert_eq!(ideas(&world).await, begun);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_listens_beyond_the_bound_is_refused_until_somebody_leaves() {
    // What the page of the API says; a test has no room for so many.
    let bounds = Capacity::default();
    assert_eq!((bounds.streams, bounds.connections), (2_048, 4_096));
    assert_eq!(bounds.connections_of_one, 1_280);
    let world = ServerWorld::holding(Capacity {
        streams: 2,
        ..Capacity::default()
    })
    .await;
    let listen = || {
        let asked = world.ask("GET", "/api/events", ADA);
        asked.header("Accept", "text/event-stream")
    };
    let first = listen().send().await.unwrap();
    let second = listen().send().await.unwrap();
    assert_eq!(
        (first.status().as_u16(), second.status().as_u16()),
        (200, 200)
    );
    let refused = answered(listen()).await;
    assert_eq!(
        (refused.status, refused.body["code"].as_str()),
        (429, Some("too-many")),
        "{}",
        refused.text
    );
    assert_eq!(refused.body["message"], "too many listen already");
    assert_eq!(refused.body["next"], "close some of them");
    // Whoever only asks is served.
    assert_eq!(world.read("/api/profile").await["name"], "ada");
    drop(first);
    let begun = Instant::now();
    loop {
        let again = listen().send().await.unwrap();
        if again.status() == 200 {
            break;
        }
        assert!(begun.elapsed() < SERVED, "nobody leaves");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_holds_as_many_connections_as_one_may_keeps_nobody_else_out() {
    let world = ServerWorld::holding(Capacity {
        connections: 8,
        connections_of_one: 4,
        ..Capacity::default()
    })
    .await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(connect(FLOODER, world.address).await);
    }
    for _ in 0..16 {
        let mut more = connect(FLOODER, world.address).await;
        let mut answer = String::new();
        let ended = tokio::time::timeout(SERVED, more.read_to_string(&mut answer));
        ended.await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
        assert!(answer.contains("\"next\":\"close some"), "{answer}");
    }
    assert_eq!(world.read("/api/profile").await["name"], "ada");
    drop(held);
    let request = format!(
        "GET /livez HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        world.address
    );
    let begun = Instant::now();
    loop {
        let mut again = connect(FLOODER, world.address).await;
        // One that is refused still ends before what was written is read.
        again.write_all(request.as_bytes()).await.ok();
        let mut answer = String::new();
        again.read_to_string(&mut answer).await.ok();
        if answer.starts_with("HTTP/1.1 200") {
            break;
        }
        assert!(begun.elapsed() < SERVED, "nobody leaves");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_beyond_the_bound_waits_until_somebody_leaves() {
    let world = ServerWorld::holding(Capacity {
        connections: 2,
        ..Capacity::default()
    })
    .await;
    let held = [
        connect("127.0.0.1:0", world.address).await,
        connect("127.0.0.1:0", world.address).await,
    ];
    let mut waits = connect("127.0.0.1:0", world.address).await;
    let request = format!(
        "GET /livez HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        world.address
    );
    waits.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let early = waits.read_to_string(&mut answer);
    let early = tokio::time::timeout(Duration::from_secs(1), early).await;
    assert!(early.is_err(), "it was served beside two");
    drop(held);
    let served = waits.read_to_string(&mut answer);
    tokio::time::timeout(SERVED, served).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    world.stop().await;
}
