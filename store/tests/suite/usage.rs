//! What model calls used is summed by what they were for.

mod kept;

use chrono::TimeDelta;
use ropewalk_schemas::model_call::{ModelCall, Usage, UsageBy};
use ropewalk_store::Query;
use serde_json::json;

use crate::support::{Bench, changes};

fn call(bench: &Bench, number: i64, more: &serde_json::Value) -> ModelCall {
    let mut call = json!({
        "key": number.to_string(), "role": "build", "model": "m", "reply": null, "input_tokens": 100,
        "output_tokens": 10, "at": bench.clock.now() + TimeDelta::days(number),
    });
    let fields = more.as_object().unwrap().clone();
    call.as_object_mut().unwrap().extend(fields);
    serde_json::from_value(call).unwrap()
}

fn sums(key: Option<&str>, calls: u64, cache_read_tokens: u64, micro_usd: (u64, u64)) -> Usage {
    Usage {
        key: key.map(str::to_owned),
        calls,
        input_tokens: calls * 100,
        output_tokens: calls * 10,
        cache_read_tokens,
        cache_write_tokens: 0,
        known_micro_usd: micro_usd.0,
        unpriced_calls: micro_usd.1,
    }
}

async fn use_is_summed_by_idea_model_and_day(bench: Bench) {
    let store = bench.open().await;
    let calls = [
        call(
            &bench,
            0,
            &json!({ "provider": "b", "idea": "walks", "micro_usd": 7 }),
        ),
        call(
            &bench,
            0,
            &json!({ "key": "x", "provider": "b", "idea": "walks", "cache_read_tokens": 25 }),
        ),
        call(
            &bench,
            1,
            &json!({ "provider": "a", "idea": "rests", "micro_usd": 5 }),
        ),
        // Of before providers were written down, and for nothing in particular.
        call(&bench, 2, &json!({})),
    ];
    let inserted = changes(|c| calls.iter().fold(c, |c, call| c.insert(call)));
    store.commit(inserted).await.unwrap();
    let by = async |by, query| store.usage(by, query).await.unwrap();
    assert_eq!(
        by(UsageBy::Model, Query::new()).await,
        [
            sums(Some("a/m"), 1, 0, (5, 0)),
            sums(Some("b/m"), 2, 25, (7, 1)),
            sums(Some("m"), 1, 0, (0, 1)),
        ]
    );
    assert_eq!(
        by(UsageBy::Idea, Query::new()).await,
        [
            sums(None, 1, 0, (0, 1)),
            sums(Some("rests"), 1, 0, (5, 0)),
            sums(Some("walks"), 2, 25, (7, 1)),
        ]
    );
    let days = by(UsageBy::Day, Query::new().equal("idea", "walks")).await;
    let today = bench.clock.now().format("%Y-%m-%d").to_string();
    assert_eq!(days, [sums(Some(&today), 2, 25, (7, 1))]);
    assert_eq!(by(UsageBy::Day, Query::new()).await.len(), 3);
    assert_eq!(by(UsageBy::Build, Query::new()).await.len(), 1);
    // The one of the most tokens, and of those alike the first.
    for query in [Query::new(), Query::new().not_equal("idea", "none")] {
        assert_eq!(
            by(UsageBy::Idea, query.limit(2)).await,
            [sums(Some("walks"), 2, 25, (7, 1)), sums(None, 1, 0, (0, 1))]
        );
    }
}

on_each_database!(use_is_summed_by_idea_model_and_day);
