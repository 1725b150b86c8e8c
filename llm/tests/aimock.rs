//! Speaks every wire format to the third-party emulator aimock, which serves them from one fixture file.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ropewalk_llm::{
    Block, Delta, Message, Model, ModelError, ModelRequest, ProviderConfig, Reply, StopReason,
    ToolSpec, build, complete,
};
use ropewalk_runtime::{Clock, http};
use ropewalk_tests::servers::Aimock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Is an emulator with one provider per wire format.
struct Emulator {
    server: Aimock,
    clock: Clock,
    models: [std::sync::Arc<dyn Model>; 4],
}

impl Emulator {
    fn start() -> Result<Self> {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/aimock.json");
        let server = Aimock::start(&fixtures)?;
        let clock = Clock::manual(chrono::DateTime::UNIX_EPOCH);
        let model = |name: &str, path: &str| -> Result<_> {
            let mut config = ProviderConfig::shipped(name)?;
            config.base_url = server.url() + path;
            Ok(build(&config, Some("k".into()), None, &clock)?)
        };
        let models = [
            model("anthropic", "")?,
            model("openai", "/v1/")?,
            model("openai-responses", "/v1/")?,
            model("gemini", "/v1beta/")?,
        ];
        Ok(Self {
            server,
            clock,
            models,
        })
    }

    /// Asks one provider while the clock of its waits runs fast; returns the deltas as well.
    async fn ask(
        &self,
        model: &dyn Model,
        request: &ModelRequest,
    ) -> (Vec<Delta>, Result<Reply, ModelError>) {
        let cancel = CancellationToken::new();
        let mut deltas = Vec::new();
        let work = async {
            let stream = model.stream(request, &cancel).await?;
            complete(stream, |delta| deltas.push(delta.clone())).await
        };
        let time = async {
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                self.clock.advance(Duration::from_millis(100));
            }
        };
        let reply = tokio::select! {
            reply = work => reply,
            () = time => Err(ModelError::Cancelled),
        };
        (deltas, reply)
    }

    /// Returns how many requests the emulator has seen.
    async fn requests(&self) -> Result<usize> {
        let client = http::client(http::ClientOptions::default())?;
        let url = format!("{}/__aimock/journal", self.server.url());
        let journal: Value = client.get(url).send().await?.json().await?;
        let entries = journal
            .as_array()
            .or_else(|| journal.get("entries").and_then(Value::as_array));
        Ok(entries.context("the journal is a list")?.len())
    }
}

fn says(text: &str) -> ModelRequest {
    ModelRequest::new("some-model", "", vec![Message::user(text)])
}

fn coder(messages: Vec<Message>) -> ModelRequest {
    let mut request = ModelRequest::new("some-model", "You are the coder.", messages);
    request.tools = ["write_file", "list_dir"]
        .map(|name| ToolSpec {
            name: name.to_owned(),
            description: "a tool".to_owned(),
            parameters: json!({ "type": "object",
                "properties": { "path": { "type": "string" } } }),
        })
        .to_vec();
    request
}

fn results(reply: &Reply, listing: &str, is_error: bool) -> Message {
    let result = |call: &ropewalk_llm::ToolUse| Block::ToolResult {
        tool_use_id: call.id.clone(),
        content: listing.to_owned(),
        is_error,
        images: Vec::new(),
    };
    Message::results(reply.tool_uses().map(result).collect())
}

fn joined(deltas: &[Delta]) -> String {
    deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn one_script_gives_the_same_conversation_in_every_format() -> Result<()> {
    let emulator = Emulator::start()?;
    let mut conversations = Vec::new();
    for model in &emulator.models {
        let mut request = coder(vec![Message::user("please write hello")]);
        let (deltas, first) = emulator.ask(model, &request).await;
        let first = first?;
        assert_eq!(joined(&deltas), first.text());
        assert!(
            deltas
                .iter()
                .filter(|delta| matches!(delta, Delta::Text(_)))
                .count()
                > 1,
            "the text came in one piece"
        );
        let whole_calls = deltas.iter().filter_map(|delta| match delta {
            Delta::ToolUse(call) => Some(call),
            _ => None,
        });
        assert!(whole_calls.eq(first.tool_uses()));
        request
            .messages
            .push(Message::assistant(first.blocks.clone()));
        request.messages.push(results(&first, "hello.txt", false));
        let (_, second) = emulator.ask(model, &request).await;
        conversations.push((first, second?));
    }
    let (first, second) = &conversations[0];
    let calls: Vec<_> = first.tool_uses().collect();
    assert_eq!(first.text(), "I will write the file and list the folder.");
    assert_eq!(
        calls[0].input,
        json!({ "path": "hello.txt", "content": "héllo\n\"quoted\" \\ back" })
    );
    assert_eq!(calls[1].input, json!({ "path": "." }));
    assert_eq!(first.stop, StopReason::ToolUse);
    assert_eq!(
        (first.usage.input_tokens, first.usage.output_tokens),
        (321, 45)
    );
    assert_eq!(second.text(), "Done: hello.txt is written.");
    assert_eq!(second.stop, StopReason::EndTurn);
    assert_eq!(conversations[0], conversations[1]);
    assert_eq!(conversations[0], conversations[2]);
    assert_eq!(conversations[0], conversations[3]);
    Ok(())
}

#[tokio::test]
async fn the_result_of_a_failed_tool_reaches_the_model() -> Result<()> {
    let emulator = Emulator::start()?;
    for model in &emulator.models {
        let mut request = coder(vec![Message::user("please write hello")]);
        let first = emulator.ask(model, &request).await.1?;
        request
            .messages
            .push(Message::assistant(first.blocks.clone()));
        request
            .messages
            .push(results(&first, "permission denied", true));
        let second = emulator.ask(model, &request).await.1?;
        assert_eq!(second.text(), "I could not list the folder.");
    }
    Ok(())
}

#[tokio::test]
async fn a_reply_that_follows_a_schema_is_json() -> Result<()> {
    let emulator = Emulator::start()?;
    for model in &emulator.models {
        let mut request = ModelRequest::new(
            "some-model",
            "You are the planner",
            vec![Message::user("plan it")],
        );
        request.response_schema = Some(json!({ "type": "object" }));
        let reply = emulator.ask(model, &request).await.1?;
        let plan: Value = serde_json::from_str(&reply.text())?;
        assert_eq!(plan["tasks"][0]["file"], "hello.txt");
    }
    Ok(())
}

#[tokio::test]
async fn an_overloaded_provider_is_asked_again_and_a_limited_one_six_times() -> Result<()> {
    for format in 0..4 {
        let emulator = Emulator::start()?;
        let model = &emulator.models[format];
        let reply = emulator.ask(model, &says("FLAKY")).await.1?;
        assert_eq!(reply.text(), "second try works");
        assert_eq!(emulator.requests().await?, 2);

        let limited = emulator.ask(model, &says("LIMITED")).await.1;
        ensure!(
            matches!(&limited, Err(ModelError::RateLimited { retry_after: Some(after), .. })
                if *after == Duration::from_secs(2)),
            "{limited:?}"
        );
        assert_eq!(emulator.requests().await?, 2 + 6);
    }
    Ok(())
}

#[tokio::test]
async fn a_cut_stream_is_an_error_and_is_not_replayed() -> Result<()> {
    let emulator = Emulator::start()?;
    for model in &emulator.models {
        let before = emulator.requests().await?;
        let (deltas, reply) = emulator.ask(model, &says("CUT")).await;
        assert!(!joined(&deltas).is_empty(), "nothing came before the cut");
        ensure!(
            matches!(
                reply,
                Err(ModelError::Truncated | ModelError::Network { .. })
            ),
            "{reply:?}"
        );
        assert_eq!(emulator.requests().await?, before + 1);
    }
    Ok(())
}

#[tokio::test]
async fn the_token_limit_is_told_and_a_slow_reply_is_read_whole() -> Result<()> {
    let emulator = Emulator::start()?;
    for model in &emulator.models {
        let cut = emulator.ask(model, &says("LENGTH")).await.1?;
        assert_eq!(cut.stop, StopReason::MaxTokens);
        assert_eq!(cut.text(), "{\"title\": \"unfin");
        let slow = emulator.ask(model, &says("SLOW")).await.1?;
        assert_eq!(slow.text(), "a word at a time");
    }
    Ok(())
}
