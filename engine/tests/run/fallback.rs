//! Who takes over from a provider that is away or whose quota is used up: over HTTP, in two wire formats.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ropewalk_engine::{
    AgentMode, EngineError, Job, JobEvent, ModelEntry, ModelRole, Models, Observer, Outcome,
    tools_of,
};
use ropewalk_llm::{ProviderConfig, build};
use ropewalk_runtime::Clock;
use ropewalk_schemas::model_call::{ModelCall, UsageBy};
use ropewalk_store::Query;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::{House, counting, entry, job, workbench};

/// Notes who took over from whom, and what was asked otherwise before.
#[derive(Default)]
struct Changes(Mutex<(Successions, Vec<String>)>);

/// Who, and who took over.
type Successions = Vec<(String, String)>;

impl Observer for Changes {
    fn see(&self, event: JobEvent) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            JobEvent::FellBack { from, to, .. } => noted.0.push((from, to)),
            JobEvent::TurnEnded { strayed, .. } => noted.1.extend(strayed),
            _ => {}
        }
    }
}

fn event(value: &serde_json::Value) -> String {
    format!("data: {value}\n\n")
}

/// A reply in the format of the first provider that calls the tool `count`.
fn calls() -> String {
    calls_tool("count", &json!({ "n": 1 }))
}

/// A reply in the format of the first provider that calls this tool.
fn calls_tool(name: &str, input: &serde_json::Value) -> String {
    let thought = json!({ "type": "thinking", "thinking": "hm", "signature": "signed==" });
    let block = json!({ "type": "tool_use", "id": "c", "name": name, "input": input });
    [
        json!({ "type": "message_start", "message": { "model": "big-2026", "usage": { "input_tokens": 3 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": thought }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "content_block_start", "index": 1, "content_block": block }),
        json!({ "type": "content_block_stop", "index": 1 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 5 } }),
        json!({ "type": "message_stop" }),
    ]
    .iter()
    .map(event)
    .collect()
}

/// A reply in the format of the second one that ends the job.
fn ends() -> String {
    let usage = json!({ "input_tokens": 40, "output_tokens": 2,
        "input_tokens_details": { "cached_tokens": 30 } });
    [
        json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "Done." }),
        json!({ "type": "response.completed", "response": { "model": "small", "usage": usage } }),
    ]
    .iter()
    .map(event)
    .collect()
}

/// A reply in the format of the first provider that reads a picture.
fn reads() -> ResponseTemplate {
    streams(calls_tool("read", &json!({ "path": "red.png" })))
}

/// A reply in the format of the first provider that ends the job.
fn says() -> String {
    let block = json!({ "type": "text", "text": "Seen." });
    [
        json!({ "type": "message_start", "message": { "model": "big-2026", "usage": { "input_tokens": 3 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 5 } }),
        json!({ "type": "message_stop" }),
    ]
    .iter()
    .map(event)
    .collect()
}

/// The sample of a picture.
fn red() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpora/image/red.png")
}

async fn server(answers: Vec<ResponseTemplate>) -> MockServer {
    let server = MockServer::start().await;
    let last = answers.len() - 1;
    for (index, answer) in answers.into_iter().enumerate() {
        let mock = Mock::given(method("POST")).respond_with(answer);
        let mock = if index < last {
            mock.up_to_n_times(1)
        } else {
            mock
        };
        mock.mount(&server).await;
    }
    server
}

fn streams(body: String) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}

struct RunRecord {
    outcome: Result<Outcome, EngineError>,
    changes: Vec<(String, String)>,
    strayed: Vec<String>,
    asked: [usize; 2],
    /// The last request to each.
    last: [String; 2],
}

async fn run(house: &House, first: Vec<ResponseTemplate>) -> anyhow::Result<RunRecord> {
    run_job(house, &job(counting()?.0), first).await
}

/// Runs a job whose first provider answers so, beside one that always answers.
async fn run_job(
    house: &House,
    job: &Job,
    first: Vec<ResponseTemplate>,
) -> anyhow::Result<RunRecord> {
    let servers = [server(first).await, server(vec![streams(ends())]).await];
    let mut models = Vec::new();
    for (name, server) in ["anthropic", "openai-responses"].iter().zip(&servers) {
        let mut config = ProviderConfig::shipped(name)?;
        config.base_url = server.uri();
        models.push(build(&config, Some("k".into()), None, &Clock::system())?);
    }
    let second = ModelEntry {
        sees_images: false,
        ..entry(Arc::clone(&models[1]), "small")
    };
    let models = Models::all(entry(Arc::clone(&models[0]), "big"))
        .falling_back_to(ModelRole::Build, vec![second]);
    let changes = Changes::default();
    let cancel = CancellationToken::new();
    let outcome = house.engine_with(models).run(job, &cancel, &changes).await;
    let (mut asked, mut last) = ([0; 2], [String::new(), String::new()]);
    for (index, server) in servers.iter().enumerate() {
        let requests = server.received_requests().await.unwrap_or_default();
        asked[index] = requests.len();
        let body = requests.last().map(|request| request.body.clone());
        last[index] = String::from_utf8(body.unwrap_or_default())?;
    }
    let (changes, strayed) = changes
        .0
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    Ok(RunRecord {
        outcome,
        changes,
        strayed,
        asked,
        last,
    })
}

/// So long a wait is the caller's to keep, so that it is not waited for here.
fn limited() -> ResponseTemplate {
    ResponseTemplate::new(429).insert_header("retry-after", "3600")
}

#[tokio::test]
async fn a_provider_whose_quota_is_used_up_in_mid_job_is_followed_by_the_next_one()
-> anyhow::Result<()> {
    let house = House::new("[]").await?;
    let ran = run(&house, vec![streams(calls()), limited()]).await?;
    assert_eq!(ran.outcome?.text, "Done.");
    let change = (
        "anthropic/big".to_owned(),
        "openai-responses/small".to_owned(),
    );
    assert_eq!((ran.changes, ran.asked), (vec![change], [2, 1]));
    // What it thought goes back to it, and to nobody else.
    let thought = ran.last.map(|body| body.contains("signed=="));
    assert_eq!(thought, [true, false]);
    let used = house.store.usage(UsageBy::Model, Query::new()).await?;
    let named: Vec<(&str, u64, u64)> = used
        .iter()
        .map(|row| {
            (
                row.key.as_deref().unwrap_or_default(),
                row.input_tokens,
                row.cache_read_tokens,
            )
        })
        .collect();
    let expected = [
        ("anthropic/big-2026", 3, 0),
        ("openai-responses/small", 40, 30),
    ];
    assert_eq!(named, expected);
    let calls = house.store.list::<ModelCall>(Query::new()).await?;
    assert!(calls.iter().all(|call| call.duration_ms.is_some()));
    Ok(())
}

#[tokio::test]
async fn who_took_over_is_asked_on_after_a_crash_too() -> anyhow::Result<()> {
    let house = House::new("[]").await?;
    run(&house, vec![limited()]).await?.outcome?;
    // The same job again: its answer is known, and the first provider would answer now.
    let again = run(&house, vec![streams(calls())]).await?;
    assert_eq!(again.outcome?.text, "Done.");
    assert_eq!(again.asked, [0, 0]);
    Ok(())
}

#[tokio::test]
async fn a_request_that_is_refused_for_itself_goes_to_nobody_else() -> anyhow::Result<()> {
    let house = House::new("[]").await?;
    let ran = run(&house, vec![ResponseTemplate::new(400)]).await?;
    assert!(matches!(ran.outcome, Err(EngineError::Model(_))));
    assert_eq!((ran.changes.len(), ran.asked), (0, [1, 0]));
    Ok(())
}

#[tokio::test]
async fn a_provider_that_is_known_to_be_away_is_not_asked_while_another_is_there()
-> anyhow::Result<()> {
    let house = House::new("[]").await?;
    let away = run(&house, vec![ResponseTemplate::new(401)]).await?;
    assert_eq!((away.outcome?.text.as_str(), away.asked), ("Done.", [1, 1]));
    let other = Job {
        journal_key: "attempt/other".to_owned(),
        ..job(counting()?.0)
    };
    let next = run_job(&house, &other, vec![streams(calls())]).await?;
    assert_eq!((next.outcome?.text.as_str(), next.asked), ("Done.", [0, 1]));
    Ok(())
}

#[tokio::test]
async fn a_picture_of_the_slot_reaches_who_sees_it_and_whoever_takes_over_is_told_what_it_misses()
-> anyhow::Result<()> {
    let house = House::new("[]").await?;
    let bench = workbench(&house)?;
    std::fs::copy(red(), house.directory.path().join("slot/red.png"))?;
    let job = job(tools_of(AgentMode::Implement, &bench)?);
    let ran = run_job(&house, &job, vec![reads(), limited()]).await?;
    assert_eq!(ran.outcome?.text, "Done.");
    let [seen, unseen] = &ran.last;
    let kind = r#""media_type":"image/png""#;
    assert!(
        seen.contains(kind) && seen.contains("iVBORw0KGgo"),
        "{seen}"
    );
    let told = "this model sees no pictures";
    assert!(
        unseen.contains(told) && !unseen.contains("iVBORw0KGgo"),
        "{unseen}"
    );

    Ok(())
}

#[tokio::test]
async fn a_job_that_saw_a_picture_is_run_again_from_the_journal_and_another_picture_is_told()
-> anyhow::Result<()> {
    let house = House::new("[]").await?;
    let bench = workbench(&house)?;
    let picture = house.directory.path().join("slot/red.png");
    std::fs::copy(red(), &picture)?;
    let job = job(tools_of(AgentMode::Implement, &bench)?);
    let first = run_job(&house, &job, vec![reads(), streams(says())]).await?;
    assert_eq!(
        (first.outcome?.text.as_str(), first.asked),
        ("Seen.", [2, 0])
    );
    let again = run_job(&house, &job, vec![reads()]).await?;
    assert_eq!(
        (again.outcome?.text.as_str(), again.asked),
        ("Seen.", [0, 0])
    );
    assert_eq!(again.strayed, Vec::<String>::new());

    // The last byte of the data: another picture of the same size and length.
    let mut bytes = std::fs::read(&picture)?;
    let at = bytes.len() - 20;
    bytes[at] ^= 1;
    std::fs::write(&picture, bytes)?;
    let other = run_job(&house, &job, vec![reads()]).await?;
    let [told] = other.strayed.as_slice() else {
        anyhow::bail!("{:?}", other.strayed);
    };
    assert!(told.contains("the result of `read` differs"), "{told}");
    Ok(())
}
