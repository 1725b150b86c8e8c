//! What an earlier version of the program left is mapped to what this one knows.

use ropewalk_schemas::agent::{AgentState, Component};
use ropewalk_schemas::notice::{Notice, NoticeState, NoticeText};
use ropewalk_schemas::timer::Timer;
use ropewalk_schemas::{QuestionId, Subject};
use ropewalk_store::{Query, Record};

use crate::support::{Bench, name, start};

/// The last change of the tables before the scheduler of builds had its name.
const BEFORE_SCHEDULER: i64 = 14;
/// The last change of the tables before a notice said that a question reaches nobody.
const BEFORE_NOTICES_TO_NOBODY: i64 = 15;

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
        let columns = [("role", "build"), ("state", "idle"), ("last_seen", "0")];
        let body = serde_json::to_string(&row).unwrap();
        bench.lay("components", &row.key(), &columns, &body).await;
    }
    let store = bench.open().await;
    let rows = store.list::<Component>(Query::new()).await.unwrap();
    let mut names: Vec<String> = rows.iter().map(|row| row.name.to_string()).collect();
    names.sort();
    assert_eq!(names, ["build-stewards", "loop-1"]);
}

async fn a_question_that_reached_nobody_is_one_that_a_notice_says_so_of(bench: Bench) {
    bench.make_tables(BEFORE_NOTICES_TO_NOBODY).await;
    let asked_at = start();
    let milliseconds = asked_at.timestamp_millis().to_string();
    let ids = [1, 2].map(|number| format!("00000000-0000-7000-8000-{number:012}"));
    for (id, state) in ids.iter().zip(["pending", "answered"]) {
        let question = [
            ("state", state),
            ("kind", "blocking"),
            ("asked_at", milliseconds.as_str()),
        ];
        bench.lay("questions", id, &question, "{}").await;
        let target = format!("telegram/{id}");
        let timer = [
            ("name", "notices.unreached"),
            ("target", target.as_str()),
            ("due", "0"),
        ];
        bench.lay("timers", id, &timer, "{}").await;
    }
    let store = bench.open().await;
    assert_eq!(store.count::<Timer>(Query::new()).await.unwrap(), 0);
    let question: QuestionId = ids[0].parse().unwrap();
    let of_it = Query::new()
        .equal("question", question)
        .equal("port", "telegram")
        .equal("open", false);
    let notices = store.list::<Notice>(of_it).await.unwrap();
    let said: Vec<Notice> = notices.into_iter().map(|row| row.record).collect();
    let key = format!("telegram/{question}/");
    let expected = Notice {
        nonce: key.trim_end_matches('/').to_owned(),
        key,
        port: "telegram".to_owned(),
        receiver: String::new(),
        event_type: "question.asked".to_owned(),
        subject: Subject::question(question),
        question: Some(question),
        text: NoticeText::default(),
        urgent: true,
        state: NoticeState::Dead,
        outdated: false,
        messages: Vec::new(),
        earlier: Vec::new(),
        pieces: 0,
        tries: 0,
        repeats: 0,
        error: Some("telegram reaches nobody".to_owned()),
        due: asked_at,
        created_at: asked_at,
        sent_at: None,
    };
    assert_eq!(said, [expected]);
    assert_eq!(store.count::<Notice>(Query::new()).await.unwrap(), 1);
}

on_each_database! {
    a_question_that_reached_nobody_is_one_that_a_notice_says_so_of,
    a_part_with_a_name_of_before_is_missed_by_nobody,
}
