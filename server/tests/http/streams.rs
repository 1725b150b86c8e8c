//! Whoever listens hears everything once and in order, also over a break.

use std::time::{Duration, Instant};

use ropewalk_bus::LiveEvent;
use ropewalk_schemas::Subject;
use serde_json::{Value, json};

use crate::world::{ADA, ServerWorld, answered};

/// How long a test waits for what should come at once.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long it may take until what happened is seen.
const AT_MOST: Duration = Duration::from_secs(2);

/// A stream that is read event by event.
struct Stream {
    response: reqwest::Response,
    read: String,
}

/// What came: its id, its name and its data.
type StreamEvent = (Option<i64>, String, Value);

impl Stream {
    async fn open(world: &ServerWorld, path: &str, last: Option<i64>) -> Self {
        let mut request = world
            .ask("GET", path, ADA)
            .header("Accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            read: String::new(),
        }
    }

    /// Waits for the next event; `None` at the end.
    async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if let Some((block, rest)) = self.read.split_once("\n\n") {
                let came = parse(block);
                self.read = rest.to_owned();
                match came {
                    Some(came) => return Some(came),
                    None => continue,
                }
            }
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk());
            let chunk = chunk.await.unwrap().ok().flatten()?;
            self.read.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    async fn take(&mut self, count: usize) -> Vec<StreamEvent> {
        let mut came = Vec::new();
        while came.len() < count {
            came.push(self.next().await.unwrap());
        }
        came
    }
}

/// Reads an event; a comment is none.
fn parse(block: &str) -> Option<StreamEvent> {
    let field = |name: &str| {
        let mut lines = block.lines();
        lines.find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(':')
                .map(str::trim_start)
        })
    };
    let data = serde_json::from_str(field("data")?).unwrap();
    let id = field("id").map(|id| id.parse().unwrap());
    Some((id, field("event").unwrap_or("message").to_owned(), data))
}

fn ids(came: &[StreamEvent]) -> Vec<i64> {
    came.iter().filter_map(|(id, ..)| *id).collect()
}

async fn begin(world: &ServerWorld, name: &str) {
    let begun = world
        .send(
            "/api/ideation/sessions",
            &json!({ "text": name, "slug": name }),
        )
        .await;
    assert_eq!(begun.status, 201, "{}", begun.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_after_what_was_seen_last_and_misses_nothing() {
    let world = ServerWorld::new().await;
    begin(&world, "before").await;
    let mut stream = Stream::open(&world, "/api/events", None).await;
    begin(&world, "one").await;
    begin(&world, "two").await;
    let came = stream.take(2).await;
    assert_eq!(ids(&came), [2, 3]);
    assert_eq!(came[0].2["type"], "ideation.message");
    drop(stream);
    for name in ["three", "four"] {
        begin(&world, name).await;
    }
    let mut again = Stream::open(&world, "/api/events", Some(2)).await;
    assert_eq!(ids(&again.take(3).await), [3, 4, 5]);
    begin(&world, "five").await;
    assert_eq!(ids(&again.take(1).await), [6]);
    let mut whole = Stream::open(&world, "/api/events?cursor=0", None).await;
    assert_eq!(ids(&whole.take(6).await), [1, 2, 3, 4, 5, 6]);
    world.supervisor.shutdown().begin();
    assert!(
        whole.next().await.is_none(),
        "the end of the program is the end of the stream"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_writer_commits_and_what_is_ephemeral_comes_too_where_it_fits() {
    let world = ServerWorld::new().await;
    let mut all = Stream::open(&world, "/api/events", None).await;
    let mut walks = Stream::open(&world, "/api/events?subject=idea/walks", None).await;
    let mut tasks = Stream::open(&world, "/api/events?type=task.*", None).await;
    let mut others = Stream::open(&world, "/api/events?source=elsewhere", None).await;
    begin(&world, "rivers").await;
    begin(&world, "walks").await;
    assert_eq!(ids(&all.take(2).await), [1, 2]);
    assert_eq!(ids(&walks.take(1).await), [2]);
    let live = |subject: &str, event_type: &str| LiveEvent {
        event_type: event_type.to_owned(),
        subject: Subject::parse(subject).unwrap(),
        data: json!({ "text": "a word" }),
    };
    world
        .services
        .bus
        .live()
        .publish(live("idea/walks", "ideation.delta"));
    world
        .services
        .bus
        .live()
        .publish(live("task/1", "task.progress"));
    let (id, name, data) = walks.next().await.unwrap();
    assert_eq!(
        (id, name.as_str(), &data["data"]["text"]),
        (None, "live", &json!("a word"))
    );
    let (_, _, data) = tasks.next().await.unwrap();
    assert_eq!(data["type"], "task.progress");
    // Nobody tells of these, and each is committed right after a look that found the one before: whoever looked too seldom
    // would be late with all but the first. On a busy machine two may take longer.
    let mut late = Vec::new();
    for last in 3..=7 {
        let slug = format!("lakes-{last}");
        world.elsewhere(&slug).await;
        let committed = Instant::now();
        let came = loop {
            let (id, _, data) = all.next().await.unwrap();
            if id.is_some() {
                break data;
            }
        };
        let took = committed.elapsed();
        late.extend((took >= AT_MOST).then_some(took));
        assert_eq!(
            (&came["sequence"], &came["subject"]),
            (&json!(last), &json!(format!("idea/{slug}")))
        );
        assert_eq!(ids(&others.take(1).await), [last]);
    }
    assert!(late.len() <= 2, "{late:?} are {AT_MOST:?} or more");
    let listed = world.read("/api/events?source=elsewhere").await;
    let listed = listed["items"].as_array().unwrap().len();
    assert_eq!(listed, 5);
    for (header, value) in [("Last-Event-ID", "x"), ("Last-Event-ID", "")] {
        let request = world
            .ask("GET", "/api/events", ADA)
            .header("Accept", "text/event-stream");
        assert_eq!(answered(request.header(header, value)).await.status, 400);
    }
    let nobody = world
        .bare("GET", "/api/events")
        .header("Accept", "text/event-stream");
    assert_eq!(answered(nobody).await.status, 401);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_too_slowly_is_told_and_loses_nothing() {
    let world = ServerWorld::new().await;
    let mut slow = Stream::open(&world, "/api/events", None).await;
    // More than the tail keeps, and more than fits into what lies between two sockets.
    let text = "word ".repeat(400);
    let total = world.many(12_000, &text).await;
    let (mut seen, mut told) = (Vec::new(), false);
    let mut rounds = 0;
    while seen.last() != Some(&total) {
        match slow.next().await {
            Some((Some(id), ..)) => seen.push(id),
            Some((None, name, _)) => told |= name == "reload",
            None => {
                rounds += 1;
                assert!(rounds < 20, "{} of {total}", seen.len());
                slow = Stream::open(&world, "/api/events", seen.last().copied().or(Some(0))).await;
            }
        }
    }
    assert!(told, "nobody was slow enough");
    assert_eq!(seen, (1..=total).collect::<Vec<i64>>());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_a_model_is_told_in_a_line_and_letters_that_lie_are_shown() {
    let world = ServerWorld::new().await;
    let mut stream = Stream::open(&world, "/api/events", None).await;
    let live = world.services.bus.live();
    for (event_type, data) in [
        ("ideation.delta", json!({ "text": "a\u{1b}[31m\n" })),
        (
            "task.step",
            json!({ "kind": "tool_started", "item": "1", "name": "bash", "input": { "command": "echo \u{202e}b" } }),
        ),
    ] {
        live.publish(LiveEvent {
            event_type: event_type.to_owned(),
            subject: Subject::parse("task/1").unwrap(),
            data,
        });
    }
    let came: Vec<Value> = stream
        .take(2)
        .await
        .into_iter()
        .map(|came| came.2)
        .collect();
    assert_eq!(came[0]["data"], json!({ "text": "a\u{241b}[31m\n" }));
    let step = &came[1]["data"];
    assert_eq!(step["input"], json!({ "command": "echo <U+202E>b" }));
    assert_eq!(step["line"], "calls bash command=echo <U+202E>b");
    world.stop().await;
}
