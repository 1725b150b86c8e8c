//! The provider of tests brings what its model answers, in every format.

use std::mem::discriminant;
use std::sync::Arc;

use anyhow::{Context, ensure};
use ropewalk_llm::{Message, Model, ModelError, ModelRequest, Reply, Script, ScriptedModel};
use ropewalk_runtime::Clock;
use ropewalk_world::provider::{WireFormat, over_http};
use tokio_util::sync::CancellationToken;

const WHOLE: &str = r#"
- contains: calls
  reply: { text: "Let me see: é\n\"this\".\n", tools: [{ name: read, input: { path: "a \\ b" } }, { name: ls }] }
- { contains: cut, reply: { text: half a, stop: max_tokens } }
- { contains: declined, reply: { text: no, stop: content_filter } }
- { contains: garbles, reply: { tools: [{ name: read, malformed: '{"path": ' }] } }
- reply: { text: Hello. }
"#;

async fn asked(model: &dyn Model, text: &str) -> Result<Reply, ModelError> {
    let request = ModelRequest::new("m", "Be brief.", vec![Message::user(text)]);
    model.ask(&request, &CancellationToken::new()).await
}

/// Returns a model that plays `script`, and what asks it over HTTP.
fn both(script: &str, format: WireFormat) -> anyhow::Result<[Arc<dyn Model>; 2]> {
    let script = Script::parse(script)?;
    let model: Arc<dyn Model> = Arc::new(ScriptedModel::new(script, Clock::system()));
    Ok([Arc::clone(&model), over_http(model, format)?])
}

#[tokio::test]
async fn every_format_brings_the_reply_that_the_model_gave() -> anyhow::Result<()> {
    for format in WireFormat::ALL {
        let [near, far] = both(WHOLE, format)?;
        for text in ["calls", "cut", "declined", "garbles", "greets"] {
            // There arguments are no text, so that none can be garbled.
            if (text, format) == ("garbles", WireFormat::Gemini) {
                continue;
            }
            let reply = asked(&near, text).await;
            assert_eq!(asked(&far, text).await, reply, "{format:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_format_fails_as_the_model_does() -> anyhow::Result<()> {
    let kinds = [
        "unauthorized",
        "rate_limited",
        "overloaded",
        "context_overflow",
        "network",
        "truncated",
        "malformed",
        "refused",
    ];
    for (format, kind) in WireFormat::ALL
        .into_iter()
        .flat_map(|format| kinds.map(|kind| (format, kind)))
    {
        let error = format!("kind: {kind}, message: not now, retry_after_seconds: 600");
        let [near, far] = both(&format!("- reply: {{ error: {{ {error} }} }}"), format)?;
        let (near, far) = (asked(&near, "x").await, asked(&far, "x").await);
        let near = near.err().context("an error")?;
        let far = far.err().with_context(|| format!("{format:?} {kind}"))?;
        assert_eq!(discriminant(&near), discriminant(&far), "{format:?}: {far}");
        assert_eq!(near.retry_after(), far.retry_after(), "{format:?}: {far}");
        let told = match &far {
            ModelError::Network { .. } | ModelError::Malformed { .. } | ModelError::Truncated => {
                true
            }
            other => other.to_string().contains("not now"),
        };
        ensure!(told, "{format:?}: {far}");
    }
    Ok(())
}
