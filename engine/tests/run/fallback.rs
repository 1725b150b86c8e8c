//! Who takes over from a provider that is away, whose quota is used up or whose replies come to nothing: over HTTP, in two
//! wire formats.

mod broken;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::DateTime;
use ropewalk_config::Prompts;
use ropewalk_engine::{
    AgentMode, CompactionPolicy, Engine, EngineError, Job, JobEvent, ModelEntry, ModelRole, Models,
    Observer, Outcome, tools_of,
};
use ropewalk_llm::{ProviderConfig, build};
use ropewalk_runtime::Clock;
use ropewalk_schemas::model_call::{ModelCall, UsageBy};
use ropewalk_store::Query;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::{ScriptedEngine, counting, entry, job, workbench};

/// Notes who took over from whom, and what was asked otherwise before.
#[derive(Default)]
struct Changes {
    noted: Mutex<(Successions, Vec<String>)>,
    /// What the configuration comes to name while a turn runs.
    edit: Option<(Engine, Models)>,
}

/// Who, and who took over.
type Successions = Vec<(String, String)>;

impl Observer for Changes {
    fn see(&self, event: JobEvent) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            JobEvent::FellBack { from, to, .. } => noted.0.push((from, to)),
            JobEvent::TurnEnded { strayed, .. } => {
                noted.1.extend(strayed);
                if let Some((engine, models)) = &self.edit {
                    engine.use_models(models.clone());
                }
            }
            _ => {}
        }
    }
}

fn events(values: &[Value]) -> String {
    let event = |value: &Value| format!("data: {value}\n\n");
    values.iter().map(event).collect()
}

/// A reply in the format of the first provider that calls the tool `count`.
fn calls() -> String {
    calls_tool("count", &json!({ "n": 1 }))
}

/// A reply in the format of the first provider that calls this tool.
fn calls_tool(name: &str, input: &Value) -> String {
    let thought = json!({ "type": "thinking", "thinking": "hm", "signature": "signed==" });
    let call = json!({ "type": "tool_use", "id": "c", "name": name, "input": input });
    reply(&[thought, call], "tool_use")
}

/// A reply in the format of the first provider that speaks for so many tokens, and counts.
fn speaks(number: usize, tokens: usize) -> String {
    let text = json!({ "type": "text", "text": "x".repeat(tokens * 4) });
    let id = format!("c{number}");
    let call = json!({ "type": "tool_use", "id": id, "name": "count", "input": { "n": number } });
    reply(&[text, call], "tool_use")
}

/// A reply in the format of the first provider.
fn reply(blocks: &[Value], stop: &str) -> String {
    let mut all = begins(blocks);
    all += &events(&[
        json!({ "type": "message_delta", "delta": { "stop_reason": stop }, "usage": { "output_tokens": 5 } }),
        json!({ "type": "message_stop" }),
    ]);
    all
}

/// The same without its end.
fn begins(blocks: &[Value]) -> String {
    let begun = json!({ "model": "big-2026", "usage": { "input_tokens": 3 } });
    let mut all = events(&[json!({ "type": "message_start", "message": begun })]);
    for (index, block) in blocks.iter().enumerate() {
        all += &events(&[
            json!({ "type": "content_block_start", "index": index, "content_block": block }),
            json!({ "type": "content_block_stop", "index": index }),
        ]);
    }
    all
}

/// The beginning of a reply in the format of the first provider: it costs 4 tokens.
fn breaks_off() -> String {
    begins(&[json!({ "type": "text", "text": "Seen." })])
}

/// A reply in the format of the second one that ends the job.
fn ends() -> String {
    let usage = json!({ "input_tokens": 40, "output_tokens": 2,
        "input_tokens_details": { "cached_tokens": 30 } });
    events(&[
        json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "Done." }),
        json!({ "type": "response.completed", "response": { "model": "small", "usage": usage } }),
    ])
}

/// A reply in the format of the second one that calls the tool `count`.
fn calls_on() -> String {
    let call = json!({ "type": "function_call", "call_id": "d", "name": "count", "arguments": "{\"n\":2}" });
    events(&[
        json!({ "type": "response.output_item.done", "output_index": 0, "item": call }),
        json!({ "type": "response.completed", "response": { "model": "small", "usage": {} } }),
    ])
}

/// A reply in the format of the first provider that reads a picture.
fn reads() -> ResponseTemplate {
    streams(calls_tool("read", &json!({ "path": "red.png" })))
}

/// A reply in the format of the first provider that ends the job.
fn says() -> String {
    reply(&[json!({ "type": "text", "text": "Seen." })], "end_turn")
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

const PROVIDERS: [&str; 2] = ["anthropic", "openai-responses"];

/// Two providers over HTTP, of which the second takes over from the first.
struct Providers {
    servers: [MockServer; 2],
    models: Models,
    /// Keeps the waits between two tries of a call.
    clock: Clock,
}

impl Providers {
    /// Answers each request with the next answer, and the last one on and on.
    async fn answering(
        first: Vec<ResponseTemplate>,
        second: Vec<ResponseTemplate>,
    ) -> anyhow::Result<Self> {
        Self::within(None, first, second).await
    }

    /// The same, where the first one has so many seconds for a reply.
    async fn within(
        seconds: Option<u64>,
        first: Vec<ResponseTemplate>,
        second: Vec<ResponseTemplate>,
    ) -> anyhow::Result<Self> {
        let clock = Clock::manual(DateTime::UNIX_EPOCH);
        let servers = [server(first).await, server(second).await];
        let mut models = Vec::new();
        let bounds = [seconds, None];
        for ((name, server), seconds) in PROVIDERS.iter().zip(&servers).zip(bounds) {
            let mut config = ProviderConfig::shipped(name)?;
            config.base_url = server.uri();
            if let Some(seconds) = seconds {
                config.timeouts.total_seconds = seconds;
            }
            models.push(build(&config, Some("k".into()), None, &clock)?);
        }
        let second = ModelEntry {
            sees_images: false,
            ..entry(Arc::clone(&models[1]), "small")
        };
        let models = Models::all(entry(Arc::clone(&models[0]), "big"))
            .falling_back_to(ModelRole::Build, vec![second]);
        Ok(Self {
            servers,
            models,
            clock,
        })
    }

    /// Runs a job, on time that passes quickly between two tries of a call.
    async fn run(self, engine: &Engine, job: &Job, changes: Changes) -> anyhow::Result<RunRecord> {
        let cancel = CancellationToken::new();
        let time = async {
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                self.clock.advance(Duration::from_millis(200));
            }
        };
        let outcome = tokio::select! {
            outcome = engine.run(job, &cancel, &changes) => outcome,
            () = time => anyhow::bail!("time has no end"),
        };
        let (mut asked, mut last) = ([0; 2], [String::new(), String::new()]);
        for (index, server) in self.servers.iter().enumerate() {
            let requests = server.received_requests().await.unwrap_or_default();
            asked[index] = requests.len();
            let body = requests.last().map(|request| request.body.clone());
            last[index] = String::from_utf8(body.unwrap_or_default())?;
        }
        let noted = changes.noted.into_inner();
        let (changes, strayed) = noted.unwrap_or_else(PoisonError::into_inner);
        Ok(RunRecord {
            outcome,
            changes,
            strayed,
            asked,
            last,
        })
    }
}

async fn run(scripted: &ScriptedEngine, first: Vec<ResponseTemplate>) -> anyhow::Result<RunRecord> {
    run_job(scripted, &job(counting()?.0), first).await
}

/// Runs a job whose first provider answers so, beside one that always answers.
async fn run_job(
    scripted: &ScriptedEngine,
    job: &Job,
    first: Vec<ResponseTemplate>,
) -> anyhow::Result<RunRecord> {
    let providers = Providers::answering(first, vec![streams(ends())]).await?;
    let engine = scripted.engine_with(providers.models.clone());
    providers.run(&engine, job, Changes::default()).await
}

/// So long a wait is the caller's to keep, so that it is not waited for here.
fn limited() -> ResponseTemplate {
    ResponseTemplate::new(429).insert_header("retry-after", "3600")
}

#[tokio::test]
async fn a_provider_whose_quota_is_used_up_in_mid_job_is_followed_by_the_next_one()
-> anyhow::Result<()> {
    let scripted = ScriptedEngine::new("[]").await?;
    let ran = run(&scripted, vec![streams(calls()), limited()]).await?;
    assert_eq!(ran.outcome?.text, "Done.");
    let change = (
        "anthropic/big".to_owned(),
        "openai-responses/small".to_owned(),
    );
    assert_eq!((ran.changes, ran.asked), (vec![change], [2, 1]));
    // What it thought goes back to it, and to nobody else.
    let thought = ran.last.map(|body| body.contains("signed=="));
    assert_eq!(thought, [true, false]);
    let used = scripted.store.usage(UsageBy::Model, Query::new()).await?;
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
    let calls = scripted.store.list::<ModelCall>(Query::new()).await?;
    assert!(calls.iter().all(|call| call.duration_ms.is_some()));
    Ok(())
}

#[tokio::test]
async fn who_took_over_is_asked_on_after_a_crash_too() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new("[]").await?;
    run(&scripted, vec![limited()]).await?.outcome?;
    // The same job again: its answer is known, and the first provider would answer now.
    let again = run(&scripted, vec![streams(calls())]).await?;
    assert_eq!(again.outcome?.text, "Done.");
    assert_eq!(again.asked, [0, 0]);
    Ok(())
}

#[tokio::test]
async fn who_took_over_is_asked_on_after_an_edit_unless_another_was_put_before_it()
-> anyhow::Result<()> {
    for (edited, text, asked) in [
        ("nothing", "Done.", [1, 2]),
        ("a third one behind", "Done.", [1, 2]),
        ("another first one", "Seen.", [2, 1]),
    ] {
        let scripted = ScriptedEngine::new("[]").await?;
        let first = vec![limited(), streams(says())];
        let second = vec![streams(calls_on()), streams(ends())];
        let providers = Providers::answering(first, second).await?;
        let engine = scripted.engine_with(providers.models.clone());
        let mut models = providers.models.clone();
        let other = entry(Arc::clone(&models.build.model), "other");
        match edited {
            "nothing" => {}
            "another first one" => models.build = other,
            _ => {
                let behind = models.fallbacks.entry(ModelRole::Build).or_default();
                behind.push(other);
            }
        }
        let changes = Changes {
            edit: Some((engine.clone(), models)),
            ..Changes::default()
        };
        let ran = providers.run(&engine, &job(counting()?.0), changes).await?;
        assert_eq!(
            (ran.outcome?.text.as_str(), ran.asked),
            (text, asked),
            "{edited}"
        );
        assert_eq!(ran.changes.len(), 1, "{edited}");
    }
    Ok(())
}

#[tokio::test]
async fn who_has_no_credit_left_or_answers_with_a_page_is_followed_at_once() -> anyhow::Result<()> {
    let page = ResponseTemplate::new(200).set_body_raw("<html>welcome</html>", "text/html");
    // Nothing of a page is an answer, so that it is asked for again before.
    for (answer, requests) in [(ResponseTemplate::new(402), 1), (page, 6)] {
        let scripted = ScriptedEngine::new("[]").await?;
        let ran = run(&scripted, vec![answer]).await?;
        assert_eq!(
            (ran.outcome?.text.as_str(), ran.asked),
            ("Done.", [requests, 1])
        );
        assert_eq!(ran.changes.len(), 1);
    }
    Ok(())
}

#[tokio::test]
async fn whose_reply_takes_longer_than_all_the_time_it_has_is_followed_at_once()
-> anyhow::Result<()> {
    let scripted = ScriptedEngine::new("[]").await?;
    let late = streams(says()).set_delay(Duration::from_mins(1));
    let providers = Providers::within(Some(1), vec![late], vec![streams(ends())]).await?;
    let engine = scripted.engine_with(providers.models.clone());
    let job = job(counting()?.0);
    let ran = providers.run(&engine, &job, Changes::default()).await?;
    assert_eq!((ran.outcome?.text.as_str(), ran.asked[1]), ("Done.", 1));
    // On a busy machine the time may be over before the request has come.
    assert!(ran.asked[0] <= 1, "{:?}", ran.asked);
    Ok(())
}

#[tokio::test]
async fn what_no_minute_has_room_for_is_the_next_ones_where_nothing_can_be_cut()
-> anyhow::Result<()> {
    let error = json!({ "type": "rate_limit_error",
        "message": "Request too large: limit 30000 tokens per minute, requested 45000" });
    let page = json!({ "type": "error", "error": error });
    let scripted = ScriptedEngine::new("[]").await?;
    let large = ResponseTemplate::new(429).set_body_json(page);
    let ran = run(&scripted, vec![large]).await?;
    assert_eq!((ran.outcome?.text.as_str(), ran.asked), ("Done.", [1, 1]));
    assert_eq!(ran.changes.len(), 1);
    Ok(())
}

/// Runs a long talk in which one with a window of 8,192 tokens takes over.
async fn narrows(scripted: &ScriptedEngine) -> anyhow::Result<RunRecord> {
    let lengths = [8_000, 8_000, 1, 1, 1];
    let talk = lengths.into_iter().enumerate();
    let mut first: Vec<ResponseTemplate> = talk
        .map(|(number, tokens)| streams(speaks(number, tokens)))
        .collect();
    first.push(limited());
    let providers = Providers::answering(first, vec![streams(ends())]).await?;
    let mut models = providers.models.clone();
    for second in models.fallbacks.values_mut().flatten() {
        second.window_tokens = Some(8_192);
    }
    let policy = CompactionPolicy {
        threshold_tokens: 100_000,
        prompts: Prompts::shipped()?,
    };
    let engine = scripted.engine_with(models).with_compaction(policy);
    let job = job(counting()?.0);
    providers.run(&engine, &job, Changes::default()).await
}

#[tokio::test]
async fn a_smaller_window_that_takes_over_is_asked_no_more_than_it_holds_and_so_it_is_again()
-> anyhow::Result<()> {
    let scripted = ScriptedEngine::new("[]").await?;
    let ran = narrows(&scripted).await?;
    let talked = ran.outcome?;
    // The one whose quota is used up cannot sum up, either: who took over does it first.
    assert_eq!((talked.text.as_str(), ran.asked), ("Done.", [7, 2]));
    let bytes = ran.last[1].len();
    assert!(bytes < 4 * 4_096, "{bytes}");
    let again = narrows(&scripted).await?;
    assert_eq!((again.outcome?, again.asked), (talked, [0, 0]));
    assert_eq!(again.strayed, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_request_that_is_refused_for_itself_goes_to_nobody_else() -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new("[]").await?;
    let ran = run(&scripted, vec![ResponseTemplate::new(400)]).await?;
    assert!(matches!(ran.outcome, Err(EngineError::Model(_))));
    assert_eq!((ran.changes.len(), ran.asked), (0, [1, 0]));
    Ok(())
}

#[tokio::test]
async fn a_provider_that_is_known_to_be_away_is_not_asked_while_another_is_there()
-> anyhow::Result<()> {
    let scripted = ScriptedEngine::new("[]").await?;
    let away = run(&scripted, vec![ResponseTemplate::new(401)]).await?;
    assert_eq!((away.outcome?.text.as_str(), away.asked), ("Done.", [1, 1]));
    let other = Job {
        journal_key: "attempt/other".to_owned(),
        ..job(counting()?.0)
    };
    let next = run_job(&scripted, &other, vec![streams(calls())]).await?;
    assert_eq!((next.outcome?.text.as_str(), next.asked), ("Done.", [0, 1]));
    Ok(())
}

#[tokio::test]
async fn a_picture_of_the_slot_reaches_who_sees_it_and_whoever_takes_over_is_told_what_it_misses()
-> anyhow::Result<()> {
    let scripted = ScriptedEngine::new("[]").await?;
    let bench = workbench(&scripted)?;
    std::fs::copy(red(), scripted.directory.path().join("slot/red.png"))?;
    let job = job(tools_of(AgentMode::Implement, &bench)?);
    let ran = run_job(&scripted, &job, vec![reads(), limited()]).await?;
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
    let scripted = ScriptedEngine::new("[]").await?;
    let bench = workbench(&scripted)?;
    let picture = scripted.directory.path().join("slot/red.png");
    std::fs::copy(red(), &picture)?;
    let job = job(tools_of(AgentMode::Implement, &bench)?);
    let first = run_job(&scripted, &job, vec![reads(), streams(says())]).await?;
    assert_eq!(
        (first.outcome?.text.as_str(), first.asked),
        ("Seen.", [2, 0])
    );
    let again = run_job(&scripted, &job, vec![reads()]).await?;
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
    let other = run_job(&scripted, &job, vec![reads()]).await?;
    let [told] = other.strayed.as_slice() else {
        anyhow::bail!("{:?}", other.strayed);
    };
    assert!(told.contains("the result of `read` differs"), "{told}");
    Ok(())
}
