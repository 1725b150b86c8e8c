//! Lets the third-party emulator llmock inject faults and judge how the providers met them.
//!
//! The clock is the real one: the emulator measures how long a retry waited.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use ropewalk_llm::{
    Message, Model, ModelError, ModelRequest, ProviderConfig, Reply, StopReason, ToolSpec, build,
};
use ropewalk_runtime::{Clock, http};
use ropewalk_tests::servers::Llmock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Is an emulator with one provider per wire format.
struct Emulator {
    server: Llmock,
    client: reqwest::Client,
    models: [Arc<dyn Model>; 2],
}

impl Emulator {
    fn start() -> Result<Self> {
        let server = Llmock::start()?;
        let clock = Clock::system();
        let model = |name: &str, path: &str| -> Result<_> {
            let mut config = ProviderConfig::shipped(name)?;
            config.base_url = server.url() + path;
            Ok(build(&config, Some("k".into()), None, &clock)?)
        };
        let models = [model("anthropic", "/anthropic")?, model("openai", "/v1")?];
        Ok(Self {
            client: http::client(http::ClientOptions::default())?,
            server,
            models,
        })
    }

    /// Forgets what was, and queues faults.
    async fn queue(&self, behaviors: Value) -> Result<()> {
        let post = |path: &str| self.client.post(format!("{}{path}", self.server.url()));
        let reset = post("/_llmock/reset").send().await?;
        reset.error_for_status()?;
        let queue = post("/_llmock/scenario").json(&json!({ "behaviors": behaviors }));
        queue.send().await?.error_for_status()?;
        Ok(())
    }

    /// Returns how many requests came, having checked that the faults fired and nothing was met wrongly.
    async fn verdict(&self, faults: u64) -> Result<u64> {
        let url = format!("{}/_llmock/verdict", self.server.url());
        let verdict: Value = self.client.get(url).send().await?.json().await?;
        ensure!(verdict["passed"] == true, "{verdict:#}");
        ensure!(verdict["errors"] == 0, "{verdict:#}");
        ensure!(verdict["faults_injected"] == faults, "{verdict:#}");
        verdict["attempts"].as_u64().context("attempts are counted")
    }
}

async fn ask(model: &dyn Model, request: &ModelRequest) -> Result<Reply, ModelError> {
    model.ask(request, &CancellationToken::new()).await
}

fn says(text: &str) -> ModelRequest {
    ModelRequest::new("claude-sonnet-4-5", "be brief", vec![Message::user(text)])
}

fn with_tool(text: &str) -> ModelRequest {
    let mut request = says(text);
    request.tools = vec![ToolSpec {
        name: "write_file".to_owned(),
        description: "write a file".to_owned(),
        parameters: json!({ "type": "object", "required": ["path"],
            "properties": { "path": { "type": "string" } } }),
    }];
    request
}

#[tokio::test]
async fn passing_faults_before_any_output_are_waited_out() -> Result<()> {
    let emulator = Emulator::start()?;
    let faults = [
        json!([{ "type": "fail", "status": 429, "retry_after": 1 }]),
        json!([{ "type": "fail", "status": 529 }]),
        json!([{ "type": "fail", "status": 503 }]),
        json!([{ "type": "stream_fault", "kind": "truncate", "after_chunks": 1 }]),
        json!([{ "type": "stream_fault", "kind": "disconnect", "after_chunks": 1 }]),
        json!([{ "type": "stream_fault", "kind": "malformed", "after_chunks": 1 }]),
    ];
    for model in &emulator.models {
        for fault in &faults {
            emulator.queue(fault.clone()).await?;
            let reply = ask(model, &says("hello")).await;
            let reply = reply.with_context(|| format!("{} {fault}", model.name()))?;
            assert_eq!(reply.stop, StopReason::EndTurn);
            assert!(!reply.text().is_empty() && reply.usage.output_tokens > 0);
            let attempts = emulator.verdict(1).await;
            let attempts = attempts.with_context(|| format!("{} {fault}", model.name()))?;
            assert_eq!(attempts, 2, "{} {fault}", model.name());
        }
    }
    Ok(())
}

#[tokio::test]
async fn lasting_refusals_are_not_asked_again() -> Result<()> {
    let emulator = Emulator::start()?;
    for model in &emulator.models {
        for status in [400, 401, 403, 404] {
            let fail = json!([{ "type": "fail", "status": status, "times": 3 }]);
            emulator.queue(fail).await?;
            let error = ask(model, &says("hello")).await.err();
            let error = error.context("a refusal is an error")?;
            ensure!(!error.retryable(), "{error:?}");
            if status == 401 {
                ensure!(error.to_string().contains("_API_KEY"), "{error}");
            }
            assert_eq!(emulator.verdict(1).await?, 1, "{status}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_reply_cut_after_output_is_an_error_that_the_caller_may_ask_again() -> Result<()> {
    let emulator = Emulator::start()?;
    let faults = ["truncate", "disconnect", "malformed"];
    for model in &emulator.models {
        for kind in faults {
            let cut = json!([{ "type": "stream_fault", "kind": kind, "after_chunks": 5 }]);
            emulator.queue(cut).await?;
            let error = ask(model, &says("tell me a long story")).await.err();
            let error = error.with_context(|| format!("{kind} was taken for a whole reply"))?;
            ensure!(error.retryable(), "{error:?}");
            let reply = ask(model, &says("tell me a long story")).await?;
            assert_eq!(reply.stop, StopReason::EndTurn);
            assert_eq!(emulator.verdict(1).await?, 2, "{kind}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn tool_calls_arrive_whole_even_when_the_model_writes_nonsense() -> Result<()> {
    let emulator = Emulator::start()?;
    for model in &emulator.models {
        let scripted = json!([{ "type": "reply",
            "tool_calls": [{ "name": "write_file", "arguments": { "path": "a.txt" } }] }]);
        emulator.queue(scripted).await?;
        let reply = ask(model, &with_tool("write the file")).await?;
        let calls: Vec<_> = reply.tool_uses().collect();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].input, json!({ "path": "a.txt" }));
        assert_eq!(reply.stop, StopReason::ToolUse);

        let malformed = json!([{ "type": "tool_fault", "kind": "malformed_arguments" }]);
        emulator.queue(malformed).await?;
        let reply = ask(model, &with_tool("write the file")).await?;
        let call = reply.tool_uses().next().context("a call came")?;
        ensure!(call.malformed && call.input.is_string(), "{call:?}");

        let unknown = json!([{ "type": "tool_fault", "kind": "unknown_tool" }]);
        emulator.queue(unknown).await?;
        let reply = ask(model, &with_tool("write the file")).await?;
        let call = reply.tool_uses().next().context("a call came")?;
        assert_ne!(call.name, "write_file");
        // The emulator counts broken connections only; that these faults fired was seen in the calls.
        assert_eq!(emulator.verdict(0).await?, 1);
    }
    Ok(())
}
