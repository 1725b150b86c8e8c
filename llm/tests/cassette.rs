//! What was recorded is played again, delta by delta, or says what differs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use chrono::DateTime;
use futures::StreamExt;
use ropewalk_llm::cassette::{Cassette, Recorder};
use ropewalk_llm::{
    Block, Delta, Message, Model, ModelError, ModelRequest, Script, ScriptedModel, ToolSpec,
};
use ropewalk_runtime::{Clock, secrets};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const CANARY: &str = "sk-canary-of-cassettes-1";

/// Answers twice, with a wait before the second answer, and then limits the rate.
const SCRIPT: &str = r#"
- contains: enough
  reply: { error: { kind: rate_limited, message: slower, retry_after_seconds: 3 } }
- contains: "run 2"
  reply: { text: "done\nand dusted sk-canary-of-cassettes-1\n", delay_ms: 700 }
- reply: { text: "first\nlook\n", tools: [{ name: count, input: { n: 1 } }] }
"#;

fn asking(messages: Vec<Message>) -> ModelRequest {
    let mut request = ModelRequest::new("m", "be brief", messages);
    request.tools = vec![ToolSpec {
        name: "count".to_owned(),
        description: "counts".to_owned(),
        parameters: json!({ "type": "object" }),
    }];
    request
}

/// Returns what is asked one after the other; ids and times are those of `run`.
fn requests(run: u8) -> [ModelRequest; 3] {
    let call = serde_json::from_value(
        json!({ "id": format!("call-{run}"), "name": "count", "input": { "n": 1 } }),
    );
    let call: ropewalk_llm::ToolUse = call.unwrap_or_else(|error| panic!("{error}"));
    let result = Block::ToolResult {
        tool_use_id: call.id.clone(),
        content: format!(
            "run 2 took 0.{run}s, at 2026-03-0{run}T08:00:00Z in /tmp/{run}/slots/1/a"
        ),
        is_error: false,
        images: Vec::new(),
    };
    let begin = vec![Message::user("go")];
    let mut second = begin.clone();
    second.push(Message::assistant(vec![
        Block::Text("first\nlook\n".to_owned()),
        Block::ToolUse(call),
    ]));
    second.push(Message::results(vec![result]));
    [
        asking(begin),
        asking(second),
        asking(vec![Message::user("enough")]),
    ]
}

/// Asks, while the clock runs; returns each item with the milliseconds that it took.
async fn ask(
    model: &dyn Model,
    request: &ModelRequest,
    clock: &Clock,
) -> Vec<(i64, Result<Delta, ModelError>)> {
    let began = clock.now();
    let cancel = CancellationToken::new();
    let work = async {
        let mut stream = match model.stream(request, &cancel).await {
            Ok(stream) => stream,
            Err(error) => return vec![((clock.now() - began).num_milliseconds(), Err(error))],
        };
        let mut items = Vec::new();
        while let Some(item) = stream.next().await {
            items.push(((clock.now() - began).num_milliseconds(), item));
        }
        items
    };
    let time = async {
        loop {
            tokio::time::sleep(Duration::from_millis(2)).await;
            clock.advance(Duration::from_millis(100));
        }
    };
    tokio::select! {
        items = work => items,
        () = time => Vec::new(),
    }
}

fn clock() -> Clock {
    Clock::manual(DateTime::UNIX_EPOCH)
}

#[tokio::test]
async fn what_was_recorded_is_played_again_at_its_pace_whatever_ids_and_times_are_now() -> Result<()>
{
    secrets::keep([CANARY]);
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("cassette.jsonl");
    let clock = clock();
    let script = ScriptedModel::new(Script::parse(SCRIPT)?, clock.clone());
    let recording = Recorder::create(&path)?.around(Arc::new(script), clock.clone());
    let mut heard = Vec::new();
    for request in requests(1) {
        heard.push(ask(&recording, &request, &clock).await);
    }
    let text = std::fs::read_to_string(&path)?;
    assert!(
        !text.contains(CANARY) && text.contains(secrets::STRUCK),
        "{text}"
    );
    assert_eq!(text.lines().count(), 3);

    let player = Cassette::open(&path)?.player("scripted", clock.clone());
    for (request, heard) in requests(2).iter().zip(&heard) {
        let again = ask(&player, request, &clock).await;
        let struck = |items: &[(i64, Result<Delta, ModelError>)]| {
            let items = items.iter().map(|(_, item)| format!("{item:?}"));
            items
                .map(|item| secrets::strike(&item).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(struck(&again), struck(heard));
        let times = |items: &[(i64, _)]| items.iter().map(|(ms, _)| *ms).collect::<Vec<i64>>();
        for (now, then) in times(&again).iter().zip(times(heard)) {
            assert!((now - then).abs() <= 100, "{now} ms instead of {then}");
        }
    }
    assert!(heard[1].last().is_some_and(|(ms, _)| *ms >= 700));
    Ok(())
}

#[tokio::test]
async fn the_first_difference_is_named_and_an_answer_is_given_once() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("cassette.jsonl");
    let clock = clock();
    let script = ScriptedModel::new(Script::parse(SCRIPT)?, clock.clone());
    let recording = Recorder::create(&path)?.around(script, clock.clone());
    for request in requests(1) {
        ask(&recording, &request, &clock).await;
    }
    let player = Cassette::open(&path)?.player("scripted", clock.clone());
    let [first, second, _] = requests(1);
    ask(&player, &first, &clock).await;
    let mut other = second.clone();
    other.messages[2] = Message::results(vec![Block::ToolResult {
        tool_use_id: "call-1".to_owned(),
        content: "run 3".to_owned(),
        is_error: false,
        images: Vec::new(),
    }]);
    let what = |items: Vec<(i64, Result<Delta, ModelError>)>| match items.as_slice() {
        [(_, Err(ModelError::Strayed { what, .. }))] => what.clone(),
        other => format!("{other:?}"),
    };
    let told = what(ask(&player, &other, &clock).await);
    assert_eq!(told, "the result of `count` differs: run 3");
    ask(&player, &second, &clock).await;
    let told = what(ask(&player, &second, &clock).await);
    assert!(told.contains("differ"), "{told}");
    let foreign = Cassette::open(&path)?.player("another", clock.clone());
    let told = what(ask(&foreign, &second, &clock).await);
    assert!(told.contains("`another/m`"), "{told}");
    Ok(())
}

#[test]
fn only_its_owner_may_read_a_cassette_though_all_might_read_what_was_there() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("cassette.jsonl");
    for mode in [None, Some(0o644), Some(0o666)] {
        if let Some(mode) = mode {
            std::fs::write(&path, "old\n")?;
            std::fs::set_permissions(&path, Permissions::from_mode(mode))?;
        }
        drop(Recorder::create(&path)?);
        let found = path.metadata()?;
        assert_eq!(
            (found.permissions().mode() & 0o777, found.len()),
            (0o600, 0)
        );
    }
    Ok(())
}

#[test]
fn a_file_that_is_no_cassette_is_refused_with_its_line() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("cassette.jsonl");
    assert!(Cassette::open(&path).is_err());
    std::fs::write(&path, "{}\n")?;
    let told = Cassette::open(&path).err().map(|error| error.to_string());
    assert!(told.is_some_and(|told| told.contains("line 1")));
    Ok(())
}
