//! That a job is the same in each wire format; which one the other tests of this target speak goes by their scripts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ropewalk_engine::SilentObserver;
use ropewalk_llm::{Script, ScriptedModel};
use ropewalk_runtime::Clock;
use ropewalk_schemas::model_call::ModelCall;
use ropewalk_store::Query;
use ropewalk_world::provider::WireFormat;
use tokio_util::sync::CancellationToken;

use crate::support::{ScriptedEngine, counting, job};
use crate::transport;

/// Two calls side by side, one that does not fit and an end in words.
const SCRIPT: &str = r"
- turn: 1
  reply: { text: Let me count., tools: [{ name: count, input: { n: 4 } }, { name: count, input: { n: 5 } }] }
- turn: 2
  contains: count 5 run 2
  reply: { tools: [{ name: count, input: { n: many } }] }
- turn: 3
  reply: { text: 'It is 4, and 5.' }
";

#[tokio::test]
async fn a_job_leaves_the_same_calls_in_each_wire_format() -> anyhow::Result<()> {
    let mut told = Vec::new();
    for format in WireFormat::ALL {
        let scripted = ScriptedEngine::new("[]").await?;
        let model = ScriptedModel::new(Script::parse(SCRIPT)?, Clock::system());
        let engine = scripted.engine_on(transport::to(Arc::new(model), format)?);
        let (toolbox, counter) = counting()?;
        let cancel = CancellationToken::new();
        let outcome = engine.run(&job(toolbox), &cancel, &SilentObserver).await?;
        assert_eq!(outcome.text, "It is 4, and 5.", "{format:?}");
        assert_eq!((outcome.turns, outcome.tool_calls), (3, 3), "{format:?}");
        assert_eq!(counter.runs.load(Ordering::SeqCst), 2, "{format:?}");
        let calls = scripted.store.list::<ModelCall>(Query::new()).await?;
        assert_eq!(calls.len(), 3, "{format:?}");
        let calls = calls.iter().map(|call| {
            let tokens = (call.input_tokens, call.output_tokens);
            (call.reply.clone(), call.asked.clone(), tokens)
        });
        told.push(calls.collect::<Vec<_>>());
    }
    let [first, others @ ..] = &told[..] else {
        anyhow::bail!("there are no formats");
    };
    for other in others {
        assert_eq!(other, first);
    }
    Ok(())
}
