//! Replies that break off after their first words: who takes over, when, and within which budgets.

use ropewalk_engine::{Allowance, Budgets, EngineError, Job};
use ropewalk_schemas::model_call::{ModelCall, RefusalKind};
use ropewalk_store::{ChangeSet, Query};
use serde_json::json;

use super::{Changes, Providers, breaks_off, ends, events, run, run_job, streams};
use crate::support::{ScriptedEngine, counting, job};

#[tokio::test]
async fn a_reply_that_was_ended_from_here_is_none_of_those_that_broke_off() -> anyhow::Result<()> {
    // Nor is one of before its kind was written down, whatever is said of it.
    for kind in [Some(RefusalKind::Cancelled), None] {
        assert_none_of_those_that_broke_off(kind).await?;
    }
    Ok(())
}

async fn assert_none_of_those_that_broke_off(kind: Option<RefusalKind>) -> anyhow::Result<()> {
    let scripted = ScriptedEngine::new("[]").await?;
    let ran = run(&scripted, vec![streams(breaks_off())]).await?;
    assert!(ran.outcome.is_err());
    let rows = scripted.store.list::<ModelCall>(Query::new()).await?;
    anyhow::ensure!(rows.len() == 1, "{rows:?}");
    assert_eq!(rows[0].refusal_kind, Some(RefusalKind::Broken));
    let mut others = ChangeSet::new();
    for number in 0..2 {
        others.insert(&ModelCall {
            key: format!("{}{number}", rows[0].key),
            refusal_kind: kind,
            ..rows[0].record.clone()
        });
    }
    scripted.store.commit(others).await?;
    let ran = run(&scripted, vec![streams(breaks_off())]).await?;
    assert_eq!((ran.outcome.is_err(), ran.asked), (true, [1, 0]));
    let ran = run(&scripted, vec![streams(breaks_off())]).await?;
    assert_eq!((ran.outcome?.text.as_str(), ran.asked), ("Done.", [1, 1]));
    Ok(())
}

/// The same as [`breaks_off`], where the provider says that it has a problem of its own.
fn breaks_off_overloaded() -> String {
    let failure = json!({ "type": "overloaded_error", "message": "busy" });
    breaks_off() + &events(&[json!({ "type": "error", "error": failure })])
}

#[tokio::test]
async fn whose_replies_break_off_is_followed_after_the_third_one() -> anyhow::Result<()> {
    for body in [breaks_off(), breaks_off_overloaded()] {
        assert_followed_after_the_third(&body).await?;
    }
    Ok(())
}

async fn assert_followed_after_the_third(body: &str) -> anyhow::Result<()> {
    let first = || vec![streams(body.to_owned())];
    let scripted = ScriptedEngine::new("[]").await?;
    for _ in 0..2 {
        let ran = run(&scripted, first()).await?;
        let cut = matches!(ran.outcome, Err(EngineError::Model(_)));
        assert!(cut, "{:?}", ran.outcome);
        assert_eq!((ran.changes.len(), ran.asked), (0, [1, 0]));
    }
    let ran = run(&scripted, first()).await?;
    assert_eq!((ran.outcome?.text.as_str(), ran.asked), ("Done.", [1, 1]));
    let rows = scripted.store.list::<ModelCall>(Query::new()).await?;
    let broken = rows.iter().filter(|row| row.refusal.is_some()).count();
    assert_eq!((broken, rows.len()), (3, 4));
    // What another job met is none of its own.
    let other = Job {
        journal_key: "attempt/other".to_owned(),
        ..job(counting()?.0)
    };
    let ran = run_job(&scripted, &other, first()).await?;
    assert_eq!((ran.outcome.is_err(), ran.asked), (true, [1, 0]));
    Ok(())
}

#[tokio::test]
async fn nobody_takes_over_beyond_the_budget() -> anyhow::Result<()> {
    // The third reply that breaks off brings them to 12.
    for (tokens, asked) in [(12, [1, 0]), (13, [1, 1])] {
        let scripted = ScriptedEngine::new("[]").await?;
        for _ in 0..2 {
            let ran = run(&scripted, vec![streams(breaks_off())]).await?;
            assert!(ran.outcome.is_err());
        }
        let first = vec![streams(breaks_off())];
        let providers = Providers::answering(first, vec![streams(ends())]).await?;
        let engine = scripted.engine_with(providers.models.clone());
        let project = Allowance {
            tokens: Some(tokens),
            micro_usd: None,
        };
        let engine = engine.with_budgets(Budgets {
            project,
            ..Budgets::default()
        });
        let job = job(counting()?.0);
        let ran = providers.run(&engine, &job, Changes::default()).await?;
        let stopped = matches!(ran.outcome, Err(EngineError::Budget(_)));
        assert_eq!((stopped, ran.asked), (asked[1] == 0, asked), "{tokens}");
        // Nobody is said to have taken over who is not asked.
        assert_eq!(ran.changes.len(), asked[1], "{tokens}");
    }
    Ok(())
}
