//! What an earlier version of the program left is mapped to what this one knows.

use ropewalk_schemas::agent::{AgentState, Component};
use ropewalk_store::{Query, Record};

use crate::support::{Bench, name, start};

/// The last change of the tables before the scheduler of builds had its name.
const BEFORE_SCHEDULER: i64 = 14;

fn component(of: &str) -> Component {
    Component {
        name: name(of),
        role: "build".to_owned(),
        process: "p1".to_owned(),
        state: AgentState::Idle,
        working_on: None,
        since: start(),
        last_seen: start(),
        stopped: false,
    }
}

async fn a_part_with_a_name_of_before_is_missed_by_nobody(bench: Bench) {
    bench.make_tables(BEFORE_SCHEDULER).await;
    for of in [
        "build-steward",
        "build-steward-2",
        "build-stewards",
        "loop-1",
    ] {
        let row = component(of);
        let body = serde_json::to_string(&row).unwrap();
        let key = row.key();
        bench
            .run(&format!(
                "INSERT INTO components (key, version, role, state, last_seen, body) \
                 VALUES ('{key}', 1, 'build', 'idle', 0, '{body}')"
            ))
            .await;
    }
    let store = bench.open().await;
    let rows = store.list::<Component>(Query::new()).await.unwrap();
    let mut names: Vec<String> = rows.iter().map(|row| row.name.to_string()).collect();
    names.sort();
    assert_eq!(names, ["build-stewards", "loop-1"]);
}

on_each_database! {
    a_part_with_a_name_of_before_is_missed_by_nobody,
}
