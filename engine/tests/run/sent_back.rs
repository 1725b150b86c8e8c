//! Results that do not hold go back into the conversation that made them.

use ropewalk_engine::{EngineError, SilentObserver, Toolbox};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{ScriptedEngine, counting, job, results, submission};

const TWO_TRIES: &str = r#"
- { attempt: 1, turn: 1, reply: { tools: [{ name: finish, input: { number: 1 } }] } }
- attempt: 2
  turn: 1
  contains: "line 3 is wrong"
  reply: { text: I see., tools: [{ name: count, input: {} }] }
- { attempt: 2, turn: 2, reply: { tools: [{ name: finish, input: { number: 2 } }] } }
"#;

#[tokio::test]
async fn a_result_that_does_not_hold_is_answered_and_the_same_conversation_goes_on()
-> anyhow::Result<()> {
    let scripted = ScriptedEngine::new(TWO_TRIES).await?;
    let mut job = job(counting()?.0);
    job.submission = Some(submission(1));
    let cancel = CancellationToken::new();
    for run in 1..=2 {
        let engine = scripted.engine();
        let mut session = engine.open(&job)?;
        let first = session.run(&cancel, &SilentObserver).await?;
        assert_eq!(first.submission, Some(json!({ "number": 1 })));
        assert_eq!(session.turn(), 1);
        session.send_back("line 3 is wrong");
        let second = session.run(&cancel, &SilentObserver).await?;
        assert_eq!(second.submission, Some(json!({ "number": 2 })));
        assert_eq!((session.turn(), second.turns), (3, 3));
        let requests = scripted.requests();
        assert_eq!(
            requests.len(),
            3,
            "run {run}: what was answered is not asked again"
        );
        let last = &requests[2].messages;
        assert_eq!(last[..requests[0].messages.len()], requests[0].messages[..]);
        assert_eq!(
            results(&last[2]),
            [("line 3 is wrong".to_owned(), true)],
            "the failure is the result of the call"
        );
    }
    Ok(())
}

#[tokio::test]
async fn every_try_has_turns_of_its_own() -> anyhow::Result<()> {
    let scripted =
        ScriptedEngine::new("- reply: { tools: [{ name: finish, input: { number: 1 } }] }").await?;
    let mut job = job(Toolbox::default());
    job.submission = Some(submission(1));
    job.limits.turns = 1;
    let engine = scripted.engine();
    let mut session = engine.open(&job)?;
    let cancel = CancellationToken::new();
    for _ in 0..3 {
        session.run(&cancel, &SilentObserver).await?;
        session.send_back("not yet");
    }
    let talks = ScriptedEngine::new("- reply: { tools: [{ name: count, input: {} }] }").await?;
    job.tools = counting()?.0;
    let engine = talks.engine();
    let ended = engine.open(&job)?.run(&cancel, &SilentObserver).await;
    assert!(
        matches!(ended, Err(EngineError::TurnLimit { turns: 1 })),
        "{ended:?}"
    );
    Ok(())
}
