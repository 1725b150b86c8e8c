//! What was answered survives a process that is killed, and what was not answered is there whole or not at all.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use futures::future::join_all;
use ropewalk_runtime::{Clock, Ids};
use ropewalk_schemas::timer::Timer;
use ropewalk_store::{EventFilter, Query};

use crate::support::{Bench, changes, subscription};

/// Names the database to the child; absent in an ordinary run.
const DATABASE: &str = "ROPEWALK_STORE_TEST_DATABASE";

/// How a child says that a commit was answered.
const ANSWERED: &str = "answered ";

#[tokio::test(flavor = "multi_thread")]
async fn child_that_writes_until_it_is_killed() {
    let Some(location) = std::env::var_os(DATABASE) else {
        return;
    };
    let clock = Clock::system();
    let bench = Bench {
        ids: Ids::system(clock.clone()),
        clock,
        location: location.into_string().unwrap(),
        ..Bench::new()
    };
    let store = bench.open().await;
    let task = subscription("pm", &["task.*"]);
    store.subscribe(&task).await.unwrap();
    loop {
        join_all((0..16).map(async |_| {
            let event = bench.retry("task/b/T-1");
            let timer = bench.timer(&event.id.to_string());
            let both = changes(|c| c.emit(event).insert(&timer));
            store.commit(both).await.unwrap();
            writeln!(std::io::stdout(), "{ANSWERED}{}", timer.name).unwrap();
        }))
        .await;
    }
}

/// Runs a child until it has had `answers`, kills it, and returns every event it was told to be committed.
fn run_and_kill(bench: &Bench, answers: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crashes::child_that_writes_until_it_is_killed"])
        .arg("--nocapture")
        .env(DATABASE, &bench.location)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = Vec::new();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in lines {
        // A line that the kill cut short was not told.
        let Ok(line) = line else { break };
        let Some((_, id)) = line.split_once(ANSWERED) else {
            continue;
        };
        if id.len() == 36 {
            told.push(id.to_owned());
        }
        if told.len() == answers {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    told
}

async fn a_killed_process_loses_nothing_that_was_answered(bench: Bench) {
    let mut told = BTreeSet::new();
    for answers in [1, 40, 150] {
        let fresh = run_and_kill(&bench, answers);
        assert!(fresh.len() >= answers, "the child was not killed in time");
        told.extend(fresh);
    }
    let store = bench.open().await;
    let events = store.events(&EventFilter::default()).await.unwrap();
    let timers = store.list::<Timer>(Query::new()).await.unwrap();
    let stored: BTreeSet<String> = events.iter().map(|e| e.event.id.to_string()).collect();
    let named: BTreeSet<String> = timers.iter().map(|timer| timer.name.clone()).collect();
    assert!(stored.is_superset(&told), "an answered commit is lost");
    assert_eq!(stored, named, "half a change set is there");
    let open = store.statistics().await.unwrap().open_deliveries;
    assert_eq!(open, u64::try_from(stored.len()).unwrap());
}

on_each_database! {
    a_killed_process_loses_nothing_that_was_answered,
}
