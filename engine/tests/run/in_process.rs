//! What cannot be asked over HTTP, each with the reason; all else is run both ways.

use ropewalk_engine::{EngineError, Toolbox};
use ropewalk_llm::ModelError;

use crate::support::{ScriptedEngine, job};

/// No provider knows of scripts, so that none can say that a rule is missing.
#[tokio::test]
async fn a_call_that_no_rule_answers_is_named() -> anyhow::Result<()> {
    let silent = ScriptedEngine::new("[]").await?;
    let ended = silent.run(&job(Toolbox::default())).await;
    assert!(matches!(ended, Err(EngineError::Model(ModelError::Script { key })) if key.turn == 1));
    Ok(())
}
