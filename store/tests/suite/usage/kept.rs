//! The sums that the database keeps are those of the calls, whatever became of the calls.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use ropewalk_schemas::model_call::{ModelCall, Spending, Usage, UsageBy};
use ropewalk_store::{Location, Query, Record, Store};
use serde_json::json;

use super::call;
use crate::support::{Bench, changes};

/// The last change of the tables before sums were kept.
const BEFORE_SUMS: i64 = 12;
/// How often calls come, change and go.
const STEPS: u64 = 150;
const BUILD: &str = "00000000-0000-0000-0000-000000000007";

/// What callers ask for: a query, and whether it takes a call.
type Filter = (Query, Box<dyn Fn(&ModelCall) -> bool>);

fn filters(midnight: DateTime<Utc>) -> Vec<Filter> {
    let of_build = || Query::new().equal("build", BUILD);
    let is_of_build = |call: &ModelCall| call.build.is_some_and(|id| id.to_string() == BUILD);
    let is_of_idea =
        |call: &ModelCall| call.idea.as_ref().map(ToString::to_string) == Some("walks".to_owned());
    let (day, second) = (TimeDelta::days(1), TimeDelta::milliseconds(1));
    vec![
        (Query::new(), Box::new(|_| true)),
        (Query::new().equal("idea", "walks"), Box::new(is_of_idea)),
        (
            Query::new().equal("idea", None::<&str>),
            Box::new(|call| call.idea.is_none()),
        ),
        (
            Query::new().not_equal("idea", "walks"),
            Box::new(move |call| !is_of_idea(call)),
        ),
        (of_build(), Box::new(is_of_build)),
        (
            of_build().equal("idea", "walks"),
            Box::new(move |call| is_of_build(call) && is_of_idea(call)),
        ),
        (
            of_build().equal("task", "T-1"),
            Box::new(move |call| is_of_build(call) && call.task.is_some()),
        ),
        (
            Query::new().at_least("at", midnight),
            Box::new(move |call| call.at >= midnight),
        ),
        (
            Query::new()
                .at_least("at", midnight)
                .at_most("at", midnight + day - second),
            Box::new(move |call| call.at >= midnight && call.at < midnight + day),
        ),
        // In the middle of a day, as summaries for people begin.
        (
            Query::new().at_least("at", midnight + day / 2),
            Box::new(move |call| call.at >= midnight + day / 2),
        ),
    ]
}

fn key(by: UsageBy, call: &ModelCall) -> Option<String> {
    match by {
        UsageBy::Idea => call.idea.as_ref().map(ToString::to_string),
        UsageBy::Build => call.build.map(|build| build.to_string()),
        UsageBy::Day => Some(call.at.format("%Y-%m-%d").to_string()),
        UsageBy::Model => Some(match &call.provider {
            Some(provider) => format!("{provider}/{}", call.model),
            None => call.model.clone(),
        }),
    }
}

/// Adds calls up one by one, up to the largest number that a database counts to.
fn added_up(by: UsageBy, calls: &[&ModelCall]) -> Vec<Usage> {
    let mut sums: BTreeMap<Option<String>, Usage> = BTreeMap::new();
    let most = u64::try_from(i64::MAX).unwrap();
    let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more).min(most);
    for call in calls {
        let key = key(by, call);
        let sum = sums.entry(key.clone()).or_insert_with(|| Usage {
            key,
            ..Usage::default()
        });
        add(&mut sum.calls, 1);
        add(&mut sum.input_tokens, call.input_tokens);
        add(&mut sum.output_tokens, call.output_tokens);
        add(&mut sum.cache_read_tokens, call.cache_read_tokens);
        add(&mut sum.cache_write_tokens, call.cache_write_tokens);
        add(&mut sum.known_micro_usd, call.micro_usd.unwrap_or_default());
        add(&mut sum.unpriced_calls, u64::from(call.micro_usd.is_none()));
    }
    sums.into_values().collect()
}

/// Asserts that every sum that anybody asks for is that of the calls which the store holds.
async fn assert_kept(store: &Store, midnight: DateTime<Utc>) {
    let calls = store.list::<ModelCall>(Query::new()).await.unwrap();
    for (query, takes) in filters(midnight) {
        let taken = calls.iter().map(|call| &call.record);
        let taken: Vec<&ModelCall> = taken.filter(|call| takes(call)).collect();
        for by in [UsageBy::Idea, UsageBy::Build, UsageBy::Model, UsageBy::Day] {
            let sums = store.usage(by, query.clone()).await.unwrap();
            assert_eq!(sums, added_up(by, &taken), "{by:?} {query:?}");
        }
        let mut whole = Spending::default();
        for of_day in added_up(UsageBy::Day, &taken) {
            let of_day = of_day.spending();
            whole.calls += of_day.calls;
            whole.tokens += of_day.tokens;
            whole.known_micro_usd += of_day.known_micro_usd;
            whole.unpriced_calls += of_day.unpriced_calls;
        }
        let spending = store.spending(query.clone()).await.unwrap();
        assert_eq!(spending, whole, "{query:?}");
    }
}

/// Numbers that look like no order and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }

    fn call(&mut self, bench: &Bench) -> ModelCall {
        let mut written = json!({
            "key": format!("call '{}'", self.below(30)), "model": format!("m{}", self.below(2)),
            "input_tokens": self.below(1_000), "output_tokens": self.below(1_000),
            "reply": "a zero byte, \0, and its name, \\u0000",
        });
        let minutes = i64::try_from(self.below(4 * 24 * 60)).unwrap();
        written["at"] = json!(bench.clock.now() - TimeDelta::minutes(minutes));
        let mut maybe = |field: &str, value: serde_json::Value| {
            if self.below(3) > 0 {
                written[field] = value;
            }
        };
        maybe("provider", json!("p"));
        maybe("idea", json!("walks"));
        maybe("build", json!(BUILD));
        maybe("task", json!("T-1"));
        maybe("cache_read_tokens", json!(11));
        maybe("cache_write_tokens", json!(13));
        maybe("micro_usd", json!(17));
        call(bench, 0, &written)
    }
}

fn midnight(bench: &Bench) -> DateTime<Utc> {
    let day = bench.clock.now().date_naive() - TimeDelta::days(2);
    day.and_time(chrono::NaiveTime::MIN).and_utc()
}

async fn sums_follow_calls_that_come_change_and_go(bench: Bench) {
    let store = bench.open().await;
    let mut numbers = Numbers(7);
    for step in 0..STEPS {
        // Two of one batch, which may be for the same.
        let calls = [numbers.call(&bench), numbers.call(&bench)];
        let row = store.get::<ModelCall>(&calls[0].key()).await.unwrap();
        let written = match row {
            Some(row) if numbers.below(2) == 0 => changes(|c| c.delete(&row)),
            _ if calls[0].key() == calls[1].key() => changes(|c| c.put(&calls[0])),
            _ => changes(|c| c.put(&calls[0]).put(&calls[1])),
        };
        store.commit(written).await.unwrap();
        if step % 25 == 24 {
            assert_kept(&store, midnight(&bench)).await;
        }
    }
    for row in store.list::<ModelCall>(Query::new()).await.unwrap() {
        store.commit(changes(|c| c.delete(&row))).await.unwrap();
    }
    // What nothing was used for is not told of.
    assert_eq!(store.usage(UsageBy::Day, Query::new()).await.unwrap(), []);
    let nothing = store.spending(Query::new()).await.unwrap();
    assert_eq!(nothing, Spending::default());
}

async fn calls_of_before_are_summed_when_the_tables_change(bench: Bench) {
    bench.make_tables(BEFORE_SUMS).await;
    let mut numbers = Numbers(3);
    for number in 0..40 {
        let call = ModelCall {
            key: number.to_string(),
            ..numbers.call(&bench)
        };
        let text =
            |value: Option<String>| value.map_or("NULL".to_owned(), |text| format!("'{text}'"));
        let body = serde_json::to_string(&call).unwrap();
        let insert = format!(
            "INSERT INTO model_calls VALUES ('{number}', 1, 'build', {}, {}, {}, {}, '{}')",
            text(call.idea.as_ref().map(ToString::to_string)),
            text(call.build.map(|build| build.to_string())),
            text(call.task.as_ref().map(ToString::to_string)),
            call.at.timestamp_millis(),
            body.replace('\'', "''"),
        );
        bench.run(&insert).await;
    }
    let store = bench.open().await;
    assert_eq!(store.count::<ModelCall>(Query::new()).await.unwrap(), 40);
    assert_kept(&store, midnight(&bench)).await;
    // They change and go as ever.
    let rows = store.list::<ModelCall>(Query::new()).await.unwrap();
    let after = ModelCall {
        micro_usd: Some(3),
        idea: None,
        ..rows[1].record.clone()
    };
    let written = changes(|c| c.delete(&rows[0]).update(&rows[1], &after));
    store.commit(written).await.unwrap();
    assert_kept(&store, midnight(&bench)).await;
}

async fn a_provider_that_claims_more_than_can_be_counted_stops_nothing(bench: Bench) {
    let store = bench.open().await;
    for (number, tokens) in [u64::MAX, u64::MAX / 2, 1].into_iter().enumerate() {
        let more =
            json!({ "input_tokens": tokens, "micro_usd": tokens, "build": BUILD, "task": "T-1" });
        let number = i64::try_from(number).unwrap();
        let call = call(&bench, number, &more);
        store.commit(changes(|c| c.insert(&call))).await.unwrap();
    }
    let most = u64::try_from(i64::MAX).unwrap();
    for query in [Query::new(), Query::new().equal("task", "T-1")] {
        for by in [UsageBy::Build, UsageBy::Day] {
            let sums = store.usage(by, query.clone()).await.unwrap();
            let found = (sums[0].input_tokens, sums[0].known_micro_usd);
            assert_eq!(found, (most, most), "{by:?} {query:?}");
        }
        let spending = store.spending(query).await.unwrap();
        assert_eq!((spending.calls, spending.known_micro_usd), (3, most));
    }
}

async fn a_copy_counts_each_call_once(bench: Bench) {
    let store = bench.open().await;
    let mut numbers = Numbers(5);
    for _ in 0..20 {
        let call = numbers.call(&bench);
        store.commit(changes(|c| c.put(&call))).await.unwrap();
    }
    let path = bench.directory.path().join("copy.db");
    store.copy_to(&path).await.unwrap();
    let copy = Store::open(&Location::Sqlite(path), bench.clock.clone())
        .await
        .unwrap();
    assert!(copy.count::<ModelCall>(Query::new()).await.unwrap() > 9);
    assert_kept(&copy, midnight(&bench)).await;
    // It goes on from there.
    let call = numbers.call(&bench);
    copy.commit(changes(|c| c.put(&call))).await.unwrap();
    assert_kept(&copy, midnight(&bench)).await;
    copy.close().await.unwrap();
}

on_each_database! {
    sums_follow_calls_that_come_change_and_go,
    calls_of_before_are_summed_when_the_tables_change,
    a_provider_that_claims_more_than_can_be_counted_stops_nothing,
    a_copy_counts_each_call_once,
}
